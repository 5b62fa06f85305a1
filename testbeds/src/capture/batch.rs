//! What a recorder hands over.

use std::ops::Range;

use proof::{Identity, Loser, Sight, Way};

/// What a [`Recorder`](super::Recorder) hands over, in this order.
#[derive(Debug)]
pub enum Handed {
    /// Frames of one port. Batches of a port come in the order in which its frames passed.
    Batch(Batch),
    /// Frames are missing.
    Lost(Lost),
    /// All frames that were stamped before this time, in nanoseconds since 1970, have been handed over, as far as the kernel hands
    /// blocks over in time: see [`Batch::late`]. The time never decreases. After the end of the recording it is the end.
    Until(u64),
}

/// Frames that passed a port, and that no batch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The port's number in the caller's list.
    pub port: usize,
    /// Number of frames.
    pub frames: u64,
    /// What lost them.
    pub by: Loser,
    /// When the recorder learned of it, in nanoseconds since 1970.
    pub at_ns: u64,
}

/// One frame of a [`Batch`].
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// When the frame passed, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The frame as a whole.
    pub identity: Identity,
    /// How long it was on the link, without FCS.
    pub wire_len: u32,
    /// Whether it came to the switch or left it.
    pub way: Way,
    start: u32,
    end: u32,
}

impl Record {
    /// Position of the frame's first bytes in [`Batch::bytes`].
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Frames that passed one port, in the order in which they passed.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The port's number in the caller's list.
    pub port: usize,
    /// The frames.
    pub records: Vec<Record>,
    /// The first bytes of all frames, one after the other.
    pub bytes: Vec<u8>,
    /// Number of frames that were stamped before the last [`Handed::Until`]: the kernel handed them over too late. A judge that
    /// relied on that time can conclude nothing of this port.
    pub late: u64,
}

impl Batch {
    /// An empty batch with capacity for `frames` frames, of which `bytes` bytes are kept together.
    pub(crate) fn with_capacity(port: usize, frames: usize, bytes: usize) -> Batch {
        Batch {
            port,
            records: Vec::with_capacity(frames),
            bytes: Vec::with_capacity(bytes),
            late: 0,
        }
    }

    /// Adds a frame, of which `kept` are the first bytes.
    pub(crate) fn push(
        &mut self,
        at_ns: u64,
        way: Way,
        wire_len: u32,
        identity: Identity,
        kept: &[u8],
    ) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(kept);
        self.records.push(Record {
            at_ns,
            identity,
            wire_len,
            way,
            start,
            end: self.bytes.len() as u32,
        });
    }

    /// The frames as a judge takes them.
    pub fn sights(&self) -> impl Iterator<Item = Sight<'_>> {
        self.records.iter().map(|record| Sight {
            at_ns: record.at_ns,
            way: record.way,
            wire_len: record.wire_len,
            identity: record.identity,
            bytes: &self.bytes[record.range()],
        })
    }
}
