//! Opening of an interface, by the fastest back end that the system allows.

use crate::bundle::Joins;
use crate::packet::{PacketFrames, Receives};
use crate::{Frames, Hears, PnetFrames};
use std::fmt;
use std::io;
use std::str::FromStr;

/// Back end for the frames of an interface: the words of `--io` and `WEIR_IO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Io {
    /// Rings if the system allows them, and bundles to a link whose other end sends some; otherwise system calls or pnet.
    #[default]
    Auto,
    /// Like [`Io::Auto`], but bundles from the start: the other end is known to take them.
    Bundles,
    /// Rings shared with the kernel (PACKET_MMAP). No bundles are sent.
    Rings,
    /// System calls, one per batch (recvmmsg, sendmmsg). No bundles are sent.
    Calls,
    /// The datalink channel of the crate pnet: system calls for each frame. Bundles that come are lost.
    Pnet,
}

/// Each word with its back end. The first word of a back end is the one that is written; others are older.
const WORDS: [(&str, Io); 7] = [
    ("auto", Io::Auto),
    ("bundles", Io::Bundles),
    ("rings", Io::Rings),
    ("ring", Io::Rings),
    ("calls", Io::Calls),
    ("mmsg", Io::Calls),
    ("pnet", Io::Pnet),
];

impl FromStr for Io {
    type Err = String;
    fn from_str(text: &str) -> Result<Io, String> {
        let found = WORDS.iter().find(|(word, _)| *word == text);
        found
            .map(|(_, io)| *io)
            .ok_or_else(|| format!("`{text}` is not one of auto, bundles, rings, calls, pnet"))
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = WORDS.iter().find(|(_, io)| io == self);
        f.write_str(found.map_or("", |(word, _)| word))
    }
}

/// Maximum of [`Options::mark_at`].
pub const MOST_MARK_AT: usize = 127;

/// Options for opening an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The back end that exchanges frames with the interface.
    pub io: Io,
    /// Which frames are received.
    pub hears: Hears,
    /// Maximum number of received frames that wait in the ring; each takes 1,600 bytes with an MTU of 1,500, or 9,152 with
    /// 9,000. Further frames are lost and counted. Bundles wait elsewhere.
    pub slots: usize,
    /// Whether frames are sent past the interface's queueing discipline: a little cheaper, but `tc` has no effect, and captures
    /// on the interface do not see frames that the switch sends. No bundles are sent then: Linux drops a bundle on this path that
    /// the interface does not take as it is.
    pub qdisc_bypass: bool,
    /// Number of frames waiting for the link, 1 to [`MOST_MARK_AT`], from which on a new frame is marked if its transport
    /// supports ECN. `None`: no frame is marked, and the queue is not checked.
    pub mark_at: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            io: Io::Auto,
            hears: Hears::Everything,
            // 2 MiB, resident from the start.
            slots: 1280,
            qdisc_bypass: false,
            mark_at: None,
        }
    }
}

impl Options {
    /// Options of an agent, which receives the UDP datagrams to one port.
    pub fn udp(io: Io, port: u16) -> Self {
        Self {
            io,
            hears: Hears::Udp(port),
            ..Self::default()
        }
    }
}

/// An interface after it was opened.
pub struct Opened {
    /// The interface's frames.
    pub frames: Box<dyn Frames>,
    /// The back end in use; never [`Io::Auto`].
    pub io: Io,
    /// Whether bundles are sent: from the start, once one has come, or not at all, as the end of a sentence.
    pub bundles: &'static str,
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
    let never = (Joins::default(), false);
    let learning = (Joins::default(), true);
    let always = (Joins::ALL, true);
    let opened = |frames, io, bundles| Opened {
        frames,
        io,
        bundles,
        notice: None,
    };
    match options.io {
        Io::Rings => Ok(opened(by(Receives::ByRing, never)?, Io::Rings, NEVER)),
        Io::Calls => Ok(opened(by(Receives::ByCalls, never)?, Io::Calls, NEVER)),
        Io::Pnet if options.mark_at.is_some() => {
            let message = "pnet does not report the length of its queue: it cannot mark frames";
            Err(io::Error::new(io::ErrorKind::Unsupported, message))
        }
        Io::Pnet => {
            let pnet = PnetFrames::open(interface, options.hears)?;
            Ok(opened(Box::new(pnet), Io::Pnet, NEVER))
        }
        Io::Auto | Io::Bundles => {
            let (bundles, told) = match options.io {
                _ if options.qdisc_bypass => (never, NEVER),
                Io::Bundles => (always, "sent"),
                _ => (learning, "sent once one has come"),
            };
            match by(Receives::ByRing, bundles) {
                Ok(frames) => Ok(opened(frames, Io::Rings, told)),
                Err(refused) => {
                    // A missing or forbidden interface also fails here, with its own error.
                    let frames = by(Receives::ByCalls, bundles)?;
                    let notice =
                        format!("no ring ({refused}): frames are copied, as with --io calls");
                    Ok(Opened {
                        notice: Some(notice),
                        ..opened(frames, Io::Calls, told)
                    })
                }
            }
        }
    }
}

const NEVER: &str = "not sent";
