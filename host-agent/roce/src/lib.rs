//! RoCEv2 in user space, without I/O.

pub mod packet;
pub mod psn;

use std::fmt;

/// A queue pair's number, 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Qpn(u32);

impl Qpn {
    /// The queue pair with these low 24 bits.
    pub fn new(bits: u32) -> Self {
        Self(bits & 0xFF_FFFF)
    }

    /// The 24 bits.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}
