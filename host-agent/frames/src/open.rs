//! Opening of an interface, by the fastest back end that the system allows.

use crate::packet::{PacketFrames, Receives};
use crate::{Frames, Io, MOST_MARK_AT, Options, PnetFrames, Sends};
use std::io;

/// An interface after it was opened.
pub struct Opened {
    /// The interface's frames.
    pub frames: Box<dyn Frames>,
    /// The back end in use; never [`Io::Auto`].
    pub io: Io,
    /// When bundles are sent.
    pub bundles: Sends,
    /// A notice for the user if a slower back end is in use than [`Io::Auto`] prefers.
    pub notice: Option<String>,
}

/// Opens an interface of the current network namespace.
///
/// # Errors
/// The interface is missing, the process lacks CAP_NET_RAW, the system refuses a back end that was asked for by name, or frames
/// are to be marked (ECN) by pnet, which does not know how many frames wait.
pub fn open(interface: &str, options: Options) -> io::Result<Opened> {
    let mark_at = options.mark_at.map(|frames| frames.clamp(1, MOST_MARK_AT));
    let options = Options { mark_at, ..options };
    let by = |receives, bundles| -> io::Result<Box<dyn Frames>> {
        Ok(Box::new(PacketFrames::open(
            interface, &options, receives, bundles,
        )?))
    };
    let opened = |frames, io, bundles| Opened {
        frames,
        io,
        bundles,
        notice: None,
    };
    match options.io {
        Io::Rings => Ok(opened(
            by(Receives::ByRing, Sends::Never)?,
            Io::Rings,
            Sends::Never,
        )),
        Io::Calls => Ok(opened(
            by(Receives::ByCalls, Sends::Never)?,
            Io::Calls,
            Sends::Never,
        )),
        Io::Pnet if options.mark_at.is_some() => {
            let message = "pnet does not report the length of its queue: it cannot mark frames";
            Err(io::Error::new(io::ErrorKind::Unsupported, message))
        }
        Io::Pnet => {
            let pnet = PnetFrames::open(interface, options.hears)?;
            Ok(opened(Box::new(pnet), Io::Pnet, Sends::Never))
        }
        Io::Auto | Io::Bundles => {
            let bundles = match options.io {
                _ if options.qdisc_bypass => Sends::Never,
                Io::Bundles => Sends::Always,
                _ => Sends::OnceKnown,
            };
            match by(Receives::ByRing, bundles) {
                Ok(frames) => Ok(opened(frames, Io::Rings, bundles)),
                Err(refused) => {
                    // A missing or forbidden interface also fails here, with its own error.
                    let frames = by(Receives::ByCalls, bundles)?;
                    let notice =
                        format!("no ring ({refused}): frames are copied, as with --io calls");
                    Ok(Opened {
                        notice: Some(notice),
                        ..opened(frames, Io::Calls, bundles)
                    })
                }
            }
        }
    }
}
