//! What stands behind a port.
//!
//! Back ends are non-blocking and hand frames over in batches; [`dump::Dump`] and [`delayed::Delayed`] wrap any of them.

mod af_packet;
pub mod delay_line;
pub mod delayed;
pub mod dump;
pub mod memory;
mod offload;
pub mod pcap;
mod socket;

pub use af_packet::{Mmsg, Ring, RingOptions};
pub use socket::Socket;

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
    /// Becomes readable when frames have arrived. None: [`Self::receive`] never has more than it had at the start.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
    /// The index of the interface behind it, whose carrier is the port's. None: the port is always up.
    fn interface(&self) -> Option<u32> {
        None
    }
    /// For people: the interface, the file.
    fn name(&self) -> &str;
}

/// How frames are exchanged with an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Io {
    /// The ring, or, where the system refuses it, system calls.
    #[default]
    Auto,
    /// Rings shared with the kernel (PACKET_MMAP).
    Ring,
    /// A system call a batch (recvmmsg, sendmmsg).
    Mmsg,
}

/// How interfaces are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Which back end.
    pub io: Io,
    /// Of the ring.
    pub ring: RingOptions,
}

/// A port that is open.
pub struct Opened {
    /// The port.
    pub port: Box<dyn PortIo>,
    /// What its user should know about how it was opened.
    pub notice: Option<String>,
}

/// Opens what a port is attached to: an interface by its name, or an inherited socket as `fd:N`.
pub fn open(attachment: &str, options: Options) -> io::Result<Opened> {
    let mut notice = None;
    let port: Box<dyn PortIo> = match (attachment.strip_prefix("fd:").map(str::parse), options.io) {
        (Some(Ok(number)), _) => Box::new(Socket::inherited(number)?),
        (_, Io::Mmsg) => Box::new(Mmsg::open(attachment)?),
        (_, Io::Ring) => Box::new(Ring::open(attachment, options.ring)?),
        (_, Io::Auto) => match Ring::open(attachment, options.ring) {
            Ok(ring) => Box::new(ring),
            Err(refused) => {
                // An interface that is missing, or not ours to open, fails here too, with its own reason.
                let port = Mmsg::open(attachment)?;
                notice = Some(format!(
                    "no ring ({refused}): frames are copied, as with --io mmsg"
                ));
                Box::new(port)
            }
        },
    };
    Ok(Opened { port, notice })
}
