//! An UPDATE as an RDMA WRITE to the switch: the header's fields stand in queue pair number, rkey, address and immediate.

use super::{Immediate, Malformed, NotCarried, VALUES_LEN, Write};
use crate::{Flags, Kind, MAX_CHILDREN, MAX_TRANSMISSION, Repr, VALUES_PER_PACKET};

/// High bit of a switch's queue pair numbers, which consist of this bit, a zero bit, 16 bits of job and 6 bits of child.
const QPN: u32 = 0x80_0000;
const CHILD_BITS: u32 = 6;
const CHILD: u32 = (1 << CHILD_BITS) - 1;
const JOB_AND_CHILD: u32 = (1 << (16 + CHILD_BITS)) - 1;
/// Prefix of a switch's remote keys, which consist of 15 bits of prefix, 16 bits of slot and one bit of version.
const RKEY: u32 = 0x2BA2;
const RKEY_SHIFT: u32 = 17;
/// Positions of an address's fields in bits: chunk number (times [`VALUES_LEN`]), exponent, transmission, question flag.
const CHUNK_SHIFT: u32 = VALUES_LEN.trailing_zeros();
const SCALE_SHIFT: u32 = 42;
const TRANSMISSION_SHIFT: u32 = 50;
const QUESTION_SHIFT: u32 = 63;

/// Header flags that an UPDATE by RDMA can carry.
const CARRIED: Flags = Flags::from_bits(
    Flags::NON_FINITE.bits()
        | Flags::AGAIN.bits()
        | Flags::PROBE.bits()
        | Flags::SCALE_ONLY.bits()
        | Flags::VERSION.bits(),
);

/// Queue pair number at the switch, for the job's child with this number.
pub fn switch_qpn(job: u16, child: u16) -> u32 {
    debug_assert!(child < u16::from(MAX_CHILDREN));
    QPN | u32::from(job) << CHILD_BITS | u32::from(child) & CHILD
}

/// An UPDATE by RDMA. The WRITE does not carry its contributors: a switch derives them from `worker`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Update {
    /// The aggregation header.
    pub header: Repr,
    /// Whether the switch's answer goes to the sender alone.
    pub is_question: bool,
}

impl Update {
    /// Encodes the WRITE that carries this UPDATE; its payload is the values.
    pub fn write(&self) -> Result<Write, NotCarried> {
        let header = &self.header;
        if header.kind != Kind::Update {
            return Err(NotCarried::Kind(header.kind));
        }
        if header.worker >= u16::from(MAX_CHILDREN) {
            return Err(NotCarried::Worker(header.worker));
        }
        if header.flags & CARRIED != header.flags {
            return Err(NotCarried::Deadlines);
        }
        if !matches!(usize::from(header.count), 0 | VALUES_PER_PACKET) {
            return Err(NotCarried::Values(header.count));
        }
        let version = u32::from(header.flags.contains(Flags::VERSION));
        let transmission = header.transmission.min(MAX_TRANSMISSION);
        Ok(Write {
            qpn: switch_qpn(header.job, header.worker),
            rkey: RKEY << RKEY_SHIFT | u32::from(header.slot) << 1 | version,
            address: u64::from(self.is_question) << QUESTION_SHIFT
                | u64::from(transmission) << TRANSMISSION_SHIFT
                | u64::from(header.scale) << SCALE_SHIFT
                | u64::from(header.chunk) << CHUNK_SHIFT,
            len: if header.count == 0 {
                0
            } else {
                VALUES_LEN as u32
            },
            immediate: Immediate::new(header.flags, header.scale, header.next_scale, header.chunk),
        })
    }

    /// Decodes the UPDATE that a WRITE carries.
    pub fn parse(write: &Write) -> Result<Self, Malformed> {
        let Write {
            qpn,
            rkey,
            address,
            len,
            immediate,
        } = *write;
        if qpn & !JOB_AND_CHILD != QPN {
            return Err(Malformed::Qpn(qpn));
        }
        if rkey >> RKEY_SHIFT != RKEY {
            return Err(Malformed::Rkey(rkey));
        }
        let field = |shift: u32, bits: u32| address >> shift & ((1 << bits) - 1);
        let (scale, transmission) = (field(SCALE_SHIFT, 8), field(TRANSMISSION_SHIFT, 6));
        let chunk = field(CHUNK_SHIFT, 32) as u32;
        let question = field(QUESTION_SHIFT, 1);
        let known = question << QUESTION_SHIFT
            | transmission << TRANSMISSION_SHIFT
            | scale << SCALE_SHIFT
            | u64::from(chunk) << CHUNK_SHIFT;
        if address != known {
            return Err(Malformed::Address(address));
        }
        let has_values = len as usize == VALUES_LEN;
        if len != 0 && !has_values {
            return Err(Malformed::Len(len));
        }
        if immediate.low() != chunk as u16 || immediate.scale() != scale as u8 & 0xF {
            return Err(Malformed::Immediate);
        }
        let child = (qpn & CHILD) as u16;
        Ok(Self {
            header: Repr {
                kind: Kind::Update,
                flags: immediate.flags().with(Flags::VERSION, rkey & 1 == 1),
                job: (qpn >> CHILD_BITS) as u16,
                chunk,
                slot: (rkey >> 1) as u16,
                worker: child,
                transmission: transmission as u8,
                contributors: 0,
                scale: scale as u8,
                next_scale: immediate.next_scale(),
                count: if has_values {
                    VALUES_PER_PACKET as u16
                } else {
                    0
                },
            },
            is_question: question == 1,
        })
    }
}
