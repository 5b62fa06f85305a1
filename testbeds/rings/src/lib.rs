//! Frames of Linux interfaces through AF_PACKET sockets (packet(7)): [`Ring`] shares them with the kernel (PACKET_MMAP),
//! [`Mmsg`] copies them in batches, for systems without the ring.
//!
//! Ports of the embedded switch and ranks of an all-reduce use these; [`PortIo`] is their common interface.

mod ecn;
mod inherited;
mod mmsg;
mod offload;
mod ring;
mod side_by_side;
mod slots;
mod socket;
mod udp_filter;

pub use inherited::inherited;
pub use mmsg::Mmsg;
pub use ring::{MOST_MARK_AT, Options as RingOptions, Ring};
pub use side_by_side::side_by_side;
pub use socket::Hears;
pub use udp_filter::filter_udp;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Length of the largest frame that the switch takes, in bytes without FCS: 9 KiB of payload, Ethernet header, two VLAN tags.
pub const MAX_FRAME: usize = 9216 + 14 + 8;

/// Result of a receive call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Frames handed over.
    pub frames: usize,
    /// Frames lost: cut off, or larger than [`MAX_FRAME`].
    pub errors: usize,
}

/// Receiver of a port's frames.
pub trait Sink {
    /// Marks a time: the following frames, until the next call, have all arrived by now. It is called before the first frame.
    fn arrived(&mut self);
    /// Takes a frame, without FCS, that had waited for `waited_ns` at the last [`Self::arrived`]; 0 if the port does not know.
    fn frame(&mut self, frame: &[u8], waited_ns: u64);
}

/// Sink for callers that need no times.
impl<F: FnMut(&[u8])> Sink for F {
    fn arrived(&mut self) {}

    fn frame(&mut self, frame: &[u8], _waited_ns: u64) {
        self(frame);
    }
}

/// A link as the switch sees it.
pub trait PortIo: Send {
    /// Hands up to `budget` frames that have arrived to `sink`; returns at once.
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received>;
    /// Takes a frame for sending. May keep it until [`Self::flush`].
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;
    /// Sends the kept frames; returns the number of frames lost because the link was full or down.
    fn flush(&mut self) -> io::Result<usize>;
    /// Time of the next receive and flush, even if nothing arrives and nothing is sent.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Whether a frame waits; `None` if this needs a system call.
    fn has_arrived(&self) -> Option<bool> {
        None
    }
    /// Frames that were lost since the last call because too many waited for [`Self::receive`].
    fn overflow(&mut self) -> u64 {
        0
    }
    /// Frames that were marked since the last call because too many waited for the link; 0 where the port knows of no queue.
    fn marked(&mut self) -> u64 {
        0
    }
    /// A descriptor that becomes readable when frames have arrived. `None`: [`Self::receive`] never has more than at the start.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
    /// Index of the interface behind the port, whose carrier is the port's. `None`: the port is always up.
    fn interface(&self) -> Option<u32> {
        None
    }
    /// Readable name: the interface or the file.
    fn name(&self) -> &str;
}
