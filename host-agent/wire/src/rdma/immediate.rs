//! The immediate: what a completion shows of a frame.

use std::fmt;

use crate::Flags;

const FLAGS_SHIFT: u32 = 28;
const SCALE_SHIFT: u32 = 24;
const NEXT_SCALE_SHIFT: u32 = 16;
const LOW_4: u32 = 0xF;
/// The answer to a registration has all flags, which no frame of a chunk has.
const REGISTERED: u32 = 0xF;

/// Flags by their bit, from the highest.
const FLAGS: [(Flags, u32); 4] = [
    (Flags::NON_FINITE, 3),
    (Flags::AGAIN, 2),
    (Flags::PROBE, 1),
    (Flags::SCALE_ONLY, 0),
];

/// Four flags, four bits of the exponent, the next exponent, 16 bits of the chunk's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Immediate(u32);

impl Immediate {
    /// That of a frame. Of flags those that it has no bits for are left out, and of exponent and chunk the high bits.
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

    /// That of the answer to a registration that told this PSN.
    pub fn registered(psn: u32) -> Self {
        Self(REGISTERED << FLAGS_SHIFT | psn & 0xFFFF)
    }

    /// That of these bytes, as they stand in a packet.
    pub fn from_bytes(bytes: [u8; 4]) -> Self {
        Self(u32::from_be_bytes(bytes))
    }

    /// The bytes.
    pub fn bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    /// Whether it answers a registration.
    pub fn is_registered(self) -> bool {
        self.0 >> FLAGS_SHIFT == REGISTERED
    }

    /// The flags.
    pub fn flags(self) -> Flags {
        let bits = self.0 >> FLAGS_SHIFT;
        let set = FLAGS.iter().filter(|(_, bit)| bits >> bit & 1 == 1);
        set.fold(Flags::NONE, |flags, (flag, _)| flags | *flag)
    }

    /// The low four bits of the exponent.
    pub fn scale(self) -> u8 {
        (self.0 >> SCALE_SHIFT & LOW_4) as u8
    }

    /// The next exponent.
    pub fn next_scale(self) -> u8 {
        (self.0 >> NEXT_SCALE_SHIFT) as u8
    }

    /// The low 16 bits of the chunk's number, or of the PSN that was told.
    pub fn low(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Debug for Immediate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Immediate({:#010x})", self.0)
    }
}
