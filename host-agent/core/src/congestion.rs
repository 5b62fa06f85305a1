//! Congestion control: limits the number of chunks in flight, and orders their transmission (`docs/protocol.md`, "Congestion").

mod queue;
mod window;

pub use queue::SendQueue;
pub use window::{Answered, CongestionWindow, Signals};

/// Explicit congestion notification in the IP header of a received frame (RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Mark {
    /// No queue on the path marked the frame.
    #[default]
    None,
    /// Congestion experienced: a queue on the path was long.
    Congested,
}
