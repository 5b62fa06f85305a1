//! The 32-bit immediate of an RDMA WRITE, which has the header fields that a receiver's completion shows.

use std::fmt;

use crate::Flags;

const FLAGS_SHIFT: u32 = 28;
const SCALE_SHIFT: u32 = 24;
const NEXT_SCALE_SHIFT: u32 = 16;
const LOW_4: u32 = 0xF;
/// Flag bits of the answer to a registration: all four, a combination that no chunk's frame has.
const REGISTERED: u32 = 0xF;

/// Flags that an immediate carries, and their bit numbers within its four flag bits, from the highest.
const FLAGS: [(Flags, u32); 4] = [
    (Flags::NON_FINITE, 3),
    (Flags::AGAIN, 2),
    (Flags::PROBE, 1),
    (Flags::SCALE_ONLY, 0),
];

/// Immediate data: four flag bits, four low bits of the exponent, eight of the next exponent, 16 low bits of the chunk number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Immediate(u32);

impl Immediate {
    /// The immediate of a chunk's frame. It has only the flags in `FLAGS`, and the low bits of exponent and chunk number.
    pub fn new(flags: Flags, scale: u8, next_scale: u8, chunk: u32) -> Self {
        let set = FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
        let flags = set.fold(0, |bits, (_, bit)| bits | 1 << bit);
        Self(
            flags << FLAGS_SHIFT
                | (u32::from(scale) & LOW_4) << SCALE_SHIFT
                | u32::from(next_scale) << NEXT_SCALE_SHIFT
                | chunk & 0xFFFF,
        )
    }

    /// The immediate of the answer to a registration that announced this packet sequence number.
    pub fn registered(psn: u32) -> Self {
        Self(REGISTERED << FLAGS_SHIFT | psn & 0xFFFF)
    }

    /// Reads the immediate from a packet's big-endian bytes.
    pub fn from_bytes(bytes: [u8; 4]) -> Self {
        Self(u32::from_be_bytes(bytes))
    }

    /// The immediate as a packet's big-endian bytes.
    pub fn bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    /// Whether the WRITE with this immediate answers a registration.
    pub fn is_registered(self) -> bool {
        self.0 >> FLAGS_SHIFT == REGISTERED
    }

    /// The flags that the immediate carries.
    pub fn flags(self) -> Flags {
        let bits = self.0 >> FLAGS_SHIFT;
        let set = FLAGS.iter().filter(|(_, bit)| bits >> bit & 1 == 1);
        set.fold(Flags::NONE, |flags, (flag, _)| flags | *flag)
    }

    /// The low four bits of the exponent with which the values were quantised.
    pub fn scale(self) -> u8 {
        (self.0 >> SCALE_SHIFT & LOW_4) as u8
    }

    /// Biased exponent (bias 127) that the sender requests for the chunk one window later.
    pub fn next_scale(self) -> u8 {
        (self.0 >> NEXT_SCALE_SHIFT) as u8
    }

    /// The low 16 bits of the chunk number, or of the announced PSN in the answer to a registration.
    pub fn low(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Debug for Immediate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Immediate({:#010x})", self.0)
    }
}
