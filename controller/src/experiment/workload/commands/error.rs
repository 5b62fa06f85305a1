//! Why commands did not come to their end.

use std::path::PathBuf;

use scenario::units::show_duration;
use testbeds::bed::BedError;
use testbeds::command::Missing;
use testbeds::host::ProcessError;

/// Why commands did not come to their end.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Programs that are not installed, and whose they are.
    #[error("{}", .0.iter().map(|(whose, missing)| format!("{whose}: {missing}")).collect::<Vec<_>>().join("\n      "))]
    NotInstalled(Vec<(String, Missing)>),
    /// The network.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// A process.
    #[error("command `{name}`: {source}")]
    Process {
        /// Which.
        name: String,
        /// Why.
        source: ProcessError,
    },
    /// A folder or a file of ours.
    #[error("cannot make {}: {source}", .path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A service ended before others could use it.
    #[error("service `{name}` on {host} ended before it was ready: {how}{hint}")]
    EndedEarly {
        /// Which.
        name: String,
        /// Where.
        host: String,
        /// Its status and last words.
        how: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// A service is not ready.
    #[error("service `{name}` on {host} was not ready within {}: {what}", show_duration(*.within_ns))]
    NotReady {
        /// Which.
        name: String,
        /// Where.
        host: String,
        /// How long it had.
        within_ns: u64,
        /// What was waited for, and its last words.
        what: String,
    },
    /// A service ended while drivers still used it.
    #[error("service `{name}` on {host} ended in mid-run: {how}{hint}")]
    EndedInMidRun {
        /// Which.
        name: String,
        /// Where.
        host: String,
        /// Its status and last words.
        how: String,
        /// What may have ended it, and what to do about that.
        hint: String,
    },
    /// More numbers than are kept.
    #[error("metric `{series}` of command `{name}` has more than {limit} numbers")]
    TooManyNumbers {
        /// Of which command.
        name: String,
        /// Which.
        series: String,
        /// How many are kept.
        limit: usize,
    },
}
