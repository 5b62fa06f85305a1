//! A topology as planners see it, and back.

use planner::Network;
use planner::network::{self, NetworkError, NodeKind};

use super::{Capacity, Host, Link, Mac, Machine, Topology, default_ip};

/// What planners see of a topology: switches first, then hosts, then links, each in their order.
///
/// # Errors
///
/// As [`Network`] has them; a topology that was read has none.
pub fn topology_network(topology: &Topology) -> Result<Network, NetworkError> {
    let mut network = Network::new();
    for name in &topology.switches {
        network.add_switch(name, switch(topology.capacity(name)))?;
    }
    for host in &topology.hosts {
        network.add_host(&host.name, machine(host.machine))?;
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
    /// A network with addresses; `as_link` gives its links all that a scenario's have beyond rate, latency and load.
    pub(crate) fn of_network(network: &Network, as_link: &Link) -> Topology {
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
        let topology = Topology::of_network(&network, &as_link);
        assert_eq!(topology_network(&topology), Ok(network));
        assert!(topology.links.iter().all(|link| link.mtu == 9_000));
    }
}
