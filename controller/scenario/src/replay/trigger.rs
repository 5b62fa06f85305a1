//! Triggers of one switch: what a packet meets, and what it brings about for those behind it.

use std::collections::BTreeMap;

use parser_gen::engine::RESETS;

use super::judge::CLOCK_NS;
use super::verdict::Verdict;
use super::{Classified, Engine, FlowSet, State};
use crate::model::Scenario;
use crate::plan::{Plan, SwitchPlan, events_by_flow};
use crate::trigger::Event;

/// A trigger of the switch.
#[derive(Debug)]
pub(super) struct Trigger {
    /// By position of a flow, the events that its packets are: a bit for each stage, and one that resets.
    of_flow: BTreeMap<usize, u16>,
    /// The same by injection, of packets that it hits.
    of_hit: BTreeMap<usize, u16>,
    /// Positions of the flows whose packets meet the trigger: those that it counts, and those of faults that wait for it.
    meets: Vec<usize>,
    /// Those of them whose packets it counts, or that faults hit which it counts.
    turning: Vec<usize>,
    /// By stage, how many events complete it and those before it.
    ends: Vec<u32>,
    /// By stage, for how long the next one may then take, and of the last one, for how long the trigger is on.
    limits: Vec<Option<u64>>,
}

/// How far a trigger is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Events that it has counted.
    step: u32,
    /// When that is over, if time ends it.
    end_ns: Option<u64>,
    /// How near to it it is not known whether it is over.
    doubt_ns: u64,
    /// By how much the switch is assumed to be late with that.
    slack_ns: u64,
    /// When it last came on or went off, and by which port the frame came that did it.
    turned: Option<(u64, u32)>,
    /// How the next frame is assumed to meet it, whatever it is.
    view: Option<bool>,
    /// Until when it has to turn, since a frame is assumed to have met it turned.
    owed_ns: Option<u64>,
}

/// What is not known of a trigger when a frame comes: what was seen to become of the frame decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt {
    /// Which trigger, by its number on the switch.
    trigger: usize,
    way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the switch's clock its time was over before the frame, or not.
    Ended(bool),
    /// A frame that came by another port at about the same time has turned it before, or not.
    Turned(bool),
}

/// Frames that come by different ports within this time may be taken in either order: a turn of the packet loop takes what waits
/// port by port.
const RACE_NS: u64 = 200_000;
/// So few events before it comes on, a trigger may be on for a frame that comes just before.
const NEARLY: u32 = 4;

impl Trigger {
    /// The triggers of a switch, by number.
    pub fn of_switch(scenario: &Scenario, plan: &Plan, planned: &SwitchPlan) -> Vec<Trigger> {
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
            let waiting = scenario.faults.iter();
            let waiting = waiting.filter(|fault| fault.when == Some(named.index));
            let counted = trigger.faults().map(|fault| &scenario.faults[fault]);
            let flows = waiting.chain(counted).flat_map(|fault| &fault.flows);
            let flows = flows.filter_map(|flow| {
                let name = scenario.flows[*flow].name.as_str();
                positions.get(name).copied()
            });
            let mut meets: Vec<usize> = flows.chain(of_flow.keys().copied()).collect();
            meets.sort_unstable();
            meets.dedup();
            let hit = trigger
                .faults()
                .flat_map(|fault| &scenario.faults[fault].flows);
            let hit = hit.filter_map(|flow| {
                let name = scenario.flows[*flow].name.as_str();
                positions.get(name).copied()
            });
            let mut turning: Vec<usize> = hit.chain(of_flow.keys().copied()).collect();
            turning.sort_unstable();
            let counts = trigger.stages.iter().scan(0_u32, |sum, stage| {
                *sum = sum.saturating_add(stage.count);
                Some(*sum)
            });
            let next = trigger.stages.iter().skip(1).map(|stage| stage.within_ns);
            Trigger {
                of_flow,
                of_hit,
                meets,
                turning,
                ends: counts.collect(),
                limits: next.chain([trigger.on_for_ns]).collect(),
            }
        });
        triggers.collect()
    }

    /// Whether a frame of these flows may turn it.
    fn may_be_turned(&self, flows: &FlowSet) -> bool {
        flows
            .iter()
            .any(|flow| self.turning.binary_search(flow).is_ok())
    }

    /// Whether it makes a difference where the trigger stands when packets of these flows come.
    pub fn meets(&self, flows: &FlowSet) -> bool {
        flows
            .iter()
            .any(|flow| self.meets.binary_search(flow).is_ok())
    }

    fn is_on(&self, progress: &Progress) -> bool {
        Some(&progress.step) == self.ends.last()
    }

    fn advance(&self, progress: &mut Progress, events: u16, frame: &Classified) {
        let was_on = self.is_on(progress);
        if events >> RESETS & 1 == 1 {
            progress.start_again();
        }
        let stage = self.ends.iter().position(|end| progress.step < *end);
        if let Some(stage) = stage.filter(|stage| events >> stage & 1 == 1) {
            progress.step += 1;
            if progress.step == self.ends[stage] {
                let limit_ns = self.limits[stage];
                progress.end_ns = limit_ns.map(|limit_ns| frame.at_ns.saturating_add(limit_ns));
                progress.slack_ns = 0;
                // Of a short time a machine that stood still leaves nothing to tell.
                let part_ns = limit_ns.unwrap_or(0) / 4;
                progress.doubt_ns = part_ns.clamp(RACE_NS, CLOCK_NS);
            }
        }
        if self.is_on(progress) != was_on {
            progress.turned = Some((frame.at_ns, frame.port));
            progress.owed_ns = None;
        }
    }
}

impl Progress {
    fn start_again(&mut self) {
        self.step = 0;
        self.end_ns = None;
        self.doubt_ns = 0;
        self.slack_ns = 0;
    }

    fn is_over(&self, now_ns: u64) -> bool {
        let end_ns = self
            .end_ns
            .map(|end_ns| end_ns.saturating_add(self.slack_ns));
        end_ns.is_some_and(|end_ns| now_ns > end_ns)
    }
}

impl Engine {
    /// Says of frames, which stand in the order of their stamps, where others may be taken first that turn a trigger.
    pub fn tell_races(&self, frames: &mut [Classified]) {
        let mut may_turn = vec![vec![false; self.triggers.len()]; frames.len()];
        for (number, trigger) in self.triggers.iter().enumerate() {
            for (index, frame) in frames.iter().enumerate() {
                if !trigger.meets(&frame.ingress) {
                    continue;
                }
                let next = frames[index + 1..].iter();
                let mut near = next.take_while(|next| next.at_ns <= frame.at_ns + RACE_NS);
                may_turn[index][number] = near
                    .any(|next| next.port != frame.port && trigger.may_be_turned(&next.ingress));
            }
        }
        for (frame, may_turn) in frames.iter_mut().zip(may_turn) {
            frame.may_turn = may_turn.into();
        }
    }

    /// Which triggers are on when a frame comes; none while no step is in force.
    pub(super) fn look(&self, state: &mut State, frame: &Classified, epoch: u16) -> Vec<bool> {
        let triggers = self.triggers.iter().zip(&mut state.progress);
        let on = triggers.map(|(trigger, progress)| {
            let view = progress.view.take();
            // States that differ in nothing else become one.
            let is_old = |(at_ns, _): &mut (u64, u32)| frame.at_ns.saturating_sub(*at_ns) > RACE_NS;
            let _ = progress.turned.take_if(is_old);
            if epoch == 0 || !trigger.meets(&frame.ingress) {
                return false;
            }
            if progress.is_over(frame.at_ns) {
                progress.start_again();
            }
            view.unwrap_or(trigger.is_on(progress))
        });
        on.collect()
    }

    /// What a frame brings about.
    pub(super) fn advance(
        &self,
        state: &mut State,
        frame: &Classified,
        epoch: u16,
        verdict: &Verdict,
    ) {
        if epoch == 0 {
            return;
        }
        for (trigger, progress) in self.triggers.iter().zip(&mut state.progress) {
            let flows = frame
                .ingress
                .iter()
                .filter_map(|flow| trigger.of_flow.get(flow));
            let hits = verdict
                .hits
                .iter()
                .filter_map(|hit| trigger.of_hit.get(hit));
            let events = flows.chain(hits).fold(0, |events, more| events | more);
            trigger.advance(progress, events, frame);
        }
    }

    /// What is not known of triggers when a frame comes, by trigger the ways in which it can be. A switch takes a frame a little
    /// later than it was seen to come, so time may have ended a trigger before or behind it; and of frames that come by several
    /// ports at about the same time it may take any first.
    #[must_use]
    pub fn doubts(&self, state: &State, frame: &Classified) -> Vec<[Doubt; 2]> {
        let mut doubts = Vec::new();
        for (number, (trigger, progress)) in self.triggers.iter().zip(&state.progress).enumerate() {
            if !trigger.meets(&frame.ingress) {
                continue;
            }
            let both = |way: fn(bool) -> Way| {
                [true, false].map(|is_so| Doubt {
                    trigger: number,
                    way: way(is_so),
                })
            };
            let near = |end_ns: u64| frame.at_ns.abs_diff(end_ns) <= progress.doubt_ns;
            if progress.end_ns.is_some_and(near) {
                doubts.push(both(Way::Ended));
            }
            let was_turned = progress.turned.is_some_and(|(at_ns, port)| {
                port != frame.port && frame.at_ns.saturating_sub(at_ns) <= RACE_NS
            });
            let last = trigger.ends.last().copied().unwrap_or(0);
            let is_near = progress.step.saturating_add(NEARLY) >= last;
            let may_turn = frame.may_turn.get(number).copied().unwrap_or(false);
            if was_turned || (may_turn && is_near) {
                doubts.push(both(Way::Turned));
            }
        }
        doubts
    }

    /// Settles a doubt about the frame that comes next.
    pub fn settle(&self, state: &mut State, doubt: Doubt, frame: &Classified) {
        let trigger = self.triggers.get(doubt.trigger);
        let Some((trigger, progress)) = trigger.zip(state.progress.get_mut(doubt.trigger)) else {
            return;
        };
        match doubt.way {
            Way::Ended(true) => progress.start_again(),
            Way::Ended(false) => {
                if let Some(end_ns) = progress.end_ns {
                    progress.slack_ns = progress.slack_ns.max(frame.at_ns.saturating_sub(end_ns));
                }
            }
            Way::Turned(false) => {}
            Way::Turned(true) => {
                let is_on = trigger.is_on(progress) && !progress.is_over(frame.at_ns);
                progress.view = Some(!is_on);
                let was_turned = progress.turned.is_some_and(|(at_ns, port)| {
                    port != frame.port && frame.at_ns.saturating_sub(at_ns) <= RACE_NS
                });
                // That it turns later is owed, but where it is known to have turned.
                if !was_turned && progress.owed_ns.is_none() {
                    progress.owed_ns = Some(frame.at_ns.saturating_add(RACE_NS));
                }
            }
        }
    }

    /// Whether a trigger was assumed to be about to turn, and did not.
    #[must_use]
    pub fn is_refuted(&self, state: &State, frame: &Classified) -> bool {
        let mut progress = state.progress.iter();
        progress.any(|progress| {
            progress
                .owed_ns
                .is_some_and(|owed_ns| frame.at_ns > owed_ns)
        })
    }
}
