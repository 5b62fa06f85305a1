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
//! | module | contents |
//! |---|---|
//! | [`worker`], [`server`] | training with a parameter server |
//! | [`rank`] | one rank of an all-reduce; a switch sums or, while it does not answer, the ranks themselves |
//! | [`slot`] | the rules of a switch's slots (`docs/protocol.md`): the reference for the P4 `Aggregate` |
//! | [`quantise`] | conversion of values to integers, and of sums back to values |
//! | [`congestion`], [`rto`] | congestion window and retransmission timeout |
//! | [`job`] | settings that all members of a job share |
//!
//! [`worker::Worker`], [`server::Server`] and [`rank::Rank`] take time and frames as arguments and return frames, events and
//! the time of their next timeout; their driver owns sockets and clocks. Frames begin at the aggregation header. A rank's are
//! a header and a payload, which the driver lets the rank write where it is sent from. Times are nanoseconds from an origin
//! that the caller chooses.
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

/// Destination of a frame; the driver maps it to addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Destination {
    /// The parameter server of the job.
    Server,
    /// All workers, by the switch's multicast.
    All,
    /// The worker with this number.
    Worker(WorkerId),
}

/// A chunk that is not finished, for progress reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnderWay {
    /// Number of the chunk that is not finished.
    pub chunk: ChunkId,
    /// Time at which the chunk was first sent.
    pub since_ns: u64,
    /// Workers whose contribution to the chunk is missing, as far as the reporting worker, rank or server knows.
    pub misses: WorkerSet,
}

/// Counters of transmitted frames. Byte counts begin at the aggregation header; the driver adds its lower headers per frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Number of transmitted frames.
    pub frames: u64,
    /// Number of bytes in the transmitted frames.
    pub bytes: u64,
    /// Frames whose chunk had been sent before to the same destination.
    pub retransmitted_frames: u64,
    /// Bytes in those retransmitted frames.
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
