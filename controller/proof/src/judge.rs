//! Compares how each frame left a switch with how the model says that it had to leave.
//!
//! A frame is identified by its bytes. Where several frames with the same bytes arrived, the departures are dealt out to them
//! so that as many as possible match the model. The remaining differences are explained with the smallest number of faults that
//! hit or spared a frame wrongly. Lateness explains nothing: a machine may have delayed the frame instead of a fault.

use scenario::model::effect::{Effect, Fate};
use scenario::replay::{Engine, Passage, Verdict};

use super::STAMP_NS;
use super::frame::{Digest, Identity};
use super::trace::{Arrival, Passed};

/// Maximum number of faults that may have wrongly hit or spared one frame. If that explains nothing, the frame is a stray.
const MAX_ERRORS: usize = 2;

/// Time, in nanoseconds, by which a held frame may appear to leave too early, given the error of the recorder's timestamps.
fn tolerance_ns(delay_ns: u64) -> u64 {
    (delay_ns / 10).min(STAMP_NS) + 1
}

/// Earliest time at which copy `copy` (from 0) of a frame with this fate may leave, in nanoseconds since 1970; 0 if not held.
pub fn due_ns(came_ns: u64, fate: Fate, copy: usize) -> u64 {
    match fate.held_ns(copy) {
        0 => 0,
        held_ns => came_ns.saturating_add(held_ns) - tolerance_ns(held_ns),
    }
}

/// Whether no copy left too early, given all departure times (ascending). If egress dropped copies, any may be missing.
pub fn are_due(came_ns: u64, fate: Fate, left: &[u64]) -> bool {
    let is_whole = left.len() == fate.copies as usize;
    let mut left = left.iter().enumerate();
    left.all(|(copy, at)| *at >= due_ns(came_ns, fate, if is_whole { copy } else { 0 }))
}

/// Basis for judging frames at a switch: the switch's model and the captured frames.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// Model of the switch's fault engine.
    pub engine: &'a Engine,
    /// Captured arrivals and departures of frames at the switch.
    pub passed: &'a Passed,
    /// Hash that identifies frames.
    pub digest: Digest,
}

impl Scene<'_> {
    /// Identity (hash) of the frame that leaves if the faults with these effects hit an arrived frame.
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

    /// Identity (hash) with which an arrived frame leaves after this ingress verdict.
    pub fn leaves_as(self, arrival: &Arrival, verdict: &Verdict) -> Identity {
        if verdict.hits.is_empty() || !self.engine.rewrites() {
            return arrival.identity;
        }
        let fired = self.engine.ingress_acts(verdict).filter(|act| act.hit);
        self.departing(arrival, fired.map(|act| (act.effect, act.w)))
    }

    /// Whether the departures with this frame's bytes are certainly its own, because no other frame can be confused with it.
    pub fn is_telling(self, arrival: &Arrival, leaves_as: Identity) -> bool {
        self.passed.is_unique(arrival.identity)
            && (leaves_as == arrival.identity || !self.passed.has_come(leaves_as))
    }

    /// Whether a frame without equal frames left as the model expects: in the right number of copies, none too early.
    pub fn is_as_expected(self, arrival: &Arrival, passage: &Passage, leaves_as: Identity) -> bool {
        let fate = passage.ingress.fate;
        (0..passage.exits.len()).all(|exit| {
            let left = self.passed.left(passage.exits[exit].0, leaves_as);
            left.len() == passage.leaving(exit) && are_due(arrival.at_ns, fate, left)
        })
    }

    /// Whether a frame without equal frames stayed in the switch as long as if a fault that had to spare it had held it.
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

/// Whether a frame stayed, beyond the hold that its faults required, as long as another fault's hold of `hold_ns`.
pub fn is_held_for(verdict: &Verdict, came_ns: u64, left_ns: u64, hold_ns: u64) -> bool {
    let free_ns = came_ns.saturating_add(verdict.fate.held_ns(0));
    let waited_ns = left_ns.saturating_sub(free_ns);
    hold_ns > 0 && waited_ns.saturating_add(tolerance_ns(hold_ns)) >= hold_ns
}

/// Expected departures, at one port, of one of several frames with the same bytes.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Time of the frame's arrival, in nanoseconds since 1970.
    pub came_ns: u64,
    /// Number of copies of the frame that have to leave by the port.
    pub copies: usize,
    /// Fate of the frame in ingress, which determines when its copies are due.
    pub fate: Fate,
}

impl Share {
    fn due_ns(&self, copy: usize) -> u64 {
        due_ns(self.came_ns, self.fate, copy)
    }
}

/// Assigns departure times to equal frames that arrived, so that as many as possible match: the latest departures go to the
/// frames with the latest deadlines. The rest goes to frames that lack a copy, then to frames that should not have left at all.
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
    // No frame leaves before its arrival or its deadline. The order takes both, or a held frame would take a departure that can
    // only belong to a later frame.
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
            // Swap with the next departure, and so on, until the one left over is late enough for some frame.
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

/// The faults that wrongly hit or wrongly spared one frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Errors {
    /// Indices of the injections (faults on flows) that had to hit the frame and did not.
    pub missed: Vec<usize>,
    /// Indices of the injections (faults on flows) that had to spare the frame and hit it.
    pub collateral: Vec<usize>,
    /// Whether no fault of the switch explains how the frame left.
    pub stray: bool,
    /// Identity with which the frame left; `None` if it left with the expected one.
    pub seen_as: Option<Identity>,
}

/// Finds the faults that wrongly hit or spared a frame. `left` has the departure times of its copies, by egress port.
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
    // The frame's identity at departure if these errors explain its departures.
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

/// Number of copies that leave by an egress port if ingress faults decide `fate`, and egress faults as in `passage`.
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

/// Errors of egress faults if they alone explain the departures (no errors if all match); `None` if an ingress fault erred.
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
