//! Lists the placement decisions of a scenario: for each fault and flow, the switches that can inject the fault.
//!
//! These candidates are the switches on *every* path of the flow, or the one that the file names (`where`, or the flow's `on`).
//! Each packet passes such a switch exactly once, so one fault unit counts all of them. A fault that counts nothing (`always`)
//! may also be spread over several switches, of which each path crosses exactly one. Flows of a fault with the same paths are
//! placed together. [`planner::injection`] chooses among the candidates; [`super::points`] prepares its input.

use std::collections::{BTreeMap, BTreeSet};

use super::place::{Choice, Fullest, Placement, Point};
use super::ties::{Tie, ties};
use crate::diagnostic::{Code, Sink};
use crate::model::selection::Selection;
use crate::model::{Direction, Fault, Flow, Path, Scenario};

/// All placement decisions of a scenario, for the planner.
pub(super) struct Wanted<'s> {
    pub scenario: &'s Scenario,
    pub choices: Vec<Choice<'s>>,
    pub ties: Vec<Tie<'s>>,
}

/// The properties that flows of a fault must share to be placed together: end hosts (with paths if several), candidates.
type Alike<'s> = (Vec<(&'s str, &'s str, &'s [String])>, Vec<&'s str>);

impl<'s> Wanted<'s> {
    /// Collects the placement decisions of a scenario; refuses faults that no switch can inject, even without other faults.
    pub fn new(sink: &mut Sink<'_>, scenario: &'s Scenario) -> Option<Wanted<'s>> {
        let mut choices: Vec<Choice<'_>> = Vec::new();
        let mut complete = true;
        for (index, fault) in scenario.faults.iter().enumerate() {
            let mut alike: BTreeMap<Alike<'_>, usize> = BTreeMap::new();
            for (cell, &flow) in fault.flows.iter().enumerate() {
                let Some(mut found) = candidates(sink, index, fault, &scenario.flows[flow]) else {
                    complete = false;
                    continue;
                };
                let ends = found.paths.iter();
                let ends = ends.map(|path| {
                    let switches = match scenario.ways {
                        Some(_) => path.switches.as_slice(),
                        None => &[],
                    };
                    (path.from.as_str(), path.to.as_str(), switches)
                });
                let choice = *alike
                    .entry((ends.collect(), found.switches.clone()))
                    .or_insert(choices.len());
                if choice < choices.len() {
                    choices[choice].flows.push((flow, cell));
                } else {
                    found.flows.push((flow, cell));
                    choices.push(found);
                }
            }
        }
        if !complete {
            return None;
        }
        let errors = sink.errors();
        let ties = ties(sink, scenario, &mut choices);
        (sink.errors() == errors).then_some(Wanted {
            scenario,
            choices,
            ties,
        })
    }

    /// The placement in which each placement decision gets the switches at its index in `at`.
    pub fn placed(&self, at: &[Vec<String>], fullest: Option<Fullest>) -> Placement {
        let mut points = Vec::new();
        for (choice, switches) in self.choices.iter().zip(at) {
            for &(flow, cell) in &choice.flows {
                points.extend(switches.iter().map(|switch| Point {
                    fault: choice.fault,
                    flow,
                    cell,
                    switch: switch.clone(),
                    direction: choice.direction,
                }));
            }
        }
        points.sort_by_key(|point| (point.fault, point.cell));
        let mut triggers = vec![None; self.scenario.triggers.len()];
        for tie in &self.ties {
            let of_choice = tie.choices.first().and_then(|choice| at[*choice].first());
            let switch = of_choice.map_or(tie.switches[0], String::as_str);
            for trigger in &tie.triggers {
                triggers[*trigger] = Some(switch.to_owned());
            }
        }
        Placement {
            points,
            triggers,
            fullest,
        }
    }
}

/// The placement decision for a fault and one flow, with the switches that every packet of the flow passes exactly once. Its
/// list of flows is still empty. `None` if an error was reported.
fn candidates<'s>(
    sink: &mut Sink<'_>,
    index: usize,
    fault: &'s Fault,
    flow: &'s Flow,
) -> Option<Choice<'s>> {
    let first = flow.paths.first()?;
    let on_all = |switch: &str| {
        flow.paths
            .iter()
            .all(|path| path.switches.iter().any(|other| other == switch))
    };
    let switches = first.switches.iter().map(String::as_str);
    let mut choice = Choice {
        fault: index,
        flows: Vec::new(),
        paths: &flow.paths,
        direction: fault
            .place
            .as_ref()
            .map_or(Direction::Ingress, |place| place.direction),
        switches: switches.filter(|switch| on_all(switch)).collect(),
        pin: None,
        is_limited: false,
        spreads: false,
    };
    if let (Some(on), Some(place)) = (&flow.on, &fault.place)
        && *on != place.switch
    {
        let message = format!(
            "fault `{}` acts on switch `{}`, but only switch `{on}` identifies flow `{}`",
            fault.id, place.switch, flow.name
        );
        sink.error(Code::Placement, fault.place_span, message)
            .hint(format!(
                "write `where: {on}`, or leave `on: {on}` out of the flow"
            ));
        return None;
    }
    if let Some(on) = &flow.on {
        // Flow resolution kept only the paths across this switch.
        choice.pin = Some(on);
        choice.switches = vec![on];
        return Some(choice);
    }
    if let Some(place) = &fault.place {
        if choice.switches.contains(&place.switch.as_str()) {
            choice.pin = Some(&place.switch);
            choice.switches = vec![&place.switch];
            return Some(choice);
        }
        report_place(sink, fault, flow, &place.switch);
        return None;
    }
    if choice.switches.is_empty() {
        let is_alike = !fault.effect.draws() && !fault.effect.goes_by_time();
        if fault.selection != Selection::Always || !is_alike {
            report_apart(sink, fault, flow);
            return None;
        }
        choice.spreads = true;
    }
    Some(choice)
}

/// Reports that no single switch sees all packets of a flow, although the fault needs one.
pub(super) fn report_apart(sink: &mut Sink<'_>, fault: &Fault, flow: &Flow) {
    let (a, b) = apart(&flow.paths);
    let message = format!(
        "no single switch sees every packet of flow `{}` for fault `{}`",
        flow.name, fault.id
    );
    sink.error(Code::Placement, fault.span, message)
        .hint(format!(
            "{a} and {b} have no switch in common: split the flow with `from` or `to`"
        ));
}

fn report_place(sink: &mut Sink<'_>, fault: &Fault, flow: &Flow, switch: &str) {
    let crosses = |path: &&Path| path.switches.iter().any(|other| other == switch);
    let show = |path: &Path| {
        format!(
            "{} → {} over {}",
            path.from,
            path.to,
            path.switches.join(", ")
        )
    };
    let Some(bypass) = flow.paths.iter().find(|path| !crosses(path)) else {
        return;
    };
    if flow.paths.iter().any(|path| crosses(&path)) {
        let message = format!(
            "not all packets of flow `{}` cross switch `{switch}`, where fault `{}` acts",
            flow.name, fault.id
        );
        sink.error(Code::Placement, fault.place_span, message)
            .hint(format!(
                "{} does not; narrow the flow with `from` or `to`",
                show(bypass)
            ));
    } else {
        let message = format!(
            "no path of flow `{}` crosses switch `{switch}`, where fault `{}` acts",
            flow.name, fault.id
        );
        sink.error(Code::Unreachable, fault.place_span, message)
            .hint(format!("its packets take the path {}", show(bypass)));
    }
}

/// Text of two paths that have no switch in common.
fn apart(paths: &[Path]) -> (String, String) {
    let show = |path: &Path| format!("{} → {} ({})", path.from, path.to, path.switches.join(", "));
    for (i, a) in paths.iter().enumerate() {
        if let Some(b) = paths[..i]
            .iter()
            .find(|b| b.switches.iter().all(|switch| !a.switches.contains(switch)))
        {
            return (show(b), show(a));
        }
    }
    (
        paths.first().map(show).unwrap_or_default(),
        "the other paths".to_owned(),
    )
}

/// Pairs of placement decisions whose flows share a packet, as indexes, the smaller one first.
pub(super) type Meetings = BTreeSet<(usize, usize)>;

pub(super) fn meetings(scenario: &Scenario, choices: &[Choice<'_>]) -> Meetings {
    let mut of_flow: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, choice) in choices.iter().enumerate() {
        for (flow, _) in &choice.flows {
            of_flow.entry(*flow).or_default().push(index);
        }
    }
    let sets = scenario
        .classes
        .sets()
        .iter()
        .map(|flows| -> BTreeSet<usize> {
            flows
                .iter()
                .filter_map(|flow| of_flow.get(flow))
                .flatten()
                .copied()
                .collect()
        });
    // Most classes meet the same choices, so the set is small.
    let sets: BTreeSet<BTreeSet<usize>> = sets.collect();
    let mut meetings = Meetings::new();
    for set in sets {
        for a in &set {
            meetings.extend(set.range(a + 1..).map(|b| (*a, *b)));
        }
    }
    meetings
}
