//! What a queue pair is made with, and why it does not do what it is asked.

use super::State;
use crate::Qpn;
use crate::memory::AccessError;
use crate::packet::Service;

/// What a queue pair is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpConfig {
    /// RC or UC.
    pub service: Service,
    /// Work that its send queue takes.
    pub max_sends: usize,
    /// Work that its receive queue takes.
    pub max_receives: usize,
}

impl QpConfig {
    /// Of this service, with queues of 128 each.
    pub fn new(service: Service) -> Self {
        Self {
            service,
            max_sends: 128,
            max_receives: 128,
        }
    }
}

/// Why work is not posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// There is no such queue pair.
    #[error("no queue pair {0}")]
    UnknownQp(Qpn),
    /// The state does not allow it.
    #[error("the queue pair is in the state {0:?}")]
    State(State),
    /// The queue has as much work as it takes.
    #[error("the queue is full: {0} requests")]
    QueueFull(usize),
    /// Each request might complete before one is polled, and there is no room for one more.
    #[error("the completion queue has no room: {0} completions")]
    CompletionQueueFull(usize),
    /// The local bytes.
    #[error("local bytes: {0}")]
    Local(#[from] AccessError),
    /// More bytes than a message has, or more packets than sequence numbers tell apart.
    #[error("{0} bytes are too many for one message at this MTU")]
    TooLong(u32),
    /// READ on an unreliable connection.
    #[error("an unreliable connection has no READ")]
    Unsupported,
}

/// Why a queue pair does not enter a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModifyError {
    /// There is no such queue pair.
    #[error("no queue pair {0}")]
    UnknownQp(Qpn),
    /// Not from the state in which it is.
    #[error("not from the state {0:?}")]
    State(State),
    /// An attribute has a value that it may not have.
    #[error("{0} is out of its range")]
    Attribute(&'static str),
}
