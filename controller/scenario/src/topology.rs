//! Hosts, switches, links; numbered ports, addresses, paths.

mod forwarding;
mod mac;
mod network;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

use serde::Serialize;

pub use mac::Mac;
pub use network::{Capacity, Machine, topology_network};

use crate::diagnostic::Span;
use crate::model::Path;
use crate::routing::Routing;

/// Speed of a link where the file says none.
pub const DEFAULT_RATE_BPS: u64 = 1_000_000_000;
/// One-way latency of a link where the file says none.
pub const DEFAULT_LATENCY_NS: u64 = 0;
/// The longest latency that a link may have, one way.
pub const MAX_LATENCY_NS: u64 = 10_000_000_000;
/// What may leave at once at a link's rate in a testbed: enough that the kernel's timer does not limit it.
pub const BURST_BYTES: u32 = 256 << 10;
/// What may wait for a link in a testbed: the windows of a whole job.
pub const QUEUE_BYTES: u32 = 4 << 20;
/// Frames that wait for a link, from which on a switch's port may mark, at most: the embedded switch's rings see no more.
pub const MOST_MARK_AT: u32 = 127;
/// MTU of a link where the file says none.
pub const DEFAULT_MTU: u32 = 1500;

/// A network. In one that runs, every host hangs on one switch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Topology {
    /// Switches in declared order.
    pub switches: Vec<String>,
    /// What switches can take, of those that say it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capacities: BTreeMap<String, Capacity>,
    /// Hosts in declared order.
    pub hosts: Vec<Host>,
    /// Links in declared order.
    pub links: Vec<Link>,
    /// Switches that have died: their links are there, and lead nowhere.
    #[serde(skip)]
    pub gone: BTreeSet<String>,
    /// Which ways packets take where there are several.
    #[serde(skip_serializing_if = "Routing::is_single")]
    pub routing: Routing,
    /// Where that is written, if it is.
    #[serde(skip)]
    pub routing_span: Span,
    /// A wire: one switch between two sides that exist. They have no addresses that we know, and what comes in by one port
    /// leaves by the other.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wire: bool,
    /// What the sides of a wire are, in their order, where the file says it; the command line says it else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<Side>,
}

/// A side of a wire: what there is already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// An interface of this machine.
    Interface(String),
    /// A host in a network namespace of its own: the wire comes between it and what it is connected to.
    Host(HostAt),
    /// What the host at the other side is connected to.
    Network,
}

/// Where a host is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostAt {
    /// Its network namespace.
    #[serde(flatten)]
    pub namespace: NamespaceOf,
    /// Its interface; the only one that it has, besides loopback, if the file does not say.
    pub link: Option<String>,
}

/// How a network namespace is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NamespaceOf {
    /// By name, as `ip netns` has it, or by path.
    Netns(String),
    /// By a process in it.
    Pid(u32),
}

impl NamespaceOf {
    /// The file that stands for it.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            NamespaceOf::Netns(path) if path.contains('/') => path.clone(),
            NamespaceOf::Netns(name) => format!("/run/netns/{name}"),
            NamespaceOf::Pid(pid) => format!("/proc/{pid}/ns/net"),
        }
    }
}

/// A file that holds a topology, read by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologySource {
    /// Its path, for messages; how it ends says what it holds.
    pub file: String,
    /// All of it.
    pub text: String,
}

/// A host and its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its address; all hosts share one /16.
    pub ip: Ipv4Addr,
    /// Its MAC address.
    pub mac: Mac,
    /// What it is made of.
    #[serde(skip_serializing_if = "Machine::is_unsaid")]
    pub machine: Machine,
}

/// A full-duplex link between two nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Names of hosts or switches.
    pub ends: [String; 2],
    /// In each direction.
    pub rate_bps: u64,
    /// One way.
    pub latency_ns: u64,
    /// Where the latency is written, if it is.
    #[serde(skip)]
    pub latency_span: Span,
    /// From how many waiting frames on a switch's port for it marks (ECN); `None`: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark_at: Option<u32>,
    /// Where that is written, if it is.
    #[serde(skip)]
    pub mark_span: Span,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// What it carries already, from the first end to the second, and back; for planners.
    #[serde(skip_serializing_if = "is_unloaded")]
    pub load_bps: [u64; 2],
}

fn is_unloaded(load_bps: &[u64; 2]) -> bool {
    *load_bps == [0, 0]
}

impl Link {
    /// A link with the default rate, latency and MTU.
    #[must_use]
    pub fn new(a: &str, b: &str) -> Link {
        Link {
            ends: [a.to_owned(), b.to_owned()],
            rate_bps: DEFAULT_RATE_BPS,
            latency_ns: DEFAULT_LATENCY_NS,
            latency_span: Span::default(),
            mark_at: None,
            mark_span: Span::default(),
            mtu: DEFAULT_MTU,
            load_bps: [0, 0],
        }
    }

    /// The other end.
    #[must_use]
    pub fn peer(&self, node: &str) -> Option<&str> {
        let [a, b] = &self.ends;
        if a == node {
            Some(b)
        } else if b == node {
            Some(a)
        } else {
            None
        }
    }
}

/// A switch's port, from 1 in the order of the links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port<'a> {
    /// Its number.
    pub number: u32,
    /// What is at the other end.
    pub peer: &'a str,
    /// What leads there.
    pub link: &'a Link,
}

impl Topology {
    /// Hosts around one switch.
    #[must_use]
    pub fn star(switch: &str, hosts: &[&str]) -> Topology {
        let mut topology = Topology {
            switches: vec![switch.to_owned()],
            ..Topology::default()
        };
        for host in hosts {
            topology.add_host(host, switch);
        }
        topology
    }

    /// The name of the switch in a [`Topology::wire_between`].
    pub const WIRE: &'static str = "wire";

    /// One switch between two sides.
    #[must_use]
    pub fn wire_between(sides: [&str; 2]) -> Topology {
        Topology {
            wire: true,
            ..Topology::star(Topology::WIRE, &sides)
        }
    }

    /// The other side of a wire.
    #[must_use]
    pub fn across(&self, from: &str) -> Option<&str> {
        let mut others = self.hosts.iter().filter(|host| host.name != from);
        others
            .next()
            .filter(|_| self.wire)
            .map(|host| host.name.as_str())
    }

    /// Eight workers and a server for training: `core` aggregates and carries the server and six workers; the other two
    /// sit behind `edge`.
    #[must_use]
    pub fn training(workers_on_core: usize, workers_on_edge: usize) -> Topology {
        let switches = vec!["core".to_owned(), "edge".to_owned()];
        let mut topology = Topology {
            switches,
            ..Topology::default()
        };
        for worker in 0..workers_on_core + workers_on_edge {
            let switch = if worker < workers_on_core {
                "core"
            } else {
                "edge"
            };
            topology.add_host(&format!("w{worker}"), switch);
        }
        topology.add_host("server", "core");
        topology.links.push(Link::new("edge", "core"));
        topology
    }

    /// Adds a host with the next addresses, and its link.
    pub fn add_host(&mut self, name: &str, switch: &str) {
        let index = self.hosts.len() + 1;
        self.hosts.push(Host {
            name: name.to_owned(),
            ip: default_ip(index),
            mac: Mac::of_host(index),
            machine: Machine::default(),
        });
        self.links.push(Link::new(name, switch));
    }

    /// What a switch can take.
    #[must_use]
    pub fn capacity(&self, switch: &str) -> Capacity {
        self.capacities.get(switch).copied().unwrap_or_default()
    }

    /// A host by name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Whether there is such a switch.
    #[must_use]
    pub fn has_switch(&self, name: &str) -> bool {
        self.switches.iter().any(|switch| switch == name)
    }

    /// A switch's ports, by number.
    pub fn ports<'a>(&'a self, switch: &'a str) -> impl Iterator<Item = Port<'a>> {
        let attached = self
            .links
            .iter()
            .filter_map(move |link| Some((link, link.peer(switch)?)));
        attached
            .zip(1..)
            .map(|((link, peer), number)| Port { number, peer, link })
    }

    /// The link between two nodes.
    #[must_use]
    pub fn link(&self, a: &str, b: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.peer(a) == Some(b))
    }

    /// The port of a switch that a packet for a host leaves through: on a shortest path, the lowest number first.
    #[must_use]
    pub fn next_hop(&self, switch: &str, host: &str) -> Option<Port<'_>> {
        self.routes_to(host).next_hop(switch)
    }

    /// The ways to a host from everywhere.
    #[must_use]
    pub fn routes_to(&self, host: &str) -> Routes<'_> {
        let hops = self.nodes().map(str::to_owned).zip(self.distances(host));
        let hops = hops
            .filter_map(|(node, hops)| Some((node, hops?)))
            .collect();
        Routes {
            topology: self,
            host: host.to_owned(),
            hops,
        }
    }

    /// The switches that a packet passes between two hosts, in order. `None` when nothing leads there.
    #[must_use]
    pub fn path(&self, from: &str, to: &str) -> Option<Vec<&str>> {
        self.routes_to(to).path_from(from)
    }

    /// The switches from a host, or from another switch, up to a switch: that one is the last. `None` when nothing leads there.
    #[must_use]
    pub fn way_up<'a>(&'a self, from: &str, top: &'a str) -> Option<Vec<&'a str>> {
        let up = self.routes_to(top);
        let mut at: &'a str = match self.switches.iter().find(|switch| *switch == from) {
            Some(switch) => self.next_hop(switch, top)?.peer,
            None => self.links.iter().find_map(|link| link.peer(from))?,
        };
        let mut way = vec![at];
        while at != top && way.len() <= self.switches.len() {
            at = up.next_hop(at)?.peer;
            way.push(at);
        }
        (at == top).then_some(way)
    }

    /// The slowest link of a way between two hosts; of parallel ones the fastest that its packets may take.
    #[must_use]
    pub fn path_rate_bps(&self, path: &Path) -> Option<u64> {
        let nodes: Vec<&str> = path.nodes().collect();
        let rates = nodes.windows(2).map(|ends| {
            let between = self.links.iter();
            let between = between.filter(|link| link.peer(ends[0]) == Some(ends[1]));
            let taken = if self.routing.is_single() {
                1
            } else {
                usize::MAX
            };
            between.take(taken).map(|link| link.rate_bps).max()
        });
        rates.collect::<Option<Vec<u64>>>()?.into_iter().min()
    }

    fn nodes(&self) -> impl Iterator<Item = &str> {
        self.switches
            .iter()
            .map(String::as_str)
            .chain(self.hosts.iter().map(|host| host.name.as_str()))
    }

    /// Hops of each node to a host. Hosts do not forward.
    fn distances(&self, host: &str) -> Vec<Option<usize>> {
        let nodes: Vec<&str> = self.nodes().collect();
        let mut distance = vec![None; nodes.len()];
        let mut queue = VecDeque::new();
        if let Some(start) = nodes.iter().position(|node| *node == host) {
            distance[start] = Some(0);
            queue.push_back(start);
        }
        while let Some(node) = queue.pop_front() {
            for peer in self.links.iter().filter_map(|link| link.peer(nodes[node])) {
                let Some(next) = nodes.iter().position(|other| *other == peer) else {
                    continue;
                };
                if distance[next].is_none() {
                    distance[next] = distance[node].map(|hops| hops + 1);
                    if self.has_switch(peer) {
                        queue.push_back(next);
                    }
                }
            }
        }
        distance
    }
}

/// Distances to one host, so that many paths to it cost one search.
#[derive(Debug, Clone)]
pub struct Routes<'a> {
    topology: &'a Topology,
    host: String,
    hops: BTreeMap<String, usize>,
}

impl<'a> Routes<'a> {
    /// The port of a switch that leads to the host.
    #[must_use]
    pub fn next_hop(&self, switch: &str) -> Option<Port<'a>> {
        let here = self.hops.get(switch)?;
        // The port borrows from the topology, not from the argument.
        let switch = self.topology.switches.iter().find(|name| *name == switch)?;
        self.topology.ports(switch).find(|port| {
            let forwards = port.peer == self.host || self.topology.has_switch(port.peer);
            forwards
                && self
                    .hops
                    .get(port.peer)
                    .is_some_and(|there| there + 1 == *here)
        })
    }

    /// The switches between another host and this one, in order.
    #[must_use]
    pub fn path_from(&self, from: &str) -> Option<Vec<&'a str>> {
        let first = self
            .topology
            .links
            .iter()
            .find_map(|link| link.peer(from))?;
        let mut path = vec![first];
        while path.len() <= self.topology.switches.len() {
            let port = self.next_hop(path[path.len() - 1])?;
            if port.peer == self.host {
                return Some(path);
            }
            path.push(port.peer);
        }
        None
    }
}

/// The address of the n-th host where the file gives none.
#[must_use]
pub fn default_ip(index: usize) -> Ipv4Addr {
    let [high, low] = (index as u16).to_be_bytes();
    Ipv4Addr::new(10, 0, high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_network() {
        let topology = Topology::training(6, 2);
        assert_eq!(topology.hosts.len(), 9);
        assert_eq!(topology.path("w6", "server"), Some(vec!["edge", "core"]));
        assert_eq!(topology.path("w0", "server"), Some(vec!["core"]));
        assert_eq!(
            topology.next_hop("core", "server").map(|port| port.number),
            Some(7)
        );
        assert_eq!(
            topology.next_hop("core", "w7").map(|port| port.number),
            Some(8)
        );
        assert_eq!(
            topology.next_hop("edge", "w7").map(|port| port.number),
            Some(2)
        );
        assert_eq!(topology.flood_ports("edge"), [1, 2, 3]);
        assert_eq!(topology.hosts[8].ip, Ipv4Addr::new(10, 0, 0, 9));
    }
}
