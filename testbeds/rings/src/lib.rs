//! Frames of Linux interfaces through AF_PACKET sockets (packet(7)): [`Ring`] shares them with the kernel (PACKET_MMAP),
//! [`Mmsg`] copies them in batches, for systems without the ring.
//!
//! Ports of the embedded switch and ranks of an all-reduce stand on these; [`PortIo`] is what both are asked.

mod ecn;
mod hearing;
mod inherited;
mod mmsg;
mod offload;
mod ring;
mod side_by_side;
mod slots;
mod socket;

pub use hearing::hear_udp;
pub use inherited::inherited;
pub use mmsg::Mmsg;
pub use ring::{MOST_MARK_AT, Options as RingOptions, Ring};
pub use side_by_side::side_by_side;
pub use socket::Hears;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// The largest frame that the switch takes, without FCS: 9 KiB of payload, Ethernet header, two VLAN tags.
pub const MAX_FRAME: usize = 9216 + 14 + 8;

/// What a receive call met besides frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Frames handed over.
    pub frames: usize,
    /// Frames lost: cut off, or larger than [`MAX_FRAME`].
    pub errors: usize,
}

/// Takes what a port has received.
pub trait Sink {
    /// The frames that follow, until this is called again, have all arrived by now. It is called before the first.
    fn arrived(&mut self);
    /// A frame, without FCS, that has waited for so long when [`Self::arrived`] was called; 0 where the port does not know.
    fn frame(&mut self, frame: &[u8], waited_ns: u64);
}

/// For those who do not ask for the time.
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
    /// Sends what was kept; returns how many frames were lost because the link was full or down.
    fn flush(&mut self) -> io::Result<usize>;
    /// When it is to be asked for frames and flushed next, though nothing arrives and nothing is sent.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Whether a frame waits, where that can be told without a system call.
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
    /// Becomes readable when frames have arrived. None: [`Self::receive`] never has more than it had at the start.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
    /// The index of the interface behind it, whose carrier is the port's. None: the port is always up.
    fn interface(&self) -> Option<u32> {
        None
    }
    /// For people: the interface, the file.
    fn name(&self) -> &str;
}
