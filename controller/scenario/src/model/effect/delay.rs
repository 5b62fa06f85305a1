//! `{delay: 20ms}`: the packet recirculates until its deadline; several delays add up. The delay may be drawn at random for
//! each packet; then the file says whether the packets keep their order.

use std::fmt;

use parser_gen::engine::{Action, Hold};

use super::distribution::Distribution;
use super::{Behaviour, Fate};
use crate::units::show_duration;

/// The effect that delays the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay {
    /// How long the packet is delayed.
    pub time: DelayTime,
    /// Whether a packet waits for all packets of its flow that the fault delayed earlier, so that they keep their order.
    pub keeps_order: bool,
}

/// How long a packet is delayed: always the same time, or a random time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DelayTime {
    /// One delay for all packets, in nanoseconds.
    Fixed(u64),
    /// A random delay from this distribution: the random word drawn for the packet selects it.
    Drawn(Distribution),
}

impl Behaviour for Delay {
    fn action(&self) -> Action {
        Action::Delay(Hold {
            drawn: self.draws(),
            keeps_order: self.keeps_order,
        })
    }

    fn compose(&self, w: u32, fate: &mut Fate) {
        fate.delay_ns = fate.delay_ns.saturating_add(self.hold_ns(w));
    }

    fn hold_ns(&self, w: u32) -> u64 {
        match &self.time {
            DelayTime::Fixed(ns) => *ns,
            DelayTime::Drawn(distribution) => distribution.of_word(w),
        }
    }

    fn longest_hold_ns(&self) -> u64 {
        self.hold_ns(u32::MAX)
    }

    fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    fn lots(&self) -> Vec<u128> {
        match &self.time {
            DelayTime::Fixed(_) => Vec::new(),
            DelayTime::Drawn(all) => all.quantiles().iter().map(|ns| u128::from(*ns)).collect(),
        }
    }

    fn draws(&self) -> bool {
        matches!(self.time, DelayTime::Drawn(_))
    }

    fn recirculates(&self) -> bool {
        true
    }
}

/// For users: `20ms`, `uniform 5ms to 15ms, order kept`
impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.time {
            DelayTime::Fixed(ns) => f.write_str(&show_duration(*ns))?,
            DelayTime::Drawn(distribution) => distribution.fmt(f)?,
        }
        f.write_str(if self.keeps_order { ", order kept" } else { "" })
    }
}
