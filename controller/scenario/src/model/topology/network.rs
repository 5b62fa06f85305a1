//! Converts topologies to the planner's networks and back; holds the attributes that only planners use.

use std::collections::BTreeSet;

use planner::Network;
use planner::network::{self, NetworkError, NodeKind};
use serde::Serialize;

use super::{Host, Link, Mac, Topology, default_ip};

/// The capacity of a switch for sums and faults, for planners. A field that is `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capacity {
    /// Whether the switch can sum gradients and inject faults.
    pub programmable: bool,
    /// Rate of gradients that the switch can sum, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_bps: Option<u64>,
    /// Memory of the switch for sums in progress, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Number of stages of the switch's pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
    /// Rate of gradients that the switch already sums for other trainings, in bits per second.
    pub load_bps: u64,
}

impl Default for Capacity {
    /// The capacity of weir's own switch: it can sum and inject faults, without limits.
    fn default() -> Capacity {
        Capacity {
            programmable: true,
            throughput_bps: None,
            memory_bytes: None,
            stages: None,
            load_bps: 0,
        }
    }
}

/// The hardware of a host, for planners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Machine {
    /// Number of graphics processors of the host.
    pub gpus: u32,
    /// Number of workers that fit on the host; `None`: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Whether the host already runs something.
    pub busy: bool,
}

impl Machine {
    pub(super) fn is_unsaid(&self) -> bool {
        *self == Machine::default()
    }
}

/// Converts a topology to the planner's network: switches first, then hosts, then links, each in order.
///
/// # Errors
///
/// Returns the errors of [`Network`]; a topology that was read from a file has none.
pub fn topology_network(topology: &Topology) -> Result<Network, NetworkError> {
    let mut network = Network::new();
    for name in &topology.switches {
        network.add_switch(name, switch(topology.capacity(name)))?;
    }
    for host in &topology.hosts {
        network.add_host(&host.name, machine(host.machine))?;
    }
    // Dead switches become hosts, because hosts do not forward.
    for name in &topology.gone {
        network.add_host(name, planner::Host::default())?;
    }
    for link in &topology.links {
        let [a, b] = &link.ends;
        network.add_link(network::Link {
            ends: [network.node(a)?, network.node(b)?],
            rate_bps: link.rate_bps,
            delay_ns: link.latency_ns,
            loss: 0.0,
            load_bps: link.load_bps,
        })?;
    }
    Ok(network)
}

fn switch(capacity: Capacity) -> planner::Switch {
    planner::Switch {
        programmable: capacity.programmable,
        throughput_bps: capacity.throughput_bps,
        memory_bytes: capacity.memory_bytes,
        stages: capacity.stages,
        load_bps: capacity.load_bps,
    }
}

fn machine(machine: Machine) -> planner::Host {
    planner::Host {
        gpus: machine.gpus,
        slots: machine.slots,
        busy: machine.busy,
    }
}

impl Topology {
    /// The topology in which the switches `gone` are dead. Their links stay, so that other switches' ports keep their numbers.
    #[must_use]
    pub(crate) fn without(&self, gone: &BTreeSet<String>) -> Topology {
        let mut topology = self.clone();
        topology.switches.retain(|switch| !gone.contains(switch));
        topology.gone.extend(gone.iter().cloned());
        topology
    }

    /// Converts a planner's network to a topology with addresses; `as_link` gives what the links lack, such as the MTU.
    pub(crate) fn from_network(network: &Network, as_link: &Link) -> Topology {
        let mut topology = Topology::default();
        for node in network.nodes() {
            match &node.kind {
                NodeKind::Switch(switch) => topology.add_switch(&node.name, switch),
                NodeKind::Host(host) => {
                    let index = topology.hosts.len() + 1;
                    topology.hosts.push(Host {
                        name: node.name.clone(),
                        ip: default_ip(index),
                        mac: Mac::of_host(index),
                        machine: Machine {
                            gpus: host.gpus,
                            slots: host.slots,
                            busy: host.busy,
                        },
                    });
                }
            }
        }
        let links = network.links().iter().map(|link| Link {
            ends: link.ends.map(|end| network.name(end).to_owned()),
            rate_bps: link.rate_bps,
            latency_ns: link.delay_ns,
            load_bps: link.load_bps,
            ..as_link.clone()
        });
        topology.links = links.collect();
        topology
    }

    fn add_switch(&mut self, name: &str, switch: &planner::Switch) {
        let capacity = Capacity {
            programmable: switch.programmable,
            throughput_bps: switch.throughput_bps,
            memory_bytes: switch.memory_bytes,
            stages: switch.stages,
            load_bps: switch.load_bps,
        };
        self.switches.push(name.to_owned());
        if capacity != Capacity::default() {
            self.capacities.insert(name.to_owned(), capacity);
        }
    }
}

#[cfg(test)]
mod tests {
    use planner::network::generate::{Parts, RailPods};

    use super::*;

    #[test]
    fn there_and_back_nothing_is_lost() {
        let mut parts = Parts {
            delay_ns: 500,
            ..Parts::default()
        };
        parts.host.slots = Some(4);
        parts.switch.throughput_bps = Some(7_000);
        parts.switch.memory_bytes = Some(1 << 20);
        let shape = RailPods {
            pods: 2,
            hosts_per_pod: 2,
            rails: 2,
            spines: 1,
            gpus_per_host: Some(8),
            nic_rate_bps: 400,
            uplink_rate_bps: 800,
            parts,
        };
        let mut network = shape.build().unwrap();
        network.link_mut(planner::LinkId(3)).load_bps = [1, 2];
        let as_link = Link {
            mtu: 9_000,
            ..Link::new("", "")
        };
        let topology = Topology::from_network(&network, &as_link);
        assert_eq!(topology_network(&topology), Ok(network));
        assert!(topology.links.iter().all(|link| link.mtu == 9_000));
    }
}
