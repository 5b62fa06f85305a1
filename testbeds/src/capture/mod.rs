//! Recordings of what passed an interface or a cable, and what two of them say about the switch between.
//!
//! A recording is evidence, so it says itself whether it is complete: see [`Recording::is_complete`].

mod filter;
mod keys;
mod matching;
mod pcap;
mod ring;

use std::io;

pub use filter::Filter;
pub use keys::{AggregationKey, TcpKey, aggregation_key, tcp_key};
pub use matching::{Difference, Late, Seen, match_frames};
pub use pcap::write_pcap;
pub use ring::Capture;

/// Which way a frame went, seen from the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// It came in over the link. On a cable: it went from end A to end B.
    In,
    /// It was sent out over the link. On a cable: it went from end B to end A.
    Out,
}

impl Direction {
    /// As seen from the other end.
    pub fn reversed(self) -> Direction {
        match self {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        }
    }
}

/// One frame of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Which way.
    pub direction: Direction,
    /// How long it was on the link, without FCS.
    pub wire_len: u32,
    /// Its first bytes, up to [`Limits::frame_bytes`].
    pub bytes: Box<[u8]>,
}

/// How much a recording may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes kept of each frame.
    pub frame_bytes: u32,
    /// Bytes kept in all.
    pub total_bytes: u64,
    /// Frames kept.
    pub frames: u64,
}

impl Limits {
    /// The headers of aggregation frames: Ethernet, IPv4, UDP and the aggregation header.
    pub const AGGREGATION_HEADERS: Limits = Limits {
        frame_bytes: 14 + 20 + 8 + wire::HEADER_LEN as u32,
        total_bytes: 256 << 20,
        frames: u64::MAX,
    };
    /// Whole frames.
    pub const WHOLE_FRAMES: Limits = Limits {
        frame_bytes: 65_535,
        total_bytes: 256 << 20,
        frames: u64::MAX,
    };
}

/// What passed, in the order in which it passed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// The frames.
    pub frames: Vec<Frame>,
    /// Frames that passed and were not recorded because the recorder was too slow.
    pub lost: u64,
    /// Frames that passed and were not recorded because the recording was full.
    pub over_limit: u64,
}

impl Recording {
    /// Whether every frame that passed is here. Nothing may be concluded from one that is not.
    pub fn is_complete(&self) -> bool {
        self.lost == 0 && self.over_limit == 0
    }

    /// The frames that went one way.
    pub fn going(&self, direction: Direction) -> impl Iterator<Item = &Frame> {
        self.frames
            .iter()
            .filter(move |frame| frame.direction == direction)
    }

    /// What `key` recognises among the frames that went one way.
    pub fn seen<K>(&self, direction: Direction, key: impl Fn(&[u8]) -> Option<K>) -> Vec<Seen<K>> {
        self.going(direction)
            .filter_map(|frame| {
                Some(Seen {
                    key: key(&frame.bytes)?,
                    at_ns: frame.at_ns,
                })
            })
            .collect()
    }
}

/// Collects frames within limits.
#[derive(Debug)]
pub(crate) struct Recorder {
    limits: Limits,
    held_bytes: u64,
    recording: Recording,
}

impl Recorder {
    pub(crate) fn new(limits: Limits) -> Recorder {
        Recorder {
            limits,
            held_bytes: 0,
            recording: Recording::default(),
        }
    }

    pub(crate) fn record(&mut self, at_ns: u64, direction: Direction, wire_len: u32, bytes: &[u8]) {
        let kept = &bytes[..bytes.len().min(self.limits.frame_bytes as usize)];
        let cost = (size_of::<Frame>() + kept.len()) as u64;
        let frames = self.recording.frames.len() as u64;
        if frames >= self.limits.frames || self.held_bytes + cost > self.limits.total_bytes {
            self.recording.over_limit += 1;
            return;
        }
        self.held_bytes += cost;
        self.recording.frames.push(Frame {
            at_ns,
            direction,
            wire_len,
            bytes: kept.into(),
        });
    }

    pub(crate) fn finish(self, lost: u64) -> Recording {
        Recording {
            lost,
            ..self.recording
        }
    }
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
#[error("cannot capture on {interface}: {what}: {source}")]
pub struct CaptureError {
    /// Where.
    pub interface: String,
    /// What was tried.
    pub what: &'static str,
    /// What the system answered.
    pub source: io::Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_recorder_says_so() {
        let by_bytes = Limits {
            frame_bytes: 4,
            total_bytes: 2 * (size_of::<Frame>() as u64 + 4),
            frames: 100,
        };
        let by_frames = Limits {
            total_bytes: 1 << 20,
            frames: 2,
            ..by_bytes
        };
        for limits in [by_bytes, by_frames] {
            let mut recorder = Recorder::new(limits);
            for at_ns in 0..3 {
                recorder.record(at_ns, Direction::In, 9, &[0; 9]);
            }
            let recording = recorder.finish(0);
            assert_eq!((recording.frames.len(), recording.over_limit), (2, 1));
            let first = &recording.frames[0];
            assert_eq!((first.bytes.len(), first.wire_len), (4, 9));
            assert!(!recording.is_complete());
        }
    }
}
