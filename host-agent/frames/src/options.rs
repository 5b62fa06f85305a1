//! How an interface is opened: the words of `--io`, and other options.

use crate::Hears;
use std::fmt;
use std::str::FromStr;

/// Back end for the frames of an interface: the words of `--io` and `WEIR_IO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Io {
    /// Rings if the system allows them, otherwise system calls; bundles to a link whose other end sends some.
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

/// When a back end sends bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sends {
    /// Never.
    Never,
    /// As soon as something has arrived that shows that the other end takes them.
    OnceKnown,
    /// From the start.
    Always,
}

impl fmt::Display for Sends {
    /// Writes the end of a sentence about bundles.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sends::Never => "not sent",
            Sends::OnceKnown => "sent once the other end is known to take them",
            Sends::Always => "sent",
        })
    }
}
