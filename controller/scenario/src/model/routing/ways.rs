//! Finds all paths between two hosts, and the path that the hash of a packet selects.

use std::collections::{BTreeMap, BTreeSet};

use planner::network::{Arc, Network, NetworkError, NodeId};
use planner::routing::{self, Costs};

use super::hash;
use crate::model::topology::{Routing, Topology, topology_network};

/// Maximum number of equally short paths between two switches, so that all paths of a flow can be listed.
const MOST_EQUAL: u64 = 64;
/// Maximum number of switches with hosts for which paths between all pairs are computed: 4,032 pairs.
const MOST_ENDS: usize = 64;

/// The reason why the paths of a network cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WaysError {
    /// The planner cannot search the network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// There are more equally short paths between two switches than can be listed.
    #[error(
        "{count} shortest paths lead from `{from}` to `{to}`; weir supports at most {MOST_EQUAL}"
    )]
    Equal {
        /// The switch at the start of the paths.
        from: String,
        /// The switch at the end of the paths.
        to: String,
        /// Number of equally short paths.
        count: u64,
    },
    /// More switches have hosts than the number for which all paths are computed.
    #[error(
        "hosts are attached to {0} switches; with this `routing`, weir supports at most {MOST_ENDS} such switches"
    )]
    Ends(usize),
}

/// A path from one host to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    /// Names of the switches on the path, in order.
    pub switches: Vec<String>,
    /// The egress port at each switch of the path.
    pub ports: Vec<u32>,
}

/// All paths of a network in which several paths lead from one host to another.
#[derive(Debug, Clone)]
pub struct Ways {
    pub(super) names: Vec<String>,
    /// For each host, in the topology's order: its switch, and the switch's port to it.
    pub(super) homes: Vec<Home>,
    numbers: BTreeMap<String, usize>,
    by_host: BTreeMap<String, usize>,
    /// For each switch, by index, and each of its ports, by number less one: index of the neighboring switch; `None`: a host.
    peers: Vec<Vec<Option<usize>>>,
    pub(super) kind: PathSet,
}

/// Index of the switch to which a host is attached, and the switch's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Home {
    pub switch: usize,
    pub port: u32,
}

#[derive(Debug, Clone)]
pub(super) enum PathSet {
    /// All shortest paths. For a switch and the receiver's switch, both by index: the switch's ports on shortest paths.
    Equal(BTreeMap<(usize, usize), NextHops>),
    /// Up to k paths from each sender's switch to each receiver's switch, each stored as a whole.
    Whole(Whole),
}

/// Paths between the switches that have hosts, also longer ones than the shortest.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    /// For the sender's and the receiver's switch, both by index: the paths between them, without the receiver's switch.
    pub ways: BTreeMap<(usize, usize), Vec<Hops>>,
    /// For a switch and the receiver's switch, both by index: the switch's lowest port on a shortest path.
    pub shortest: BTreeMap<(usize, usize), u32>,
}

/// A path as hops in order: index of the switch, number of its egress port.
pub(super) type Hops = Vec<(usize, u32)>;

/// The ports of a switch on the shortest paths to another switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NextHops {
    /// Numbers of the ports on shortest paths, ascending.
    pub ports: Vec<u32>,
    /// Number of bits by which the hash is rotated at this switch.
    pub turn: u8,
}

impl Ways {
    /// The paths of a network; `None` if all hosts have a single path between them, or the topology is a wire.
    ///
    /// # Errors
    ///
    /// Returns [`WaysError`] if there are too many paths.
    pub fn from_topology(topology: &Topology) -> Result<Option<Ways>, WaysError> {
        if topology.routing.is_single() || topology.wire {
            return Ok(None);
        }
        let network = topology_network(topology)?;
        let search = Search {
            routing: routing::Routing::new(&network, Costs::hops(&network)),
            network: &network,
            switches: topology.switches.len(),
        };
        let hosts = search.switches..network.nodes().len();
        let homes = hosts.map(|host| search.home(node(host)));
        let homes = homes.collect::<Result<Vec<Home>, NetworkError>>()?;
        let ends: BTreeSet<usize> = homes.iter().map(|home| home.switch).collect();
        let kind = match topology.routing {
            Routing::KShortest(k) => PathSet::Whole(search.whole(&ends, k as usize)?),
            Routing::Shortest | Routing::Ecmp => PathSet::Equal(search.equal(&ends)?),
        };
        let numbered = topology.switches.iter().cloned().zip(0..);
        let hosts = topology.hosts.iter().map(|host| host.name.clone()).zip(0..);
        let ways = Ways {
            names: topology.switches.clone(),
            homes,
            numbers: numbered.collect(),
            by_host: hosts.collect(),
            peers: (0..search.switches).map(|at| search.peers(at)).collect(),
            kind,
        };
        let mut switches = topology.switches.iter();
        let are_several = switches.any(|switch| ways.told(switch).is_multipath());
        Ok(are_several.then_some(ways))
    }

    /// All paths from one host to another; empty if the receiver is unreachable.
    #[must_use]
    pub fn between(&self, from: &str, to: &str) -> Vec<Way> {
        let Some((from, to)) = self.home(from).zip(self.home(to)) else {
            return Vec::new();
        };
        let hops = match &self.kind {
            _ if from.switch == to.switch => vec![Hops::new()],
            PathSet::Whole(whole) => {
                let ways = whole.ways.get(&(from.switch, to.switch));
                ways.cloned().unwrap_or_default()
            }
            PathSet::Equal(next) => self.spread(next, from.switch, to.switch),
        };
        hops.into_iter().map(|hops| self.way(hops, to)).collect()
    }

    /// The path from one host to another that packets with this hash take; `None` if the receiver is unreachable.
    #[must_use]
    pub fn taken(&self, from: &str, to: &str, hash: u32) -> Option<Way> {
        let (from, to) = self.home(from).zip(self.home(to))?;
        let mut hops = Hops::new();
        let mut at = from.switch;
        while at != to.switch {
            match &self.kind {
                PathSet::Whole(whole) => {
                    let ways = whole.ways.get(&(from.switch, to.switch))?;
                    let way = hash::way(hash, 0, ways.len() as u16);
                    hops.clone_from(ways.get(usize::from(way))?);
                    break;
                }
                PathSet::Equal(next) => {
                    let next = next.get(&(at, to.switch))?;
                    let way = hash::way(hash, next.turn, next.ports.len() as u16);
                    let port = *next.ports.get(usize::from(way))?;
                    hops.push((at, port));
                    at = self.peer(at, port)?;
                }
            }
        }
        Some(self.way(hops, to))
    }

    /// All paths between two switches that follow the next hops, those over the lowest ports first.
    fn spread(
        &self,
        next: &BTreeMap<(usize, usize), NextHops>,
        from: usize,
        to: usize,
    ) -> Vec<Hops> {
        let (mut found, mut begun) = (Vec::new(), vec![(from, Hops::new())]);
        while let Some((at, hops)) = begun.pop() {
            if at == to {
                found.push(hops);
                continue;
            }
            let ports = next.get(&(at, to)).map_or(&[][..], |next| &next.ports);
            for port in ports.iter().rev() {
                if let Some(peer) = self.peer(at, *port) {
                    begun.push((peer, [&hops[..], &[(at, *port)]].concat()));
                }
            }
        }
        found
    }

    fn way(&self, mut hops: Hops, to: Home) -> Way {
        hops.push((to.switch, to.port));
        Way {
            switches: hops
                .iter()
                .map(|(switch, _)| self.names[*switch].clone())
                .collect(),
            ports: hops.iter().map(|(_, port)| *port).collect(),
        }
    }

    fn peer(&self, switch: usize, port: u32) -> Option<usize> {
        let port = usize::try_from(port).ok()?.checked_sub(1)?;
        self.peers.get(switch)?.get(port).copied().flatten()
    }

    fn home(&self, host: &str) -> Option<Home> {
        Some(self.homes[*self.by_host.get(host)?])
    }

    pub(super) fn number(&self, switch: &str) -> Option<usize> {
        self.numbers.get(switch).copied()
    }
}

/// The node with this index in the planner's network, in which all switches come before all hosts.
fn node(number: usize) -> NodeId {
    NodeId(number as u32)
}

/// A search for paths in the planner's network.
struct Search<'n> {
    network: &'n Network,
    routing: routing::Routing<'n>,
    switches: usize,
}

impl Search<'_> {
    /// For each switch and each switch that has hosts, both by index: ports of the first on shortest paths to the second.
    fn equal(
        &self,
        ends: &BTreeSet<usize>,
    ) -> Result<BTreeMap<(usize, usize), NextHops>, WaysError> {
        let mut next = BTreeMap::new();
        for to in ends {
            let distance = |from| self.routing.distance(node(from), node(*to));
            let mut nearest = Vec::new();
            for from in (0..self.switches).filter(|from| from != to) {
                match distance(from) {
                    Ok(distance) => nearest.push((distance.hops, from)),
                    // Reported as a warning when the network is read.
                    Err(NetworkError::Disconnected(..)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            // The paths from a switch are those of its next hops, which are nearer and computed first.
            nearest.sort_unstable();
            let mut ways = vec![0_u64; self.switches];
            ways[*to] = 1;
            for (hops, from) in nearest {
                let onward = self.routing.next_hops(node(from), node(*to));
                let of_next = onward
                    .iter()
                    .map(|arc| ways[self.network.ends(*arc).1.index()]);
                ways[from] = of_next.fold(0, u64::saturating_add);
                if ways[from] > MOST_EQUAL && ends.contains(&from) {
                    return Err(WaysError::Equal {
                        from: self.network.name(node(from)).to_owned(),
                        to: self.network.name(node(*to)).to_owned(),
                        count: ways[from],
                    });
                }
                let mut ports: Vec<u32> = onward.iter().map(|arc| self.port(*arc)).collect();
                ports.sort_unstable();
                let turn = hash::turn(hops);
                next.insert((from, *to), NextHops { ports, turn });
            }
        }
        Ok(next)
    }

    /// Up to `k` paths between all switches with hosts, and the shortest paths from all other switches to them.
    fn whole(&self, ends: &BTreeSet<usize>, k: usize) -> Result<Whole, WaysError> {
        if ends.len() > MOST_ENDS {
            return Err(WaysError::Ends(ends.len()));
        }
        let mut whole = Whole {
            ways: BTreeMap::new(),
            shortest: BTreeMap::new(),
        };
        let hop = |arc: &Arc| (self.network.ends(*arc).0.index(), self.port(*arc));
        for to in ends {
            for from in (0..self.switches).filter(|from| from != to) {
                let onward = self.routing.next_hops(node(from), node(*to));
                if let Some(port) = onward.iter().map(|arc| self.port(*arc)).min() {
                    whole.shortest.insert((from, *to), port);
                }
                if ends.contains(&from) {
                    let found = match self.routing.k_shortest(node(from), node(*to), k) {
                        Ok(found) => found,
                        Err(NetworkError::Disconnected(..)) => continue,
                        Err(error) => return Err(error.into()),
                    };
                    let ways = found.iter().map(|path| path.iter().map(hop).collect());
                    whole.ways.insert((from, *to), ways.collect());
                }
            }
        }
        Ok(whole)
    }

    /// The switch to which a host is attached, and its port; hosts in scenarios have one link.
    fn home(&self, host: NodeId) -> Result<Home, NetworkError> {
        let unknown = || NetworkError::Unknown(self.network.name(host).to_owned());
        let (link, switch) = self.network.adjacent(host).first().ok_or_else(unknown)?;
        Ok(Home {
            switch: switch.index(),
            port: self.port(self.network.arc(*link, *switch)),
        })
    }

    /// For each port of a switch: index of the neighboring switch; `None` if the neighbor is a host.
    fn peers(&self, switch: usize) -> Vec<Option<usize>> {
        let links = self.network.adjacent(node(switch)).iter();
        let peers = links.map(|(_, peer)| Some(peer.index()).filter(|peer| *peer < self.switches));
        peers.collect()
    }

    /// The port number of a switch at a directed link: ports are numbered from 1 in the order of the switch's links.
    fn port(&self, arc: Arc) -> u32 {
        let (from, _) = self.network.ends(arc);
        let mut links = self.network.adjacent(from).iter().zip(1..);
        let port = links.find(|((link, _), _)| *link == arc.link);
        port.map_or(0, |(_, port)| port)
    }
}
