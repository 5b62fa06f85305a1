//! Events, results and counters that a worker returns to its driver.

use crate::Sent;
use crate::congestion::Signals;
use crate::job::{ChunkId, Position};

/// Event that a worker reports to its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEvent {
    /// Every chunk of the round is answered: [`Worker::results`](super::Worker::results) holds the answers.
    RoundDone {
        /// Number of the round, from 0.
        round: u64,
    },
    /// The job has ended: the server knows that every worker has every answer, or did not reply to the closing frames.
    Closed,
    /// The worker has given up and sends nothing more.
    Failed(WorkerError),
}

/// Reason why a worker gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// The worker received no answer to a chunk.
    #[error("{position} ({chunk}) was not answered within {timeouts} timeouts")]
    Unanswered {
        /// Position of the unanswered chunk.
        position: Position,
        /// Sequence number of the chunk on the wire.
        chunk: ChunkId,
        /// Number of timeouts of the chunk.
        timeouts: u32,
    },
    /// A worker's values include NaN or infinity.
    #[error("{position} ({chunk}) has a value that is not finite")]
    NonFinite {
        /// Position of the chunk with that value.
        position: Position,
        /// Sequence number of the chunk on the wire.
        chunk: ChunkId,
    },
}

/// Reason why a round cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Another round is in progress, or the worker has closed or failed.
    #[error("the worker is not idle")]
    NotIdle,
    /// The number of values passed differs from the number of values per round of the job.
    #[error("{got} values, but the job's rounds have {expected}")]
    Length {
        /// Number of values passed.
        got: usize,
        /// Number of values per round of the job.
        expected: usize,
    },
}

/// Result of processing a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerFrame {
    /// The frame answered a chunk.
    Answer,
    /// The frame answered a chunk that had been answered before.
    Duplicate,
    /// The frame belongs to another job or worker, or is not a RESULT.
    NotOurs,
    /// The bytes are not a frame of the protocol, or the frame cannot be the answer to its chunk.
    Malformed,
}

/// Counters of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerCounters {
    /// Frames and bytes sent.
    pub sent: Sent,
    /// Answers received to chunks that had been answered before.
    pub duplicates: u64,
    /// Received frames of other jobs or workers, or that are not a RESULT.
    pub not_ours: u64,
    /// Received bytes that are not a frame, or frames that cannot be the answer to their chunk.
    pub malformed: u64,
    /// Chunks that timed out.
    pub timeouts: u64,
    /// Chunks retransmitted ahead of their timeout because later chunks were answered.
    pub fast_retransmits: u64,
    /// Congestion marks received, and their effect on the window.
    pub congestion: Signals,
}
