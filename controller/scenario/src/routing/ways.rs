//! All ways between two hosts, and the one that a flow takes.

use std::collections::{BTreeMap, BTreeSet};

use planner::network::{Arc, Network, NetworkError, NodeId};
use planner::routing::{self, Costs};

use super::{Routing, hash};
use crate::topology::{Topology, topology_network};

/// Between two switches there are at most so many ways, so that those of a flow can be told one by one.
const MOST_EQUAL: u64 = 64;
/// Whole ways are told of at most so many switches with hosts: of 4,032 pairs.
const MOST_ENDS: usize = 64;

/// Why there are too many ways.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WaysError {
    /// The network cannot be searched.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// More equal ways than are told one by one.
    #[error(
        "{count} shortest ways lead from `{from}` to `{to}`, and at most {MOST_EQUAL} can be shared out"
    )]
    Equal {
        /// A switch.
        from: String,
        /// Another.
        to: String,
        /// How many there are.
        count: u64,
    },
    /// More switches with hosts than whole ways are told between.
    #[error("hosts stand on {0} switches, and whole ways are told between at most {MOST_ENDS}")]
    Ends(usize),
}

/// A way from one host to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    /// The switches, in order.
    pub switches: Vec<String>,
    /// The port by which it leaves each.
    pub ports: Vec<u32>,
}

/// Ways of a network where several lead to a host.
#[derive(Debug, Clone)]
pub struct Ways {
    pub(super) names: Vec<String>,
    /// The switch of each host and the port that leads to it, in the topology's order.
    pub(super) homes: Vec<Home>,
    numbers: BTreeMap<String, usize>,
    by_host: BTreeMap<String, usize>,
    /// By switch and port - 1: the switch there, if it is one.
    peers: Vec<Vec<Option<usize>>>,
    pub(super) kind: Kind,
}

/// Where a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Home {
    pub switch: usize,
    pub port: u32,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// By switch, and switch of the receiver.
    Equal(BTreeMap<(usize, usize), NextHops>),
    /// Of the sender's switch and the receiver's.
    Whole(Whole),
}

/// Ways as wholes.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    /// By the sender's switch and the receiver's: each way's switches but the last, and the ports by which it leaves them.
    pub ways: BTreeMap<(usize, usize), Vec<Hops>>,
    /// By switch and the receiver's: the first port of the shortest way.
    pub shortest: BTreeMap<(usize, usize), u32>,
}

/// Switches and ports, in order.
pub(super) type Hops = Vec<(usize, u32)>;

/// Where a switch sends on what is for another switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NextHops {
    /// The ports that begin a shortest way, ascending.
    pub ports: Vec<u32>,
    /// By how much the hash is turned here.
    pub turn: u8,
}

impl Ways {
    /// The ways of a network; `None` where there is one between two hosts, or none is chosen.
    ///
    /// # Errors
    ///
    /// [`WaysError`] says of what there is too much.
    pub fn of(topology: &Topology) -> Result<Option<Ways>, WaysError> {
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
            Routing::KShortest(k) => Kind::Whole(search.whole(&ends, k as usize)?),
            Routing::Shortest | Routing::Ecmp => Kind::Equal(search.equal(&ends)?),
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

    /// All ways from one host to another; none where nothing leads there.
    #[must_use]
    pub fn between(&self, from: &str, to: &str) -> Vec<Way> {
        let Some((from, to)) = self.home(from).zip(self.home(to)) else {
            return Vec::new();
        };
        let hops = match &self.kind {
            _ if from.switch == to.switch => vec![Hops::new()],
            Kind::Whole(whole) => {
                let ways = whole.ways.get(&(from.switch, to.switch));
                ways.cloned().unwrap_or_default()
            }
            Kind::Equal(next) => self.spread(next, from.switch, to.switch),
        };
        hops.into_iter().map(|hops| self.way(hops, to)).collect()
    }

    /// The way that packets with a hash take from one host to another.
    #[must_use]
    pub fn taken(&self, from: &str, to: &str, hash: u32) -> Option<Way> {
        let (from, to) = self.home(from).zip(self.home(to))?;
        let mut hops = Hops::new();
        let mut at = from.switch;
        while at != to.switch {
            match &self.kind {
                Kind::Whole(whole) => {
                    let ways = whole.ways.get(&(from.switch, to.switch))?;
                    let way = hash::way(hash, 0, ways.len() as u16);
                    hops.clone_from(ways.get(usize::from(way))?);
                    break;
                }
                Kind::Equal(next) => {
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

    /// All ways by next hops, the lowest ports first.
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

/// A switch's or host's number in a topology's network: switches first.
fn node(number: usize) -> NodeId {
    NodeId(number as u32)
}

/// What is looked for in a network.
struct Search<'n> {
    network: &'n Network,
    routing: routing::Routing<'n>,
    switches: usize,
}

impl Search<'_> {
    /// The next hops of all switches to those with hosts.
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
                    // Told as a warning when the network is read.
                    Err(NetworkError::Disconnected(..)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            // The ways of a switch are those of the next ones together, which are nearer.
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

    /// The ways between all switches with hosts, and the shortest from others.
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

    /// The switch of a host: scenarios' hosts have one link.
    fn home(&self, host: NodeId) -> Result<Home, NetworkError> {
        let unknown = || NetworkError::Unknown(self.network.name(host).to_owned());
        let (link, switch) = self.network.adjacent(host).first().ok_or_else(unknown)?;
        Ok(Home {
            switch: switch.index(),
            port: self.port(self.network.arc(*link, *switch)),
        })
    }

    /// What is behind each port of a switch, if it is a switch.
    fn peers(&self, switch: usize) -> Vec<Option<usize>> {
        let links = self.network.adjacent(node(switch)).iter();
        let peers = links.map(|(_, peer)| Some(peer.index()).filter(|peer| *peer < self.switches));
        peers.collect()
    }

    /// The port by which a switch sends into a link: they are numbered from 1 in the order of its links.
    fn port(&self, arc: Arc) -> u32 {
        let (from, _) = self.network.ends(arc);
        let mut links = self.network.adjacent(from).iter().zip(1..);
        let port = links.find(|((link, _), _)| *link == arc.link);
        port.map_or(0, |(_, port)| port)
    }
}
