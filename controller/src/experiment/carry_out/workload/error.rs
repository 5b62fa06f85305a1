//! Errors of the workloads.

use scenario::units::show_duration;
use testbeds::bed::BedError;
use testbeds::host::ProcessError;
use testbeds::net::NetError;
use testbeds::redis::ServerError;

use crate::experiment::prepare::EnvironmentError;

/// Errors of a workload.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// An error of the training.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// An error of the Redis workload.
    #[error(transparent)]
    Redis(#[from] RedisError),
    /// An error of the user's programs.
    #[error(transparent)]
    Commands(#[from] CommandError),
    /// An error of the interfaces at the ends of a wire.
    #[error(transparent)]
    Link(#[from] NetError),
    /// A wire scenario without its two interfaces.
    #[error("a wire connects two existing interfaces: use `weir between IF1 IF2 --scenario FILE`")]
    NoEnds,
}

/// Errors of the training workload.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// An error of the network.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// An error of a process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Agents that ended with an error: their messages, first those of agents that other agents may have depended on.
    #[error("{}", .0.join("\n"))]
    Agents(Vec<String>),
    /// A host that the topology does not have.
    #[error("the topology has no host {0}")]
    Host(String),
}

/// Errors of the Redis workload.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    /// The server did not start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server ended while clients still used it.
    #[error("redis-server on {host} ended during the run: {reason}")]
    ServerEnded {
        /// Host of the server.
        host: String,
        /// Its last words, or how it ended.
        reason: String,
    },
    /// An error of the network.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// An error of a process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A client ended with an error.
    #[error("client {name} on {host}: {reason}")]
    Client {
        /// Name of the client.
        name: String,
        /// Host of the client.
        host: String,
        /// The client's error message, or how it ended.
        reason: String,
    },
}

/// Errors of the commands workload.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
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
    /// A file of weir could not be created.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
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
    /// A service ended before others could use it, or while drivers still used it.
    #[error("service `{name}` on {host} ended {when}: {how}{hint}")]
    Ended {
        /// Name of the service.
        name: String,
        /// Host of the service.
        host: String,
        /// `before it was ready`, or `in mid-run`.
        when: &'static str,
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
