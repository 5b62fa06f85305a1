//! `weir-agent serve`: a daemon that owns interfaces, and the capability to send raw frames. Processes without it join jobs
//! through its Unix socket.
//!
//! | file | what |
//! |---|---|
//! | `message.rs` | what is said on the socket, and how |
//! | `values.rs` | values in shared memory, which is passed with what is said |
//! | `daemon.rs` | who may connect, and the end |
//! | `session.rs` | one process that has connected: a member of a job |
//! | `operations.rs` | what it gives to be summed, which waits for room |
//! | `client.rs` | the other end |
//!
//! An operation's values come in a memfd of its own, and its sums go back in the same; behind them stands which chunks are not
//! of all ranks. Neither end maps it: both read and write it as a file. So nobody can take memory away from under the other, and
//! no rule of memory models is at stake.

mod client;
mod daemon;
mod message;
mod operations;
mod session;
mod values;

pub use client::{Client, RemotePending};
pub use daemon::{DaemonError, ServeArgs, serve};
pub use message::{Deadline, Kind, RankOf};
