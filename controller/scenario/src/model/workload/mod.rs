//! Workloads: programs that run while the faults act. The testbed executes them.

pub mod commands;
mod template;

use serde::Serialize;

pub use commands::Commands;
pub use template::{Template, TemplateError, Variable};

/// A workload file, read by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSource {
    /// Path, for messages and for `{here}`.
    pub file: String,
    /// Content of the file.
    pub text: String,
}

/// A workload and its hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Programs of the user: services, and the drivers that use them.
    Commands(Commands),
    /// A redis-server and clients, each with one request at a time.
    Redis(Redis),
    /// Data-parallel training with a parameter server.
    Training(Training),
    /// No programs started by weir: only the user's own traffic, for a fixed time.
    Idle {
        /// Duration in nanoseconds.
        for_ns: u64,
    },
}

/// A redis-server and its clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redis {
    /// The server's host.
    pub server: String,
    /// The server's TCP port.
    pub port: u16,
    /// Clients in declared order.
    pub clients: Vec<RedisClient>,
}

/// A client with one connection, and its requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedisClient {
    /// The client's name in metrics.
    pub name: String,
    /// The client's host.
    pub host: String,
    /// Number of requests.
    pub requests: u32,
    /// Request commands, used in turn; `{n}` is the request's number, from 1. A `SET` without a value gets one.
    pub commands: Vec<Vec<String>>,
    /// Length of values added to `SET`s, in bytes.
    pub value_bytes: u32,
    /// Time between an answer and the next request, in nanoseconds.
    pub pause_ns: u64,
}

/// A training job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Training {
    /// The parameter server's host.
    pub server: String,
    /// The workers' hosts, in rank order.
    pub workers: Vec<String>,
    /// Number of iterations.
    pub iterations: u32,
    /// The switch that sums; `None`: the server sums.
    pub aggregate_on: Option<String>,
    /// Chunks in flight per worker, a power of two.
    pub window: u32,
}
