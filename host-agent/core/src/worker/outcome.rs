//! What a worker tells its driver.

use crate::Sent;
use crate::congestion::Signals;
use crate::job::{ChunkId, Position};

/// What a worker has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Every chunk of the round is answered: [`Worker::results`](super::Worker::results) holds the answers.
    RoundDone {
        /// The round, from 0.
        round: u64,
    },
    /// The job has ended: the server knows that every worker has every answer, or was not heard any more.
    Closed,
    /// The worker has given up; nothing more happens.
    Failed(WorkerError),
}

/// Why a worker gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// No answer came for a chunk.
    #[error("{position} ({chunk}) was not answered within {timeouts} timeouts")]
    Unanswered {
        /// Where the chunk lies.
        position: Position,
        /// Its number on the wire.
        chunk: ChunkId,
        /// How often it timed out.
        timeouts: u32,
    },
    /// Some worker's input held NaN or infinity.
    #[error("{position} ({chunk}) holds a value that is not finite")]
    NonFinite {
        /// Where the chunk lies.
        position: Position,
        /// Its number on the wire.
        chunk: ChunkId,
    },
}

/// Why a round cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Another round is under way, or the worker has closed or failed.
    #[error("the worker is not idle")]
    NotIdle,
    /// The job's rounds have another length.
    #[error("{got} values, but the job's rounds have {expected}")]
    Length {
        /// Values given.
        got: usize,
        /// Values of the job.
        expected: usize,
    },
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// It answered a chunk.
    Answer,
    /// It answered a chunk that was answered before.
    Duplicate,
    /// Another job's, another worker's, or not a RESULT.
    NotOurs,
    /// No frame of the protocol, or not what the chunk's answer can be.
    Malformed,
}

/// What a worker has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerCounters {
    /// Frames and bytes sent.
    pub sent: Sent,
    /// Answers to chunks that were answered before.
    pub duplicates: u64,
    /// Frames of others.
    pub not_ours: u64,
    /// Frames that are no answer.
    pub malformed: u64,
    /// Chunks that timed out.
    pub timeouts: u64,
    /// Chunks sent again because later ones were answered.
    pub fast_retransmits: u64,
    /// What queues on the way have made of its window.
    pub congestion: Signals,
}
