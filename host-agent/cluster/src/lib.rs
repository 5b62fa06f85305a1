//! Simulates a cluster in virtual time: workers, a server, any model of a switch, and a network with seeded faults.
//!
//! Every event follows from a [`Config`] and its seed, so a failing run can be repeated. The switch is any implementation of
//! [`SwitchModel`]: [`SlotSwitch`] sums with the reference implementation, [`Forwarder`] only forwards, and [`Compare`] runs
//! two switches and compares them after every packet. [`drawn`] generates configurations and inputs from a seed.
//!
//! This crate serves tests and measurements, except for [`simulation`], which predicts round times in any network for `weir
//! simulate`.

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

pub use config::{Config, ConfigError, Death, Replan};
pub use network::{Faults, NetworkCounters, Policer, Rate};
pub use oracle::{Violation, check};
pub use report::{Report, ServerEnd, ServerReport, WorkerEnd, WorkerReport};
pub use run::{answer_with_sums, run};
pub use switch::{CellState, Compare, Forwarder, PartSwitches, SlotSwitch, SwitchModel};

use aggregation::job::WorkerId;

/// A simulated node that sends and receives frames: server or worker. The switch between them does not count as a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// The parameter server of the job.
    Server,
    /// The worker with this rank.
    Worker(WorkerId),
}
