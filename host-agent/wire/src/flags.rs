//! Flag bits of the aggregation header.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign};

/// The flag byte of the aggregation header. Bits 4 to 6 belong to jobs with a deadline; other jobs send 0 and ignore them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u8);

impl Flags {
    /// No flag is set.
    pub const NONE: Self = Self(0);
    /// The values of some contributor include NaN or infinity.
    pub const NON_FINITE: Self = Self(1 << 0);
    /// UPDATE: this is a retransmission. SUM: the switch has sent this sum before. RESULT: it answers such a SUM.
    pub const AGAIN: Self = Self(1 << 1);
    /// The frame has no values: its chunk only agrees on the exponent of the chunk one window later.
    pub const SCALE_ONLY: Self = Self(1 << 2);
    /// UPDATE: adds nothing and requests a report of the contributors. SUM: this report, in `contributors`. Neither has values.
    pub const PROBE: Self = Self(1 << 3);
    /// UPDATE of a chunk that may be closed: it counts only if its register cell was opened and the switch has not restarted
    /// since. SUM that answers a probe: the cell is in this state.
    pub const TIMED: Self = Self(1 << 4);
    /// UPDATE that contributes: closes the chunk, which waits for no more workers. UPDATE with `PROBE`: opens the register
    /// cell.
    pub const CLOSE: Self = Self(1 << 5);
    /// SUM: sent by a rank that has received and kept it, not by the switch.
    pub const KEPT: Self = Self(1 << 6);
    /// The version of the slot, which selects one of its two register cells: `(chunk / window) mod 2`.
    pub const VERSION: Self = Self(1 << 7);

    const NAMES: [(Self, &'static str); 8] = [
        (Self::NON_FINITE, "NON_FINITE"),
        (Self::AGAIN, "AGAIN"),
        (Self::SCALE_ONLY, "SCALE_ONLY"),
        (Self::PROBE, "PROBE"),
        (Self::TIMED, "TIMED"),
        (Self::CLOSE, "CLOSE"),
        (Self::KEPT, "KEPT"),
        (Self::VERSION, "VERSION"),
    ];

    /// Reads the flags from the header's byte.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The flags as the header's byte.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags, with the flags of `other` set or cleared.
    #[must_use]
    pub const fn with(self, other: Self, set: bool) -> Self {
        if set {
            Self(self.0 | other.0)
        } else {
            Self(self.0 & !other.0)
        }
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Flags {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        f.write_str("Flags(")?;
        for (flag, name) in Self::NAMES {
            if self.contains(flag) {
                write!(f, "{separator}{name}")?;
                separator = " | ";
            }
        }
        f.write_str(")")
    }
}
