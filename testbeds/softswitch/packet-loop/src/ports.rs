//! Back ends of ports: each receives and sends frames in batches, without blocking.
//!
//! [`dump::Dump`] captures the frames of any back end, and [`delayed::Delayed`] delays them.

pub mod delay_line;
pub mod delayed;
pub mod dump;
pub mod memory;
pub mod pcap;
mod socket;

pub use rings::{
    MAX_FRAME, MOST_MARK_AT, Mmsg, PortIo, Received, Ring, RingOptions, Sink, side_by_side,
};
pub use socket::Socket;

use std::io;

/// Back end for the frames of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Io {
    /// The ring, or, if the system refuses it, system calls.
    #[default]
    Auto,
    /// Rings shared with the kernel (PACKET_MMAP).
    Ring,
    /// One system call per batch (recvmmsg, sendmmsg).
    Mmsg,
}

/// Options for opening an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The back end that exchanges frames with the interface.
    pub io: Io,
    /// Options of the ring that is shared with the kernel.
    pub ring: RingOptions,
}

/// A port after it was opened.
pub struct Opened {
    /// The port's back end.
    pub port: Box<dyn PortIo>,
    /// A notice for the user if the fallback back end is in use; else `None`.
    pub notice: Option<String>,
}

/// Opens the attachment of a port: an interface by its name, or an inherited socket as `fd:N`. Returns an error if
/// frames are to be marked (ECN) and there is no ring, which alone shows how many frames wait.
pub fn open(attachment: &str, options: Options) -> io::Result<Opened> {
    let marks = options.ring.mark_at.is_some();
    let unknown = |what: &str| {
        let message =
            format!("{what} does not report the length of its queue: only a ring can mark frames");
        io::Error::new(io::ErrorKind::Unsupported, message)
    };
    let mut notice = None;
    let port: Box<dyn PortIo> = match (attachment.strip_prefix("fd:").map(str::parse), options.io) {
        (Some(Ok(_)), _) if marks => return Err(unknown("a socket")),
        (_, Io::Mmsg) if marks => return Err(unknown("--io mmsg")),
        (Some(Ok(number)), _) => Box::new(Socket::inherited(number)?),
        (_, Io::Mmsg) => Box::new(Mmsg::open(attachment)?),
        (_, Io::Ring) => Box::new(Ring::open(attachment, options.ring)?),
        (_, Io::Auto) => match Ring::open(attachment, options.ring) {
            Ok(ring) => Box::new(ring),
            Err(refused) => {
                // A missing or forbidden interface also fails here, with its own error.
                let port = Mmsg::open(attachment)?;
                if marks {
                    return Err(unknown(&format!("a port without a ring ({refused})")));
                }
                notice = Some(format!(
                    "no ring ({refused}): frames are copied, as with --io mmsg"
                ));
                Box::new(port)
            }
        },
    };
    Ok(Opened { port, notice })
}
