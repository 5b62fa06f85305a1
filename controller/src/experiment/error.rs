//! Why an experiment could not be carried out.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use testbeds::bed::BedError;
use testbeds::host::{Process, ProcessError};

use super::fleet::FleetError;
use super::launch::LaunchError;
use super::limits::LimitReached;
use super::workload::{CommandError, RedisError, TrainingError};

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
    /// An error of the training.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// An error of the Redis workload.
    #[error(transparent)]
    Redis(#[from] RedisError),
    /// An error of the user's programs.
    #[error(transparent)]
    Commands(CommandError),
    /// An error of the interfaces at the ends of a wire.
    #[error(transparent)]
    Link(#[from] testbeds::net::NetError),
    /// A wire scenario without its two interfaces.
    #[error("a wire is between two interfaces that exist: `weir between IF1 IF2 --scenario FILE`")]
    NoEnds,
    /// The probes could not start.
    #[error("cannot probe: {0}")]
    Probes(std::io::Error),
    /// A switch ended in mid-run.
    #[error("switch {switch} ended in mid-run: {reason}")]
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

/// The last line that a process wrote to its standard error.
pub(crate) fn last_words(process: &mut Process) -> Option<String> {
    let said = process.stderr();
    said.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .map(str::to_owned)
}

/// How a process ended whose output is closed: the signal that ended it, or its last words, or its exit status.
pub(crate) fn how_it_ended(process: &mut Process) -> Result<String, ProcessError> {
    let Some(status) = process.wait(Duration::from_secs(5))? else {
        return Ok("it closed its output".to_owned());
    };
    if status.signal().is_some() {
        // The standard library writes "signal: 9 (SIGKILL)".
        let signal = status.to_string().replacen("signal: ", "signal ", 1);
        return Ok(format!("it was ended by {signal}"));
    }
    Ok(last_words(process).unwrap_or_else(|| status.to_string()))
}
