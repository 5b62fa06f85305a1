//! `rate: {limit: 10Mbit/s, queue: 64kB}`: packets leave one after the other at a rate, from a queue of limited length.
//! `police: {rate: 10Mbit/s, burst: 64kB}`: packets that do not conform are dropped, without a queue.

use std::fmt;

use parser_gen::engine::Action;
use parser_gen::pace::Pace;

use super::{Behaviour, Fate};
use crate::units::{show_duration, show_rate};

/// The effect that limits packets to a rate, by queueing them or by dropping the excess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Rate in bits per second.
    pub rate_bps: u64,
    /// The rate and the size of the queue or burst, in the switch's units.
    pub pace: Pace,
}

/// The model's value of `w` for a packet that finds the queue full. (This effect draws no random word, so `w` is free.)
pub(crate) const OVER: u32 = 1;

impl Behaviour for Rate {
    fn action(&self) -> Action {
        Action::Pace(self.pace)
    }

    fn compose(&self, w: u32, fate: &mut Fate) {
        if w == OVER {
            fate.copies = 0;
        }
    }

    fn longest_hold_ns(&self) -> u64 {
        match self.pace.holds {
            true => self.pace.most_ns,
            false => 0,
        }
    }

    fn longest_stay_ns(&self) -> u64 {
        self.longest_hold_ns()
    }

    fn pace(&self) -> Option<Pace> {
        Some(self.pace)
    }

    fn recirculates(&self) -> bool {
        self.pace.holds
    }

    fn is_for_ingress(&self) -> bool {
        true
    }
}

/// For users: `10Mbit/s, at most 51.2ms`
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = show_duration(self.pace.most_ns);
        write!(f, "{}, at most {most}", show_rate(self.rate_bps))
    }
}
