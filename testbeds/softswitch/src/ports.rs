//! What stands behind a port.
//!
//! Back ends are non-blocking and hand frames over in batches; [`dump::Dump`] wraps any of them.

mod af_packet;
pub mod dump;
pub mod memory;
pub mod pcap;
mod socket;

pub use af_packet::AfPacket;
pub use socket::Socket;

use std::io;
use std::os::fd::BorrowedFd;

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

/// A link as the switch sees it.
pub trait PortIo: Send {
    /// Hands up to `budget` frames that have arrived to `each`; returns at once.
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<Received>;
    /// Takes a frame for sending. May keep it until [`Self::flush`].
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;
    /// Sends what was kept; returns how many frames were lost because the link was full or down.
    fn flush(&mut self) -> io::Result<usize>;
    /// Becomes readable when frames have arrived. None: [`Self::receive`] never has more than it had at the start.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
    /// For people: the interface, the file.
    fn name(&self) -> &str;
}

/// Opens what a port is attached to: an interface by its name, or an inherited socket as `fd:N`.
pub fn open(attachment: &str) -> io::Result<Box<dyn PortIo>> {
    match attachment.strip_prefix("fd:").map(str::parse) {
        Some(Ok(number)) => Ok(Box::new(Socket::inherited(number)?)),
        _ => Ok(Box::new(AfPacket::open(attachment)?)),
    }
}
