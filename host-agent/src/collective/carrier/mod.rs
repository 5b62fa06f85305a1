//! Carriers of a rank's frames, to the switch and back, and to other ranks, by UDP or RDMA.
//!
//! | file | contents |
//! |---|---|
//! | `datagrams.rs` | all frames as UDP datagrams |
//! | `rdma.rs` | frames to and from the switch as RDMA WRITEs, others as UDP datagrams |
//! | `pair.rs` | a rank's queue pair at its switch |
//! | `registering.rs` | times of a rank's registrations at its switch |
//! | `places.rs` | buffers of outgoing WRITEs |

mod datagrams;
mod pair;
mod places;
mod rdma;
mod registering;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use aggregation::Mark;
use aggregation::rank::Transmit;
use wire::Repr;

use super::CollectiveError;
use crate::frames::LinkFault;

pub use datagrams::Datagrams;
pub use rdma::Rdma;

/// Receiver of the frames that arrive at a carrier.
pub trait Takes {
    /// Processes a received frame, with the congestion mark of its IP header.
    fn take(&mut self, mark: Mark, header: &Repr, payload: &[u8]);

    /// Processes the arrival of bytes that are not an aggregation frame.
    fn malformed(&mut self);

    /// Processes the report that no process of this host receives aggregation frames.
    fn unreachable(&mut self, host: Ipv4Addr);

    /// Number and exponent of the chunk in flight that a chunk number with these low 16 bits denotes, or of a chunk near it.
    fn near(&self, low: u16) -> (u32, u8);
}

/// A transport of a rank's frames. The driver calls it with the current time.
pub trait Carrier {
    /// Whether frames for the switch can be sent. Until then the rank waits, and its chunks do not time out.
    fn is_ready(&self) -> bool {
        true
    }

    /// Queues a frame for transmission at the latest by [`flush`](Self::flush). A frame that a full queue refuses is lost, as
    /// on any wire.
    fn send(&mut self, now_ns: u64, frame: &Transmit<'_>) -> Result<(), CollectiveError>;

    /// Transmits the queued frames.
    fn flush(&mut self) -> Result<(), CollectiveError>;

    /// Passes received frames to `taker`, about `most` at most, and returns their number. Does not wait.
    fn receive(
        &mut self,
        now_ns: u64,
        most: usize,
        taker: &mut dyn Takes,
    ) -> Result<usize, CollectiveError>;

    /// Handles timers of the carrier that are due. [`flush`](Self::flush) transmits the resulting frames.
    fn handle_timeout(&mut self, _now_ns: u64) -> Result<(), CollectiveError> {
        Ok(())
    }

    /// Time at which [`handle_timeout`](Self::handle_timeout) must be called next; `None` if never.
    fn poll_timeout(&self, _now_ns: u64) -> Option<u64> {
        None
    }

    /// Descriptors that become readable when frames arrive.
    fn readable(&self) -> Vec<BorrowedFd<'_>>;

    /// Number of received frames that were not for this rank.
    fn foreign(&self) -> u64;

    /// Number of frames that the system dropped since the last call; `None` if it keeps no count.
    fn overflow(&mut self) -> Option<u64>;

    /// Number of frames so far that were discarded instead of sent.
    fn unsent(&self) -> u64;

    /// Reason why no frame passes now; `None` if frames pass.
    fn fault(&self) -> Option<LinkFault>;

    /// Descriptors that keep the carrier open, so that a forked process can close them.
    fn descriptors(&self) -> Vec<RawFd>;
}

/// The error of an interface or descriptor, for all operations of a rank.
pub fn io_error(error: io::Error) -> CollectiveError {
    CollectiveError::Io(Arc::new(error))
}
