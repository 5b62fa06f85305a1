//! Back ends of ports: each receives and sends frames in batches, without blocking.
//!
//! [`dump::Dump`] captures the frames of any back end, and [`delayed::Delayed`] delays them.

pub mod delay_line;
pub mod delayed;
pub mod dump;
pub mod memory;
pub mod pcap;

pub use frames::{
    Cable, Frames, Io, MAX_FRAME, MOST_MARK_AT, Opened, Options, Received, Sink, WhenFull,
    side_by_side,
};

use std::io;

/// Opens the attachment of a port: an interface by its name, or an inherited socket as `fd:N`. Returns an error if
/// frames are to be marked (ECN) and the back end does not know how many frames wait.
pub fn open(attachment: &str, options: Options) -> io::Result<Opened> {
    match attachment.strip_prefix("fd:").map(str::parse) {
        Some(Ok(_)) if options.mark_at.is_some() => {
            let message = "a socket does not report the length of its queue: it cannot mark frames";
            Err(io::Error::new(io::ErrorKind::Unsupported, message))
        }
        Some(Ok(number)) => Ok(Opened {
            frames: Box::new(Cable::inherited(number, WhenFull::Lose)?),
            io: options.io,
            bundles: frames::Sends::Never,
            notice: None,
        }),
        _ => frames::open(attachment, options),
    }
}
