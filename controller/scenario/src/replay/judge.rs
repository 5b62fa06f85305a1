//! Computes the effect of the fault units in one pipeline, ingress or egress, on a frame.

use parser_gen::psn::DataPacket;

use super::unit::{Entry, FaultUnit};
use super::verdict::{Act, Verdict};
use super::{Classified, Engine, FlowSet, State};
use crate::model::effect::{Fate, OVER};
use crate::model::selection::{Cell, Turn};

/// Maximum time, in nanoseconds, by which a switch may process a frame later than captures show. If a queue gets full, or a
/// trigger's time ends, within this time, the frame's observed fate shows what the switch saw.
pub(super) const CLOCK_NS: u64 = 5_000_000;
/// As [`CLOCK_NS`], if the switch's own clock gives the captures' timestamps: the time between two readings of that clock.
pub(super) const SHARED_CLOCK_NS: u64 = 20_000;

/// A fault unit that fired, the index of its injection, and the value that its effect uses, such as a random word.
type Fired<'e> = (&'e FaultUnit, usize, u32);

impl Engine {
    #[inline]
    pub(super) fn judge(
        &self,
        units: &[FaultUnit],
        state: &mut State,
        (flows, on): (&FlowSet, &[bool]),
        epoch: u16,
        frame: &Classified,
    ) -> Verdict {
        let mut verdict = Verdict::untouched();
        let mut fired: Vec<Fired<'_>> = Vec::new();
        let mut waits_ns: u64 = 0;
        let is_guarded = self.guards(flows);
        for (number, unit) in units.iter().enumerate() {
            let waits = |when: usize| !on.get(when).copied().unwrap_or(false);
            let is_none_of_its = unit.places() && frame.data.is_none();
            let entry = unit
                .entry(flows, epoch)
                .filter(|_| !is_guarded && !is_none_of_its);
            let Some(entry) = entry.filter(|_| !unit.when.is_some_and(waits)) else {
                continue;
            };
            verdict.met.push(entry.injection);
            let Some((fires, w)) = self.decide(&mut verdict, state, (number, unit), entry, frame)
            else {
                verdict.drawn.push(0);
                verdict.keyless.push(entry.injection);
                continue;
            };
            let mut w = w;
            if fires {
                verdict.hits.push(entry.injection);
                if unit.effect.pace().is_some() {
                    let wait_ns = take_turn(unit, &mut state.due_ns[entry.cell], frame);
                    w = wait_ns.map_or(OVER, |_| w);
                    waits_ns = waits_ns.saturating_add(wait_ns.unwrap_or(0));
                }
                fired.push((unit, entry.injection, w));
                if unit.effect.keeps_order() {
                    let due_ns = frame.at_ns.saturating_add(unit.effect.hold_ns(w));
                    let last_ns = &mut state.due_ns[entry.cell];
                    waits_ns = waits_ns.saturating_add(last_ns.saturating_sub(due_ns));
                    *last_ns = due_ns.max(*last_ns);
                }
            }
            verdict.drawn.push(w);
        }
        verdict.fate = Fate::after(fired.iter().map(|(unit, _, w)| (&unit.effect, *w)));
        if verdict.fate.is_dropped() {
            let hides_itself = |unit: &FaultUnit, w: u32| unit.effect.pace().is_some() && w == OVER;
            let hidden = fired
                .iter()
                .filter(|(unit, _, w)| unit.effect.is_overridden() && !hides_itself(unit, *w));
            verdict.overridden = hidden.map(|(_, injection, _)| *injection).collect();
        } else {
            verdict.fate.delay_ns = verdict.fate.delay_ns.saturating_add(waits_ns);
        }
        verdict
    }

    /// Whether a unit fires on a frame, and the value for its effect (fired or not); `None` if the frame's key has no cell.
    #[inline]
    fn decide(
        &self,
        verdict: &mut Verdict,
        state: &mut State,
        (number, unit): (usize, &FaultUnit),
        entry: &Entry,
        frame: &Classified,
    ) -> Option<(bool, u32)> {
        let hash = frame.keys.get(number);
        let data = frame.data.filter(|_| unit.places());
        let mut key = entry.key;
        let cell = match &unit.keys {
            None => &mut state.cells[entry.cell],
            Some(keys) => {
                let hash = hash?;
                let salt = entry.key ^ data.map_or(0, DataPacket::salt);
                let slot = state.slots[keys.slots].find(hash, salt, keys.bits)?;
                if slot.is_of_another(hash) {
                    verdict.conflated.push(entry.injection);
                }
                if let Some(seq) = frame
                    .begins
                    .filter(|seq| keys.restarts && *seq != slot.born)
                {
                    slot.born = seq;
                    slot.cell = Cell::default();
                }
                key = hash.print(salt);
                &mut slot.cell
            }
        };
        let draws_words = unit.effect.draws();
        let w = match (draws_words, unit.effect.distance()) {
            (true, _) => self.draws.words(key, cell.turn).w,
            (false, Some(_)) => {
                let passed_ns = frame.passed_ns.get(number).copied().unwrap_or(u64::MAX);
                u32::try_from(passed_ns.saturating_sub(frame.at_ns)).unwrap_or(u32::MAX)
            }
            (false, None) => 0,
        };
        let place = data.map(|data| cell.connection.take(data.psn, frame.told));
        verdict
            .places
            .extend(place.map(|place| (entry.injection, place)));
        let turn = Turn {
            key,
            hash: hash.map_or(0, |hash| hash.hash),
            place,
            draws_words,
        };
        let fires = unit.selection.take(&self.draws, turn, cell).is_some();
        Some((fires, w))
    }
}

/// Puts a packet into the unit's queue and returns its waiting time in nanoseconds; `None` if the queue is full.
#[inline]
fn take_turn(unit: &FaultUnit, free_ns: &mut u64, frame: &Classified) -> Option<u64> {
    let pace = unit.effect.pace()?;
    let wait_ns = free_ns.saturating_sub(frame.at_ns);
    let wait_ns = wait_ns.saturating_add(pace.cost_ns(frame.bytes));
    let is_over = match frame.seen_to_leave {
        Some(left) if wait_ns.abs_diff(pace.most_ns) <= CLOCK_NS => !left,
        _ => wait_ns > pace.most_ns,
    };
    if is_over {
        return None;
    }
    *free_ns = frame.at_ns.saturating_add(wait_ns);
    Some(if pace.holds { wait_ns } else { 0 })
}

#[inline]
pub(super) fn acts<'e>(
    units: &'e [FaultUnit],
    verdict: &'e Verdict,
) -> impl Iterator<Item = Act<'e>> {
    units.iter().filter_map(|unit| {
        let (first, last) = (unit.entries.first()?, unit.entries.last()?);
        // A unit's injections are consecutive in the plan.
        let own = first.injection..=last.injection;
        let mut met = verdict
            .met
            .iter()
            .copied()
            .filter(|injection| own.contains(injection));
        let met = met.find(|injection| {
            let entries = &unit.entries;
            entries
                .binary_search_by_key(injection, |entry| entry.injection)
                .is_ok()
        });
        let injection = met.unwrap_or(first.injection);
        Some(Act {
            injection,
            effect: &unit.effect,
            met: met.is_some(),
            hit: verdict.hits.contains(&injection),
            w: verdict.drawn_by(injection),
        })
    })
}
