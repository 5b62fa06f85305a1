//! Generates networks of known shapes, and their capacities and loads, from parameters and a seed.
//!
//! Each shape is a struct whose `build` makes the network. Nodes are numbered from the top down, switches before hosts; links
//! from the hosts up. So equal parameters give equal networks, with equal numbers.

mod background;
mod fat_tree;
mod jellyfish;
mod leaf_spine;
mod rail_pods;
pub(crate) mod random;
mod star;

pub use background::{
    PAPERS_THROUGHPUT_BPS, Programmable, draw_link_loads, draw_switch_loads, draw_throughputs,
    make_programmable,
};
pub use fat_tree::FatTree;
pub use jellyfish::Jellyfish;
pub use leaf_spine::{LeafSpine, Uplinks};
pub use rail_pods::RailPods;
pub use star::Star;

use super::{Host, Link, MAX_LINKS, MAX_NODES, Network, NetworkError, NodeId, Switch};

/// Properties that all hosts, switches and links of a generated network have.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parts {
    /// Properties of each host.
    pub host: Host,
    /// Properties of each switch.
    pub switch: Switch,
    /// Delay of each link in one direction, in nanoseconds.
    pub delay_ns: u64,
}

impl Parts {
    fn host(&self, network: &mut Network, name: &str) -> Result<NodeId, NetworkError> {
        network.add_host(name, self.host.clone())
    }

    fn switch(&self, network: &mut Network, name: &str) -> Result<NodeId, NetworkError> {
        network.add_switch(name, self.switch.clone())
    }

    /// Adds `count` switches, named `prefix0`, `prefix1`, and so on.
    fn switches(
        &self,
        network: &mut Network,
        prefix: &str,
        count: u32,
    ) -> Result<Vec<NodeId>, NetworkError> {
        let mut names = (0..count).map(|number| format!("{prefix}{number}"));
        names.try_fold(Vec::new(), |mut made, name| {
            made.push(self.switch(network, &name)?);
            Ok(made)
        })
    }

    fn link(
        &self,
        network: &mut Network,
        ends: [NodeId; 2],
        rate_bps: u64,
    ) -> Result<(), NetworkError> {
        let link = Link {
            ends,
            rate_bps,
            delay_ns: self.delay_ns,
            loss: 0.0,
            load_bps: [0, 0],
        };
        network.add_link(link).map(|_| ())
    }
}

/// Checks, before a network is built, that its numbers of nodes and links stay within the maximum.
fn fits(nodes: u128, links: u128) -> Result<(), NetworkError> {
    let check = |count: u128, what, most: usize| {
        if count > most as u128 {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            return Err(NetworkError::TooMany(count, what, most));
        }
        Ok(())
    };
    check(nodes, "nodes", MAX_NODES)?;
    check(links, "links", MAX_LINKS)
}

/// Checks that a parameter of a shape, named `what`, is at least `least`.
fn at_least(least: u32, count: u32, shape: &str, what: &str) -> Result<(), NetworkError> {
    if count < least {
        let message = format!("{what} of {shape}: at least {least}, not {count}");
        return Err(NetworkError::Shape(message));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
