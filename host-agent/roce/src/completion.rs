//! Completions of work requests, in the terms of verbs, and their queue.

use std::collections::VecDeque;

use crate::Qpn;

/// Status of a completed work request: `IBV_WC_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Status {
    /// `IBV_WC_SUCCESS`.
    #[error("success")]
    Success,
    /// `IBV_WC_LOC_LEN_ERR`: a message is longer than the receive that was posted for it.
    #[error("local length error")]
    LocalLength,
    /// `IBV_WC_LOC_QP_OP_ERR`: the device cannot execute the request as posted.
    #[error("local operation error")]
    LocalOperation,
    /// `IBV_WC_LOC_PROT_ERR`: the local key or address is wrong, or the access is not allowed.
    #[error("local protection error")]
    LocalProtection,
    /// `IBV_WC_WR_FLUSH_ERR`: the queue pair entered the state ERROR before the request completed.
    #[error("flushed")]
    Flushed,
    /// `IBV_WC_BAD_RESP_ERR`: the peer's response is invalid.
    #[error("bad response")]
    BadResponse,
    /// `IBV_WC_REM_INV_REQ_ERR`: the peer rejected the request as invalid.
    #[error("remote invalid request")]
    RemoteInvalidRequest,
    /// `IBV_WC_REM_ACCESS_ERR`: the peer's region does not allow the access.
    #[error("remote access error")]
    RemoteAccess,
    /// `IBV_WC_REM_OP_ERR`: the peer failed.
    #[error("remote operation error")]
    RemoteOperation,
    /// `IBV_WC_RETRY_EXC_ERR`: no response after all retries.
    #[error("transport retry counter exceeded")]
    RetryExceeded,
    /// `IBV_WC_RNR_RETRY_EXC_ERR`: the peer had no receive posted after all retries.
    #[error("RNR retry counter exceeded")]
    RnrRetryExceeded,
    /// `IBV_WC_GENERAL_ERR`, and all other codes of devices.
    #[error("general error")]
    General,
}

/// Kind of a completed work request: `IBV_WC_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// `IBV_WC_SEND`.
    Send,
    /// `IBV_WC_RDMA_WRITE`.
    Write,
    /// `IBV_WC_RDMA_READ`.
    Read,
    /// `IBV_WC_RECV`.
    Receive,
    /// `IBV_WC_RECV_RDMA_WITH_IMM`: a WRITE with immediate has consumed a receive.
    ReceiveWriteImmediate,
}

/// A completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The caller's identifier of the work request.
    pub wr_id: u64,
    /// The queue pair.
    pub qpn: Qpn,
    /// Status. After a failure only the two fields above are valid besides it.
    pub status: Status,
    /// Kind of the work request.
    pub kind: WorkKind,
    /// Bytes received, written or read.
    pub byte_len: u32,
    /// Immediate data of the sender, in network byte order.
    pub immediate: Option<[u8; 4]>,
}

/// Completions that wait to be polled. The queue never overflows, since posting reserves capacity.
#[derive(Debug)]
pub struct CompletionQueue {
    queue: VecDeque<Completion>,
    depth: usize,
    /// Number of posted work requests, each of which completes at most once.
    reserved: usize,
}

impl CompletionQueue {
    pub(crate) fn new(depth: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            depth,
            reserved: 0,
        }
    }

    /// Reserves capacity for one completion; returns `false` if there is none.
    pub(crate) fn reserve(&mut self) -> bool {
        let room = self.queue.len() + self.reserved < self.depth;
        self.reserved += usize::from(room);
        room
    }

    /// Releases reservations of work requests that will not complete: unsignaled ones, or those of a destroyed queue pair.
    pub(crate) fn release(&mut self, count: usize) {
        debug_assert!(self.reserved >= count);
        self.reserved = self.reserved.saturating_sub(count);
    }

    pub(crate) fn push(&mut self, completion: Completion) {
        self.release(1);
        self.queue.push_back(completion);
        debug_assert!(self.queue.len() + self.reserved <= self.depth);
    }

    pub(crate) fn pop(&mut self) -> Option<Completion> {
        self.queue.pop_front()
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }
}
