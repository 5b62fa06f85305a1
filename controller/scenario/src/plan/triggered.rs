//! Plans triggers: the switch that keeps each trigger, and its configuration.
//!
//! A trigger is one register of one switch, or one cell per key. So the faults that it counts or enables must all be on that
//! switch.

use std::collections::{BTreeMap, BTreeSet};

use p4lang::runtime::{FieldMatch, Match, TableEntry};
use parser_gen::engine::{Keys, RESETS, Stage, TriggerSpec};
use parser_gen::key::WAYS;
use serde::Serialize;

use super::place::Placement;
use super::runtime::call;
use super::ties::faults_of;
use super::{PlannedFlow, TargetModel, Unit};
use crate::diagnostic::{Code, Sink};
use crate::model::trigger::{Event, Trigger};
use crate::model::{Direction, Scenario};
use crate::plan::names::{fault, trigger as names};

/// A trigger in the plan of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedTrigger {
    /// The trigger's name.
    pub name: String,
    /// Description of the trigger for users: `after 1 hit of loss, for 50ms`.
    pub what: String,
    /// Name of the P4 register with the number of events counted so far.
    pub register: String,
    /// For a trigger per key: the number of cells of its registers; `None` if all packets share the trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<usize>,
    /// Name of the P4 counter of how often the trigger came on; `None` if the switch does not count that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<String>,
    /// For a trigger per key: name of the P4 counter of packets whose key had no cell; otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<String>,
    /// Index of the trigger in the scenario.
    #[serde(skip)]
    pub index: usize,
}

/// Refuses triggers if the target does not support triggers.
pub(super) fn check(sink: &mut Sink<'_>, scenario: &Scenario, target: &TargetModel) {
    let Some(trigger) = scenario.triggers.first().filter(|_| !target.has_triggers) else {
        return;
    };
    let message = format!(
        "this target cannot have trigger `{}`: a trigger accesses its register twice for each packet, and a stateful ALU allows only one access",
        trigger.name
    );
    sink.error(Code::Effect, trigger.span, message)
        .hint("use the embedded switch or BMv2, which support triggers");
}

/// The triggers that the plan puts on a switch, in declared order.
pub(super) fn for_switch(
    scenario: &Scenario,
    placement: &Placement,
    switch: &str,
) -> Vec<PlannedTrigger> {
    let triggers = scenario.triggers.iter().zip(&placement.triggers);
    let here = triggers
        .enumerate()
        .filter(|(_, (_, on))| on.as_deref() == Some(switch));
    here.enumerate()
        .map(|(number, (index, (trigger, _)))| {
            let keys = trigger.keys.as_ref();
            // A counter is added only on demand, so that other programs stay as they are.
            let is_counted = keys.is_some() || scenario.speaks_of(trigger);
            PlannedTrigger {
                name: trigger.name.clone(),
                what: trigger.to_string(),
                register: names::progress(number),
                cells: keys.map(|keys| WAYS << keys.bits()),
                counter: is_counted.then(|| names::on(number)),
                keyless: keys.map(|_| names::keyless(number)),
                index,
            }
        })
        .collect()
}

/// Indexes of the flows that a trigger depends on or affects: flows that it counts, flows of faults whose hits it counts, and
/// flows of faults that wait for it.
pub(crate) fn flows_met(scenario: &Scenario, trigger: usize) -> BTreeSet<usize> {
    let faults = faults_of(scenario, trigger).into_iter();
    let flows = faults
        .flat_map(|fault| &scenario.faults[fault].flows)
        .copied();
    flows.chain(scenario.triggers[trigger].flows()).collect()
}

/// The table entries that say, for each set of flows (class) of a packet, for which events of a trigger the packet counts.
pub(super) fn entries(
    scenario: &Scenario,
    triggers: &[PlannedTrigger],
    flows: &[PlannedFlow],
    classes: &[Vec<usize>],
) -> Vec<TableEntry> {
    let mut entries = Vec::new();
    for (number, planned) in triggers.iter().enumerate() {
        let trigger = &scenario.triggers[planned.index];
        let by_flow = events_by_flow(scenario, trigger);
        let met = flows_met(scenario, planned.index);
        let met: BTreeSet<&str> = (met.iter())
            .map(|flow| scenario.flows[*flow].name.as_str())
            .collect();
        for (class, members) in classes.iter().enumerate() {
            let events = members.iter().fold(0_u16, |events, flow| {
                let bits = by_flow.get(flows[*flow].name.as_str());
                events | bits.copied().unwrap_or(0)
            });
            // A trigger per key looks up a cell only for packets that concern it.
            let mut members = members.iter();
            let is_met = members.any(|flow| met.contains(flows[*flow].name.as_str()));
            if events == 0 && !(is_met && trigger.keys.is_some()) {
                continue;
            }
            entries.push(TableEntry {
                table: names::table(number),
                key: vec![FieldMatch {
                    field: fault::KEY_CLASS.to_owned(),
                    value: Match::exact(class as u128),
                }],
                priority: 0,
                action: call(names::see(number), &[(names::EVENTS, events.into())]),
            });
        }
    }
    entries
}

/// For each flow that a trigger counts, by name: bitmap of the stages for which a packet counts, with a bit for the reset.
pub(crate) fn events_by_flow<'s>(
    scenario: &'s Scenario,
    trigger: &Trigger,
) -> BTreeMap<&'s str, u16> {
    let mut by_flow: BTreeMap<&str, u16> = BTreeMap::new();
    let mut sees = |event: &Event, bit: u32| {
        if let Event::Flow { flows, .. } = event {
            for flow in flows {
                *by_flow.entry(&scenario.flows[*flow].name).or_default() |= 1 << bit;
            }
        }
    };
    for (stage, bit) in trigger.stages.iter().zip(0..) {
        sees(&stage.event, bit);
    }
    if let Some(reset) = &trigger.reset {
        sees(reset, RESETS);
    }
    by_flow
}

/// The triggers of a switch as input of parser-gen, which generates their P4.
pub(super) fn specs(
    scenario: &Scenario,
    triggers: &[PlannedTrigger],
    units: &[Unit],
    entries: &[TableEntry],
) -> Vec<TriggerSpec> {
    let unit_of = |event: &Event| -> Vec<usize> {
        let Event::Fault { name, .. } = event else {
            return Vec::new();
        };
        let mut units = units.iter();
        let unit = units.find(|u| u.fault == *name && u.direction == Direction::Ingress);
        unit.map(|unit| unit.unit).into_iter().collect()
    };
    let specs = triggers.iter().enumerate().map(|(number, planned)| {
        let trigger = &scenario.triggers[planned.index];
        let stages = trigger.stages.iter().map(|stage| Stage {
            count: stage.count,
            units: unit_of(&stage.event),
            within_ns: stage.within_ns,
        });
        let table = names::table(number);
        TriggerSpec {
            about: format!("Trigger {}: {trigger}.", trigger.name),
            stages: stages.collect(),
            on_for_ns: trigger.on_for_ns,
            resets: trigger.reset.iter().flat_map(unit_of).collect(),
            key: trigger.keys.as_ref().map(|keys| keys.key.clone()),
            keys: trigger.keys.as_ref().map(|keys| Keys {
                bits: keys.bits(),
                restarts: keys.restarts,
            }),
            counted: planned.counter.is_some(),
            entries: entries.iter().filter(|e| e.table == table).count(),
        }
    });
    specs.collect()
}
