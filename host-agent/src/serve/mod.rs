//! `weir-agent serve`: a daemon that owns interfaces, and the capability to send raw frames. Processes without it join jobs
//! through its Unix socket.
//!
//! | file | contents |
//! |---|---|
//! | `message.rs`, `refusal.rs` | messages on the socket |
//! | `socket.rs` | their transmission |
//! | `values.rs` | values in shared memory, which is passed with messages |
//! | `daemon.rs` | admission of clients, and shutdown |
//! | `session.rs` | one connected process: a member of a job |
//! | `operations.rs` | its operations, which wait for capacity |
//! | `client.rs` | the client |
//!
//! The values of an operation come in a separate memfd, and the sums are returned in the same one, followed by the list of
//! partial chunks. Neither end maps it: both read and write it as a file. So neither can remove the memory from under the
//! other, and no rule of memory models is involved.

mod client;
mod daemon;
mod message;
mod operations;
mod refusal;
mod session;
mod socket;
mod values;

pub use client::{Client, RemotePending};
pub use daemon::{DaemonError, ServeArgs, serve};
pub use message::{Deadline, RankOf};
