//! Errors that end a run of a scenario, from the start of its network to the verdict.

use testbeds::bed::BedError;

use super::limits::LimitReached;
use super::workload::WorkloadError;
use crate::experiment::fleet::FleetError;
use crate::experiment::prepare::{EnvironmentError, LaunchError};

/// Why a scenario could not be carried out to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The scenario cannot run; contains the error.
    #[error("{0}")]
    Scenario(String),
    /// The testbed's network returned an error.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// A switch did not start.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A session with a switch returned an error.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The environment of the user's programs could not be prepared.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The workload returned an error.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The threads of the probes could not start or end.
    #[error("cannot probe: {0}")]
    Probes(std::io::Error),
    /// A switch ended in mid-run, and the run cannot do without it.
    #[error("switch {switch} ended during the run: {reason}")]
    SwitchEnded {
        /// Name of the switch that ended.
        switch: String,
        /// The last line that the switch wrote to standard error, or how its process ended.
        reason: String,
    },
    /// The run exceeded a limit of the scenario.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The switch and the server's host counted different numbers of bytes on the link between them.
    #[error(
        "the server's link: switch {switch} counted {counted_by_switch} bytes, the server's interface {counted_by_host}"
    )]
    LinkCounters {
        /// Name of the switch to which the server's host is attached.
        switch: String,
        /// Number of bytes that the switch counted, both directions together.
        counted_by_switch: u64,
        /// Number of bytes that the host's interface counted, both directions together.
        counted_by_host: u64,
    },
}
