//! Events, results and counters that a server returns to its driver.

use crate::Sent;
use crate::job::{ChunkId, Position, WorkerSet};

/// Event of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// Every round is applied, and every worker has every answer or has been silent for a long time.
    Finished,
    /// The job cannot succeed. The server continues to answer.
    Failed(ServerError),
}

/// Reason why a job cannot succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// Nothing completed for too long, and the missing workers are known.
    #[error("{position} ({chunk}) waits for {missing}")]
    Incomplete {
        /// Position of the oldest incomplete chunk.
        position: Position,
        /// Chunk number on the wire.
        chunk: ChunkId,
        /// Workers that have not contributed.
        missing: WorkerSet,
    },
    /// Nothing completed for too long, and the contributors are unknown: the switch has the bitmap, or no worker was heard.
    #[error("no chunk completed for {:.1} s; {position} ({chunk}) is next", *waited_ns as f64 / 1e9)]
    Silent {
        /// Position of the oldest incomplete chunk.
        position: Position,
        /// Chunk number on the wire.
        chunk: ChunkId,
        /// Time that the server waited, in nanoseconds.
        waited_ns: u64,
    },
    /// A worker's input has NaN or infinity.
    #[error("{position} ({chunk}) has a value that is not finite")]
    NonFinite {
        /// Position of the chunk.
        position: Position,
        /// Chunk number on the wire.
        chunk: ChunkId,
    },
}

/// Result of processing a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerFrame {
    /// The frame completed a chunk, which was applied.
    Applied,
    /// The frame's values were added; the chunk waits for other workers.
    Absorbed,
    /// The frame requested an answer again, which is sent.
    Again,
    /// The frame added nothing and gets no answer.
    Duplicate,
    /// The frame's chunk is older than the cell's owner.
    Stale,
    /// The frame belongs to another job, or has a kind that this server does not accept.
    NotOurs,
    /// The bytes are not a frame of the protocol, or the frame is not possible for its chunk.
    Malformed,
}

impl ServerFrame {
    /// Whether the server has received the chunk before.
    #[must_use]
    pub fn is_repeated(self) -> bool {
        matches!(
            self,
            ServerFrame::Again | ServerFrame::Duplicate | ServerFrame::Stale
        )
    }
}

/// Counters of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Frames and bytes sent.
    pub sent: Sent,
    /// Chunks applied, or agreed on if they have no values.
    pub completed: u64,
    /// Frames that requested an answer again.
    pub again: u64,
    /// Frames that added nothing.
    pub duplicates: u64,
    /// Frames older than their cell's owner.
    pub stale: u64,
    /// Bytes of the frames counted in the last three fields, from the aggregation header on.
    pub repeated_bytes: u64,
    /// Frames of other jobs, or of kinds that a server does not accept.
    pub not_ours: u64,
    /// Bytes that are not a frame, or frames that are not possible for their chunk.
    pub malformed: u64,
    /// Answers that were not sent because the transmit queue was full; retransmission recovers them.
    pub dropped: u64,
}
