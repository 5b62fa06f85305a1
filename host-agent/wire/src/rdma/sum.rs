//! A SUM as a WRITE to a rank, and the rank's region that it is written to.
//!
//! ```text
//!            base
//!  ┌──────────┬──────────────────┬────────┬──────────────────┬────────┬──
//!  │ answer   │ values of cell 0 │ answer │ values of cell 1 │ answer │ …
//!  └──────────┴──────────────────┴────────┴──────────────────┴────────┴──
//!   16: to the registration       16: to probes
//! ```
//!
//! Frames that come in one batch must not spoil each other before anybody has looked: so an answer is not written over values,
//! nor that to a registration over that to a probe.

use super::{Immediate, Malformed, NotCarried, VALUES_LEN, Write};
use crate::{Flags, Kind, Repr, VALUES_PER_PACKET};

/// Bytes of the answer to a probe: contributors, worker and transmission as in the header, six bytes of 0.
pub const ANSWER_LEN: usize = 16;
/// Bytes of a cell's place in a rank's region: values, then an answer.
pub const PLACE_LEN: usize = VALUES_LEN + ANSWER_LEN;

/// Where places begin in a rank's region, whose address is told as its base: in front of them is what answers its registration.
pub const FIRST_PLACE: usize = ANSWER_LEN;

/// The cell of a chunk with these low 16 bits: twice the slot, and the version.
pub fn cell(low: u16, window: u32) -> usize {
    let (slot, version) = (u32::from(low) & (window - 1), u32::from(low) & window != 0);
    (slot as usize) << 1 | usize::from(version)
}

/// Where the SUMs of a rank go: what it has registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// Its queue pair.
    pub qpn: u32,
    /// Of its region.
    pub rkey: u32,
    /// Where the places of its region begin.
    pub base: u64,
}

impl Target {
    /// The WRITE that carries a SUM: its payload are the values, or what [`Sum::answer`] gives.
    pub fn sum(&self, header: &Repr) -> Result<Write, NotCarried> {
        if header.kind != Kind::Sum {
            return Err(NotCarried::Kind(header.kind));
        }
        if !matches!(usize::from(header.count), 0 | VALUES_PER_PACKET) {
            return Err(NotCarried::Values(header.count));
        }
        let (within, len) = match header.flags.contains(Flags::PROBE) {
            true => (VALUES_LEN, ANSWER_LEN),
            false if header.count == 0 => (0, 0),
            false => (0, VALUES_LEN),
        };
        let version = usize::from(header.flags.contains(Flags::VERSION));
        let cell = usize::from(header.slot) << 1 | version;
        Ok(Write {
            len: len as u32,
            immediate: Immediate::new(header.flags, header.scale, header.next_scale, header.chunk),
            ..self.at(cell * PLACE_LEN + within)
        })
    }

    /// The WRITE that answers a registration which told this PSN; its payload is [`Sum::answer_of`] all that the switch sums.
    pub fn registered(&self, psn: u32) -> Write {
        Write {
            len: ANSWER_LEN as u32,
            immediate: Immediate::registered(psn),
            address: self.base.wrapping_sub(ANSWER_LEN as u64),
            ..self.at(0)
        }
    }

    fn at(&self, offset: usize) -> Write {
        Write {
            qpn: self.qpn,
            rkey: self.rkey,
            address: self.base.wrapping_add(offset as u64),
            len: 0,
            immediate: Immediate::new(Flags::NONE, 0, 0, 0),
        }
    }
}

/// What a SUM has beside its header.
#[derive(Debug, Clone, Copy)]
pub struct Sum;

impl Sum {
    /// The payload of an answer to a probe.
    pub fn answer(header: &Repr) -> [u8; ANSWER_LEN] {
        let worker = header.worker << 6 | u16::from(header.transmission);
        Self::answer_of(header.contributors, worker)
    }

    /// The same of a bitmap, and of worker and transmission as they stand in the header.
    pub fn answer_of(contributors: u64, worker: u16) -> [u8; ANSWER_LEN] {
        let mut answer = [0; ANSWER_LEN];
        answer[..8].copy_from_slice(&contributors.to_be_bytes());
        answer[8..10].copy_from_slice(&worker.to_be_bytes());
        answer
    }
}

/// Bitmap, worker and transmission.
pub(super) fn read(answer: &[u8; ANSWER_LEN]) -> (u64, u16) {
    let (words, _) = answer.as_chunks::<8>();
    (
        u64::from_be_bytes(words[0]),
        u16::from_be_bytes([answer[8], answer[9]]),
    )
}

/// What a rank knows of all SUMs that come to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Receiver {
    /// The job.
    pub job: u16,
    /// Its window.
    pub window: u32,
    /// The number by which its switch knows the rank.
    pub child: u16,
    /// Whose values are in a complete sum.
    pub everyone: u64,
}

impl Receiver {
    /// Bytes of its region.
    pub fn region_len(&self) -> usize {
        FIRST_PLACE + 2 * self.window as usize * PLACE_LEN
    }

    /// Where the values of a frame with this immediate begin in the region; an answer follows [`VALUES_LEN`] bytes later.
    pub fn place(&self, immediate: Immediate) -> usize {
        FIRST_PLACE + cell(immediate.low(), self.window) * PLACE_LEN
    }

    /// The header of a SUM of so many bytes. `chunk` and `scale` are those that the rank's own chunk of the slot has; `answer`
    /// is what stands in its place behind the values.
    ///
    /// The SUM's chunk is the one nearest to the own that has the immediate's low bits, of two that are equally near the older.
    /// Of its exponent only four bits are known: if they are the own's, so is the rest.
    pub fn header(
        &self,
        immediate: Immediate,
        len: u32,
        (chunk, scale): (u32, u8),
        answer: &[u8; ANSWER_LEN],
    ) -> Result<Repr, Malformed> {
        let after = immediate.low().wrapping_sub(chunk as u16) as i16;
        let chunk = chunk.wrapping_add_signed(after.into());
        let flags = immediate.flags();
        let is_probe = flags.contains(Flags::PROBE);
        let count = match len as usize {
            0 if flags.contains(Flags::SCALE_ONLY) && !is_probe => 0,
            ANSWER_LEN if is_probe => 0,
            VALUES_LEN if !is_probe && !flags.contains(Flags::SCALE_ONLY) => VALUES_PER_PACKET,
            _ => return Err(Malformed::Len(len)),
        };
        // Of a probe's answer the exponent says whether the cell has a newer owner.
        let (contributors, worker, scale) = match is_probe {
            true => {
                let (contributors, worker) = read(answer);
                (contributors, worker, immediate.scale())
            }
            false => (
                self.everyone,
                self.child << 6,
                scale & 0xF0 | immediate.scale(),
            ),
        };
        Ok(Repr {
            kind: Kind::Sum,
            flags: flags.with(Flags::VERSION, chunk & self.window != 0),
            job: self.job,
            chunk,
            slot: (chunk & (self.window - 1)) as u16,
            worker: worker >> 6,
            transmission: (worker & 0x3F) as u8,
            contributors,
            scale,
            next_scale: immediate.next_scale(),
            count: count as u16,
        })
    }
}
