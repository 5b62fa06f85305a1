//! All ways between two hosts, and the one that a flow takes.

use std::collections::{BTreeMap, BTreeSet};

use planner::network::{Arc, NetworkError, NodeId};
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
    #[error("{count} shortest ways lead from `{from}` to `{to}`, and at most {MOST_EQUAL} can be shared out")]
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
        let routing = routing::Routing::new(&network, Costs::hops(&network));
        let node = |switch: usize| NodeId(switch as u32);
        let switches = topology.switches.len();
        let port = |arc: Arc| {
            let (from, _) = network.ends(arc);
            let mut links = network.adjacent(from).iter().zip(1..);
            let port = links.find(|((link, _), _)| *link == arc.link);
            (from.index(), port.map_or(0, |(_, port)| port))
        };
        let peers = (0..switches).map(|switch| {
            let links = network.adjacent(node(switch)).iter();
            let peers = links.map(|(_, peer)| Some(peer.index()).filter(|peer| *peer < switches));
            peers.collect()
        });
        let homes = (switches..network.nodes().len()).map(|host| {
            let link = network.adjacent(node(host)).first();
            let (link, switch) = link.ok_or_else(|| {
                NetworkError::Unknown(network.name(node(host)).to_owned())
            })?;
            let (switch, port) = port(network.arc(*link, *switch));
            Ok(Home { switch, port })
        });
        let homes = homes.collect::<Result<Vec<Home>, NetworkError>>()?;
        let ends: BTreeSet<usize> = homes.iter().map(|home| home.switch).collect();
        let pairs = |from: &dyn Fn(usize) -> bool| -> Vec<(usize, usize)> {
            let all = (0..switches).filter(|switch| from(*switch));
            let pairs = all.flat_map(|from| ends.iter().map(move |to| (from, *to)));
            pairs.filter(|(from, to)| from != to).collect()
        };
        let name = |switch: usize| topology.switches[switch].clone();
        let kind = match topology.routing {
            Routing::KShortest(k) => {
                if ends.len() > MOST_ENDS {
                    return Err(WaysError::Ends(ends.len()));
                }
                let mut ways = BTreeMap::new();
                for (from, to) in pairs(&|switch| ends.contains(&switch)) {
                    let found = routing.k_shortest(node(from), node(to), k as usize)?;
                    let hops = found.iter().map(|path| path.iter().map(|arc| port(*arc)).collect());
                    ways.insert((from, to), hops.collect());
                }
                let first = pairs(&|_| true).into_iter().filter_map(|(from, to)| {
                    let onward = routing.next_hops(node(from), node(to));
                    let ports = onward.iter().map(|arc| port(*arc).1);
                    Some(((from, to), ports.min()?))
                });
                Kind::Whole(Whole {
                    ways,
                    shortest: first.collect(),
                })
            }
            Routing::Shortest | Routing::Ecmp => {
                let mut next = BTreeMap::new();
                for (from, to) in pairs(&|_| true) {
                    let count = routing.count_paths(node(from), node(to))?;
                    if count > MOST_EQUAL {
                        let [from, to] = [from, to].map(name);
                        return Err(WaysError::Equal { from, to, count });
                    }
                    let onward = routing.next_hops(node(from), node(to));
                    let mut ports: Vec<u32> = onward.iter().map(|arc| port(*arc).1).collect();
                    ports.sort_unstable();
                    let hops = routing.distance(node(from), node(to))?.hops;
                    next.insert((from, to), NextHops { ports, turn: hash::turn(hops) });
                }
                Kind::Equal(next)
            }
        };
        let numbered = topology.switches.iter().cloned().zip(0..);
        let hosts = topology.hosts.iter().map(|host| host.name.clone()).zip(0..);
        Ok(Some(Ways {
            names: topology.switches.clone(),
            homes,
            numbers: numbered.collect(),
            by_host: hosts.collect(),
            peers: peers.collect(),
            kind,
        }))
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
            switches: hops.iter().map(|(switch, _)| self.names[*switch].clone()).collect(),
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
