//! Results of a run.

use crate::NetworkCounters;
use aggregation::job::WorkerId;
use aggregation::server::{ServerCounters, ServerError};
use aggregation::worker::{WorkerCounters, WorkerError};

/// End of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// All rounds are finished and the job is closed.
    Finished,
    /// The worker died.
    Died,
    /// The worker gave up with this error.
    Failed(WorkerError),
    /// The worker was still waiting when the run was cut off, which is never acceptable.
    Hung,
}

/// End of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEnd {
    /// All rounds are applied.
    Finished,
    /// The server died.
    Died,
    /// The server gave up with this error.
    Failed(ServerError),
    /// The server was still waiting when the run was cut off, which is never acceptable.
    Hung,
}

/// Result of a worker.
#[derive(Debug, Clone)]
pub struct WorkerReport {
    /// Rank of the worker.
    pub rank: WorkerId,
    /// Answers of each completed round.
    pub rounds: Vec<Vec<u32>>,
    /// How the worker ended.
    pub end: WorkerEnd,
    /// Time at which the worker ended.
    pub ended_ns: u64,
    /// Counters of the worker.
    pub counters: WorkerCounters,
}

/// Result of the server.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// How the server ended.
    pub end: ServerEnd,
    /// Time at which the server ended.
    pub ended_ns: u64,
    /// Counters of the server.
    pub counters: ServerCounters,
}

/// Result of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// Results of the workers, by rank.
    pub workers: Vec<WorkerReport>,
    /// Result of the server.
    pub server: ServerReport,
    /// Counters of the network.
    pub network: NetworkCounters,
    /// Number of nodes that died before the end of the run.
    pub deaths: u64,
    /// Time of the end of the run.
    pub ended_ns: u64,
}
