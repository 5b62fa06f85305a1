//! Imports networks from files of other tools: GraphML, and NetworkX's node-link JSON.
//!
//! A file of either format becomes a graph whose nodes and edges have attributes with positions in the text, which `assemble`
//! converts. Names and meanings of attributes are the same in both formats; docs/topologies.md lists them.

mod assemble;
mod error;
mod graph;
pub mod graphml;
pub mod node_link;
mod quantity;

pub use error::{ImportError, ImportErrorKind};

use crate::network::{Host, Network, Switch};

/// Maximum length of an imported file in bytes.
pub const MAX_BYTES: usize = 64 << 20;

/// Choices of the user for what an imported file leaves open.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Which nodes are hosts, among those whose kind the file does not declare.
    pub hosts: Hosts,
    /// Whether nodes are named by labels or identifiers.
    pub names: Names,
    /// Rate in bit/s of edges without a rate; `None`: such an edge is an error.
    pub default_rate_bps: Option<u64>,
    /// Delay of edges without a delay, in nanoseconds.
    pub default_delay_ns: u64,
    /// Unit in bit/s of rates without a unit; `None`: such a rate is an error. A unit that the file declares takes precedence.
    pub rate_unit_bps: Option<u64>,
    /// Unit in ns of delays without a unit; `None`: such a delay is an error. A unit that the file declares takes precedence.
    pub delay_unit_ns: Option<u64>,
    /// Properties of hosts, where the file does not set them.
    pub host: Host,
    /// Properties of switches, where the file does not set them.
    pub switch: Switch,
}

impl Default for Options {
    /// Options by which nodes without a declared kind are switches, and no units are assumed.
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

/// Which nodes of an imported network are hosts, if the file does not declare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    /// Only nodes that the file declares as hosts.
    Declared,
    /// All nodes with exactly one link.
    Leaves,
    /// No node, but the importer adds hosts to each switch, with one link each: the first host of switch `a` is `a-h0`.
    Attach {
        /// Number of hosts added per switch.
        per_switch: u32,
        /// Rate of the added hosts' links, in bit/s.
        rate_bps: u64,
    },
}

/// Whether nodes of an imported network are named by their labels or identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// By their labels; a node without a label by its identifier.
    Labels,
    /// By their identifiers.
    Ids,
}

/// An imported network, and the report of its import.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The network.
    pub network: Network,
    /// Numbers of choices that the importer made because the file left them open.
    pub report: Report,
}

/// Numbers of choices that the importer made because the file left them open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Number of links that got the default rate.
    pub default_rates: usize,
    /// Number of nodes without a label, which are named by their identifiers.
    pub unlabelled: usize,
    /// Number of directed edges without a reverse edge, which became full-duplex links.
    pub one_way: usize,
    /// Number of links that are parallel to another link.
    pub parallel: usize,
    /// Number of connected components; 1 if the network is connected.
    pub parts: usize,
}

#[cfg(test)]
mod tests;
