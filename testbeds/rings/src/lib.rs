//! Frames of Linux interfaces through AF_PACKET sockets (packet(7)): [`Ring`] shares frames with the kernel
//! (PACKET_MMAP), [`Mmsg`] copies frames in batches, for systems without the ring.
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

/// Result of a receive call: how many frames it passed to the sink, and how many were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Number of frames passed to the sink.
    pub frames: usize,
    /// Number of frames lost: the kernel cut them off, or they are larger than [`MAX_FRAME`].
    pub errors: usize,
}

/// Receiver of the frames that arrive at a port.
pub trait Sink {
    /// Tells the sink that all frames until the next call have arrived by now. The port calls it before the first frame.
    fn arrived(&mut self);
    /// Takes a frame, without FCS. At the last [`Self::arrived`] it had waited for `waited_ns`; 0 if the port does not know.
    fn frame(&mut self, frame: &[u8], waited_ns: u64);
}

/// Sink for callers that need no arrival times.
impl<F: FnMut(&[u8])> Sink for F {
    fn arrived(&mut self) {}

    fn frame(&mut self, frame: &[u8], _waited_ns: u64) {
        self(frame);
    }
}

/// A port of the switch: it receives and sends the frames of a link.
pub trait PortIo: Send {
    /// Passes up to `budget` frames that have arrived to `sink`; returns at once.
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received>;
    /// Takes a frame for sending, and may keep it until [`Self::flush`].
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;
    /// Sends the frames that [`Self::send`] kept; returns the number of frames lost because the link was full or down.
    fn flush(&mut self) -> io::Result<usize>;
    /// Time at which the port must next be received from and flushed even without traffic; `None`: at no certain time.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Whether a received frame waits; `None` if only a system call can tell.
    fn has_arrived(&self) -> Option<bool> {
        None
    }
    /// Number of frames lost since the last call because too many waited for [`Self::receive`].
    fn overflow(&mut self) -> u64 {
        0
    }
    /// Number of frames marked (ECN) since the last call because the link's queue was long; 0 where the port knows of no queue.
    fn marked(&mut self) -> u64 {
        0
    }
    /// A descriptor that becomes readable when frames have arrived; `None`: all frames exist from the start (a file).
    fn fd(&self) -> Option<BorrowedFd<'_>>;
    /// Index of the interface behind the port, without whose carrier the port is down; `None`: the port is always up.
    fn interface(&self) -> Option<u32> {
        None
    }
    /// Name of the port for users: its interface or file.
    fn name(&self) -> &str;
}
