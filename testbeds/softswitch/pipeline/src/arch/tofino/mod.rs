//! The settings and parts of a Tofino besides its program: port metadata, loopbacks, mirror sessions, multicast trees, pruning,
//! the cells of each pipe, the packet generator. Batches of control plane writes do not include changes of these.

pub(crate) mod packet_generator;
mod pipes;

use crate::config::Ports;
use crate::error::ReplicationError;
use crate::port_numbers::{CPU_PORTS, PORTS, device_cpu_port, recirculates};
use packet_generator::Generator;
pub(crate) use pipes::Pipes;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of multicast trees, and of mirror sessions.
pub(crate) const LIMIT: usize = 65_536;

/// A mirror session: the destinations of a mirrored packet's copies, and their queueing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MirrorSession {
    /// Port of a unicast copy; `None`: no unicast copy.
    pub port: Option<u32>,
    /// Numbers of the multicast trees A and B; `None`: no copies by that tree.
    pub groups: [Option<u16>; 2],
    /// Whether one copy goes to the CPU.
    pub copy_to_cpu: bool,
    /// Replication id of the copies, for pruning within the multicast trees.
    pub rid: u16,
    /// L1 and L2 exclusion ids of the copies, for pruning within the multicast trees.
    pub exclusion: (u16, u16),
    /// L1 and L2 hashes of the copies, which choose among ECMP nodes and LAG ports of the multicast trees.
    pub hashes: [u16; 2],
    /// Number of the copies' queue within their port.
    pub qid: u8,
    /// Class of service of the copies.
    pub cos: u8,
    /// Color of the copies, as in `MeterColor_t`: 0 green, 1 or 2 yellow, 3 red.
    pub colour: u8,
    /// Maximum length of a mirrored copy in bytes, including its mirror header; `None`: no limit.
    pub max_length: Option<u16>,
}

/// The queue lengths, in cells of 80 bytes, above which a queue refuses red, yellow and green packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueThresholds {
    /// Threshold for red packets in cells, the smallest.
    pub red: u64,
    /// Threshold for yellow packets in cells.
    pub yellow: u64,
    /// Threshold for green packets in cells, the largest.
    pub green: u64,
}

impl QueueThresholds {
    /// The congestion of a queue of this length in cells: 0 none, 1 light, 2 high, 3 extreme.
    pub(crate) fn congestion(&self, cells: u64) -> u64 {
        let above = [self.red, self.yellow, self.green];
        above.iter().filter(|threshold| cells > **threshold).count() as u64
    }
}

/// A node of a multicast tree (L1): ports that get copies with one replication id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MulticastNode {
    /// Replication id of the node's copies, which egress sees as `egress_rid`.
    pub rid: u16,
    /// Exclusion id (XID): packets whose `level1_exclusion_id` equals it skip the node; `None`: no packets skip it.
    pub xid: Option<u16>,
    /// Ports that each get a copy from the node.
    pub ports: Vec<u32>,
    /// LAGs, each a list of ports: one port of each LAG gets a copy, chosen by `level2_mcast_hash`.
    pub lags: Vec<Vec<u32>>,
}

/// A two-level multicast tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MulticastTree {
    /// Number of the tree in the metadata `mcast_grp_a` and `mcast_grp_b`; greater than 0.
    pub id: u16,
    /// Nodes that all make copies.
    pub nodes: Vec<MulticastNode>,
    /// ECMP groups of nodes: one node of each group makes copies, chosen by `level1_mcast_hash`.
    pub ecmp: Vec<Vec<MulticastNode>>,
}

#[derive(Debug, Default)]
pub(crate) struct Chip {
    pub(crate) pipes: Pipes,
    pub(crate) generator: Generator,
    pub(crate) tofino2: bool,
    pub(crate) port_metadata: BTreeMap<u32, Vec<u8>>,
    pub(crate) loopback: BTreeSet<u32>,
    pub(crate) sessions: BTreeMap<u32, MirrorSession>,
    pub(crate) trees: BTreeMap<u32, MulticastTree>,
    pub(crate) prunes: BTreeMap<u16, BTreeSet<u32>>,
    pub(crate) thresholds: Option<QueueThresholds>,
    pub(crate) deflection: Option<(u32, u8)>,
}

impl Chip {
    pub(crate) fn new(pipes: Pipes, tofino2: bool) -> Chip {
        Chip {
            pipes,
            generator: Generator::new(tofino2),
            tofino2,
            ..Chip::default()
        }
    }

    pub(crate) fn port_metadata(&self, port: u32) -> &[u8] {
        self.port_metadata.get(&port).map_or(&[], Vec::as_slice)
    }

    /// Whether packets that leave through the port come back to ingress: recirculation ports and ports in loopback.
    pub(crate) fn loops(&self, port: u32) -> bool {
        recirculates(port) || self.loopback.contains(&port)
    }

    pub(crate) fn is_port(&self, ports: &Ports, port: u32) -> bool {
        let named = match ports {
            Ports::Any => true,
            Ports::Only(ports) => ports.contains(&port),
        };
        port < PORTS && (named || self.loops(port) || port == CPU_PORTS[usize::from(self.tofino2)])
    }

    /// The device port of the CPU: `configured` if that is a valid device port, else the chip's default.
    pub(crate) fn cpu_port(&self, configured: u32) -> u32 {
        device_cpu_port(configured, self.tofino2)
    }

    /// Converts a port number as the switch's caller uses it, perhaps with its own number for the CPU, to a device port.
    pub(crate) fn port_of(&self, port: u32, cpu_port: u32) -> u32 {
        if port == cpu_port {
            self.cpu_port(cpu_port)
        } else {
            port
        }
    }

    /// Converts a device port to the port number that the switch's caller uses: the inverse of [`Self::port_of`].
    pub(crate) fn outside(&self, port: u32, cpu_port: u32) -> u32 {
        if port == self.cpu_port(cpu_port) {
            cpu_port
        } else {
            port
        }
    }

    /// The congestion of a queue of this length in cells: 0 none to 3 extreme; 0 without thresholds.
    pub(crate) fn congestion(&self, cells: u64) -> u64 {
        self.thresholds.map_or(0, |t| t.congestion(cells))
    }

    /// Port and queue to which refused packets are deflected; `None`: they are dropped.
    pub(crate) fn deflection(&self) -> Option<(u32, u8)> {
        self.deflection
    }

    pub(crate) fn mirror_session(&self, id: u32) -> Option<&MirrorSession> {
        self.sessions.get(&id)
    }

    pub(crate) fn tree(&self, id: u32) -> Option<&MulticastTree> {
        self.trees.get(&id)
    }

    /// Whether an L2 exclusion id prunes copies to the port.
    pub(crate) fn prunes(&self, exclusion: u16, port: u32) -> bool {
        self.prunes
            .get(&exclusion)
            .is_some_and(|ports| ports.contains(&port))
    }
}

/// Sets the value of a key, or removes it for `None`.
pub(crate) fn put<K: Ord, V>(
    map: &mut BTreeMap<K, V>,
    key: K,
    value: Option<V>,
) -> Result<(), ReplicationError> {
    match value {
        Some(_) if map.len() >= LIMIT && !map.contains_key(&key) => Err(ReplicationError::Full),
        Some(value) => {
            map.insert(key, value);
            Ok(())
        }
        None => map.remove(&key).map(drop).ok_or(ReplicationError::NotFound),
    }
}
