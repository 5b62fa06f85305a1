//! Workloads: programs that run while the faults act. The testbed executes them.

pub mod commands;
mod template;

use serde::Serialize;

pub use commands::Commands;
pub use template::{Template, TemplateError, Variable};

/// Path and content of a workload file, which the caller has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSource {
    /// Path of the file, for messages and for the variable `{here}`.
    pub file: String,
    /// Content of the workload file.
    pub text: String,
}

/// The programs that run on the hosts, of one of four kinds.
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
        /// Duration of the run, in nanoseconds.
        for_ns: u64,
    },
}

/// A redis-server and its clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redis {
    /// Name of the server's host.
    pub server: String,
    /// The server's TCP port.
    pub port: u16,
    /// Clients in declared order.
    pub clients: Vec<RedisClient>,
}

/// A client with one connection to the Redis server, and the requests that it sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedisClient {
    /// The client's name in metrics.
    pub name: String,
    /// Name of the client's host.
    pub host: String,
    /// Number of requests that the client sends.
    pub requests: u32,
    /// Redis commands, as words, that the client sends in turn; `{n}`: the request's number, from 1. A bare `SET` gets a value.
    pub commands: Vec<Vec<String>>,
    /// Length of the values that are added to `SET` commands, in bytes.
    pub value_bytes: u32,
    /// Time between an answer and the client's next request, in nanoseconds.
    pub pause_ns: u64,
}

/// A training with a parameter server and several workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Training {
    /// Name of the parameter server's host.
    pub server: String,
    /// Names of the workers' hosts, in rank order.
    pub workers: Vec<String>,
    /// Number of training iterations.
    pub iterations: u32,
    /// Name of the switch that sums the gradients; `None`: the server sums them.
    pub aggregate_on: Option<String>,
    /// Maximum number of chunks (pieces of the gradient) that a worker has in flight: a power of two.
    pub window: u32,
}
