//! What became of work: completions, in verbs' words, and the queue they wait in.

use std::collections::VecDeque;

use crate::Qpn;

/// How work ended: `IBV_WC_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Status {
    /// `IBV_WC_SUCCESS`.
    #[error("success")]
    Success,
    /// `IBV_WC_LOC_LEN_ERR`: a message is longer than the receive that was posted for it.
    #[error("local length error")]
    LocalLength,
    /// `IBV_WC_LOC_QP_OP_ERR`: a device cannot carry the work out as it is.
    #[error("local operation error")]
    LocalOperation,
    /// `IBV_WC_LOC_PROT_ERR`: the local key, address or right is wrong.
    #[error("local protection error")]
    LocalProtection,
    /// `IBV_WC_WR_FLUSH_ERR`: the queue pair went into the state ERROR before this was done.
    #[error("flushed")]
    Flushed,
    /// `IBV_WC_BAD_RESP_ERR`: the peer's answer makes no sense.
    #[error("bad response")]
    BadResponse,
    /// `IBV_WC_REM_INV_REQ_ERR`: the peer calls the request invalid.
    #[error("remote invalid request")]
    RemoteInvalidRequest,
    /// `IBV_WC_REM_ACCESS_ERR`: the peer's region does not allow it.
    #[error("remote access error")]
    RemoteAccess,
    /// `IBV_WC_REM_OP_ERR`: the peer has failed.
    #[error("remote operation error")]
    RemoteOperation,
    /// `IBV_WC_RETRY_EXC_ERR`: no answer, as often as it was tried.
    #[error("transport retry counter exceeded")]
    RetryExceeded,
    /// `IBV_WC_RNR_RETRY_EXC_ERR`: the peer has posted no receive, as often as it was asked.
    #[error("RNR retry counter exceeded")]
    RnrRetryExceeded,
    /// `IBV_WC_GENERAL_ERR`, and what else a device says.
    #[error("general error")]
    General,
}

/// What work it was: `IBV_WC_*` again.
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
    /// `IBV_WC_RECV_RDMA_WITH_IMM`: a WRITE with immediate has used a receive.
    ReceiveWriteImmediate,
}

/// A completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// What the caller called the work.
    pub wr_id: u64,
    /// Whose.
    pub qpn: Qpn,
    /// How it ended. All other fields but the two above say something only after success.
    pub status: Status,
    /// What it was.
    pub kind: WorkKind,
    /// Bytes received, written or read.
    pub byte_len: u32,
    /// Four bytes from the sender, as they came.
    pub immediate: Option<[u8; 4]>,
}

/// Completions that nobody has polled yet. It never overflows: posting reserves.
#[derive(Debug)]
pub struct CompletionQueue {
    queue: VecDeque<Completion>,
    depth: usize,
    /// Work that is posted: each will complete once at most.
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

    /// Whether there is room for one more; if so it is reserved.
    pub(crate) fn reserve(&mut self) -> bool {
        let room = self.queue.len() + self.reserved < self.depth;
        self.reserved += usize::from(room);
        room
    }

    /// The work will not complete: unsignaled, or its queue pair is gone.
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
