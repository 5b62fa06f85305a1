//! The aggregation protocol's state machines, without I/O.
//!
//! ```text
//!  Worker ──UPDATE──▶ switch (SlotTable) ──SUM──▶ Server      the switch sums
//!  Worker ──UPDATE──▶ Server (SlotTable)                      the server sums
//!  Worker ◀──RESULT── (switch multicasts) ◀────── Server
//!
//!  Rank ────UPDATE──▶ switch (SlotTable) ──SUM──▶ all ranks   an all-reduce
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`worker`], [`server`] | a training with a parameter server |
//! | [`rank`] | one of an all-reduce, by a switch or, while that is silent, by the ranks themselves |
//! | [`slot`] | the rule of a switch's slots (`docs/protocol.md`), the reference that the P4 `Aggregate` is compared with |
//! | [`quantise`] | how values become integers, and sums values |
//! | [`congestion`], [`rto`] | how much is under way, and when something is sent again |
//! | [`job`] | what all members know of their job alike |
//!
//! [`worker::Worker`], [`server::Server`] and [`rank::Rank`] take time and bytes as arguments and give bytes, events and
//! the next point in time back; whoever drives them owns sockets and clocks. Bytes begin at the
//! aggregation header. Time is nanoseconds from an origin that the caller chooses.
//!
//! The crate `cluster` runs all of them in virtual time, for tests.

pub mod congestion;
pub mod job;
mod lanes;
pub mod quantise;
pub mod rank;
pub mod rto;
pub mod server;
pub mod slot;
mod state;
pub mod worker;

pub use congestion::Mark;
pub use job::{CellIndex, ChunkId, Job, JobId, Position, SlotIndex, Version, WorkerId, WorkerSet};
pub use rto::Retransmission;

/// Whom a frame goes to; addresses are the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Destination {
    /// The parameter server.
    Server,
    /// Every worker; a switch multicasts it.
    All,
    /// One worker.
    Worker(WorkerId),
}

/// What one waits for that is not done with a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnderWay {
    /// The chunk.
    pub chunk: ChunkId,
    /// Since when.
    pub since_ns: u64,
    /// Whom the chunk misses, as far as that is known here.
    pub misses: WorkerSet,
}

/// What was sent. Bytes count from the aggregation header on; a driver adds its own headers per frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames whose chunk had been sent before to the same destination.
    pub retransmitted_frames: u64,
    /// Their bytes.
    pub retransmitted_bytes: u64,
}

impl Sent {
    pub(crate) fn count(&mut self, bytes: usize, retransmission: bool) {
        self.frames += 1;
        self.bytes += bytes as u64;
        if retransmission {
            self.retransmitted_frames += 1;
            self.retransmitted_bytes += bytes as u64;
        }
    }
}
