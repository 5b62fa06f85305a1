//! `duplicate`: a multicast group sends the packet to the recirculation port several times, and all copies are forwarded
//! as the original would have been. If several faults duplicate a packet, the one declared first decides.

use std::fmt;

use parser_gen::engine::{Action, Copies};

use super::{Behaviour, Fate};
use crate::units::show_duration;

/// The effect that sends copies of the packet besides the packet itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duplicate {
    /// Number of copies that are sent in addition to the packet itself.
    pub copies: u32,
    /// Time between one copy and the next, in nanoseconds.
    pub spaced_ns: u64,
}

impl Duplicate {
    /// A single copy that follows without a delay.
    pub const ONCE: Duplicate = Duplicate {
        copies: 1,
        spaced_ns: 0,
    };
}

impl Behaviour for Duplicate {
    fn action(&self) -> Action {
        Action::Duplicate(Copies::default())
    }

    fn compose(&self, _w: u32, fate: &mut Fate) {
        if fate.copies == 1 {
            fate.copies += self.copies;
            fate.spaced_ns = self.spaced_ns;
        }
    }

    fn recirculates(&self) -> bool {
        true
    }

    fn duplicate(&self) -> Option<Duplicate> {
        Some(*self)
    }
}

/// For users: empty for a single copy without spacing, or ` 3 times, 5ms apart`.
impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.copies {
            1 => {}
            copies => write!(f, " {copies} times")?,
        }
        match self.spaced_ns {
            0 => Ok(()),
            spaced_ns if self.copies == 1 => write!(f, " {} later", show_duration(spaced_ns)),
            spaced_ns => write!(f, ", {} apart", show_duration(spaced_ns)),
        }
    }
}
