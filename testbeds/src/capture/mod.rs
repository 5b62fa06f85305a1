//! Records the frames of an interface or a cable, and compares the recordings on two sides of a switch.
//!
//! A [`Recorder`] hands over the frames of its ports while they pass. A [`Capture`] collects them in a [`Recording`].
//!
//! A recording is evidence, so it states whether it is complete: see [`Recording::is_complete`].

mod batch;
mod collect;
mod filter;
mod keys;
mod matching;
mod reader;
mod recorder;
mod ring;
mod size;

use std::io;

pub use batch::{Batch, Handed, Lost, Record};
pub use collect::Capture;
pub(crate) use collect::Collector;
pub use filter::Filter;
pub use keys::{AggregationKey, TcpKey, aggregation_key, tcp_key};
pub use matching::{CapturedFrame, Difference, LateFrame, match_frames};
pub use recorder::{RecordedPort, Recorder};
pub use ring::page_bytes;
pub use size::{LinkSize, longest_bundles, ring_bytes};

use proof::Way;

/// Direction of a frame, seen from the recorded interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// The interface received the frame over the link. On a cable: from end A to end B.
    In,
    /// The interface sent the frame over the link. On a cable: from end B to end A.
    Out,
}

impl Direction {
    /// The direction of the frame, seen from the other end of the link.
    pub fn reversed(self) -> Direction {
        match self {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        }
    }
}

impl From<Way> for Direction {
    fn from(way: Way) -> Direction {
        match way {
            Way::In => Direction::In,
            Way::Out => Direction::Out,
        }
    }
}

impl From<Direction> for Way {
    fn from(direction: Direction) -> Way {
        match direction {
            Direction::In => Way::In,
            Direction::Out => Way::Out,
        }
    }
}

/// One frame of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Time at which the frame was recorded, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Direction of the frame.
    pub direction: Direction,
    /// Length of the frame on the link in bytes, without FCS.
    pub wire_len: u32,
    /// First bytes of the frame, up to [`Limits::frame_bytes`].
    pub bytes: Box<[u8]>,
}

/// Limits of a recording; further frames are counted, not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of bytes that are kept of each frame.
    pub frame_bytes: u32,
    /// Maximum number of bytes that are kept of all frames together.
    pub total_bytes: u64,
    /// Maximum number of frames in the recording.
    pub frames: u64,
}

impl Limits {
    /// Limits that keep the headers of aggregation frames: Ethernet, IPv4, UDP and the aggregation header.
    pub const AGGREGATION_HEADERS: Limits = Limits {
        frame_bytes: 14 + 20 + 8 + wire::HEADER_LEN as u32,
        total_bytes: 256 << 20,
        frames: u64::MAX,
    };
    /// Limits that keep whole frames.
    pub const WHOLE_FRAMES: Limits = Limits {
        frame_bytes: 65_535,
        total_bytes: 256 << 20,
        frames: u64::MAX,
    };
}

/// The frames that were recorded at one port, in order of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// The recorded frames, in order of time.
    pub frames: Vec<Frame>,
    /// Minimum number of frames that passed and were not recorded because the recorder was too slow, as [`Lost::frames`] counts them.
    pub lost: u64,
    /// Number of frames that passed and were not recorded because the recording was full.
    pub over_limit: u64,
}

impl Recording {
    /// Whether the recording has every frame that passed. Nothing may be concluded from an incomplete recording.
    pub fn is_complete(&self) -> bool {
        self.lost == 0 && self.over_limit == 0
    }

    /// The recorded frames that passed in this direction.
    pub fn going(&self, direction: Direction) -> impl Iterator<Item = &Frame> {
        self.frames
            .iter()
            .filter(move |frame| frame.direction == direction)
    }

    /// The recorded frames of one direction for which `key` returns a key: each frame's key and time.
    pub fn captured<K>(
        &self,
        direction: Direction,
        key: impl Fn(&[u8]) -> Option<K>,
    ) -> Vec<CapturedFrame<K>> {
        self.going(direction)
            .filter_map(|frame| {
                Some(CapturedFrame {
                    key: key(&frame.bytes)?,
                    at_ns: frame.at_ns,
                })
            })
            .collect()
    }
}

/// Error of recording an interface.
#[derive(Debug, thiserror::Error)]
#[error("cannot capture on {interface}: {what}: {source}")]
pub struct CaptureError {
    /// Name of the interface that was recorded.
    pub interface: String,
    /// The operation that failed, as text.
    pub what: &'static str,
    /// Error that the operating system reported.
    pub source: io::Error,
}
