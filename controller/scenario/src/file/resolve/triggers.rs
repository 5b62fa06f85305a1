//! Resolves triggers: looks up the flows and faults that they count, and the trigger for which a fault waits.

use std::collections::BTreeMap;

use crate::diagnostic::{Sink, Spanned, unknown};
use crate::file::schema::{Declared, RawEvent, RawFault, RawTrigger};
use crate::model::trigger::{Event, Stage, Trigger};

/// Resolves the names of flows and faults in triggers to indexes.
pub(super) fn resolve(
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
                    unknown(sink, "flow", name, flows);
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
                    unknown(sink, "fault", name, faults);
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

/// Index of the trigger for which a fault waits; reports an unknown name.
pub(super) fn awaited(
    sink: &mut Sink<'_>,
    when: &Spanned<String>,
    declared: &[RawTrigger],
    triggers: &[Trigger],
) -> Option<usize> {
    let found = triggers.iter().position(|other| other.name == when.value);
    let is_declared = declared.iter().any(|other| other.name.value == when.value);
    if !is_declared {
        let names = declared.iter().map(|other| other.name.value.as_str());
        unknown(sink, "trigger", when, names);
    }
    found
}
