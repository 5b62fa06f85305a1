//! `reorder`: later packets of the flow overtake the packet, which recirculates until `distance` have come or time is up.

use std::fmt;

use parser_gen::engine::{self, Action};

use super::{Behaviour, Fate};
use crate::units::show_duration;

/// The effect that delays the packet until later packets of its flow have overtaken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// Number of later packets of the flow for which the packet waits, whatever happens to these packets.
    pub distance: u32,
    /// Maximum time for which the packet waits, in nanoseconds.
    pub within_ns: u64,
}

impl Behaviour for Reorder {
    fn action(&self) -> Action {
        Action::Reorder(engine::Reorder {
            distance: self.distance,
            within_ns: self.within_ns,
        })
    }

    /// The packet leaves when both its hold time due to other faults and its wait for later packets are over.
    fn compose(&self, w: u32, fate: &mut Fate) {
        fate.waits_ns = fate.waits_ns.max(self.hold_ns(w));
    }

    /// `w` is no random word here, but the packet's waiting time in nanoseconds: see [`crate::replay::Classified::passed_ns`].
    fn hold_ns(&self, w: u32) -> u64 {
        u64::from(w).min(self.within_ns)
    }

    fn longest_hold_ns(&self) -> u64 {
        self.within_ns
    }

    fn recirculates(&self) -> bool {
        true
    }

    fn distance(&self) -> Option<u32> {
        Some(self.distance)
    }
}

/// For users: ` by 3, within 50ms`
impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "by {}, within {}",
            self.distance,
            show_duration(self.within_ns)
        )
    }
}
