//! Events, results and counters that a server returns to its driver.

use crate::Sent;
use crate::job::{ChunkId, Position, WorkerSet};

/// Event that a server reports to its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// The sums of every round are applied, and every worker has all answers or has been silent for a long time.
    Finished,
    /// The job cannot succeed. The server continues to answer workers.
    Failed(ServerError),
}

/// Reason why a job cannot succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// No chunk completed for too long, and the missing workers of the oldest are known.
    #[error("{position} ({chunk}) waits for {missing}")]
    Incomplete {
        /// Position of the oldest incomplete chunk.
        position: Position,
        /// Sequence number of the chunk on the wire.
        chunk: ChunkId,
        /// Workers that have not contributed to the chunk.
        missing: WorkerSet,
    },
    /// No chunk completed for too long, and the contributors are unknown: only the switch has them, or no worker sent a frame.
    #[error("no chunk completed for {:.1} s; {position} ({chunk}) is next", *waited_ns as f64 / 1e9)]
    Silent {
        /// Position of the oldest incomplete chunk.
        position: Position,
        /// Sequence number of the chunk on the wire.
        chunk: ChunkId,
        /// Time that the server waited, in nanoseconds.
        waited_ns: u64,
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

/// Result of processing a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerFrame {
    /// The frame completed a chunk, which was applied.
    Applied,
    /// The values were added; the chunk waits for other workers.
    Absorbed,
    /// The frame requested the answer to its chunk again; the server sends it.
    Again,
    /// The frame added nothing to its chunk and gets no answer.
    Duplicate,
    /// The frame's chunk is older than the latest chunk in its register cell.
    Stale,
    /// The frame belongs to another job, or has a kind that this server does not accept.
    NotOurs,
    /// The bytes are not a frame of the protocol, or the frame's fields are not possible for its chunk.
    Malformed,
}

impl ServerFrame {
    /// Whether the frame repeats a contribution that the server has received before.
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
    /// Chunks completed: sums applied, or exponents agreed on if the chunk has no values.
    pub completed: u64,
    /// Frames that requested the answer to a chunk again.
    pub again: u64,
    /// Frames that added nothing to their chunk.
    pub duplicates: u64,
    /// Frames whose chunk is older than the latest chunk in its register cell.
    pub stale: u64,
    /// Bytes of the frames counted in the last three fields, from the aggregation header on.
    pub repeated_bytes: u64,
    /// Frames of other jobs, or of kinds that a server does not accept.
    pub not_ours: u64,
    /// Received bytes that are not a frame, or frames whose fields are not possible for their chunk.
    pub malformed: u64,
    /// Answers that were not sent because the transmit queue was full; retransmission recovers them.
    pub dropped: u64,
}
