//! Checks whether a host can be a rank: facts are collected (`facts.rs`, `sockets.rs`), then judged (`host.rs`).

mod facts;
mod finding;
mod host;
mod sockets;

pub use facts::{Facts, Interface, Neighbour, OpenResult, Route, facts};
pub use finding::{Finding, Level};
pub use host::{Peer, Wanted, judge};
pub use sockets::Holder;
