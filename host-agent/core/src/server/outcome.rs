//! What a server tells its driver.

use crate::Sent;
use crate::job::{ChunkId, Position, WorkerSet};

/// What a server has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Every round is applied, and every worker has every answer (or has not been heard for a long time).
    Finished,
    /// The job cannot end well. The server still answers.
    Failed(ServerError),
}

/// Why a job cannot end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// Nothing has completed for too long, and the server knows who is missing.
    #[error("{position} ({chunk}) waits for {missing}")]
    Incomplete {
        /// Where the oldest incomplete chunk lies.
        position: Position,
        /// Its number on the wire.
        chunk: ChunkId,
        /// Who has not contributed.
        missing: WorkerSet,
    },
    /// Nothing has completed for too long, and nothing is known of who contributed: a switch keeps that,
    /// or nobody was heard.
    #[error("nothing completed for {:.1} s; next would be {position} ({chunk})", *waited_ns as f64 / 1e9)]
    Silent {
        /// Where the oldest chunk that has not completed lies.
        position: Position,
        /// Its number on the wire.
        chunk: ChunkId,
        /// How long the server waited.
        waited_ns: u64,
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

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// It completed a chunk, which was applied.
    Applied,
    /// It was added to a chunk that waits for others.
    Absorbed,
    /// It asked for an answer again, and gets it.
    Again,
    /// It brought nothing new, and gets no answer.
    Duplicate,
    /// Older than what the cell now holds.
    Stale,
    /// Another job's, or a kind that is not for this server.
    NotOurs,
    /// No frame of the protocol, or not what can arrive for its chunk.
    Malformed,
}

impl Received {
    /// Whether the server has heard of its chunk before.
    #[must_use]
    pub fn is_repeated(self) -> bool {
        matches!(
            self,
            Received::Again | Received::Duplicate | Received::Stale
        )
    }
}

/// What a server has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Frames and bytes sent.
    pub sent: Sent,
    /// Chunks applied or agreed on.
    pub completed: u64,
    /// Frames that asked again.
    pub again: u64,
    /// Frames that brought nothing new.
    pub duplicates: u64,
    /// Frames older than what their cell holds.
    pub stale: u64,
    /// Bytes of the last three, from the aggregation header on: of their chunks the server has heard before.
    pub repeated_bytes: u64,
    /// Frames of other jobs, or of kinds that are not for a server.
    pub not_ours: u64,
    /// Frames that are none, or cannot be.
    pub malformed: u64,
    /// Answers not sent because the transmit queue was full; retransmission recovers them.
    pub dropped: u64,
}
