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
    /// By how much the switch is assumed to be late with that.
    slack_ns: u64,
}

/// A trigger that may have ended, by the switch's clock, before a frame or behind it: what was seen decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt {
    /// Which trigger, by its number on the switch.
    trigger: usize,
    /// Whether it ended before.
    pub ended: bool,
}

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
            let counts = trigger.stages.iter().scan(0_u32, |sum, stage| {
                *sum = sum.saturating_add(stage.count);
                Some(*sum)
            });
            let next = trigger.stages.iter().skip(1).map(|stage| stage.within_ns);
            Trigger {
                of_flow,
                of_hit,
                meets,
                ends: counts.collect(),
                limits: next.chain([trigger.on_for_ns]).collect(),
            }
        });
        triggers.collect()
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

    fn advance(&self, progress: &mut Progress, events: u16, now_ns: u64) {
        if events >> RESETS & 1 == 1 {
            *progress = Progress::default();
        }
        let Some(stage) = self.ends.iter().position(|end| progress.step < *end) else {
            return;
        };
        if events >> stage & 1 == 0 {
            return;
        }
        progress.step += 1;
        if progress.step == self.ends[stage] {
            *progress = Progress {
                step: progress.step,
                end_ns: self.limits[stage].map(|limit_ns| now_ns.saturating_add(limit_ns)),
                slack_ns: 0,
            };
        }
    }
}

impl Progress {
    fn is_over(&self, now_ns: u64) -> bool {
        let end_ns = self
            .end_ns
            .map(|end_ns| end_ns.saturating_add(self.slack_ns));
        end_ns.is_some_and(|end_ns| now_ns > end_ns)
    }
}

impl Engine {
    /// Which triggers are on when a frame comes; none while no step is in force.
    pub(super) fn look(&self, state: &mut State, frame: &Classified, epoch: u16) -> Vec<bool> {
        let triggers = self.triggers.iter().zip(&mut state.progress);
        let on = triggers.map(|(trigger, progress)| {
            if epoch == 0 || !trigger.meets(&frame.ingress) {
                return false;
            }
            if progress.is_over(frame.at_ns) {
                *progress = Progress::default();
            }
            trigger.is_on(progress)
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
            trigger.advance(progress, events, frame.at_ns);
        }
    }

    /// The triggers of which it cannot be known whether time ended them before a frame or behind it: a switch takes a frame a
    /// little later than it was seen to come.
    #[must_use]
    pub fn doubts(&self, state: &State, frame: &Classified) -> Vec<usize> {
        let triggers = self.triggers.iter().zip(&state.progress).enumerate();
        let doubtful = triggers.filter(|(_, (trigger, progress))| {
            let near = |end_ns: u64| frame.at_ns.abs_diff(end_ns) <= CLOCK_NS;
            progress.end_ns.is_some_and(near) && trigger.meets(&frame.ingress)
        });
        doubtful.map(|(number, _)| number).collect()
    }

    /// The two ways in which a doubt can be settled.
    #[must_use]
    pub fn ways(trigger: usize) -> [Doubt; 2] {
        [true, false].map(|ended| Doubt { trigger, ended })
    }

    /// Settles a doubt about the frame that comes next.
    pub fn settle(&self, state: &mut State, doubt: Doubt, frame: &Classified) {
        let Some(progress) = state.progress.get_mut(doubt.trigger) else {
            return;
        };
        if doubt.ended {
            *progress = Progress::default();
        } else if let Some(end_ns) = progress.end_ns {
            progress.slack_ns = progress.slack_ns.max(frame.at_ns.saturating_sub(end_ns));
        }
    }
}
