//! Why an experiment could not be carried out.

use testbeds::bed::BedError;

use super::limits::LimitReached;
use super::workload::WorkloadError;
use crate::experiment::fleet::FleetError;
use crate::experiment::prepare::{EnvironmentError, LaunchError};

/// Why an experiment could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// An error in the scenario.
    #[error("{0}")]
    Scenario(String),
    /// An error of the network.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// Switches that do not start.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// An error of a session with a switch.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// An error of the environment of the user's programs.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// An error of the workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The probes could not start.
    #[error("cannot probe: {0}")]
    Probes(std::io::Error),
    /// A switch ended in mid-run.
    #[error("switch {switch} ended during the run: {reason}")]
    SwitchEnded {
        /// Name of the switch.
        switch: String,
        /// The last line of its standard error, or how its process ended.
        reason: String,
    },
    /// A limit of the scenario is reached.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The two counts of the server's link differ.
    #[error(
        "the server's link: switch {switch} counted {counted_by_switch} bytes, the server's interface {counted_by_host}"
    )]
    LinkCounters {
        /// Name of the switch.
        switch: String,
        /// The switch's count of bytes in both directions.
        counted_by_switch: u64,
        /// The host's count of bytes in both directions.
        counted_by_host: u64,
    },
}
