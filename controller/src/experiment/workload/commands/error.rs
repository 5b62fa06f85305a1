//! Errors of the commands workload.

use std::path::PathBuf;

use scenario::units::show_duration;
use testbeds::bed::BedError;
use testbeds::command::Missing;
use testbeds::host::ProcessError;

/// Errors of the commands workload.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Programs that are not installed, each with the command or probe that needs it.
    #[error("{}", .0.iter().map(|(whose, missing)| format!("{whose}: {missing}")).collect::<Vec<_>>().join("\n      "))]
    NotInstalled(Vec<(String, Missing)>),
    /// An error of the network.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// An error of a process.
    #[error("command `{name}`: {source}")]
    Process {
        /// Name of the command.
        name: String,
        /// The error.
        source: ProcessError,
    },
    /// A folder or a file of weir could not be created.
    #[error("cannot make {}: {source}", .path.display())]
    Folder {
        /// Path of the folder or file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A service ended before others could use it.
    #[error("service `{name}` on {host} ended before it was ready: {how}{hint}")]
    EndedEarly {
        /// Name of the service.
        name: String,
        /// Host of the service.
        host: String,
        /// The service's exit status and last lines of output.
        how: String,
        /// Advice for the user.
        hint: &'static str,
    },
    /// A service was not ready in time.
    #[error("service `{name}` on {host} was not ready within {}: {what}", show_duration(*.within_ns))]
    NotReady {
        /// Name of the service.
        name: String,
        /// Host of the service.
        host: String,
        /// Timeout, in nanoseconds.
        within_ns: u64,
        /// The condition that did not hold, and the service's last lines of output.
        what: String,
    },
    /// A service ended while drivers still used it.
    #[error("service `{name}` on {host} ended in mid-run: {how}{hint}")]
    EndedInMidRun {
        /// Name of the service.
        name: String,
        /// Host of the service.
        host: String,
        /// The service's exit status and last lines of output.
        how: String,
        /// Possible cause, and advice for the user.
        hint: String,
    },
    /// A metric found more numbers than are kept.
    #[error("metric `{series}` of command `{name}` has more than {limit} numbers")]
    TooManyNumbers {
        /// Name of the command.
        name: String,
        /// Name of the series.
        series: String,
        /// Maximum number of kept numbers.
        limit: usize,
    },
}
