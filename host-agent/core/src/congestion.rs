//! How many chunks a rank or a worker has under way, and in which order they are sent: `docs/protocol.md`, "Congestion".

mod queue;
mod window;

pub use queue::SendQueue;
pub use window::{Answered, CongestionWindow, Signals};

/// What the IP header of a frame says of the queues on its way (RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Mark {
    /// None was long, or none marks.
    #[default]
    None,
    /// Congestion experienced: one was.
    Congested,
}
