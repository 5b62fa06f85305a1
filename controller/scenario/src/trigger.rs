//! Triggers, which faults wait for (`when`): events in the network, counted in stages by a register of a switch.
//!
//! A trigger is on from the packet after the one that completes its last stage. Its state is one number per switch,
//! shared by all packets, or one per key. docs/scenarios.md describes it for users, docs/fault-engine.md describes the
//! tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::diagnostic::{Code, Sink, Span, Spanned, few_names};
use crate::model::{Direction, Fault, Flow, Keys, Scenario, Shared};
use crate::schema::{Declared, RawEvent, RawFault, RawTrigger};
use crate::selection::Selection;
use crate::units::show_duration;

/// A declared trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The trigger's name.
    pub name: String,
    /// The stages, in order; never empty.
    pub stages: Vec<Stage>,
    /// Time in nanoseconds for which the trigger is on before it restarts; `None`: until it is reset.
    pub on_for_ns: Option<u64>,
    /// The event that resets the trigger.
    pub reset: Option<Event>,
    /// The key, for separate progress per key; `None`: all packets share one progress.
    pub keys: Option<Keys>,
    /// Position of the declaration in the file.
    pub span: Span,
}

/// A stage of a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The counted event.
    pub event: Event,
    /// Number of events that complete the stage.
    pub count: u32,
    /// Time limit in nanoseconds, from the end of the previous stage; when it expires, the trigger restarts.
    pub within_ns: Option<u64>,
}

/// An event that a trigger can count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A packet of a flow arrives.
    Flow {
        /// Declared name of the flow.
        name: String,
        /// Indexes of the flows that the name expands to.
        flows: Vec<usize>,
        /// Position of the name in the file.
        span: Span,
    },
    /// A fault hits a packet.
    Fault {
        /// The fault's name.
        name: String,
        /// Index of the fault.
        fault: usize,
        /// Position of the name in the file.
        span: Span,
    },
}

impl Event {
    fn is_same(&self, other: &Event) -> bool {
        match (self, other) {
            (Event::Flow { flows, .. }, Event::Flow { flows: others, .. }) => flows == others,
            (Event::Fault { fault, .. }, Event::Fault { fault: other, .. }) => fault == other,
            _ => false,
        }
    }

    /// Position of the event's name in the file.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Event::Flow { span, .. } | Event::Fault { span, .. } => *span,
        }
    }
}

impl Trigger {
    /// The events of all stages, and the reset event.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        let stages = self.stages.iter().map(|stage| &stage.event);
        stages.chain(&self.reset)
    }

    /// The flows whose packets the trigger counts.
    pub fn flows(&self) -> impl Iterator<Item = usize> + '_ {
        self.events()
            .flat_map(|event| match event {
                Event::Flow { flows, .. } => flows.as_slice(),
                Event::Fault { .. } => &[],
            })
            .copied()
    }

    /// The faults whose hits the trigger counts.
    pub fn faults(&self) -> impl Iterator<Item = usize> + '_ {
        self.events().filter_map(|event| match event {
            Event::Fault { fault, .. } => Some(*fault),
            Event::Flow { .. } => None,
        })
    }

    /// Whether the trigger has a time limit.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.on_for_ns.is_some() || self.stages.iter().any(|stage| stage.within_ns.is_some())
    }
}

impl fmt::Display for Trigger {
    /// `after 1 hit of drop-gets, for 50ms, reset by closing`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, stage) in self.stages.iter().enumerate() {
            let plural = if stage.count == 1 { "" } else { "s" };
            f.write_str(if number == 0 { "after " } else { ", then " })?;
            match &stage.event {
                Event::Flow { name, .. } => write!(f, "{} packet{plural} of {name}", stage.count)?,
                Event::Fault { name, .. } => write!(f, "{} hit{plural} of {name}", stage.count)?,
            }
            if let Some(within_ns) = stage.within_ns {
                write!(f, " within {}", show_duration(within_ns))?;
            }
        }
        if let Some(on_for_ns) = self.on_for_ns {
            write!(f, ", for {}", show_duration(on_for_ns))?;
        }
        match &self.reset {
            Some(Event::Flow { name, .. }) => write!(f, ", reset by {name}")?,
            Some(Event::Fault { name, .. }) => write!(f, ", reset by a hit of {name}")?,
            None => {}
        }
        match &self.keys {
            Some(keys) => write!(f, ", per {}", keys.one),
            None => Ok(()),
        }
    }
}

/// Resolves the names in triggers.
pub(crate) fn resolve(
    sink: &mut Sink<'_>,
    triggers: &[RawTrigger],
    faults: &[RawFault],
    declared: &Declared,
    by_name: &BTreeMap<String, Vec<usize>>,
) -> Vec<Trigger> {
    let mut event = |raw: &RawEvent| -> Option<Event> {
        match raw {
            RawEvent::Flow(name) => {
                let found = by_name.get(&name.value).cloned();
                if found.is_none() && !declared.flows.contains(&name.value) {
                    let flows = declared.flows.iter().map(String::as_str);
                    crate::resolve::unknown(sink, "flow", name, flows);
                }
                Some(Event::Flow {
                    name: name.value.clone(),
                    flows: found?,
                    span: name.span,
                })
            }
            RawEvent::Fault(name) => {
                let fault = faults.iter().position(|fault| fault.id.value == name.value);
                if fault.is_none() && !declared.faults.contains(&name.value) {
                    let faults = declared.faults.iter().map(String::as_str);
                    crate::resolve::unknown(sink, "fault", name, faults);
                }
                Some(Event::Fault {
                    name: name.value.clone(),
                    fault: fault?,
                    span: name.span,
                })
            }
        }
    };
    let triggers = triggers.iter().filter_map(|raw| {
        let stages: Vec<Stage> = raw
            .stages
            .iter()
            .filter_map(|stage| {
                Some(Stage {
                    event: event(&stage.event)?,
                    count: stage.count,
                    within_ns: stage.within_ns,
                })
            })
            .collect();
        let reset = match &raw.reset {
            Some(reset) => Some(event(reset)?),
            None => None,
        };
        (stages.len() == raw.stages.len()).then(|| Trigger {
            name: raw.name.value.clone(),
            stages,
            on_for_ns: raw.on_for_ns,
            reset,
            keys: raw.keys.clone(),
            span: raw.name.span,
        })
    });
    triggers.collect()
}

/// Resolves the trigger that a fault waits for.
pub(crate) fn awaited(
    sink: &mut Sink<'_>,
    when: &Spanned<String>,
    declared: &[RawTrigger],
    triggers: &[Trigger],
) -> Option<usize> {
    let found = triggers.iter().position(|other| other.name == when.value);
    let is_declared = declared.iter().any(|other| other.name.value == when.value);
    if !is_declared {
        let names = declared.iter().map(|other| other.name.value.as_str());
        crate::resolve::unknown(sink, "trigger", when, names);
    }
    found
}

/// Refuses triggers that no fault waits for and no expectation names.
pub(crate) fn unused(sink: &mut Sink<'_>, scenario: &Scenario) {
    for (number, trigger) in scenario.triggers.iter().enumerate() {
        let mut faults = scenario.faults.iter();
        if faults.any(|fault| fault.when == Some(number)) || scenario.speaks_of(trigger) {
            continue;
        }
        let message = format!("no fault waits for trigger `{}`", trigger.name);
        sink.error(Code::Contradiction, trigger.span, message)
            .hint(format!(
                "write `when: {0}` in a fault, or `on: trigger.{0}.on >= 1` in a step; or leave the trigger out",
                trigger.name
            ));
    }
}

/// Refuses triggers that can never be on, and faults that no trigger can start.
pub(crate) fn check(sink: &mut Sink<'_>, triggers: &[Trigger], faults: &[Fault], flows: &[Flow]) {
    for (number, trigger) in triggers.iter().enumerate() {
        keys_meet(sink, (number, trigger), faults, flows);
        // A packet that resets the trigger is counted in the first stage only.
        let mut later = trigger.stages.iter().skip(1).map(|stage| &stage.event);
        if let Some(reset) = trigger.reset.as_ref()
            && later.any(|event| event.is_same(reset))
        {
            let message = format!(
                "trigger `{}` starts again with what it waits for, and is never on",
                trigger.name
            );
            sink.error(Code::Contradiction, reset.span(), message);
        }
        for event in trigger.events() {
            counts_what_never_fires(sink, trigger, event, faults);
        }
    }
    for fault in faults {
        fires_in_time(sink, fault, triggers, faults);
        fits(sink, fault);
    }
    cycle(sink, triggers, faults);
}

/// Checks flows of triggers with keys that fix sender or receiver: flows without a common one can never share a key.
fn keys_meet(
    sink: &mut Sink<'_>,
    (number, trigger): (usize, &Trigger),
    faults: &[Fault],
    flows: &[Flow],
) {
    let Some(keys) = &trigger.keys else { return };
    let ends = |indexes: &[usize]| -> BTreeSet<(String, Option<String>)> {
        let flows = indexes.iter().filter_map(|index| flows.get(*index));
        let paths = flows.flat_map(|flow| &flow.paths);
        paths
            .filter_map(|path| match keys.shared {
                Shared::Direction => Some((path.from.clone(), Some(path.to.clone()))),
                Shared::Sender => Some((path.from.clone(), None)),
                Shared::Nothing => None,
            })
            .collect()
    };
    let of_event = |event: &Event| match event {
        Event::Flow { flows, .. } => ends(flows),
        Event::Fault { fault, .. } => {
            ends(faults.get(*fault).map_or(&[][..], |fault| &fault.flows))
        }
    };
    if keys.shared == Shared::Nothing {
        return;
    }
    let Some(first) = trigger.stages.first() else {
        return;
    };
    // A refused flow has no endpoints and has been reported.
    let apart = |one: &BTreeSet<_>, other: &BTreeSet<_>| {
        !one.is_empty() && !other.is_empty() && one.is_disjoint(other)
    };
    let begin = of_event(&first.event);
    let stages = trigger.stages.iter().skip(1).map(|stage| &stage.event);
    let mut never = stages.chain(&trigger.reset);
    let what = match keys.shared {
        Shared::Direction => "go another way",
        _ => "come from others",
    };
    let hint = match keys.shared {
        Shared::Direction => {
            "`per: {connection: both}` takes both directions of a connection for one"
        }
        _ => {
            "name flows of the same senders; `per: {connection: both}` takes both directions of a connection for one"
        }
    };
    if let Some(event) = never.find(|event| apart(&begin, &of_event(event))) {
        let message = format!(
            "trigger `{}` is per {}, and the packets counted here {what} than those counted first, so it is never on",
            trigger.name, keys.one
        );
        sink.error(Code::Contradiction, event.span(), message)
            .hint(hint);
        return;
    }
    for fault in faults.iter().filter(|fault| fault.when == Some(number)) {
        if apart(&begin, &ends(&fault.flows)) {
            let message = format!(
                "fault `{}` waits for trigger `{}`, which is per {}: packets of its flows {what} than those that the trigger counts, so it is never on for one",
                fault.id, trigger.name, keys.one
            );
            sink.error(Code::Contradiction, fault.span, message)
                .hint(hint);
        }
    }
}

fn counts_what_never_fires(
    sink: &mut Sink<'_>,
    trigger: &Trigger,
    event: &Event,
    faults: &[Fault],
) {
    let Event::Fault { fault, span, .. } = event else {
        return;
    };
    // The fault may have been refused, so that its index does not exist.
    let Some(fault) = faults.get(*fault) else {
        return;
    };
    let why = if fault.selection == Selection::Never {
        "its probability is 0"
    } else if is_in_egress(fault) {
        "it acts in egress, behind all triggers"
    } else {
        return;
    };
    let message = format!(
        "trigger `{}` counts hits of fault `{}`, and sees none: {why}",
        trigger.name, fault.id
    );
    sink.error(Code::Contradiction, *span, message);
}

/// Refuses a fault whose last step ends before the first step of a fault that its trigger counts: it would never act.
fn fires_in_time(sink: &mut Sink<'_>, fault: &Fault, triggers: &[Trigger], faults: &[Fault]) {
    let Some(trigger) = fault.when.and_then(|when| triggers.get(when)) else {
        return;
    };
    for stage in &trigger.stages {
        let Event::Fault { fault: counted, .. } = stage.event else {
            continue;
        };
        let Some(counted) = faults.get(counted) else {
            continue;
        };
        let begins = counted.epochs.first().map(|epochs| *epochs.start());
        let ends = fault.epochs.last().map(|epochs| *epochs.end());
        if let (Some(begins), Some(ends)) = (begins, ends)
            && begins > ends
        {
            let message = format!(
                "fault `{}` waits for trigger `{}`, which counts hits of `{}`: its steps begin when those of `{}` are over",
                fault.id, trigger.name, counted.id, fault.id
            );
            sink.error(Code::Contradiction, fault.span, message);
        }
    }
}

/// Refuses combinations that a unit waiting for a trigger does not support.
fn fits(sink: &mut Sink<'_>, fault: &Fault) {
    if fault.when.is_some() && is_in_egress(fault) {
        let message = format!(
            "fault `{}` waits for a trigger and acts in egress; triggers are known where packets come in",
            fault.id
        );
        sink.error(Code::Effect, fault.place_span, message)
            .hint("use `ingress`, of the next switch if need be");
    }
    if fault.when.is_some() && fault.effect.distance().is_some() {
        let message = format!(
            "fault `{}` waits for a trigger, and lets packets wait for others: by how many they were passed cannot be told while it is off",
            fault.id
        );
        sink.error(Code::Effect, fault.span, message)
            .hint("delay them by a time instead: `effect: {delay: 2ms}`");
    }
}

fn is_in_egress(fault: &Fault) -> bool {
    let place = fault.place.as_ref();
    place.is_some_and(|place| place.direction == Direction::Egress)
}

/// Refuses faults that wait for each other, so that none of them ever acts.
fn cycle(sink: &mut Sink<'_>, triggers: &[Trigger], faults: &[Fault]) {
    // The faults that the stages of a fault's trigger count.
    let awaits = |index: usize| -> Vec<usize> {
        let when = faults.get(index).and_then(|fault| fault.when);
        let stages = when.and_then(|when| triggers.get(when));
        let stages = stages.into_iter().flat_map(|trigger| &trigger.stages);
        stages
            .filter_map(|stage| match stage.event {
                Event::Fault { fault, .. } => Some(fault),
                Event::Flow { .. } => None,
            })
            .collect()
    };
    let mut is_told = vec![false; faults.len()];
    for first in 0..faults.len() {
        // Depth-first search; a path back to its start is the cycle.
        let mut way = vec![first];
        let mut open = vec![awaits(first)];
        let mut seen = vec![false; faults.len()];
        while let Some(next) = open.last_mut() {
            let Some(fault) = next.pop() else {
                open.pop();
                way.pop();
                continue;
            };
            if fault == first {
                break;
            }
            if fault < faults.len() && !std::mem::replace(&mut seen[fault], true) {
                way.push(fault);
                open.push(awaits(fault));
            }
        }
        if open.is_empty() || way.iter().any(|fault| is_told[*fault]) {
            continue;
        }
        way.iter().for_each(|fault| is_told[*fault] = true);
        let fault = &faults[first];
        let message = match way.as_slice() {
            [_] => format!(
                "fault `{}` waits for its own hits, and never acts",
                fault.id
            ),
            way => format!(
                "faults {} wait for each other's hits, and none ever acts",
                few_names(way.iter().map(|fault| faults[*fault].id.as_str()))
            ),
        };
        sink.error(Code::Contradiction, fault.span, message)
            .hint("leave `when` out of one of them");
    }
}
