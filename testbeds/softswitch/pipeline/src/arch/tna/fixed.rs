//! What a Tofino's control plane sets besides the program's own objects: port metadata, loopbacks, mirror sessions,
//! multicast trees, pruning, the packet generator. None of it takes part in batches.

use super::PORTS;
use super::multicast::MulticastTree;
use super::packet_generator::Generator;
use super::pipes::Pipes;
use crate::config::Ports;
use crate::error::ReplicationError;
use crate::port_numbers::{CPU_PORTS, device_cpu_port, recirculates};
use std::collections::{BTreeMap, BTreeSet};

/// Trees, sessions at most.
pub(crate) const LIMIT: usize = 65_536;

/// Where the copies of a mirror session go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MirrorSession {
    /// To one port.
    pub port: Option<u32>,
    /// To multicast trees A and B.
    pub groups: [Option<u16>; 2],
    /// To the CPU.
    pub copy_to_cpu: bool,
    /// For pruning within the trees.
    pub rid: u16,
    /// L1 and L2 exclusion ids for the trees.
    pub exclusion: (u16, u16),
    /// L1 and L2 hashes for the trees.
    pub hashes: [u16; 2],
    /// Queue.
    pub qid: u8,
    /// Class of service.
    pub cos: u8,
    /// `MeterColor_t`: 0 green, 1 or 2 yellow, 3 red.
    pub colour: u8,
    /// Bytes that a copy has at most, its mirror header counted; `None`: all.
    pub max_length: Option<u16>,
}

/// From which depth on a queue takes no red, no yellow and no green packets any more, in cells of 80 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueThresholds {
    /// The smallest.
    pub red: u64,
    /// Larger.
    pub yellow: u64,
    /// The largest.
    pub green: u64,
}

impl QueueThresholds {
    /// How congested a queue of this depth is: 0 none, 1 light, 2 high, 3 extreme.
    pub(crate) fn congestion(&self, cells: u64) -> u64 {
        let above = [self.red, self.yellow, self.green];
        above.iter().filter(|threshold| cells > **threshold).count() as u64
    }
}

#[derive(Debug, Default)]
pub(crate) struct Fixed {
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

impl Fixed {
    pub(crate) fn new(pipes: Pipes, tofino2: bool) -> Fixed {
        Fixed {
            pipes,
            generator: Generator::new(tofino2),
            tofino2,
            ..Fixed::default()
        }
    }

    pub(crate) fn port_metadata(&self, port: u32) -> &[u8] {
        self.port_metadata.get(&port).map_or(&[], Vec::as_slice)
    }

    /// Whether what goes to the port comes back in.
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

    /// The CPU's device port: the configured one if it is a device port.
    pub(crate) fn cpu_port(&self, configured: u32) -> u32 {
        device_cpu_port(configured, self.tofino2)
    }

    /// The device port of a port as its driver numbers it.
    pub(crate) fn port_of(&self, port: u32, cpu_port: u32) -> u32 {
        if port == cpu_port {
            self.cpu_port(cpu_port)
        } else {
            port
        }
    }

    /// The other way round.
    pub(crate) fn outside(&self, port: u32, cpu_port: u32) -> u32 {
        if port == self.cpu_port(cpu_port) {
            cpu_port
        } else {
            port
        }
    }

    /// Congestion of a queue of that depth.
    pub(crate) fn congestion(&self, cells: u64) -> u64 {
        self.thresholds.map_or(0, |t| t.congestion(cells))
    }

    /// Port and queue of what is deflected.
    pub(crate) fn deflection(&self) -> Option<(u32, u8)> {
        self.deflection
    }

    pub(crate) fn mirror_session(&self, id: u32) -> Option<&MirrorSession> {
        self.sessions.get(&id)
    }

    pub(crate) fn tree(&self, id: u32) -> Option<&MulticastTree> {
        self.trees.get(&id)
    }

    /// Whether an L2 exclusion id keeps copies from the port.
    pub(crate) fn prunes(&self, exclusion: u16, port: u32) -> bool {
        self.prunes
            .get(&exclusion)
            .is_some_and(|ports| ports.contains(&port))
    }
}

/// Puts a value, or takes one out.
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
