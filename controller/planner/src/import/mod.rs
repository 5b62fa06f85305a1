//! Imports networks from files of other tools: GraphML, and NetworkX's node-link JSON.
//!
//! Both become a graph whose nodes and edges have attributes with positions in the text, which `assemble` converts. Names and
//! meanings of attributes are equal in both; docs/topologies.md lists them.

mod assemble;
mod error;
mod graph;
pub mod graphml;
pub mod node_link;
mod quantity;

pub use error::{ImportError, ImportErrorKind};

use crate::network::{Host, Network, Switch};

/// Maximum length of a file in bytes.
pub const MAX_BYTES: usize = 64 << 20;

/// Choices that a file leaves open.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Which nodes without a declared kind are hosts.
    pub hosts: Hosts,
    /// Source of the nodes' names.
    pub names: Names,
    /// Rate of edges without one; `None`: such an edge is an error.
    pub default_rate_bps: Option<u64>,
    /// Delay of edges without one.
    pub default_delay_ns: u64,
    /// Unit of rates without one, in bit/s; `None`: such a rate is an error. A unit that the file declares takes precedence.
    pub rate_unit_bps: Option<u64>,
    /// Unit of delays without one, in nanoseconds; `None`: such a delay is an error. A unit in the file takes precedence.
    pub delay_unit_ns: Option<u64>,
    /// Properties of hosts that the file does not set.
    pub host: Host,
    /// Properties of switches that the file does not set.
    pub switch: Switch,
}

impl Default for Options {
    /// Nodes without a declared kind are switches, and no units are assumed.
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

/// Which nodes are hosts if the file does not declare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    /// None.
    Declared,
    /// Nodes with one link.
    Leaves,
    /// None, but each switch gets hosts with one link each: the first of switch `a` is `a-h0`.
    Attach {
        /// Number of hosts per switch.
        per_switch: u32,
        /// Rate of their links, in bit/s.
        rate_bps: u64,
    },
}

/// Source of the nodes' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Their labels; the identifier for a node without a label.
    Labels,
    /// Their identifiers.
    Ids,
}

/// A network, and the report of its import.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The network.
    pub network: Network,
    /// Choices that the file left open.
    pub report: Report,
}

/// Number of choices that a file left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Links with the default rate.
    pub default_rates: usize,
    /// Nodes without a label, named by their identifiers.
    pub unlabelled: usize,
    /// Directed edges without a reverse, which became full-duplex links.
    pub one_way: usize,
    /// Links that are parallel to another link.
    pub parallel: usize,
    /// Connected components; 1 if the network is connected.
    pub parts: usize,
}

#[cfg(test)]
mod tests;
