//! What carries a rank's frames: to the switch and back, and to other ranks.
//!
//! | file | what |
//! |---|---|
//! | `datagrams.rs` | all of them as UDP datagrams |
//! | `rdma.rs` | to the switch and back as RDMA WRITEs, the others as UDP datagrams |
//! | `pair.rs` | a rank's queue pair at its switch |
//! | `registering.rs` | when a rank tells its switch where SUMs go |
//! | `places.rs` | where WRITEs are sent from |

mod datagrams;
mod pair;
mod places;
mod rdma;
mod registering;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use aggregation::{Destination, Mark};

use super::CollectiveError;
use crate::frames::LinkFault;

pub use datagrams::Datagrams;
pub use rdma::{NotByRdma, Rdma};

/// Who takes what a carrier brings.
pub trait Takes {
    /// A frame from the aggregation header on, and what queues on its way have made of it.
    fn take(&mut self, mark: Mark, frame: &[u8]);

    /// On that host nobody takes frames any more.
    fn gone(&mut self, host: Ipv4Addr);

    /// The chunk under way that a SUM with these low bits is of, or near, and its exponent.
    fn near(&self, low: u16) -> (u32, u8);
}

/// A way for a rank's frames to come and go. Time is the driver's.
pub trait Carrier {
    /// Whether frames for the switch can be sent. Until then the rank waits, and nothing of it is late.
    fn is_ready(&self) -> bool {
        true
    }

    /// Takes a frame for sending, from the aggregation header on; may keep it until [`flush`](Self::flush). What finds a full
    /// queue is lost, as on any wire.
    fn send(&mut self, now_ns: u64, to: Destination, frame: &[u8]) -> Result<(), CollectiveError>;

    /// Sends what was kept.
    fn flush(&mut self) -> Result<(), CollectiveError>;

    /// Hands over frames that have come, up to about so many, and says how many came. Does not wait.
    fn receive(
        &mut self,
        now_ns: u64,
        most: usize,
        taker: &mut dyn Takes,
    ) -> Result<usize, CollectiveError>;

    /// Does what is due. What is to be sent for it [`flush`](Self::flush) sends.
    fn handle_timeout(&mut self, _now_ns: u64) -> Result<(), CollectiveError> {
        Ok(())
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    fn poll_timeout(&self, _now_ns: u64) -> Option<u64> {
        None
    }

    /// What becomes readable when frames have come.
    fn readable(&self) -> Vec<BorrowedFd<'_>>;

    /// Frames that came and were nobody's.
    fn foreign(&self) -> u64;

    /// Frames that the system dropped since the last call; `None` if it does not tell.
    fn overflow(&mut self) -> Option<u64>;

    /// Frames that were not sent so far.
    fn unsent(&self) -> u64;

    /// Why no frame passes now.
    fn fault(&self) -> Option<LinkFault>;

    /// The descriptors that keep it open, for a process that is forked to close.
    fn descriptors(&self) -> Vec<RawFd>;
}

impl<C: Carrier + ?Sized> Carrier for Box<C> {
    fn is_ready(&self) -> bool {
        (**self).is_ready()
    }

    fn send(&mut self, now_ns: u64, to: Destination, frame: &[u8]) -> Result<(), CollectiveError> {
        (**self).send(now_ns, to, frame)
    }

    fn flush(&mut self) -> Result<(), CollectiveError> {
        (**self).flush()
    }

    fn receive(
        &mut self,
        now_ns: u64,
        most: usize,
        taker: &mut dyn Takes,
    ) -> Result<usize, CollectiveError> {
        (**self).receive(now_ns, most, taker)
    }

    fn handle_timeout(&mut self, now_ns: u64) -> Result<(), CollectiveError> {
        (**self).handle_timeout(now_ns)
    }

    fn poll_timeout(&self, now_ns: u64) -> Option<u64> {
        (**self).poll_timeout(now_ns)
    }

    fn readable(&self) -> Vec<BorrowedFd<'_>> {
        (**self).readable()
    }

    fn foreign(&self) -> u64 {
        (**self).foreign()
    }

    fn overflow(&mut self) -> Option<u64> {
        (**self).overflow()
    }

    fn unsent(&self) -> u64 {
        (**self).unsent()
    }

    fn fault(&self) -> Option<LinkFault> {
        (**self).fault()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        (**self).descriptors()
    }
}

fn io_error(error: io::Error) -> CollectiveError {
    CollectiveError::Io(Arc::new(error))
}
