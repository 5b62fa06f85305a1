//! Networks from files of other tools: GraphML, and NetworkX's node-link JSON.
//!
//! Both become a graph whose nodes and edges have attributes with places in the text; `assemble` reads those. What an
//! attribute is called and means is the same in both; docs/topologies.md lists it.

mod assemble;
mod error;
mod graph;
pub mod graphml;
pub mod node_link;
mod quantity;

pub use error::{ImportError, ImportErrorKind};

use crate::network::{Host, Network, Switch};

/// The longest text that is read, in bytes.
pub const MAX_BYTES: usize = 64 << 20;

/// What a file leaves open.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What nodes are that do not say it.
    pub hosts: Hosts,
    /// What names nodes.
    pub names: Names,
    /// Of edges without a rate; `None`: such an edge is refused.
    pub default_rate_bps: Option<u64>,
    /// Of edges without a delay.
    pub default_delay_ns: u64,
    /// What rates without a unit count, in bits a second; `None`: such a rate is refused. The file's own word goes before.
    pub rate_unit_bps: Option<u64>,
    /// What delays without a unit count, in nanoseconds; `None`: such a delay is refused. The file's own word goes before.
    pub delay_unit_ns: Option<u64>,
    /// What hosts are, but for what the file says.
    pub host: Host,
    /// What switches are, but for what the file says.
    pub switch: Switch,
}

impl Default for Options {
    /// Nodes that do not say what they are are switches; nothing is guessed.
    fn default() -> Options {
        Options {
            hosts: Hosts::Declared,
            names: Names::Labels,
            default_rate_bps: None,
            default_delay_ns: 0,
            rate_unit_bps: None,
            delay_unit_ns: None,
            host: Host::default(),
            switch: Switch::default(),
        }
    }
}

/// Which nodes are hosts, where the file does not say it of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    /// None.
    Declared,
    /// Those with one link.
    Leaves,
    /// None; but each switch gets some, with a link each: the first of switch `a` is `a-h0`.
    Attach {
        /// How many.
        per_switch: u32,
        /// Of their links.
        rate_bps: u64,
    },
}

/// What names nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Their labels; the identifier of a node without one.
    Labels,
    /// Their identifiers.
    Ids,
}

/// A network, and how it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The network.
    pub network: Network,
    /// What the file left open, and what was made of it.
    pub report: Report,
}

/// What a file left open, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Links that took the default rate.
    pub default_rates: usize,
    /// Nodes without a label, by their identifiers then.
    pub unlabelled: usize,
    /// Directed edges without one back, which became full-duplex links nevertheless.
    pub one_way: usize,
    /// Links beside another one of the same ends.
    pub parallel: usize,
    /// Parts that hang together; 1 if the network is connected.
    pub parts: usize,
}

#[cfg(test)]
mod tests;
