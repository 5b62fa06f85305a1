//! Errors of the workloads of a scenario.

use scenario::units::show_duration;
use testbeds::bed::BedError;
use testbeds::host::ProcessError;
use testbeds::net::NetError;
use testbeds::redis::ServerError;

use crate::experiment::prepare::EnvironmentError;

/// Errors of a workload.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The training returned an error.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// The Redis workload returned an error.
    #[error(transparent)]
    Redis(#[from] RedisError),
    /// A command of the user failed, or could not start.
    #[error(transparent)]
    Commands(#[from] CommandError),
    /// The interfaces at the ends of a wire returned an error.
    #[error(transparent)]
    Link(#[from] NetError),
    /// The scenario is a wire, but no interfaces were given for its two ends.
    #[error("a wire connects two existing interfaces: use `weir between IF1 IF2 --scenario FILE`")]
    NoEnds,
}

/// Errors of the training workload.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// The testbed's network returned an error.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// An agent's process could not be started, read or written.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Agents ended with an error; contains their messages, those of agents that were killed first.
    #[error("{}", .0.join("\n"))]
    Agents(Vec<String>),
    /// The topology has no host of this name.
    #[error("the topology has no host {0}")]
    Host(String),
}

/// Errors of the Redis workload.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    /// The Redis server did not start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The Redis server ended while clients still used it.
    #[error("redis-server on {host} ended during the run: {reason}")]
    ServerEnded {
        /// Host of the server.
        host: String,
        /// The last line of the server's standard error, or how the server ended.
        reason: String,
    },
    /// The testbed's network returned an error.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// A client's process could not be started or read.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A Redis client ended with an error, or without a report.
    #[error("client {name} on {host}: {reason}")]
    Client {
        /// Name of the client.
        name: String,
        /// Host of the client.
        host: String,
        /// The client's error message, or how its process ended.
        reason: String,
    },
}

/// Errors of the commands workload.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The testbed's network returned an error.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// A command's process could not be started, watched or ended.
    #[error("command `{name}`: {source}")]
    Process {
        /// Name of the command.
        name: String,
        /// Error of the operation on the process.
        source: ProcessError,
    },
    /// A folder or file for the programs could not be created.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// A service was not ready in time.
    #[error("service `{name}` on {host} was not ready within {}: {what}", show_duration(*.within_ns))]
    NotReady {
        /// Name of the service.
        name: String,
        /// Host of the service.
        host: String,
        /// The time within which the service had to be ready, in nanoseconds.
        within_ns: u64,
        /// The condition of `ready` that did not hold, and the service's last lines of output.
        what: String,
    },
    /// A service ended before it was ready, or while drivers still used it.
    #[error("service `{name}` on {host} ended {when}: {how}{hint}")]
    Ended {
        /// Name of the service.
        name: String,
        /// Host of the service.
        host: String,
        /// `before it was ready`, or `during the run`.
        when: &'static str,
        /// The service's exit status, and its last lines of output.
        how: String,
        /// Possible cause, and what the user should change; may be empty.
        hint: String,
    },
    /// A metric found more numbers in a command's output than weir keeps.
    #[error("metric `{series}` of command `{name}` has more than {limit} numbers")]
    TooManyNumbers {
        /// Name of the command.
        name: String,
        /// Name of the metric's series of numbers.
        series: String,
        /// Maximum number of numbers that weir keeps of a series.
        limit: usize,
    },
}
