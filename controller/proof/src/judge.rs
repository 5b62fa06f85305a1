//! What became of each frame, held against what had to become of it.
//!
//! A frame is what its bytes are. Where several of the same bytes came, what left is dealt out to them so that as much as
//! possible is as it had to be. What then still differs is explained with the fewest faults that hit, or spared, a frame
//! wrongly. Being late explains nothing: a frame that a machine kept waiting is not one that a fault held.

use scenario::effect::{Effect, Fate};
use scenario::replay::{Engine, Passage, Verdict};

use super::STAMP_NS;
use super::frame::{Digest, Identity};
use super::trace::{Arrival, Passed};

/// So many faults may have erred on one frame, before it counts as lost for another reason.
const MAX_ERRORS: usize = 2;

/// How much earlier than its deadline a held frame may be seen to leave, for what the recorder's stamps may be wrong by.
fn tolerance_ns(delay_ns: u64) -> u64 {
    (delay_ns / 10).min(STAMP_NS) + 1
}

/// Before this, the copy with this number of a frame with this fate must not leave.
pub fn due_ns(came_ns: u64, fate: Fate, copy: usize) -> u64 {
    match fate.held_ns(copy) {
        0 => 0,
        held_ns => came_ns.saturating_add(held_ns) - tolerance_ns(held_ns),
    }
}

/// Whether copies that left at these times, in ascending order, are all due. Where egress drops some, it is not known which.
pub fn are_due(came_ns: u64, fate: Fate, left: &[u64]) -> bool {
    let is_whole = left.len() == fate.copies as usize;
    let mut left = left.iter().enumerate();
    left.all(|(copy, at)| *at >= due_ns(came_ns, fate, if is_whole { copy } else { 0 }))
}

/// What frames are held against: the model, and what was seen.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// What the switch's faults do.
    pub engine: &'a Engine,
    /// What came and left.
    pub passed: &'a Passed,
    /// Tells frames apart.
    pub digest: Digest,
}

impl Scene<'_> {
    /// Which frame leaves where units with these effects fired on one that came.
    fn departing<'e>(
        self,
        arrival: &Arrival,
        fired: impl Iterator<Item = (&'e Effect, u32)>,
    ) -> Identity {
        let changed = self.engine.rewritten(arrival.recorded(), fired);
        changed.map_or(arrival.identity, |changed| {
            self.digest.of(&changed.bytes, changed.wire_len)
        })
    }

    /// Which frame leaves with this verdict of ingress.
    pub fn leaves_as(self, arrival: &Arrival, verdict: &Verdict) -> Identity {
        if verdict.hits.is_empty() || !self.engine.rewrites() {
            return arrival.identity;
        }
        let fired = self.engine.ingress_acts(verdict).filter(|act| act.hit);
        self.departing(arrival, fired.map(|act| (act.effect, act.w)))
    }

    /// Whether what left tells what became of this frame alone.
    pub fn is_telling(self, arrival: &Arrival, leaves_as: Identity) -> bool {
        self.passed.is_unique(arrival.identity)
            && (leaves_as == arrival.identity || !self.passed.has_come(leaves_as))
    }

    /// Whether a frame that is like no other left as it had to.
    pub fn is_as_expected(self, arrival: &Arrival, passage: &Passage, leaves_as: Identity) -> bool {
        let fate = passage.ingress.fate;
        (0..passage.exits.len()).all(|exit| {
            let left = self.passed.left(passage.exits[exit].0, leaves_as);
            left.len() == passage.leaving(exit) && are_due(arrival.at_ns, fate, left)
        })
    }

    /// Whether a frame that is like no other and that some fault did not hold took as long as if it had.
    pub fn took_as_long_as_held(
        self,
        arrival: &Arrival,
        passage: &Passage,
        leaves_as: Identity,
    ) -> bool {
        let exits = passage.exits.iter();
        let left = exits.filter_map(|(exit, _)| self.passed.left(*exit, leaves_as).first());
        let Some(first) = left.min() else {
            return false;
        };
        let (verdict, came_ns) = (&passage.ingress, arrival.at_ns);
        let mut acts = self.engine.ingress_acts(verdict);
        acts.any(|act| !act.hit && is_held_for(verdict, came_ns, *first, act.hold_ns()))
    }
}

/// Whether a frame waited, beyond what its faults held it for, as long as another one would have held it.
pub fn is_held_for(verdict: &Verdict, came_ns: u64, left_ns: u64, hold_ns: u64) -> bool {
    let free_ns = came_ns.saturating_add(verdict.fate.held_ns(0));
    let waited_ns = left_ns.saturating_sub(free_ns);
    hold_ns > 0 && waited_ns.saturating_add(tolerance_ns(hold_ns)) >= hold_ns
}

/// What one of several frames that cannot be told apart should do at one port.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// When it came.
    pub came_ns: u64,
    /// How many copies of it have to leave.
    pub copies: usize,
    /// Which says when they are due.
    pub fate: Fate,
}

impl Share {
    fn due_ns(&self, copy: usize) -> u64 {
        due_ns(self.came_ns, self.fate, copy)
    }
}

/// Deals out what left to the frames that came. As many as possible get what they had to: the latest frames go to those with
/// the latest deadlines. What is then left goes to frames that lack a copy, then to those that should not have left at all.
pub fn deal(shares: &[Share], left: &[u64]) -> Vec<Vec<u64>> {
    if shares.len() == 1 {
        return vec![left.to_vec()];
    }
    let mut dealt = vec![Vec::new(); shares.len()];
    let mut pool = left.to_vec();
    pool.sort_unstable();
    let mut wanted: Vec<(usize, usize)> = (0..shares.len())
        .flat_map(|share| (0..shares[share].copies).map(move |copy| (share, copy)))
        .collect();
    // No frame leaves before it came, nor before its deadline: both order them, or a held frame would take what can only be
    // that of a later one.
    let earliest = |(share, copy): (usize, usize)| {
        let share = &shares[share];
        share
            .due_ns(copy)
            .max(share.came_ns.saturating_sub(STAMP_NS))
    };
    wanted.sort_by_key(|wanted| std::cmp::Reverse(earliest(*wanted)));
    let mut short = Vec::new();
    for wanted in wanted {
        let share = wanted.0;
        match pool.pop_if(|at| *at >= earliest(wanted)) {
            Some(at) => dealt[share].push(at),
            None => short.push(share),
        }
    }
    for mut at in pool {
        let share = loop {
            let had_come = |share: &usize| shares[*share].came_ns <= at.saturating_add(STAMP_NS);
            if let Some(position) = short.iter().position(had_come) {
                break short.remove(position);
            }
            let numbers = 0..shares.len();
            let is_spurious = |share: &usize| {
                had_come(share) && shares[*share].copies == 0 && dealt[*share].is_empty()
            };
            if let Some(share) = numbers.clone().find(is_spurious) {
                break share;
            }
            // It may be that of the next, and so on, until one is left over that came late enough.
            let may_take = |share: &usize| had_come(share) && shares[*share].due_ns(0) <= at;
            let next = numbers
                .clone()
                .filter(may_take)
                .flat_map(|share| dealt[share].iter().map(move |time| (*time, share)))
                .filter(|(time, _)| *time > at)
                .min();
            let Some((time, share)) = next else {
                break numbers.rev().find(had_come).unwrap_or(0);
            };
            if let Some(slot) = dealt[share].iter_mut().find(|slot| **slot == time) {
                at = std::mem::replace(slot, at);
            }
        };
        dealt[share].push(at);
    }
    dealt.iter_mut().for_each(|times| times.sort_unstable());
    dealt
}

/// What faults did to one frame that they should not have, or did not do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Errors {
    /// Injections that had to hit and did not.
    pub missed: Vec<usize>,
    /// Injections that had to spare it and hit it.
    pub collateral: Vec<usize>,
    /// No fault of the switch explains it.
    pub stray: bool,
    /// It left as another frame than it had to.
    pub seen_as: Option<Identity>,
}

/// Explains what became of a frame that had to leave as `leaves_as`. `left` is when its copies did so, by each of its exits.
pub fn explain(
    scene: Scene<'_>,
    arrival: &Arrival,
    passage: &Passage,
    leaves_as: Identity,
    left: &[Vec<u64>],
) -> Errors {
    let Scene { engine, passed, .. } = scene;
    let came_ns = arrival.at_ns;
    if let Some(errors) = in_egress(engine, came_ns, passage, left) {
        return errors;
    }
    let met: Vec<_> = engine.ingress_acts(&passage.ingress).collect();
    // A fault that looked at the frame is suspected before one that did not.
    let mut suspects: Vec<usize> = (0..met.len()).collect();
    suspects.sort_by_key(|unit| !met[*unit].met);
    // Which frame it then left as, if what left is explained.
    let explained = |toggled: &[usize]| {
        let fires = |unit: usize| met[unit].hit != toggled.contains(&unit);
        let effects = (0..met.len()).filter(|unit| fires(*unit));
        let effects: Vec<(&Effect, u32)> = effects
            .map(|unit| (met[unit].effect, met[unit].w))
            .collect();
        let fate = Fate::after(effects.iter().copied());
        let as_other = scene.departing(arrival, effects.iter().copied());
        let is_other = as_other != leaves_as;
        let fits = left.iter().enumerate().all(|(exit, left)| {
            let left = match is_other {
                true if !left.is_empty() || !scene.is_telling(arrival, as_other) => return false,
                true => passed.left(passage.exits[exit].0, as_other),
                false => left,
            };
            left.len() == leaving(passage, exit, fate) && are_due(came_ns, fate, left)
        });
        fits.then_some(is_other.then_some(as_other))
    };
    let errors = |toggled: &[usize], seen_as: Option<Identity>| {
        let (missed, collateral) = toggled.iter().partition(|unit| met[**unit].hit);
        let injections =
            |units: Vec<usize>| units.into_iter().map(|unit| met[unit].injection).collect();
        Errors {
            missed: injections(missed),
            collateral: injections(collateral),
            stray: false,
            seen_as,
        }
    };
    for errors_made in 1..=MAX_ERRORS {
        let mut found = None;
        each_subset(&suspects, errors_made, &mut Vec::new(), &mut |toggled| {
            if found.is_none()
                && let Some(seen_as) = explained(toggled)
            {
                found = Some(errors(toggled, seen_as));
            }
        });
        if let Some(errors) = found {
            return errors;
        }
    }
    Errors {
        stray: true,
        ..Errors::default()
    }
}

/// How many copies leave by an exit after another fate in ingress: what egress does to a copy is left as it was.
fn leaving(passage: &Passage, exit: usize, fate: Fate) -> usize {
    let (copies, before) = (fate.copies as usize, passage.ingress.fate.copies as usize);
    match copies.cmp(&before) {
        std::cmp::Ordering::Equal => passage.leaving(exit),
        std::cmp::Ordering::Less => passage.leaving(exit).min(copies),
        std::cmp::Ordering::Greater => passage.leaving(exit) + (copies - before),
    }
}

fn each_subset(
    from: &[usize],
    size: usize,
    chosen: &mut Vec<usize>,
    visit: &mut impl FnMut(&[usize]),
) {
    if size == 0 {
        visit(chosen);
        return;
    }
    for (position, element) in from.iter().enumerate() {
        chosen.push(*element);
        each_subset(&from[position + 1..], size - 1, chosen, visit);
        chosen.pop();
    }
}

/// All is as it had to be, or egress alone erred; `None` if ingress must have.
fn in_egress(
    engine: &Engine,
    came_ns: u64,
    passage: &Passage,
    left: &[Vec<u64>],
) -> Option<Errors> {
    let fate = passage.ingress.fate;
    let mut errors = Errors::default();
    for (exit, ((_, copies), left)) in passage.exits.iter().zip(left).enumerate() {
        let (expected, seen) = (passage.leaving(exit), left.len());
        if seen > copies.len() || !are_due(came_ns, fate, left) {
            return None;
        }
        let spared = copies.iter().filter(|copy| copy.fate.is_dropped());
        let dropped_by = spared.filter_map(|copy| copy.hits.last().copied());
        errors
            .missed
            .extend(dropped_by.take(seen.saturating_sub(expected)));
        for copy in copies
            .iter()
            .filter(|copy| !copy.fate.is_dropped())
            .take(expected.saturating_sub(seen))
        {
            let mut droppers: Vec<_> = engine
                .egress_acts(copy)
                .filter(|act| act.effect.ends_packet())
                .collect();
            droppers.sort_by_key(|act| !act.met);
            errors.collateral.push(droppers.first()?.injection);
        }
    }
    Some(errors)
}
