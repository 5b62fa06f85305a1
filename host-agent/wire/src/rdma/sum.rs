//! A SUM as a WRITE to a rank, and the rank's memory region that receives it.
//!
//! ```text
//!            base
//!  ┌──────────┬──────────────────┬────────┬──────────────────┬────────┬──
//!  │ answer   │ values of cell 0 │ answer │ values of cell 1 │ answer │ …
//!  └──────────┴──────────────────┴────────┴──────────────────┴────────┴──
//!   16: to the registration       16: to probes
//! ```
//!
//! Several frames may arrive in one batch before the rank reads any of them, so no frame may overwrite another: the answer to
//! a probe lies beside the values, and the answer to a registration lies apart from those to probes.

use super::{Immediate, Malformed, NotCarried, VALUES_LEN, Write};
use crate::{Flags, Kind, Repr, VALUES_PER_PACKET};

/// Length in bytes of the answer to a probe: contributors, worker and transmission as in the header, then six zero bytes.
pub const ANSWER_LEN: usize = 16;
/// Length in bytes of the place of a switch's register cell in a rank's region: values, then the answer to a probe.
pub const PLACE_LEN: usize = VALUES_LEN + ANSWER_LEN;

/// Offset in bytes of the first cell's place (the announced base) in a rank's region, behind the answer to the registration.
pub const FIRST_PLACE: usize = ANSWER_LEN;

/// Number of the register cell of a chunk with these low 16 bits: twice the slot plus the version. `window` is a power of two.
pub fn cell(low: u16, window: u32) -> usize {
    let (slot, version) = (u32::from(low) & (window - 1), u32::from(low) & window != 0);
    (slot as usize) << 1 | usize::from(version)
}

/// Destination of a rank's SUMs, as the rank registered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// The rank's queue pair number.
    pub qpn: u32,
    /// Remote key of the rank's memory region.
    pub rkey: u32,
    /// Address of the first cell's place in the region.
    pub base: u64,
}

impl Target {
    /// The WRITE that carries a SUM; its payload is the values, or [`Sum::answer`] for the answer to a probe.
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

    /// The WRITE that answers a registration with this PSN; its payload is [`Sum::answer_of`] with the bitmap of all children.
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

/// Builder of the 16-byte answers (to probes and registrations) that a switch writes.
#[derive(Debug, Clone, Copy)]
pub struct Sum;

impl Sum {
    /// Payload of the answer to a probe, from the header of the SUM that answers it.
    pub fn answer(header: &Repr) -> [u8; ANSWER_LEN] {
        let worker = header.worker << 6 | u16::from(header.transmission);
        Self::answer_of(header.contributors, worker)
    }

    /// Payload of an answer with this contributor bitmap; `worker` holds worker and transmission in the layout of the header.
    pub fn answer_of(contributors: u64, worker: u16) -> [u8; ANSWER_LEN] {
        let mut answer = [0; ANSWER_LEN];
        answer[..8].copy_from_slice(&contributors.to_be_bytes());
        answer[8..10].copy_from_slice(&worker.to_be_bytes());
        answer
    }
}

/// Reads an answer: the contributor bitmap, then worker and transmission in the layout of the header.
pub(super) fn read(answer: &[u8; ANSWER_LEN]) -> (u64, u16) {
    let (words, _) = answer.as_chunks::<8>();
    (
        u64::from_be_bytes(words[0]),
        u16::from_be_bytes([answer[8], answer[9]]),
    )
}

/// Context that a rank needs to rebuild the header of a SUM from its RDMA completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Receiver {
    /// Number of the training job.
    pub job: u16,
    /// The job's window: the number of the switch's aggregation slots that it uses.
    pub window: u32,
    /// The rank's number as a child of its switch.
    pub child: u16,
    /// Bitmap of the contributors of a complete sum.
    pub everyone: u64,
}

impl Receiver {
    /// Length of the rank's memory region in bytes.
    pub fn region_len(&self) -> usize {
        FIRST_PLACE + 2 * self.window as usize * PLACE_LEN
    }

    /// Offset in the region of the values of a SUM with this immediate; an answer to a probe lies [`VALUES_LEN`] bytes further.
    pub fn place(&self, immediate: Immediate) -> usize {
        FIRST_PLACE + cell(immediate.low(), self.window) * PLACE_LEN
    }

    /// Rebuilds the header of a SUM that arrived with `len` payload bytes. `chunk` and `scale` are those of the rank's own
    /// chunk in the slot; `answer` is the content of its place behind the values.
    ///
    /// The SUM's chunk is the one nearest to the rank's own chunk with the immediate's low bits; of two equally near chunks,
    /// the older. Only four bits of the exponent arrive: if they equal those of `scale`, the whole exponent does.
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
        // In the answer to a probe, the exponent says whether the cell has a newer owner.
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
