//! The output of a recorder: batches of frames, notices of lost frames, and how far in time the output is complete.

use std::ops::Range;

use proof::{Identity, Loser, Sight, Way};

/// An output of a [`Recorder`](super::Recorder), which its sink gets in the order of delivery.
#[derive(Debug)]
pub enum Handed {
    /// Frames of one port. The batches of a port come in the order in which its frames passed.
    Batch(Batch),
    /// Frames of a port were lost, so they are in no batch.
    Lost(Lost),
    /// All frames that were stamped before this time, in nanoseconds since 1970, have been handed over, as far as the kernel
    /// hands blocks over in time: see [`Batch::late`]. The time never decreases; at the end of the recording, it is that end.
    Until(u64),
}

/// A notice of frames that passed a port and are missing from all batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Index of the port in the list of ports that the recorder was given.
    pub port: usize,
    /// Minimum number of lost frames. A packet that the kernel drops counts as one frame, because the kernel does not report how many
    /// frames it stands for.
    pub frames: u64,
    /// The component that lost the frames.
    pub by: Loser,
    /// Lower bound on the time of the first lost frame, in nanoseconds since 1970.
    pub since_ns: u64,
}

/// One frame of a [`Batch`].
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Time at which the frame passed the port, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Identity of the whole frame, by which it is recognized at other ports.
    pub identity: Identity,
    /// Length of the frame on the link in bytes, without FCS.
    pub wire_len: u32,
    /// Direction of the frame: to the switch or out of it.
    pub way: Way,
    start: u32,
    end: u32,
}

impl Record {
    /// Range of the frame's kept bytes in [`Batch::bytes`].
    #[must_use]
    #[inline]
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Length of a record as [`Batch::encode`] writes it, in bytes.
const RECORD_BYTES: usize = 24;

/// Removes a number from the start of `text` and returns it; `None` if `text` is too short.
fn number(text: &mut &[u8]) -> Option<u64> {
    let (number, rest) = text.split_first_chunk()?;
    *text = rest;
    Some(u64::from_le_bytes(*number))
}

/// A batch of frames that passed one port, in the order in which they passed.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Index of the port in the list of ports that the recorder was given.
    pub port: usize,
    /// The frames, in the order in which they passed.
    pub records: Vec<Record>,
    /// The kept first bytes of all frames, one frame after the other.
    pub bytes: Vec<u8>,
    /// Number of frames that were stamped before the last [`Handed::Until`]: the kernel handed them over too late. A
    /// judge that relied on the time can conclude nothing about this port.
    pub late: u64,
}

impl Batch {
    /// An empty batch with capacity for `frames` frames, of which `bytes` bytes are kept in total.
    pub fn with_capacity(port: usize, frames: usize, bytes: usize) -> Batch {
        Batch {
            port,
            records: Vec::with_capacity(frames),
            bytes: Vec::with_capacity(bytes),
            late: 0,
        }
    }

    /// Adds a frame whose first bytes are `kept`.
    #[inline]
    pub fn push(&mut self, at_ns: u64, way: Way, wire_len: u32, identity: Identity, kept: &[u8]) {
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

    /// Appends the frames of the batch, without the port's index, to `text`. [`Batch::decode`] reads them.
    pub fn encode(&self, text: &mut Vec<u8>) {
        text.extend(self.late.to_le_bytes());
        text.extend((self.records.len() as u64).to_le_bytes());
        for record in &self.records {
            text.extend(record.at_ns.to_le_bytes());
            text.extend(record.identity.to_bits().to_le_bytes());
            text.extend(record.wire_len.to_le_bytes());
            // A frame is shorter than 2^31 bytes.
            let is_out = u32::from(record.way == Way::Out) << 31;
            text.extend((record.range().len() as u32 | is_out).to_le_bytes());
        }
        text.extend(&self.bytes);
    }

    /// Reads a batch that [`Batch::encode`] wrote; `None` if `text` is cut off.
    #[must_use]
    pub fn decode(port: usize, text: &[u8]) -> Option<Batch> {
        let mut rest = text;
        let late = number(&mut rest)?;
        let frames = usize::try_from(number(&mut rest)?).ok()?;
        let (mut heads, bytes) = rest.split_at_checked(frames.checked_mul(RECORD_BYTES)?)?;
        let mut batch = Batch::with_capacity(port, frames, bytes.len());
        batch.late = late;
        let mut begin = 0;
        for _ in 0..frames {
            let at_ns = number(&mut heads)?;
            let identity = Identity::from_bits(number(&mut heads)?);
            let lengths = number(&mut heads)?;
            let (wire_len, kept) = (lengths as u32, (lengths >> 32) as u32);
            let way = match kept >> 31 {
                0 => Way::In,
                _ => Way::Out,
            };
            let end = begin + (kept & (u32::MAX >> 1)) as usize;
            batch.push(at_ns, way, wire_len, identity, bytes.get(begin..end)?);
            begin = end;
        }
        Some(batch)
    }

    /// Memory that the batch takes, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len() + size_of_val(self.records.as_slice())
    }

    /// The frames of the batch in the judge's format.
    #[inline]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let mut batch = Batch::with_capacity(3, 2, 8);
        batch.push(7, Way::In, 1_500, Identity::from_bits(u64::MAX), b"headers");
        batch.push(u64::MAX, Way::Out, 60, Identity::from_bits(5), b"");
        batch.late = 2;
        let mut text = Vec::new();
        batch.encode(&mut text);
        let read = Batch::decode(3, &text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{batch:?}"));
        let whole = text.len();
        for end in 0..whole {
            assert!(Batch::decode(3, &text[..end]).is_none(), "{end}");
        }
    }
}
