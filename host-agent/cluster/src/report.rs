//! What a run came to.

use crate::NetworkCounters;
use aggregation::job::WorkerId;
use aggregation::server::{ServerCounters, ServerError};
use aggregation::worker::{WorkerCounters, WorkerError};

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// All rounds are done and the job is closed.
    Finished,
    /// It died.
    Died,
    /// It gave up, and said why.
    Failed(WorkerError),
    /// It was still waiting when the run was cut off. Never acceptable.
    Hung,
}

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEnd {
    /// All rounds are applied.
    Finished,
    /// It died.
    Died,
    /// It gave up, and said why.
    Failed(ServerError),
    /// It was still waiting when the run was cut off. Never acceptable.
    Hung,
}

/// A worker's part of a run.
#[derive(Debug, Clone)]
pub struct WorkerReport {
    /// Who.
    pub rank: WorkerId,
    /// The answers of each round that it completed.
    pub rounds: Vec<Vec<u32>>,
    /// How it ended.
    pub end: WorkerEnd,
    /// When it ended.
    pub ended_ns: u64,
    /// What it counted.
    pub counters: WorkerCounters,
}

/// The server's part of a run.
#[derive(Debug, Clone)]
pub struct ServerReport {
    /// How it ended.
    pub end: ServerEnd,
    /// When it ended.
    pub ended_ns: u64,
    /// What it counted.
    pub counters: ServerCounters,
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Report {
    /// By rank.
    pub workers: Vec<WorkerReport>,
    /// The server.
    pub server: ServerReport,
    /// What the network did.
    pub network: NetworkCounters,
    /// Who died before the run was over.
    pub deaths: u64,
    /// When the run was over.
    pub ended_ns: u64,
}
