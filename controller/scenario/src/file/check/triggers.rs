//! Checks triggers: refuses those that can never be on or for which no fault waits, and faults that no trigger can start.

use std::collections::BTreeSet;

use crate::diagnostic::{Code, Sink, few_names};
use crate::model::selection::Selection;
use crate::model::trigger::{Event, Trigger};
use crate::model::{Direction, Fault, Flow, Scenario, Shared};

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
                "trigger `{}` is never on: a later stage waits for the same packets that `reset` names",
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

/// Refuses a trigger per key (such as connection) if the packets that it counts and those of its faults never share a key.
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
        Shared::Direction => "travel in the other direction",
        _ => "come from other senders",
    };
    let hint = match keys.shared {
        Shared::Direction => {
            "write `per: {connection: both}` to count both directions of a connection together"
        }
        _ => {
            "name flows with the same senders, or write `per: {connection: both}` to count both directions of a connection together"
        }
    };
    if let Some(event) = never.find(|event| apart(&begin, &of_event(event))) {
        let message = format!(
            "trigger `{}` is never on: it counts per {}, and the packets of the event marked here {what} than those of its first event",
            trigger.name, keys.one
        );
        sink.error(Code::Contradiction, event.span(), message)
            .hint(hint);
        return;
    }
    for fault in faults.iter().filter(|fault| fault.when == Some(number)) {
        if apart(&begin, &ends(&fault.flows)) {
            let message = format!(
                "fault `{}` never acts: trigger `{}` counts per {}, and the fault's packets {what} than those that the trigger counts",
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
        "it acts in egress, after all triggers"
    } else {
        return;
    };
    let message = format!(
        "trigger `{}` counts hits of fault `{}`, but sees none: {why}",
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
                "fault `{}` never acts: its trigger `{}` counts hits of `{}`, which starts to act only after the last step of `{}`",
                fault.id, trigger.name, counted.id, fault.id
            );
            sink.error(Code::Contradiction, fault.span, message);
        }
    }
}

/// Refuses a fault that waits for a trigger, if a fault unit cannot combine the fault's other settings with a trigger.
fn fits(sink: &mut Sink<'_>, fault: &Fault) {
    if fault.when.is_some() && is_in_egress(fault) {
        let message = format!(
            "fault `{}` waits for a trigger, so it cannot act in egress: the switch checks triggers in ingress",
            fault.id
        );
        sink.error(Code::Effect, fault.place_span, message)
            .hint("write `where: {ingress: SWITCH}`; SWITCH may be the next switch on the path");
    }
    if fault.when.is_some() && fault.effect.distance().is_some() {
        let message = format!(
            "fault `{}` cannot wait for a trigger and reorder packets: while the trigger is off, the switch does not count overtaking packets",
            fault.id
        );
        sink.error(Code::Effect, fault.span, message)
            .hint("delay the packets by a time instead: `effect: {delay: 2ms}`");
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
                "fault `{}` never acts: its trigger waits for its own hits",
                fault.id
            ),
            way => format!(
                "faults {} never act: their triggers wait for each other's hits",
                few_names(way.iter().map(|fault| faults[*fault].id.as_str()))
            ),
        };
        sink.error(Code::Contradiction, fault.span, message)
            .hint("leave `when` out of one of them");
    }
}
