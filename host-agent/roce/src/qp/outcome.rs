//! Configuration of a queue pair, and errors of its operations.

use super::State;
use crate::Qpn;
use crate::memory::AccessError;
use crate::packet::Service;

/// Configuration of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpConfig {
    /// RC or UC.
    pub service: Service,
    /// Depth of the send queue.
    pub max_sends: usize,
    /// Depth of the receive queue.
    pub max_receives: usize,
}

impl QpConfig {
    /// A configuration for this service, with queues of 128 requests each.
    pub fn new(service: Service) -> Self {
        Self {
            service,
            max_sends: 128,
            max_receives: 128,
        }
    }
}

/// Reason why a work request cannot be posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// There is no such queue pair.
    #[error("no queue pair {0}")]
    UnknownQp(Qpn),
    /// The queue pair's state does not allow it.
    #[error("the queue pair is in the state {0:?}")]
    State(State),
    /// The queue is full.
    #[error("the queue is full: {0} requests")]
    QueueFull(usize),
    /// The completion queue has no capacity for another completion, if no completion is polled before.
    #[error("the completion queue is full: {0} completions")]
    CompletionQueueFull(usize),
    /// The local bytes are not accessible.
    #[error("local buffer: {0}")]
    Local(#[from] AccessError),
    /// The message has more bytes than a message may have, or more packets than PSNs can distinguish.
    #[error("{0} bytes exceed one message at this MTU")]
    TooLong(u32),
    /// READ is not available on an unreliable connection.
    #[error("an unreliable connection does not support READ")]
    Unsupported,
}

/// Reason why a queue pair cannot enter a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModifyError {
    /// There is no such queue pair.
    #[error("no queue pair {0}")]
    UnknownQp(Qpn),
    /// The current state does not lead to it.
    #[error("not allowed in the state {0:?}")]
    State(State),
    /// An attribute is out of its range.
    #[error("{0} is out of its range")]
    Attribute(&'static str),
}
