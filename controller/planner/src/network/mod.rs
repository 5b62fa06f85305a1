//! The model of a network that all planners read: hosts, switches, links, and their capacities.

pub mod generate;

use std::collections::BTreeMap;

/// Number of a node: its index in [`Network::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// Number of a link: its index in [`Network::links`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl NodeId {
    /// The node's number as an index into an array.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// The link's number as an index into an array.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A network of named nodes and full-duplex links. Node names are unique.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Network {
    nodes: Vec<Node>,
    links: Vec<Link>,
    by_name: BTreeMap<String, NodeId>,
    /// For each node, its links and the nodes at their other ends, in the order in which they were added.
    adjacent: Vec<Vec<(LinkId, NodeId)>>,
}

/// A node of a network: a host or a switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// Kind of the node.
    pub kind: NodeKind,
}

/// Whether a node is a host or a switch, with its properties.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// A host sends and receives traffic, and does not forward it.
    Host(Host),
    /// A switch forwards traffic, and may sum gradients.
    Switch(Switch),
}

/// Properties of a host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Host {
    /// Number of GPUs in the host.
    pub gpus: u32,
    /// Number of slots for workers on the host (Titan); `None`: unknown.
    pub slots: Option<u32>,
    /// Whether the host already runs something (Titan prefers such hosts).
    pub busy: bool,
}

/// Properties of a switch. Values that are `None` are unknown, and do not limit the switch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Switch {
    /// Whether the switch can sum gradients and inject faults.
    pub programmable: bool,
    /// Rate of gradients that the switch can sum, in bit/s, over all ingress ports.
    pub throughput_bps: Option<u64>,
    /// Memory of the switch for sums in progress, in bytes.
    pub memory_bytes: Option<u64>,
    /// Number of stages in the switch's pipeline.
    pub stages: Option<u32>,
    /// Rate of gradients that the switch already sums for other jobs, in bit/s.
    pub load_bps: u64,
}

impl Switch {
    /// Rate of gradients that the switch can still sum, in bit/s; `None` if the switch has no limit.
    #[must_use]
    pub fn spare_sums_bps(&self) -> Option<u64> {
        Some(self.throughput_bps?.saturating_sub(self.load_bps))
    }
}

/// A full-duplex link.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Nodes at the two ends of the link.
    pub ends: [NodeId; 2],
    /// Rate of the link in each direction, in bit/s.
    pub rate_bps: u64,
    /// Delay of the link in one direction, in nanoseconds.
    pub delay_ns: u64,
    /// Share of packets that the link loses, from 0 to 1.
    pub loss: f64,
    /// Existing load in bit/s from the first end to the second, and from the second to the first.
    pub load_bps: [u64; 2],
}

/// One direction of a full-duplex link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arc {
    /// The link whose direction this is.
    pub link: LinkId,
    /// Whether the arc leads from the link's second end to its first.
    pub back: bool,
}

impl Arc {
    /// Index of the arc in an array with two elements per link.
    #[must_use]
    pub fn index(self) -> usize {
        self.link.index() * 2 + usize::from(self.back)
    }
}

/// Error in a network. Importers add the position in the file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// Two nodes have the same name.
    #[error("`{0}` is declared twice")]
    NamedTwice(String),
    /// A link or a job names a node that the network does not have.
    #[error("no host or switch is called `{0}`")]
    Unknown(String),
    /// Both ends of a link are the same node.
    #[error("`{0}` is linked to itself")]
    Loop(String),
    /// A link between these two nodes has the rate 0.
    #[error("the link between `{0}` and `{1}` carries 0 bit/s")]
    NoRate(String, String),
    /// No path leads from the first node to the second.
    #[error("no path leads from `{0}` to `{1}`")]
    Disconnected(String, String),
    /// A switch that can sum has a capacity of 0 for it: the switch's name, and the kind of capacity.
    #[error("switch `{0}` can sum, but its {1} is 0")]
    NoCapacity(String, &'static str),
    /// More items than the planner supports: their number, their kind, and the maximum.
    #[error("{0} {1}; at most {2} are supported")]
    TooMany(usize, &'static str, usize),
    /// A generator's parameters allow no network.
    #[error("{0}")]
    Shape(String),
}

/// Maximum number of nodes in a network: several times 10,000 hosts and their switches.
pub const MAX_NODES: usize = 200_000;
/// Maximum number of links in a network.
pub const MAX_LINKS: usize = 1_000_000;

impl Network {
    /// A network without nodes and links.
    #[must_use]
    pub fn new() -> Network {
        Network::default()
    }

    /// Adds a host with this name.
    pub fn add_host(&mut self, name: &str, host: Host) -> Result<NodeId, NetworkError> {
        self.add(name, NodeKind::Host(host))
    }

    /// Adds a switch with this name.
    pub fn add_switch(&mut self, name: &str, switch: Switch) -> Result<NodeId, NetworkError> {
        if switch.programmable {
            let no = |what| Err(NetworkError::NoCapacity(name.to_owned(), what));
            if switch.throughput_bps == Some(0) {
                return no("throughput");
            }
            if switch.memory_bytes == Some(0) {
                return no("memory");
            }
        }
        self.add(name, NodeKind::Switch(switch))
    }

    fn add(&mut self, name: &str, kind: NodeKind) -> Result<NodeId, NetworkError> {
        if self.by_name.contains_key(name) {
            return Err(NetworkError::NamedTwice(name.to_owned()));
        }
        if self.nodes.len() == MAX_NODES {
            return Err(NetworkError::TooMany(MAX_NODES + 1, "nodes", MAX_NODES));
        }
        let id = NodeId(self.nodes.len() as u32);
        self.by_name.insert(name.to_owned(), id);
        self.adjacent.push(Vec::new());
        self.nodes.push(Node {
            name: name.to_owned(),
            kind,
        });
        Ok(id)
    }

    /// Adds a link between two nodes, without delay, loss or load.
    pub fn connect(&mut self, a: NodeId, b: NodeId, rate_bps: u64) -> Result<LinkId, NetworkError> {
        self.add_link(Link {
            ends: [a, b],
            rate_bps,
            delay_ns: 0,
            loss: 0.0,
            load_bps: [0, 0],
        })
    }

    /// Adds a link. Two nodes may have several links between them.
    pub fn add_link(&mut self, link: Link) -> Result<LinkId, NetworkError> {
        let [a, b] = link.ends;
        let name = |node: NodeId| self.name(node).to_owned();
        if a == b {
            return Err(NetworkError::Loop(name(a)));
        }
        if link.rate_bps == 0 {
            return Err(NetworkError::NoRate(name(a), name(b)));
        }
        if self.links.len() == MAX_LINKS {
            return Err(NetworkError::TooMany(MAX_LINKS + 1, "links", MAX_LINKS));
        }
        let id = LinkId(self.links.len() as u32);
        self.adjacent[a.index()].push((id, b));
        self.adjacent[b.index()].push((id, a));
        self.links.push(link);
        Ok(id)
    }

    /// All nodes, in the order in which they were added.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All links, in the order in which they were added.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Name of a node.
    #[must_use]
    pub fn name(&self, node: NodeId) -> &str {
        &self.nodes[node.index()].name
    }

    /// The node of this name; an error if there is none.
    pub fn node(&self, name: &str) -> Result<NodeId, NetworkError> {
        let id = self.by_name.get(name).copied();
        id.ok_or_else(|| NetworkError::Unknown(name.to_owned()))
    }

    /// The node as a host; `None` if it is a switch.
    #[must_use]
    pub fn host(&self, node: NodeId) -> Option<&Host> {
        match &self.nodes[node.index()].kind {
            NodeKind::Host(host) => Some(host),
            NodeKind::Switch(_) => None,
        }
    }

    /// The node as a switch; `None` if it is a host.
    #[must_use]
    pub fn switch(&self, node: NodeId) -> Option<&Switch> {
        match &self.nodes[node.index()].kind {
            NodeKind::Switch(switch) => Some(switch),
            NodeKind::Host(_) => None,
        }
    }

    /// The node as a mutable switch; `None` if it is a host.
    pub fn switch_mut(&mut self, node: NodeId) -> Option<&mut Switch> {
        match &mut self.nodes[node.index()].kind {
            NodeKind::Switch(switch) => Some(switch),
            NodeKind::Host(_) => None,
        }
    }

    /// Numbers of all nodes, ascending.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Numbers of all nodes that are hosts, ascending.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.ids().filter(|id| self.host(*id).is_some())
    }

    /// Numbers of all nodes that are switches, ascending.
    pub fn switches(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.ids().filter(|id| self.switch(*id).is_some())
    }

    /// Links of a node and the nodes at their other ends, in the order in which they were added.
    #[must_use]
    pub fn adjacent(&self, node: NodeId) -> &[(LinkId, NodeId)] {
        &self.adjacent[node.index()]
    }

    /// The link with this number.
    #[must_use]
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }

    /// The link with this number, mutable.
    pub fn link_mut(&mut self, link: LinkId) -> &mut Link {
        &mut self.links[link.index()]
    }

    /// Both directions of all links, in the order of [`Arc::index`].
    pub fn arcs(&self) -> impl Iterator<Item = Arc> + use<> {
        let links = (0..self.links.len() as u32).map(LinkId);
        links.flat_map(|link| [false, true].map(|back| Arc { link, back }))
    }

    /// The direction of a link that leads away from its end `from`.
    #[must_use]
    pub fn arc(&self, link: LinkId, from: NodeId) -> Arc {
        Arc {
            link,
            back: self.link(link).ends[1] == from,
        }
    }

    /// Spare rate of a link in one direction, in bit/s.
    #[must_use]
    pub fn spare_bps(&self, arc: Arc) -> u64 {
        let link = self.link(arc.link);
        link.rate_bps
            .saturating_sub(link.load_bps[usize::from(arc.back)])
    }

    /// Nodes at which an arc begins and at which it ends.
    #[must_use]
    pub fn ends(&self, arc: Arc) -> (NodeId, NodeId) {
        let [a, b] = self.link(arc.link).ends;
        if arc.back { (b, a) } else { (a, b) }
    }

    /// The network with new names for its nodes, in their order.
    ///
    /// # Errors
    ///
    /// [`NetworkError::NamedTwice`]; [`NetworkError::Unknown`] if there are fewer names than nodes.
    pub fn renamed(&self, names: Vec<String>) -> Result<Network, NetworkError> {
        if let Some(node) = self.nodes.get(names.len()) {
            return Err(NetworkError::Unknown(node.name.clone()));
        }
        let mut renamed = self.clone();
        renamed.by_name.clear();
        for (id, (node, name)) in self.ids().zip(renamed.nodes.iter_mut().zip(names)) {
            if renamed.by_name.insert(name.clone(), id).is_some() {
                return Err(NetworkError::NamedTwice(name));
            }
            node.name = name;
        }
        Ok(renamed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_for_the_same_nodes() {
        let mut network = Network::new();
        let a = network.add_host("a", Host::default()).unwrap();
        let s = network.add_switch("s", Switch::default()).unwrap();
        network.connect(a, s, 1).unwrap();
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let renamed = network.renamed(names(["s", "b"])).unwrap();
        assert_eq!((renamed.name(a), renamed.node("b")), ("s", Ok(s)));
        assert!(renamed.node("a").is_err());
        assert_eq!(renamed.links(), network.links());
        let twice = network.renamed(names(["b", "b"]));
        assert_eq!(twice, Err(NetworkError::NamedTwice("b".to_owned())));
        let few = network.renamed(vec!["b".to_owned()]);
        assert_eq!(few, Err(NetworkError::Unknown("s".to_owned())));
    }
}
