//! What runs while the faults act. The testbed executes it.

pub mod commands;
mod template;

use serde::Serialize;

pub use commands::Commands;
pub use template::{Template, TemplateError, Variable};

/// A file that holds a workload, read by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSource {
    /// Its path, for messages and for `{here}`.
    pub file: String,
    /// All of it.
    pub text: String,
}

/// A workload and its hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Programs of the user's: services, and the drivers that use them.
    Commands(Commands),
    /// A redis-server and clients that talk to it, one request at a time each.
    Redis(Redis),
    /// Data-parallel training with a parameter server.
    Training(Training),
    /// Nothing of ours: the user's own traffic, for so long.
    Idle {
        /// How long.
        for_ns: u64,
    },
}

/// A redis-server and its clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redis {
    /// Host of the server.
    pub server: String,
    /// TCP port.
    pub port: u16,
    /// Clients in declared order.
    pub clients: Vec<RedisClient>,
}

/// One connection and what it asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedisClient {
    /// Its name in metrics.
    pub name: String,
    /// Where it runs.
    pub host: String,
    /// How many requests it makes.
    pub requests: u32,
    /// Taken in turn; `{n}` stands for the number of the request, from 1. A `SET` without a value gets one.
    pub commands: Vec<Vec<String>>,
    /// Length of the values that `SET`s get.
    pub value_bytes: u32,
    /// Between an answer and the next request.
    pub pause_ns: u64,
}

/// A training job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Training {
    /// Host of the parameter server.
    pub server: String,
    /// Hosts of the workers, by rank.
    pub workers: Vec<String>,
    /// Rounds.
    pub iterations: u32,
    /// The switch that sums; none: the server does.
    pub aggregate_on: Option<String>,
    /// Chunks in flight per worker, a power of two.
    pub window: u32,
}
