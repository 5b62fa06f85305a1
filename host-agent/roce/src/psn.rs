//! Packet sequence numbers: 24 bits that wrap (IBA 9.7.2), and the 64-bit positions that they stand for.

use std::fmt;

const BITS: u32 = 24;
const MASK: u32 = (1 << BITS) - 1;
const HALF: u32 = 1 << (BITS - 1);

/// A 24-bit packet sequence number as in the header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Psn(u32);

impl Psn {
    /// The packet sequence number that consists of the low 24 bits of `bits`.
    pub fn new(bits: u32) -> Self {
        Self(bits & MASK)
    }

    /// The number as an integer; its high 8 bits are 0.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Distance from `other` to this PSN in packets; negative if this PSN is before `other`. The true distance must be less
    /// than 2²³, which limits the packets in flight, or the result is wrong.
    pub fn after(self, other: Self) -> i32 {
        let distance = self.0.wrapping_sub(other.0) & MASK;
        if distance < HALF {
            distance as i32
        } else {
            distance as i32 - (1 << BITS)
        }
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Position of a packet among all packets in one direction of a connection. Unlike a PSN, it does not wrap; its low 24 bits are
/// the packet's PSN. The position of the first packet is its PSN plus 2²⁴.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExtendedPsn(u64);

impl ExtendedPsn {
    /// Position of a connection's first packet: PSN + 2²⁴. So late packets of an earlier connection get smaller positions, not
    /// negative ones.
    pub fn first(psn: Psn) -> Self {
        Self((1 << BITS) + u64::from(psn.0))
    }

    /// The 24-bit PSN of the packet at this position.
    pub fn psn(self) -> Psn {
        Psn::new(self.0 as u32)
    }

    /// Nearest position to this one among all positions whose low 24 bits are `psn`.
    pub fn near(self, psn: Psn) -> Self {
        Self(
            self.0
                .saturating_add_signed(i64::from(psn.after(self.psn()))),
        )
    }

    /// The position that is `packets` packets later.
    #[must_use]
    pub fn plus(self, packets: u64) -> Self {
        Self(self.0 + packets)
    }

    /// Position of the previous packet.
    #[must_use]
    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Number of packets from position `earlier` to just before this position; 0 if `earlier` is not before this position.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_compare_within_half_of_them() {
        let psn = Psn::new;
        assert_eq!(psn(5).after(psn(3)), 2);
        assert_eq!(psn(3).after(psn(5)), -2);
        assert_eq!(psn(1).after(psn(0xFF_FFFF)), 2);
        assert_eq!(psn(0xFF_FFFF).after(psn(1)), -2);
        assert_eq!(psn(0x7F_FFFF).after(psn(0)), 0x7F_FFFF);
        assert_eq!(psn(0x80_0000).after(psn(0)), -0x80_0000);
        assert_eq!(psn(0x0100_0007).bits(), 7);
    }

    proptest! {
        #[test]
        fn positions_are_recovered_from_their_psn(start in 0u32..1 << 24, far in 0u64..1 << 40, off in -(1i64 << 23)..1 << 23) {
            let here = ExtendedPsn::first(Psn::new(start)).plus(far);
            let there = ExtendedPsn(here.0.saturating_add_signed(off));
            prop_assert_eq!(here.near(there.psn()), there);
            prop_assert_eq!(there.since(here), off.max(0) as u64);
        }
    }
}
