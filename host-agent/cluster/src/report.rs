//! Results of a simulated training: how workers and server ended, and their counters.

use crate::NetworkCounters;
use aggregation::job::WorkerId;
use aggregation::server::{ServerCounters, ServerError};
use aggregation::worker::{WorkerCounters, WorkerError};

/// How a worker of a simulated training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// The worker has completed all rounds and closed the job.
    Finished,
    /// The worker died, as the configuration said.
    Died,
    /// The worker gave up with this error.
    Failed(WorkerError),
    /// The worker was still waiting when the run was cut off, which is never acceptable.
    Hung,
}

/// How the parameter server of a simulated training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEnd {
    /// The server has applied the sums of all rounds.
    Finished,
    /// The server died, as the configuration said.
    Died,
    /// The server gave up with this error.
    Failed(ServerError),
    /// The server was still waiting when the run was cut off, which is never acceptable.
    Hung,
}

/// Result of one worker of a simulated training.
#[derive(Debug, Clone)]
pub struct WorkerReport {
    /// Rank of the worker.
    pub rank: WorkerId,
    /// Values of the server's answers, for each completed round.
    pub rounds: Vec<Vec<u32>>,
    /// How the worker ended.
    pub end: WorkerEnd,
    /// Virtual time at which the worker ended, in nanoseconds.
    pub ended_ns: u64,
    /// Counters of the worker.
    pub counters: WorkerCounters,
}

/// Result of the parameter server of a simulated training.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// How the server ended.
    pub end: ServerEnd,
    /// Virtual time at which the server ended, in nanoseconds.
    pub ended_ns: u64,
    /// Counters of the server.
    pub counters: ServerCounters,
}

/// Result of a simulated training.
#[derive(Debug, Clone)]
pub struct Report {
    /// Result of each worker, in order of rank.
    pub workers: Vec<WorkerReport>,
    /// Result of the parameter server.
    pub server: ServerReport,
    /// Counters of the simulated network.
    pub network: NetworkCounters,
    /// Number of nodes that died before the end of the run.
    pub deaths: u64,
    /// Virtual time at which the run ended, in nanoseconds.
    pub ended_ns: u64,
}
