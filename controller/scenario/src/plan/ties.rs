//! Groups faults and triggers that must be on the same switch, because a trigger is a register of one switch.

use super::place::Choice;
use crate::diagnostic::{Code, Sink, few_names};
use crate::model::Scenario;

/// A group of triggers and faults that must be on the same switch.
pub(super) struct Tie<'s> {
    /// Indexes of the group's triggers in the scenario.
    pub triggers: Vec<usize>,
    /// Indexes of the placement decisions whose faults the group's triggers count or enable.
    pub choices: Vec<usize>,
    /// The switches that can have the whole group, nearest to the senders first; never empty.
    pub switches: Vec<&'s str>,
}

/// Groups faults and triggers that must be on the same switch, and restricts their choices to the group's possible switches.
/// Refuses groups without a possible switch.
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

/// Indexes of the faults whose hits a trigger counts, and of those that wait for it.
pub(super) fn faults_of(scenario: &Scenario, trigger: usize) -> Vec<usize> {
    let waiting = scenario.faults.iter().enumerate();
    let waiting = waiting.filter(|(_, fault)| fault.when == Some(trigger));
    let counted = scenario.triggers[trigger].faults();
    counted.chain(waiting.map(|(index, _)| index)).collect()
}

/// Groups of triggers, by index. Two triggers with a common fault are in one group, also if other triggers connect them.
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
