//! Faults and triggers that must share a switch.

use super::place::Choice;
use crate::diagnostic::{Code, Sink, few_names};
use crate::model::Scenario;

/// Faults and triggers that must share one switch.
pub(super) struct Tie<'s> {
    /// Indexes of the scenario's triggers.
    pub triggers: Vec<usize>,
    /// Indexes of the choices that these triggers count or enable.
    pub choices: Vec<usize>,
    /// The possible switches, nearest to the senders first; never empty.
    pub switches: Vec<&'s str>,
}

/// The groups of faults and triggers that must share a switch, and restricts their choices to it. Refuses groups without
/// a switch.
pub(super) fn ties<'s>(
    sink: &mut Sink<'_>,
    scenario: &'s Scenario,
    choices: &mut [Choice<'s>],
) -> Vec<Tie<'s>> {
    let mut ties = Vec::new();
    for triggers in groups(scenario) {
        let faults: Vec<usize> = triggers
            .iter()
            .flat_map(|trigger| faults_of(scenario, *trigger))
            .collect();
        let tied: Vec<usize> = (0..choices.len())
            .filter(|choice| faults.contains(&choices[*choice].fault))
            .collect();
        let mut seen_by: Vec<Vec<&str>> = (tied.iter())
            .map(|choice| choices[*choice].switches.clone())
            .collect();
        for flow in triggers.iter().flat_map(|t| scenario.triggers[*t].flows()) {
            let flow = &scenario.flows[flow];
            let mut paths = flow.paths.iter();
            let first = paths.next().map_or(&[][..], |path| &path.switches);
            let on_all = |switch: &&String| {
                flow.on.as_ref().is_none_or(|on| on == *switch)
                    && flow.paths.iter().all(|path| path.switches.contains(switch))
            };
            seen_by.push(first.iter().filter(on_all).map(String::as_str).collect());
        }
        let Some((first, others)) = seen_by.split_first() else {
            continue;
        };
        let common = first.iter().copied();
        let common = common.filter(|switch| others.iter().all(|other| other.contains(switch)));
        let switches: Vec<&str> = common.collect();
        if switches.is_empty() {
            refuse(sink, scenario, &triggers, &faults);
            continue;
        }
        for choice in &tied {
            let choice = &mut choices[*choice];
            choice.switches.retain(|switch| switches.contains(switch));
            choice.is_limited = true;
        }
        ties.push(Tie {
            triggers,
            choices: tied,
            switches,
        });
    }
    ties
}

fn refuse(sink: &mut Sink<'_>, scenario: &Scenario, group: &[usize], faults: &[usize]) {
    let trigger = &scenario.triggers[group[0]];
    let mut names: Vec<&str> = faults
        .iter()
        .map(|fault| scenario.faults[*fault].id.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let message = format!(
        "no single switch sees every packet that trigger `{}` counts and every packet of {}",
        trigger.name,
        few_names(names)
    );
    sink.error(Code::Placement, trigger.span, message)
        .hint("narrow the flows with `from` or `to`, or declare one trigger per fault: a trigger is a register of one switch");
}

/// Indexes of the faults that a trigger counts or enables.
pub(super) fn faults_of(scenario: &Scenario, trigger: usize) -> Vec<usize> {
    let waiting = scenario.faults.iter().enumerate();
    let waiting = waiting.filter(|(_, fault)| fault.when == Some(trigger));
    let counted = scenario.triggers[trigger].faults();
    counted.chain(waiting.map(|(index, _)| index)).collect()
}

/// Groups of triggers that share a fault, directly or through others.
fn groups(scenario: &Scenario) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for trigger in 0..scenario.triggers.len() {
        let mut faults = faults_of(scenario, trigger);
        let mut triggers = Vec::new();
        let (joined, apart): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|(_, others)| others.iter().any(|fault| faults.contains(fault)));
        groups = apart;
        for (more, others) in joined {
            triggers.extend(more);
            faults.extend(others);
        }
        triggers.push(trigger);
        groups.push((triggers, faults));
    }
    groups.into_iter().map(|(triggers, _)| triggers).collect()
}
