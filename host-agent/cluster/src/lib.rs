//! A cluster in virtual time: workers, a server, any switch, and a network that misbehaves by seed.
//!
//! Everything that happens follows from a [`Config`] and its seed, so a failing run is replayed by its
//! number. The switch is whatever implements [`SwitchModel`]: [`SlotSwitch`] runs the reference slots,
//! [`Forwarder`] aggregates nothing, [`Compare`] runs two and compares them after every packet. [`drawn`]
//! makes configurations and inputs from a seed.
//!
//! For tests and figures alone, but for [`simulation`]: a network of any shape and how long rounds take there, for which
//! `weir simulate` asks.

mod between;
mod config;
pub mod drawn;
pub mod growth;
mod network;
pub mod oracle;
pub mod ranks;
pub mod rdma;
mod recovery;
mod report;
mod run;
pub mod simulation;
mod switch;
mod tree;

pub use config::{Config, ConfigError, Death, Faults, Replan};
pub use network::{NetworkCounters, Policer, Rate};
pub use oracle::{Violation, check};
pub use report::{Report, ServerEnd, ServerReport, WorkerEnd, WorkerReport};
pub use run::{answer_with_sums, run};
pub use switch::{CellState, Compare, Forwarder, PartSwitches, SlotSwitch, SwitchModel};

use aggregation::job::WorkerId;

/// An end of the network; the switch is between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// The parameter server.
    Server,
    /// A worker.
    Worker(WorkerId),
}
