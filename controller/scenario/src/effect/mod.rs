//! What a fault does to a packet that it selects: one file an effect.
//!
//! Everything that distinguishes an effect stands in its file: its word in the YAML and what comes with it, its code in the
//! P4 action, what it needs of a target, how it composes with others on the same packet, and thereby what the proof expects
//! to see. The rest of the house asks [`Behaviour`].

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
pub use delay::{Delay, Time};
pub use distribution::{Distribution, QUANTILES};
pub use drop::Drop;
pub use duplicate::Duplicate;
pub use observe::Observe;
use parser_gen::engine::Action;
use parser_gen::pace::Pace;
use parser_gen::rewrite::{Rewrite, To};
use parser_gen::{Headers, Library};
pub(crate) use rate::OVER;
pub use rate::Rate;
pub use reorder::Reorder;
pub use reset::Reset;
pub use set::Set;
pub use truncate::Truncate;

use crate::diagnostic::Sink;
use crate::plan::TargetModel;
use crate::schema::reader::Variant;
use crate::schema::shape::Shape;

/// What a fault does to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The packet ends.
    Drop(Drop),
    /// The packet waits.
    Delay(Delay),
    /// The packet comes twice.
    Duplicate(Duplicate),
    /// The packet is counted.
    Observe(Observe),
    /// Fields of the packet get values.
    Set(Set),
    /// Bits of the packet turn over.
    Corrupt(Corrupt),
    /// The packet becomes the reset of its connection.
    Reset(Reset),
    /// Packets leave at a rate.
    Rate(Rate),
    /// Packets beyond a rate end.
    Police(Rate),
    /// The packet is cut short.
    Truncate(Truncate),
    /// The packet lets others pass.
    Reorder(Reorder),
}

/// All effects, in the order in which messages list them.
pub(crate) const KINDS: &[Kind] = &[
    drop::KIND,
    delay::KIND,
    duplicate::KIND,
    observe::KIND,
    set::KIND,
    corrupt::KIND,
    reset::KIND,
    rate::RATE,
    rate::POLICE,
    truncate::KIND,
    reorder::KIND,
];

impl Effect {
    /// One of each, in the order of their kinds.
    #[must_use]
    pub fn samples() -> Vec<Effect> {
        let change = |to| {
            let library = parser_gen::Library::builtin();
            Rewrite::new(&library, &[("ip.ttl", to)], true)
        };
        let mut samples = vec![
            Effect::Drop(Drop),
            Effect::Delay(Delay {
                time: Time::Fixed(1),
                keeps_order: false,
            }),
            Effect::Duplicate(Duplicate::ONCE),
            Effect::Observe(Observe),
        ];
        samples.extend(change(To::Set(1)).map(|rewrite| {
            let told = "ip.ttl 1".to_owned();
            Effect::Set(Set { rewrite, told })
        }));
        samples.extend(change(To::Xor(1)).map(|rewrite| {
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

/// Why a target refuses an effect that has checksums to mend.
const MENDS: &str =
    "mend checksums: in the text that is written for it, sums are deeper than an action may be";

/// How an effect is written in a file.
pub(crate) struct Kind {
    /// Its word.
    pub word: &'static str,
    /// For people, in a few words.
    pub about: &'static str,
    /// What stands behind the word, if anything does.
    pub shape: Option<&'static Shape>,
    /// An example of what stands behind the word; empty where nothing has to.
    pub example: &'static str,
    /// Reads what stands behind the word, and reports what is wrong with it.
    pub read: fn(&mut Sink<'_>, &Variant<'_>) -> Option<Effect>,
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
    /// `drop`, `delay 20ms`
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

/// What distinguishes an effect from others.
pub trait Behaviour: fmt::Debug {
    /// Its word in files and reports.
    fn word(&self) -> &'static str;

    /// What a fault of this effect is said to do to packets, as in `x drops packets`.
    fn verb(&self) -> &'static str;

    /// What its unit does in the switch.
    fn action(&self) -> Action;

    /// What it does to the fate that the faults declared before it have left a packet for which it drew the word `w`. Not
    /// called of a packet that one of all its faults drops, wherever that one is declared.
    fn compose(&self, w: u32, fate: &mut Fate);

    /// How long it holds a packet on purpose for which it drew this word. What it takes beyond that is its lateness.
    fn hold_ns(&self, _w: u32) -> u64 {
        0
    }

    /// The most of that.
    fn longest_hold_ns(&self) -> u64 {
        0
    }

    /// Whether a report says how late its packets leave: those that it holds, and those that it lets pass by a clock.
    fn is_timed(&self) -> bool {
        self.longest_hold_ns() > 0 || self.pace().is_some()
    }

    /// Whether it holds a packet until the one is due that it held before, if that is later.
    fn keeps_order(&self) -> bool {
        false
    }

    /// What the upper bits of the drawn word stand for ([`QUANTILES`] of them): the entries of the unit's table `lots`.
    fn lots(&self) -> Vec<u128> {
        Vec::new()
    }

    /// Whether the packet goes over the recirculation port: only ingress can send it there, and it leaves a loop late at least.
    fn recirculates(&self) -> bool {
        false
    }

    /// Whether it changes the packet's bytes.
    fn changes(&self) -> bool {
        false
    }

    /// Changes those of a packet for which it drew this word, but for how many there are.
    fn change(&self, _library: &Library, _headers: &Headers, _w: u32, _frame: &mut [u8]) {}

    /// Whether the receiver is left with nothing of the packet that it takes.
    fn takes(&self) -> bool {
        false
    }

    /// For how many packets of its flow it makes one wait.
    fn distance(&self) -> Option<u32> {
        None
    }

    /// Of how many bytes it leaves no more than these.
    fn leaves(&self) -> Option<u16> {
        None
    }

    /// Whether it can only act where packets come in.
    fn is_for_ingress(&self) -> bool {
        self.recirculates() || self.changes()
    }

    /// Whether how it acts is decided by a word that is drawn for each packet: asked of each packet.
    fn draws(&self) -> bool {
        false
    }

    /// The rate at which its packets leave, or beyond which they end.
    fn pace(&self) -> Option<Pace> {
        None
    }

    /// Whether what becomes of a packet depends on when others came.
    fn goes_by_time(&self) -> bool {
        self.keeps_order() || self.pace().is_some() || self.distance().is_some()
    }

    /// How it multiplies a packet, if it does.
    fn duplicate(&self) -> Option<Duplicate> {
        None
    }

    /// For how long anything of a packet stays in the switch on purpose, at most.
    fn longest_stay_ns(&self) -> u64 {
        let mut fate = Fate::UNTOUCHED;
        self.compose(u32::MAX, &mut fate);
        fate.longest_ns()
    }

    /// What of it a target cannot do, and why, as in `this target cannot …`.
    fn refused_by(&self, _target: &TargetModel) -> Option<&'static str> {
        None
    }

    /// Whether a drop of the same packet leaves nothing of it to be seen.
    fn is_overridden(&self) -> bool {
        true
    }

    /// Whether nothing is left of the packet.
    fn ends_packet(&self) -> bool {
        let mut fate = Fate::UNTOUCHED;
        self.compose(0, &mut fate);
        fate.is_dropped()
    }
}

/// What becomes of a packet: this many copies leave by each port that it is forwarded to, not before so long after it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fate {
    /// 0 if it was dropped.
    pub copies: u32,
    /// How long it is held.
    pub delay_ns: u64,
    /// How long it waits for others meanwhile: it goes when both are over.
    pub waits_ns: u64,
    /// How much longer each further copy is.
    pub spaced_ns: u64,
}

impl Fate {
    /// Of a packet that no fault hits.
    pub const UNTOUCHED: Fate = Fate {
        copies: 1,
        delay_ns: 0,
        waits_ns: 0,
        spaced_ns: 0,
    };

    /// Whether nothing leaves.
    #[must_use]
    #[inline]
    pub fn is_dropped(self) -> bool {
        self.copies == 0
    }

    /// Of a packet that is dropped.
    pub const DROPPED: Fate = Fate {
        copies: 0,
        delay_ns: 0,
        waits_ns: 0,
        spaced_ns: 0,
    };

    /// For how long after it came the copy with this number, from 0, is held.
    #[must_use]
    #[inline]
    pub fn held_ns(self, copy: usize) -> u64 {
        let spaced_ns = self.spaced_ns.saturating_mul(copy as u64);
        // A copy that is due waits for others as the packet does.
        self.delay_ns.saturating_add(spaced_ns).max(self.waits_ns)
    }

    /// For how long the last copy is.
    #[must_use]
    pub fn longest_ns(self) -> u64 {
        self.held_ns(self.copies.saturating_sub(1) as usize)
    }

    /// After these effects, in declared order, each with the word that it drew: a drop stands over all.
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
            time: Time::Fixed(ns),
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
    fn words_are_unique() {
        let all = Effect::samples();
        assert_eq!(all.len(), KINDS.len());
        for (i, a) in all.iter().enumerate() {
            assert_eq!(a.word(), KINDS[i].word);
            for b in &all[..i] {
                assert_ne!(a.word(), b.word());
            }
        }
    }

    #[test]
    fn only_a_drop_ends_a_packet() {
        for effect in Effect::samples() {
            assert_eq!(effect.ends_packet(), effect == DROP, "{effect}");
        }
    }
}
