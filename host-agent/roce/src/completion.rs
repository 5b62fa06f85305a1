//! Completions of RDMA work requests, with the status codes of verbs, and the queue from which the caller polls completions.

use std::collections::VecDeque;

use crate::Qpn;

/// Status of a completed work request: `IBV_WC_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Status {
    /// `IBV_WC_SUCCESS`: the work request was executed.
    #[error("success")]
    Success,
    /// `IBV_WC_LOC_LEN_ERR`: a received message is longer than the buffer that was posted for it.
    #[error("local length error")]
    LocalLength,
    /// `IBV_WC_LOC_QP_OP_ERR`: the device cannot execute the work request as it was posted.
    #[error("local operation error")]
    LocalOperation,
    /// `IBV_WC_LOC_PROT_ERR`: the work request has a wrong local key or address, or the local region does not allow the access.
    #[error("local protection error")]
    LocalProtection,
    /// `IBV_WC_WR_FLUSH_ERR`: the queue pair entered the state ERROR before the request completed.
    #[error("flushed")]
    Flushed,
    /// `IBV_WC_BAD_RESP_ERR`: the peer's response to the request is invalid.
    #[error("bad response")]
    BadResponse,
    /// `IBV_WC_REM_INV_REQ_ERR`: the peer rejected the request as invalid.
    #[error("remote invalid request")]
    RemoteInvalidRequest,
    /// `IBV_WC_REM_ACCESS_ERR`: the peer's memory region does not allow the access.
    #[error("remote access error")]
    RemoteAccess,
    /// `IBV_WC_REM_OP_ERR`: the peer failed while it executed the request.
    #[error("remote operation error")]
    RemoteOperation,
    /// `IBV_WC_RETRY_EXC_ERR`: the peer did not respond to the last retransmission either.
    #[error("transport retry counter exceeded")]
    RetryExceeded,
    /// `IBV_WC_RNR_RETRY_EXC_ERR`: the peer had no receive posted at the last retry either.
    #[error("RNR retry counter exceeded")]
    RnrRetryExceeded,
    /// `IBV_WC_GENERAL_ERR`, and every status of a device that this enum does not name.
    #[error("general error")]
    General,
}

/// Operation of a completed work request: `IBV_WC_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// `IBV_WC_SEND`: a SEND of this side.
    Send,
    /// `IBV_WC_RDMA_WRITE`: an RDMA WRITE of this side.
    Write,
    /// `IBV_WC_RDMA_READ`: an RDMA READ of this side.
    Read,
    /// `IBV_WC_RECV`: a SEND of the peer has consumed a posted receive.
    Receive,
    /// `IBV_WC_RECV_RDMA_WITH_IMM`: the peer's WRITE with immediate data has consumed a posted receive.
    ReceiveWriteImmediate,
}

/// Completion of a work request, which the caller polls from the completion queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The caller's identifier of the completed work request.
    pub wr_id: u64,
    /// Queue pair to which the work request was posted.
    pub qpn: Qpn,
    /// Success, or the kind of failure. After a failure, only `wr_id`, `qpn` and this status are valid.
    pub status: Status,
    /// Operation of the completed work request.
    pub kind: WorkKind,
    /// Number of bytes that were received, written or read.
    pub byte_len: u32,
    /// Immediate data that the sender gave with its message, in network byte order; `None` if there are none.
    pub immediate: Option<[u8; 4]>,
}

/// Completions that the caller has not polled yet. The queue never overflows, since posting reserves capacity.
#[derive(Debug)]
pub struct CompletionQueue {
    queue: VecDeque<Completion>,
    depth: usize,
    /// Number of posted work requests that may still complete; each has reserved capacity for one completion.
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

    /// Reserves capacity for one completion; returns `false` if the queue has none left.
    pub(crate) fn reserve(&mut self) -> bool {
        let room = self.queue.len() + self.reserved < self.depth;
        self.reserved += usize::from(room);
        room
    }

    /// Releases the capacity reserved for `count` work requests without a completion (unsignaled, or queue pair destroyed).
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
