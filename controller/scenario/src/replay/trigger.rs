//! The triggers of one switch: whether each is on when a packet comes, and how packets change it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parser_gen::Headers;
use parser_gen::engine::RESETS;
use parser_gen::key::{KeyHash, PacketKey};

use super::judge::CLOCK_NS;
use super::progress::{Followed, Progress, RACE_NS};
use super::slots::CellPlace;
use super::verdict::{Triggered, Verdict};
use super::{Classified, Engine, FlowSet, Passage, State};
use crate::model::Scenario;
use crate::model::trigger::Event;
use crate::plan::{Plan, SwitchPlan, events_by_flow, flows_met};

/// A trigger on one switch, as the model needs it.
#[derive(Debug)]
pub(super) struct SwitchTrigger {
    /// Index of the trigger in the scenario's list of triggers.
    index: usize,
    /// Whether the switch has a counter of how often the trigger came on.
    is_counted: bool,
    /// The key, for a trigger with separate progress per key; `None`: all packets share one progress.
    pub keys: Option<Follows>,
    /// For a flow, by position: the events for which its packets count, as a bitmap: one bit per stage, one for the reset.
    of_flow: BTreeMap<usize, u16>,
    /// For an injection, by index: the events for which the packets that it hits count, as a bitmap like `of_flow`.
    of_hit: BTreeMap<usize, u16>,
    /// Positions of the flows that concern the trigger: flows that it counts, and flows of faults that wait for it.
    meets: Vec<usize>,
    /// Positions of the flows that can change the trigger: flows that it counts, and flows of faults whose hits it counts.
    turning: Vec<usize>,
    /// For each stage, the number of events that complete it, including the events of all stages before it.
    ends: Vec<u32>,
    /// For each stage, the time limit in nanoseconds that starts when the stage is complete; `None`: no limit. It is the limit
    /// of the next stage, or after the last stage the time for which the trigger stays on.
    limits: Vec<Option<u64>>,
    /// Maximum difference between the switch's clock and the frames' timestamps, in nanoseconds.
    pub clock_ns: u64,
}

/// How the model finds the cell of a packet's key in a trigger's table.
#[derive(Debug)]
pub(super) struct Follows {
    pub key: PacketKey,
    bits: u32,
    restarts: bool,
}

/// The salt of a trigger's key hashes: none, because a key counts packets of all of the trigger's flows together.
const NO_SALT: u32 = 0;

/// An open question about a trigger when a frame comes, with one of two answers. The frame's fate shows the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt {
    /// Number of the trigger on the switch, from 0.
    trigger: usize,
    way: Assumption,
    /// Whether the trigger counts separately for each key. Then mostly the frames of one key answer the question.
    pub is_of_key: bool,
}

impl Doubt {
    /// Whether the question is if a time limit has ended. A clock decides this, and the same clock also orders later frames.
    #[must_use]
    pub fn is_of_time(&self) -> bool {
        matches!(self.way, Assumption::Ended(_))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Assumption {
    /// Whether the time limit had ended when the frame came, by the switch's clock.
    Ended(bool),
    /// Whether the switch first processed a frame that came by another port at about the same time and changed the trigger.
    Turned(bool),
}

/// A trigger that lacks at most this many events may already be on for a slightly earlier frame from another port.
const NEARLY: u32 = 4;

impl SwitchTrigger {
    /// The triggers that the plan puts on a switch, in the order of their numbers.
    pub fn for_switch(
        scenario: &Scenario,
        plan: &Plan,
        planned: &SwitchPlan,
    ) -> Vec<SwitchTrigger> {
        let positions = planned.positions();
        let triggers = planned.triggers.iter().map(|named| {
            let trigger = &scenario.triggers[named.index];
            let of_flow: BTreeMap<usize, u16> = events_by_flow(scenario, trigger)
                .into_iter()
                .filter_map(|(flow, events)| Some((*positions.get(flow)?, events)))
                .collect();
            let stages = trigger.stages.iter().map(|stage| &stage.event).zip(0..);
            let events = stages.chain(trigger.reset.iter().map(|reset| (reset, RESETS)));
            let mut of_hit: BTreeMap<usize, u16> = BTreeMap::new();
            for (event, bit) in events {
                let Event::Fault { name, .. } = event else {
                    continue;
                };
                let points = plan.injections.iter().enumerate();
                for (index, _) in points.filter(|(_, point)| point.fault == *name) {
                    *of_hit.entry(index).or_default() |= 1 << bit;
                }
            }
            let position = |flow: &usize| {
                let name = scenario.flows[*flow].name.as_str();
                positions.get(name).copied()
            };
            let met = flows_met(scenario, named.index);
            let mut meets: Vec<usize> = met.iter().filter_map(position).collect();
            meets.sort_unstable();
            let hit = trigger
                .faults()
                .flat_map(|fault| &scenario.faults[fault].flows);
            let hit = hit.filter_map(position);
            let mut turning: Vec<usize> = hit.chain(of_flow.keys().copied()).collect();
            turning.sort_unstable();
            let counts = trigger.stages.iter().scan(0_u32, |sum, stage| {
                *sum = sum.saturating_add(stage.count);
                Some(*sum)
            });
            let next = trigger.stages.iter().skip(1).map(|stage| stage.within_ns);
            SwitchTrigger {
                index: named.index,
                is_counted: named.counter.is_some(),
                keys: trigger.keys.as_ref().map(|keys| Follows {
                    key: keys.key.clone(),
                    bits: keys.bits(),
                    restarts: keys.restarts,
                }),
                of_flow,
                of_hit,
                meets,
                turning,
                ends: counts.collect(),
                limits: next.chain([trigger.on_for_ns]).collect(),
                clock_ns: CLOCK_NS,
            }
        });
        triggers.collect()
    }

    /// Whether the opening of a TCP connection restarts the progress of the connection's key.
    pub fn restarts(&self) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.restarts)
    }

    /// Whether a frame may turn the trigger on or off.
    fn may_be_turned(&self, frame: &Classified) -> bool {
        let mut flows = frame.ingress.iter();
        flows.any(|flow| self.turning.binary_search(flow).is_ok()) || self.is_begun(frame)
    }

    /// Whether packets of any of these flows depend on the trigger or can change it.
    #[inline]
    fn meets_flows(&self, flows: &FlowSet) -> bool {
        flows
            .iter()
            .any(|flow| self.meets.binary_search(flow).is_ok())
    }

    fn is_begun(&self, frame: &Classified) -> bool {
        self.restarts() && frame.begins.is_some()
    }

    /// Whether a frame depends on the trigger or may change its progress.
    #[inline]
    pub fn meets(&self, frame: &Classified) -> bool {
        self.meets_flows(&frame.ingress) || self.is_begun(frame)
    }

    /// The cell of the frame's key; `None` if the trigger has no keys, so that all packets share one progress.
    fn place(&self, number: usize, followed: &Followed, frame: &Classified) -> Option<CellPlace> {
        let keys = self.keys.as_ref()?;
        let hash = frame.trigger_keys.get(number)?;
        Some(followed.keyed.place(hash, NO_SALT, keys.bits))
    }

    /// The trigger's progress that applies to a frame: that of its key, or the shared one.
    fn progress(&self, number: usize, followed: &Followed, frame: &Classified) -> Progress {
        match self.place(number, followed, frame) {
            None => followed.shared,
            Some(CellPlace::Own(at)) => followed.keyed.get(at).cell,
            Some(CellPlace::Free(_) | CellPlace::Nowhere) => Progress::default(),
        }
    }

    fn is_on(&self, progress: &Progress) -> bool {
        Some(&progress.step) == self.ends.last()
    }

    /// Counts a frame's events in a trigger's progress; returns whether the trigger comes on.
    fn count(&self, progress: &mut Progress, events: u16, at_ns: u64) -> bool {
        if events >> RESETS & 1 == 1 {
            progress.start_again();
        }
        let stage = self.ends.iter().position(|end| progress.step < *end);
        let Some(stage) = stage.filter(|stage| events >> stage & 1 == 1) else {
            return false;
        };
        progress.step += 1;
        if progress.step < self.ends[stage] {
            return false;
        }
        let limit_ns = self.limits[stage];
        progress.end_ns = limit_ns.map(|limit_ns| at_ns.saturating_add(limit_ns));
        progress.slack_ns = 0;
        // For a short limit, the margin is a quarter of it: a larger one would leave nothing certain.
        let part_ns = limit_ns.unwrap_or(0) / 4;
        progress.doubt_ns = part_ns.max(RACE_NS).min(self.clock_ns);
        self.is_on(progress)
    }
}

/// Fingerprint (short hash) of a frame's key for a trigger, for lists of assumptions; 0 for a trigger without keys.
fn print(number: usize, frame: &Classified) -> u32 {
    let hash = frame.trigger_keys.get(number);
    hash.filter(|hash| !hash.key.is_empty())
        .map_or(0, |hash| hash.print(NO_SALT))
}

impl Engine {
    /// For each trigger of the switch, the hash of the frame's key; empty if no trigger has keys.
    #[inline]
    pub(super) fn trigger_keys(&self, frame: &[u8], headers: &Headers) -> Arc<[KeyHash]> {
        if !self.triggers.iter().any(|trigger| trigger.keys.is_some()) {
            return Arc::default();
        }
        let hash = |trigger: &SwitchTrigger| {
            let keys = trigger.keys.as_ref();
            keys.map_or_else(KeyHash::default, |keys| {
                keys.key.hash(&self.library, frame, headers)
            })
        };
        self.triggers.iter().map(hash).collect()
    }

    /// For each trigger, whether the switch may process one of the frames `behind` first, which may change the trigger.
    /// `behind` are the frames after this one, in order of timestamps.
    #[must_use]
    #[inline]
    pub fn may_turn<'f>(
        &self,
        frame: &Classified,
        behind: impl Iterator<Item = &'f Classified> + Clone,
    ) -> Arc<[bool]> {
        let near = behind.take_while(|next| next.at_ns <= frame.at_ns + RACE_NS);
        let triggers = self.triggers.iter().enumerate();
        let may = triggers.map(|(number, trigger)| {
            let mut near = near.clone();
            trigger.meets(frame)
                && near.any(|next| {
                    next.port != frame.port
                        && !frame.was_done_before(next)
                        && trigger.may_be_turned(next)
                        && next.trigger_keys.get(number) == frame.trigger_keys.get(number)
                })
        });
        may.collect()
    }

    /// Whether the switch has any trigger.
    #[must_use]
    #[inline]
    pub fn has_triggers(&self) -> bool {
        !self.triggers.is_empty()
    }

    /// For each trigger of the switch, whether it is on when a frame arrives; all are off while no step is in force.
    #[inline]
    pub(super) fn look(&self, state: &mut State, frame: &Classified, epoch: u16) -> Vec<bool> {
        let triggers = self.triggers.iter().zip(&mut state.followed).enumerate();
        let on = triggers.map(|(number, (trigger, followed))| {
            let view = followed.view.take();
            followed.assumed = view;
            followed.forget(frame.at_ns);
            if epoch == 0 || !trigger.meets(frame) {
                return false;
            }
            let place = trigger.place(number, followed, frame);
            if let Some(CellPlace::Own(at)) = place {
                trigger.begin(number, followed, at, frame);
            }
            let progress = match place {
                None => &mut followed.shared,
                Some(CellPlace::Own(at)) if followed.keyed.get(at).cell.is_over(frame.at_ns) => {
                    &mut followed.keyed.get_mut(at).cell
                }
                _ => &mut trigger.progress(number, followed, frame),
            };
            if progress.is_over(frame.at_ns) {
                progress.start_again();
            }
            view.unwrap_or(trigger.is_on(progress))
        });
        on.collect()
    }

    /// Counts a frame's events in all triggers of the switch, and returns which triggers changed.
    #[inline]
    pub(super) fn advance(
        &self,
        state: &mut State,
        frame: &Classified,
        epoch: u16,
        verdict: &Verdict,
    ) -> Triggered {
        let mut triggered = Triggered::default();
        if epoch == 0 {
            return triggered;
        }
        let triggers = self.triggers.iter().zip(&mut state.followed).enumerate();
        for (number, (trigger, followed)) in triggers {
            let flows = frame
                .ingress
                .iter()
                .filter_map(|flow| trigger.of_flow.get(flow));
            let hits = verdict
                .hits
                .iter()
                .filter_map(|hit| trigger.of_hit.get(hit));
            let events = flows.chain(hits).fold(0, |events, more| events | more);
            let at = match (trigger.place(number, followed, frame), events) {
                (None, _) => None,
                (Some(CellPlace::Own(at)), _) => {
                    let hash = &frame.trigger_keys[number];
                    if trigger.meets(frame) && followed.keyed.get(at).is_of_another(hash) {
                        triggered.conflated.push(trigger.index);
                    }
                    Some(at)
                }
                (Some(_), 0) => continue,
                (Some(CellPlace::Free(at)), _) => {
                    let slot = followed
                        .keyed
                        .take(at, &frame.trigger_keys[number], NO_SALT);
                    slot.born = frame.begins.filter(|_| trigger.restarts()).unwrap_or(0);
                    Some(at)
                }
                (Some(CellPlace::Nowhere), _) => {
                    triggered.keyless.push(trigger.index);
                    continue;
                }
            };
            if events == 0 {
                continue;
            }
            let (key, resets) = (print(number, frame), events & 1 << RESETS);
            // A trigger that is on counts no further events.
            let is_assumed_on = followed.assumed == Some(true);
            let events = match is_assumed_on && resets == 0 {
                true => 0,
                false => events,
            };
            if is_assumed_on && resets != 0 {
                followed.undo(key);
            } else if followed.defers(key) {
                followed.late.push((key, events));
                continue;
            } else if events & !resets != 0 && followed.is_spent(key) {
                triggered.came_on.push(trigger.index);
                continue;
            }
            let mut counts = |followed: &mut Followed, events: u16| {
                let progress = followed.at(at);
                let was_on = trigger.is_on(progress);
                if trigger.count(progress, events, frame.at_ns) {
                    triggered.came_on.push(trigger.index);
                }
                let turns = trigger.is_on(progress) != was_on;
                if turns {
                    followed.turns(key, frame);
                }
                turns
            };
            if counts(followed, events)
                && let Some(late) = followed.take_late(key)
            {
                counts(followed, late);
            }
            if let Some(at) = at {
                followed.ends_in_time(at);
            }
        }
        triggered
    }

    /// The indexes of the counters that a frame increments. The counters of injections come first, then those of triggers.
    pub fn counted<'p>(&'p self, passage: &'p Passage) -> impl Iterator<Item = usize> + 'p {
        let hits = passage.verdicts().flat_map(|verdict| &verdict.hits);
        let counted = self.triggers.iter().filter(|trigger| trigger.is_counted);
        let on = passage.triggered.came_on.iter();
        let on = on.filter(move |index| counted.clone().any(|trigger| trigger.index == **index));
        hits.copied().chain(on.map(|index| self.injections + index))
    }

    /// The open questions about triggers when a frame comes, each with both answers. A switch processes a frame a little later
    /// than captures show, so a time limit may end before or after the frame; and frames that come by several ports at about
    /// the same time may be processed in any order.
    #[must_use]
    pub fn doubts(&self, state: &State, frame: &Classified) -> Vec<[Doubt; 2]> {
        let mut doubts = Vec::new();
        for (number, (trigger, followed)) in self.triggers.iter().zip(&state.followed).enumerate() {
            if !trigger.meets(frame) {
                continue;
            }
            let progress = trigger.progress(number, followed, frame);
            let both = |way: fn(bool) -> Assumption| {
                [true, false].map(|is_so| Doubt {
                    trigger: number,
                    way: way(is_so),
                    is_of_key: trigger.keys.is_some(),
                })
            };
            let near = |end_ns: u64| frame.at_ns.abs_diff(end_ns) <= progress.doubt_ns;
            if progress.end_ns.is_some_and(near) {
                doubts.push(both(Assumption::Ended));
            }
            let was_turned = followed.was_turned(print(number, frame), frame);
            let last = trigger.ends.last().copied().unwrap_or(0);
            let is_near = progress.step.saturating_add(NEARLY) >= last;
            let may_turn = frame.may_turn.get(number).copied().unwrap_or(false);
            if was_turned || (may_turn && is_near) {
                doubts.push(both(Assumption::Turned));
            }
        }
        doubts
    }

    /// Assumes one answer to an open question about a trigger for the next frame.
    pub fn settle(&self, state: &mut State, doubt: Doubt, frame: &Classified) {
        let trigger = self.triggers.get(doubt.trigger);
        let followed = state.followed.get_mut(doubt.trigger);
        let Some((trigger, followed)) = trigger.zip(followed) else {
            return;
        };
        let place = trigger.place(doubt.trigger, followed, frame);
        let mut known = trigger.progress(doubt.trigger, followed, frame);
        let (progress, own) = match place {
            None => (&mut followed.shared, None),
            Some(CellPlace::Own(at)) => (&mut followed.keyed.get_mut(at).cell, Some(at)),
            Some(CellPlace::Free(_) | CellPlace::Nowhere) => (&mut known, None),
        };
        match doubt.way {
            Assumption::Ended(true) => progress.start_again(),
            Assumption::Ended(false) => {
                if let Some(end_ns) = progress.end_ns {
                    progress.slack_ns = progress.slack_ns.max(frame.at_ns.saturating_sub(end_ns));
                }
                if let Some(at) = own {
                    followed.ends_in_time(at);
                }
            }
            Assumption::Turned(false) => {}
            Assumption::Turned(true) => {
                let is_on = trigger.is_on(progress) && !progress.is_over(frame.at_ns);
                let key = print(doubt.trigger, frame);
                followed.view = Some(!is_on);
                let was_turned = followed.was_turned(key, frame);
                let is_owed = followed.owed.iter().any(|(of, _)| *of == key);
                // The later change is pending, unless the trigger is known to have changed.
                if !was_turned && !is_owed {
                    followed
                        .owed
                        .push((key, frame.at_ns.saturating_add(RACE_NS)));
                }
            }
        }
    }

    /// Whether an assumption was wrong: a change that the trigger was assumed to make has not happened in time.
    #[must_use]
    pub fn is_refuted(&self, state: &State, frame: &Classified) -> bool {
        let followed = state.followed.iter();
        let mut owed = followed.flat_map(|followed| followed.owed.iter().chain(&followed.spent));
        owed.any(|(_, owed_ns)| frame.at_ns > *owed_ns)
    }
}

impl SwitchTrigger {
    /// Restarts the progress of a key whose TCP connection is opened again; a retransmission of the SYN has no effect.
    fn begin(&self, number: usize, followed: &mut Followed, at: u32, frame: &Classified) {
        let seq = frame.begins.filter(|_| self.restarts());
        let Some(seq) = seq.filter(|seq| *seq != followed.keyed.get(at).born) else {
            return;
        };
        let slot = followed.keyed.get_mut(at);
        slot.born = seq;
        let was_on = self.is_on(&slot.cell);
        slot.cell.start_again();
        if was_on {
            followed.turns(print(number, frame), frame);
        }
    }
}
