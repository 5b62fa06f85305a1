//! The network of a scenario: hosts, switches and links, with port numbers, addresses and shortest paths.

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

/// Default rate of a link, in bits per second.
pub const DEFAULT_RATE_BPS: u64 = 1_000_000_000;
/// Default latency of a link in one direction, in nanoseconds.
pub const DEFAULT_LATENCY_NS: u64 = 0;
/// Maximum latency of a link in one direction, in nanoseconds.
pub const MAX_LATENCY_NS: u64 = 10_000_000_000;
/// Burst size of a link in a testbed, in bytes: large enough that the kernel's timer does not limit the rate.
pub const BURST_BYTES: u32 = 256 << 10;
/// Queue size of a link in a testbed, in bytes: large enough for the windows of all ranks of a job.
pub const QUEUE_BYTES: u32 = 4 << 20;
/// Maximum number of waiting frames from which a switch port marks frames (ECN): the embedded switch does not count further.
pub const MOST_MARK_AT: u32 = 127;
/// Default MTU of a link, in bytes.
pub const DEFAULT_MTU: u32 = 1500;

/// The network of a scenario. In a testbed, every host is attached to one switch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Topology {
    /// Names of the switches, in declared order.
    pub switches: Vec<String>,
    /// Capacities of the switches for which the file gives them, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capacities: BTreeMap<String, Capacity>,
    /// Hosts in declared order.
    pub hosts: Vec<Host>,
    /// Links in declared order, which determines the port numbers of switches.
    pub links: Vec<Link>,
    /// Names of switches that have died: their links remain but carry nothing.
    #[serde(skip)]
    pub gone: BTreeSet<String>,
    /// Which paths packets take if several lead to a host.
    #[serde(skip_serializing_if = "Routing::is_single")]
    pub routing: Routing,
    /// Position of `routing` in the file; an empty span if the file does not have it.
    #[serde(skip)]
    pub routing_span: Span,
    /// Whether the topology is a wire: one switch with two ports between two existing sides, whose addresses are unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wire: bool,
    /// The two sides of a wire, if the file describes them; empty if the command line does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<Side>,
}

/// A side of a wire: an existing interface, host or network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// An interface of this machine.
    Interface(String),
    /// A host in its own network namespace: weir inserts the wire between the host and its peer.
    Host(HostAt),
    /// The peer to which the host at the other side of the wire is connected.
    Network,
}

/// Where to find an existing host: its network namespace and interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostAt {
    /// The host's network namespace.
    #[serde(flatten)]
    pub namespace: NamespaceOf,
    /// Name of the host's interface; `None`: its only interface besides loopback.
    pub link: Option<String>,
}

/// How a file identifies a network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NamespaceOf {
    /// By its name, as in `ip netns`, or by the path of its file.
    Netns(String),
    /// By the ID of a process in the namespace.
    Pid(u32),
}

impl NamespaceOf {
    /// Path of the file in which the kernel represents the namespace.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            NamespaceOf::Netns(path) if path.contains('/') => path.clone(),
            NamespaceOf::Netns(name) => format!("/run/netns/{name}"),
            NamespaceOf::Pid(pid) => format!("/proc/{pid}/ns/net"),
        }
    }
}

/// Path and content of a topology file, which the caller has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologySource {
    /// Path of the file, for messages; its suffix determines the format.
    pub file: String,
    /// Content of the topology file.
    pub text: String,
}

/// A host and its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The host's name.
    pub name: String,
    /// IPv4 address of the host; all hosts share one /16.
    pub ip: Ipv4Addr,
    /// MAC address of the host.
    pub mac: Mac,
    /// Hardware of the host, for planners.
    #[serde(skip_serializing_if = "Machine::is_unsaid")]
    pub machine: Machine,
}

/// A full-duplex link between two nodes, each a host or a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Names of the two nodes that the link connects.
    pub ends: [String; 2],
    /// Rate of the link in each direction, in bits per second.
    pub rate_bps: u64,
    /// Latency of the link in one direction, in nanoseconds.
    pub latency_ns: u64,
    /// Position of the latency in the file; an empty span if the file does not give it.
    #[serde(skip)]
    pub latency_span: Span,
    /// Number of waiting frames from which a switch's port to this link marks frames (ECN); `None`: it does not mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark_at: Option<u32>,
    /// Position of the marking threshold in the file; an empty span if the file does not give it.
    #[serde(skip)]
    pub mark_span: Span,
    /// Size of the largest IP packet that the link carries, in bytes.
    pub mtu: u32,
    /// Load that other traffic puts on the link, in bits per second: from the first end to the second, and back. For planners.
    #[serde(skip_serializing_if = "is_unloaded")]
    pub load_bps: [u64; 2],
}

fn is_unloaded(load_bps: &[u64; 2]) -> bool {
    *load_bps == [0, 0]
}

impl Link {
    /// A link between two named nodes, with the default rate, latency and MTU.
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

    /// Name of the node at the other end of the link; `None` if `node` is not at an end of it.
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

/// A port of a switch. The ports of a switch are numbered from 1 in the order of its links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port<'a> {
    /// Number of the port, counted from 1.
    pub number: u32,
    /// Name of the node at the other end of the port's link.
    pub peer: &'a str,
    /// The link at the port.
    pub link: &'a Link,
}

/// Which paths packets take if several lead from one host to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// One shortest path; of several, the path over the lowest port of each switch.
    #[default]
    Shortest,
    /// All shortest paths: each switch distributes flows over its ports that are on a shortest path (ECMP).
    Ecmp,
    /// Up to this number of paths, shortest ones first, including paths that are longer than the shortest.
    KShortest(u32),
}

impl Routing {
    /// The words for the kinds of routing in files.
    pub const WORDS: [&'static str; 3] = ["shortest", "ecmp", "k_shortest"];
    /// Maximum number of paths for [`Routing::KShortest`].
    pub const MOST_WAYS: u32 = 16;

    /// Whether all packets between two hosts take a single path.
    #[must_use]
    pub fn is_single(&self) -> bool {
        *self == Routing::Shortest
    }
}

impl Topology {
    /// A topology of hosts around one switch.
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

    /// Name of the switch in a [`Topology::wire_between`].
    pub const WIRE: &'static str = "wire";

    /// A wire with these two sides: one switch between two existing hosts or networks.
    #[must_use]
    pub fn wire_between(sides: [&str; 2]) -> Topology {
        Topology {
            wire: true,
            ..Topology::star(Topology::WIRE, &sides)
        }
    }

    /// Name of the side of a wire that is opposite to `from`; `None` if the topology is no wire, or has no such side.
    #[must_use]
    pub fn across(&self, from: &str) -> Option<&str> {
        let mut others = self.hosts.iter().filter(|host| host.name != from);
        others
            .next()
            .filter(|_| self.wire)
            .map(|host| host.name.as_str())
    }

    /// A topology for a training: the switch `core` sums, and is attached to the server and `workers_on_core` workers; the
    /// other workers are attached to the switch `edge`.
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

    /// Adds a host with the next free default addresses, and a link to a switch.
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

    /// The capacity of a switch, or the default if the file does not give it.
    #[must_use]
    pub fn capacity(&self, switch: &str) -> Capacity {
        self.capacities.get(switch).copied().unwrap_or_default()
    }

    /// The host with this name; `None` if there is none.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Whether the topology has a switch with this name.
    #[must_use]
    pub fn has_switch(&self, name: &str) -> bool {
        self.switches.iter().any(|switch| switch == name)
    }

    /// The ports of a switch, in the order of their numbers.
    pub fn ports<'a>(&'a self, switch: &'a str) -> impl Iterator<Item = Port<'a>> {
        let attached = self
            .links
            .iter()
            .filter_map(move |link| Some((link, link.peer(switch)?)));
        attached
            .zip(1..)
            .map(|((link, peer), number)| Port { number, peer, link })
    }

    /// The link between two nodes; `None` if there is none.
    #[must_use]
    pub fn link(&self, a: &str, b: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.peer(a) == Some(b))
    }

    /// A switch's egress port on a shortest path to a host, the lowest if several; `None` if the host is unreachable.
    #[must_use]
    pub fn next_hop(&self, switch: &str, host: &str) -> Option<Port<'_>> {
        self.routes_to(host).next_hop(switch)
    }

    /// The shortest paths from all nodes to a host.
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

    /// Names of the switches on the shortest path between two hosts, in order. `None` if the receiver is unreachable.
    #[must_use]
    pub fn path(&self, from: &str, to: &str) -> Option<Vec<&str>> {
        self.routes_to(to).path_from(from)
    }

    /// Names of the switches on the shortest path from a host or switch up to `top`, the last; `None` if it is unreachable.
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

    /// Rate of the slowest link on a path between two hosts, in bits per second; `None` if the path does not exist. If packets
    /// may take several parallel links between two switches, only the fastest of these counts.
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

    /// For each node, by index: its distance to a host in hops; `None` if the host is unreachable. Hosts do not forward
    /// packets.
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

/// The shortest paths from all nodes to one host, found by a single search.
#[derive(Debug, Clone)]
pub struct Routes<'a> {
    topology: &'a Topology,
    host: String,
    hops: BTreeMap<String, usize>,
}

impl<'a> Routes<'a> {
    /// The switch's egress port for packets to the host; `None` if the host is unreachable.
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

    /// Names of the switches on the shortest path from another host to this one, in order; `None` if there is no path.
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

/// The default IPv4 address of the host with this index, counted from 0.
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
