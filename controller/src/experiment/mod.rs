//! A scenario, carried out: network up, programs loaded, faults armed by the timeline, workload run, effects proved.

mod conclusion;
pub mod fleet;
mod link;
pub mod program;
pub mod proof;
pub mod redis;
mod stage;
pub mod timeline;
pub mod training;

use testbeds::bed::BedError;

use fleet::FleetError;
use proof::ProofError;

pub use conclusion::{Conclusion, FaultResult};
pub use link::LinkCount;
pub use stage::{Conditions, Planned, Stage, Switches};

/// Why an experiment could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The scenario.
    #[error("{0}")]
    Scenario(String),
    /// The network.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// The switches.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The training.
    #[error(transparent)]
    Training(#[from] training::TrainingError),
    /// The Redis workload.
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
    /// The captures.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// A switch ended in mid-run.
    #[error("switch {switch} ended: {reason}")]
    SwitchEnded {
        /// Which.
        switch: String,
        /// Its last words.
        reason: String,
    },
    /// The two counts of the server's link differ.
    #[error(
        "the server's link: switch {switch} counted {counted_by_switch} bytes, the server's interface {counted_by_host}"
    )]
    LinkCounters {
        /// Which.
        switch: String,
        /// Both directions.
        counted_by_switch: u64,
        /// Both directions.
        counted_by_host: u64,
    },
}
