//! What keeps a host from being a rank: looked up (`facts.rs`, `sockets.rs`), then judged (`host.rs`).

mod facts;
mod finding;
mod host;
mod sockets;

pub use facts::{Facts, Interface, Neighbour, Opened, Route, facts};
pub use finding::{Finding, Level};
pub use host::{Peer, Wanted, judge};
pub use sockets::Holder;
