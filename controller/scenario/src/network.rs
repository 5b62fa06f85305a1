//! A scenario's topology as planners see it.

use planner::network::{self, NetworkError};
use planner::{Host, Network, Switch};

use crate::topology::Topology;

impl Topology {
    /// The network. Its nodes are the switches and then the hosts, in declared order; its links are those declared.
    pub fn network(&self) -> Result<Network, NetworkError> {
        let mut network = Network::new();
        for name in &self.switches {
            let switch = Switch {
                programmable: true,
                ..Switch::default()
            };
            network.add_switch(name, switch)?;
        }
        for host in &self.hosts {
            network.add_host(&host.name, Host::default())?;
        }
        for link in &self.links {
            let [a, b] = &link.ends;
            network.add_link(network::Link {
                ends: [network.node(a)?, network.node(b)?],
                rate_bps: link.rate_bps,
                delay_ns: link.latency_ns,
                loss: 0.0,
                load_bps: [0, 0],
            })?;
        }
        Ok(network)
    }
}
