//! Effects: what a fault does to a packet that it hits. One file per effect.
//!
//! An effect's file holds its parameters, its P4 action, its composition with other effects on the same packet, and thereby
//! what the proof expects to see. All other code goes through [`Behaviour`].

mod corrupt;
mod delay;
mod distribution;
mod drop;
mod duplicate;
mod observe;
mod rate;
mod reorder;
mod reset;
mod set;
mod truncate;

use std::fmt;
use std::ops::Deref;

pub use corrupt::Corrupt;
pub(crate) use corrupt::masks;
pub use delay::{Delay, DelayTime};
pub(crate) use distribution::MAX_DELAY_NS;
pub use distribution::{Distribution, QUANTILES};
pub use drop::Drop;
pub use duplicate::Duplicate;
pub use observe::Observe;
use parser_gen::engine::Action;
use parser_gen::pace::Pace;
use parser_gen::rewrite::{NewValue, Rewrite};
use parser_gen::{Headers, Library};
pub(crate) use rate::OVER;
pub use rate::Rate;
pub use reorder::Reorder;
pub use reset::Reset;
pub use set::Set;
pub use truncate::Truncate;

/// The effect of a fault on a packet that it hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Drops the packet.
    Drop(Drop),
    /// Delays the packet.
    Delay(Delay),
    /// Sends the packet more than once.
    Duplicate(Duplicate),
    /// Counts the packet, and does not change it.
    Observe(Observe),
    /// Sets fields of the packet.
    Set(Set),
    /// Flips bits of the packet.
    Corrupt(Corrupt),
    /// Turns the packet into a reset of its connection.
    Reset(Reset),
    /// Limits packets to a rate, with a queue.
    Rate(Rate),
    /// Drops packets beyond a rate.
    Police(Rate),
    /// Cuts the packet short.
    Truncate(Truncate),
    /// Lets later packets overtake the packet.
    Reorder(Reorder),
}

impl Effect {
    /// The effect's word in files and reports, and a verb phrase for messages about the fault, as in `x drops packets`.
    fn words(&self) -> (&'static str, &'static str) {
        match self {
            Effect::Drop(_) => ("drop", "drops"),
            Effect::Delay(_) => ("delay", "delays"),
            Effect::Duplicate(_) => ("duplicate", "duplicates"),
            Effect::Observe(_) => ("observe", "observes"),
            Effect::Set(_) => ("set", "changes"),
            Effect::Corrupt(_) => ("corrupt", "corrupts"),
            Effect::Reset(_) => ("reset", "resets the connections of"),
            Effect::Rate(_) => ("rate", "limits the rate of"),
            Effect::Police(_) => ("police", "limits the rate of"),
            Effect::Truncate(_) => ("truncate", "cuts short"),
            Effect::Reorder(_) => ("reorder", "reorders"),
        }
    }

    /// The effect's word in files and reports.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.words().0
    }

    pub(crate) fn verb(&self) -> &'static str {
        self.words().1
    }

    /// One example of each effect, in the order in which messages list the effects.
    #[must_use]
    pub fn samples() -> Vec<Effect> {
        let change = |to| {
            let library = parser_gen::Library::builtin();
            Rewrite::new(&library, &[("ip.ttl", to)], true)
        };
        let mut samples = vec![
            Effect::Drop(Drop),
            Effect::Delay(Delay {
                time: DelayTime::Fixed(1),
                keeps_order: false,
            }),
            Effect::Duplicate(Duplicate::ONCE),
            Effect::Observe(Observe),
        ];
        samples.extend(change(NewValue::Set(1)).map(|rewrite| {
            let told = "ip.ttl 1".to_owned();
            Effect::Set(Set { rewrite, told })
        }));
        samples.extend(change(NewValue::Xor(1)).map(|rewrite| {
            let told = "ip.ttl by 0x1".to_owned();
            Effect::Corrupt(Corrupt::by(rewrite, told))
        }));
        samples.push(Effect::Reset(Reset));
        let pace = |holds| Rate {
            rate_bps: 8_000_000_000,
            pace: Pace {
                step: 1 << 16,
                most_ns: 10_000,
                holds,
            },
        };
        samples.extend([Effect::Rate(pace(true)), Effect::Police(pace(false))]);
        samples.push(Effect::Truncate(Truncate { to_bytes: 64 }));
        samples.push(Effect::Reorder(Reorder {
            distance: 3,
            within_ns: 1,
        }));
        samples
    }
}

impl Deref for Effect {
    type Target = dyn Behaviour;

    fn deref(&self) -> &Self::Target {
        match self {
            Effect::Drop(drop) => drop,
            Effect::Delay(delay) => delay,
            Effect::Duplicate(duplicate) => duplicate,
            Effect::Observe(observe) => observe,
            Effect::Set(set) => set,
            Effect::Corrupt(corrupt) => corrupt,
            Effect::Reset(reset) => reset,
            Effect::Rate(rate) | Effect::Police(rate) => rate,
            Effect::Truncate(truncate) => truncate,
            Effect::Reorder(reorder) => reorder,
        }
    }
}

impl fmt::Display for Effect {
    /// For users: `drop`, `delay 20ms`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Effect::Delay(delay) => write!(f, " {delay}"),
            Effect::Set(set) => write!(f, " {}", set.told),
            Effect::Corrupt(corrupt) => write!(f, " {}", corrupt.told),
            Effect::Duplicate(duplicate) => duplicate.fmt(f),
            Effect::Rate(rate) | Effect::Police(rate) => write!(f, " {rate}"),
            Effect::Reorder(reorder) => write!(f, " {reorder}"),
            Effect::Truncate(truncate) => write!(f, " to {}B", truncate.to_bytes),
            Effect::Drop(_) | Effect::Observe(_) | Effect::Reset(_) => Ok(()),
        }
    }
}

/// The properties and methods of an effect, with a default for effects that lack a property.
pub trait Behaviour: fmt::Debug {
    /// The P4 action that carries out the effect in a fault unit.
    fn action(&self) -> Action;

    /// Applies the effect to a packet's fate, to which the effects of earlier declared faults were already applied. `w` is the
    /// packet's random word. Not called for a packet that any of its faults drops, wherever that fault is declared.
    fn compose(&self, w: u32, fate: &mut Fate);

    /// Time in nanoseconds for which the effect holds a packet on purpose, given the packet's random word. More is lateness.
    fn hold_ns(&self, _w: u32) -> u64 {
        0
    }

    /// The maximum of [`Behaviour::hold_ns`] over all words, in nanoseconds.
    fn longest_hold_ns(&self) -> u64 {
        0
    }

    /// Whether reports show how late packets leave: those that the effect delays, and those that it limits to a rate.
    fn is_timed(&self) -> bool {
        self.longest_hold_ns() > 0 || self.pace().is_some()
    }

    /// Whether packets keep their order: the effect holds each at least until the packet that it held before is due.
    fn keeps_order(&self) -> bool {
        false
    }

    /// The values from which a packet's random word selects one, such as delays: [`QUANTILES`] values, by the word's upper
    /// bits. Empty if the effect draws none. They become the entries of the fault unit's table `lots`.
    fn lots(&self) -> Vec<u128> {
        Vec::new()
    }

    /// Whether the effect makes the packet recirculate: only ingress can do so, and the packet is late by at least one loop.
    fn recirculates(&self) -> bool {
        false
    }

    /// Whether the effect changes the packet's bytes.
    fn changes(&self) -> bool {
        false
    }

    /// Changes the bytes of a packet, given its drawn random word `w`. The length of the packet stays the same.
    fn change(&self, _library: &Library, _headers: &Headers, _w: u32, _frame: &mut [u8]) {}

    /// Whether the receiver gets nothing of a packet on which the effect acts.
    fn takes(&self) -> bool {
        false
    }

    /// Number of later packets of the flow for which a packet waits; `None` if the effect does not let packets wait for others.
    fn distance(&self) -> Option<u32> {
        None
    }

    /// Maximum length in bytes to which the effect cuts a frame; `None` if it does not cut frames.
    fn leaves(&self) -> Option<u16> {
        None
    }

    /// Whether the effect can act only in a switch's ingress pipeline.
    fn is_for_ingress(&self) -> bool {
        self.recirculates() || self.changes()
    }

    /// Whether a random word, drawn for each packet, decides how the effect acts. Called for each packet.
    fn draws(&self) -> bool {
        false
    }

    /// The rate at which packets leave, or beyond which they are dropped; `None` if the effect limits no rate.
    fn pace(&self) -> Option<Pace> {
        None
    }

    /// Whether a packet's fate depends on when other packets arrive.
    fn goes_by_time(&self) -> bool {
        self.keeps_order() || self.pace().is_some() || self.distance().is_some()
    }

    /// Number and spacing of the copies that the effect makes; `None` if it makes none.
    fn duplicate(&self) -> Option<Duplicate> {
        None
    }

    /// Maximum time in nanoseconds for which the effect keeps any copy of a packet in the switch on purpose.
    fn longest_stay_ns(&self) -> u64 {
        let mut fate = Fate::UNTOUCHED;
        self.compose(u32::MAX, &mut fate);
        fate.longest_ns()
    }

    /// Whether the effect leaves no trace on a packet that another fault drops.
    fn is_overridden(&self) -> bool {
        true
    }

    /// Whether no copy of the packet leaves the switch after this effect.
    fn ends_packet(&self) -> bool {
        let mut fate = Fate::UNTOUCHED;
        self.compose(0, &mut fate);
        fate.is_dropped()
    }
}

/// The fate of a packet under its faults: the number of copies that leave by each egress port, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fate {
    /// Number of copies that leave by each egress port; 0 if the packet is dropped.
    pub copies: u32,
    /// Time for which delays hold the packet, in nanoseconds.
    pub delay_ns: u64,
    /// Time for which the packet waits for other packets, in nanoseconds. It runs at the same time as `delay_ns`.
    pub waits_ns: u64,
    /// Time by which each further copy is due after the copy before it, in nanoseconds.
    pub spaced_ns: u64,
}

impl Fate {
    /// The fate of a packet that no fault hits.
    pub const UNTOUCHED: Fate = Fate {
        copies: 1,
        delay_ns: 0,
        waits_ns: 0,
        spaced_ns: 0,
    };

    /// Whether no copy of the packet leaves.
    #[must_use]
    #[inline]
    pub fn is_dropped(self) -> bool {
        self.copies == 0
    }

    /// The fate of a packet that a fault drops.
    pub const DROPPED: Fate = Fate {
        copies: 0,
        delay_ns: 0,
        waits_ns: 0,
        spaced_ns: 0,
    };

    /// Time in nanoseconds from the packet's arrival to the departure of the copy with this number, counted from 0.
    #[must_use]
    #[inline]
    pub fn held_ns(self, copy: usize) -> u64 {
        let spaced_ns = self.spaced_ns.saturating_mul(copy as u64);
        // A copy that is due waits for other packets as the original does.
        self.delay_ns.saturating_add(spaced_ns).max(self.waits_ns)
    }

    /// Time in nanoseconds from the packet's arrival at the switch to the departure of its last copy.
    #[must_use]
    pub fn longest_ns(self) -> u64 {
        self.held_ns(self.copies.saturating_sub(1) as usize)
    }

    /// The fate of a packet after these effects, in declared order, each with its random word. A drop overrides all others.
    #[must_use]
    #[inline]
    pub fn after<'e>(effects: impl IntoIterator<Item = (&'e Effect, u32)>) -> Fate {
        let mut fate = Fate::UNTOUCHED;
        for (effect, w) in effects {
            if effect.ends_packet() {
                return Fate::DROPPED;
            }
            effect.compose(w, &mut fate);
            if fate.is_dropped() {
                return Fate::DROPPED;
            }
        }
        fate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DROP: Effect = Effect::Drop(Drop);
    const TWICE: Effect = Effect::Duplicate(Duplicate::ONCE);

    fn delay(ns: u64) -> Effect {
        Effect::Delay(Delay {
            time: DelayTime::Fixed(ns),
            keeps_order: false,
        })
    }

    #[inline]
    fn after<const N: usize>(effects: &[Effect; N]) -> Fate {
        Fate::after(effects.iter().map(|effect| (effect, 0)))
    }

    #[test]
    fn delays_add_duplicates_do_not_and_a_drop_stands_over_all() {
        let fate = |copies, delay_ns| Fate {
            copies,
            delay_ns,
            waits_ns: 0,
            spaced_ns: 0,
        };
        assert_eq!(after(&[]), Fate::UNTOUCHED);
        assert_eq!(after(&[delay(3), TWICE, delay(4)]), fate(2, 7));
        assert_eq!(after(&[TWICE, TWICE]), fate(2, 0));
        for all in [[delay(3), DROP, TWICE], [DROP, TWICE, delay(3)]] {
            assert_eq!(after(&all), Fate::DROPPED);
        }
    }

    #[test]
    fn only_a_drop_ends_a_packet() {
        for effect in Effect::samples() {
            assert_eq!(effect.ends_packet(), effect == DROP, "{effect}");
        }
    }
}
