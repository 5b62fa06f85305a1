//! Configuration of a queue pair, and the errors of posting work requests and of state transitions.

use super::State;
use crate::Qpn;
use crate::memory::AccessError;
use crate::packet::Service;

/// Configuration of a queue pair: transport service, and depths of its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpConfig {
    /// Transport service: reliable (RC) or unreliable connection (UC).
    pub service: Service,
    /// Depth of the send queue, in work requests.
    pub max_sends: usize,
    /// Depth of the receive queue, in work requests.
    pub max_receives: usize,
}

impl QpConfig {
    /// A configuration for this transport service, with queues of 128 work requests each.
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
    /// No queue pair has this number.
    #[error("no queue pair {0}")]
    UnknownQp(Qpn),
    /// In its current state, the queue pair accepts no such work request.
    #[error("the queue pair is in the state {0:?}")]
    State(State),
    /// The send or receive queue already has its maximum number of work requests, which is given.
    #[error("the queue is full: {0} requests")]
    QueueFull(usize),
    /// The completion queue, which has this capacity, has no space for another completion until the caller polls completions.
    #[error("the completion queue is full: {0} completions")]
    CompletionQueueFull(usize),
    /// The local bytes of the work request are not accessible.
    #[error("local buffer: {0}")]
    Local(#[from] AccessError),
    /// The message has this many bytes, which exceeds the maximum length of a message or its maximum number of packets.
    #[error("{0} bytes exceed one message at this MTU")]
    TooLong(u32),
    /// READ is not available on an unreliable connection.
    #[error("an unreliable connection does not support READ")]
    Unsupported,
}

/// Reason why a queue pair cannot perform a state transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModifyError {
    /// No queue pair has this number.
    #[error("no queue pair {0}")]
    UnknownQp(Qpn),
    /// The queue pair's current state does not allow the transition.
    #[error("not allowed in the state {0:?}")]
    State(State),
    /// This attribute of the transition is out of its range.
    #[error("{0} is out of its range")]
    Attribute(&'static str),
}
