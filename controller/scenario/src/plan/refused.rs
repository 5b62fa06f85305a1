//! Reports why the planner cannot place faults, with positions in the file.

use std::collections::BTreeSet;

use planner::injection::{Conflict, Refusal};

use super::TargetModel;
use super::points::{InjectionProblem, UNITS_IN, UNITS_OUT};
use super::wanted::report_apart;
use crate::diagnostic::{Code, Diagnostics, Sink, few, few_names};
use crate::model::{Direction, Fault};

/// Reports why the planner refused the placement of a single scenario.
pub(super) fn tell(
    sink: &mut Sink<'_>,
    asked: &InjectionProblem<'_, '_>,
    target: &TargetModel,
    refusal: &Refusal,
) {
    let scenario = asked.wanted[0].scenario;
    match refusal {
        Refusal::NoCandidate { choice, .. } => {
            let choice = &asked.wanted[0].choices[asked.of[*choice].1];
            if let Some((flow, _)) = choice.flows.first() {
                let (fault, flow) = (&scenario.faults[choice.fault], &scenario.flows[*flow]);
                report_apart(sink, fault, flow);
            }
        }
        Refusal::Order { before, after } => {
            let (first, second) = (asked.fault(*before), asked.fault(*after));
            let message = format!(
                "packets reach fault `{}` before fault `{}`, which is declared first",
                second.id, first.id
            );
            let source = sink.source();
            sink.error(Code::Placement, second.place_span, message)
                .related(
                    &source,
                    first.place_span,
                    format!("`{}` acts here", first.id),
                )
                .hint("declare faults in the order in which packets reach them, or change `where`");
        }
        Refusal::Capacity(conflict) => {
            if !asked.tell_units(sink, conflict, target) {
                let message = asked.too_much(conflict);
                let last = asked.last(conflict);
                sink.error(Code::Capacity, last.span, message)
                    .hint("move some faults to another switch: `where: SWITCH`");
            }
        }
        Refusal::Tied(conflict) | Refusal::Conflict(conflict) => {
            let faults = few_names(asked.names(conflict));
            let message = match conflict.orders.is_empty() {
                true => {
                    format!("no choice of switches satisfies all requirements of faults {faults}")
                }
                false => {
                    format!(
                        "no choice of switches lets packets reach faults {faults} in their declared order"
                    )
                }
            };
            sink.error(Code::Placement, asked.last(conflict).span, message)
                .hint("choose the switches yourself: write `where: SWITCH` for each fault");
        }
        Refusal::Malformed(_)
        | Refusal::OffPath { .. }
        | Refusal::Clash { .. }
        | Refusal::NotFound => {
            let span = scenario
                .faults
                .first()
                .map_or(Default::default(), |f| f.span);
            sink.error(Code::Placement, span, refusal.describe(&asked.problem))
                .hint("choose the switches yourself: write `where: SWITCH` for each fault");
        }
    }
}

/// Reports why the planner refused several scenarios that run together, although each of them has a plan on its own.
pub(super) fn tell_together(asked: &InjectionProblem<'_, '_>, refusal: &Refusal) -> Diagnostics {
    let (choices, code, why) = match refusal {
        Refusal::Clash { first, second } => {
            let why = "may hit the same packets, and no other switch is possible".to_owned();
            (vec![*first, *second], Code::Contradiction, why)
        }
        Refusal::Capacity(conflict) => {
            let why = format!("take more than {}", asked.limits(conflict));
            (conflict.choices.clone(), Code::Capacity, why)
        }
        Refusal::Tied(conflict) | Refusal::Conflict(conflict) => {
            let clashes = conflict.clashes.iter().flat_map(|(a, b)| [*a, *b]);
            let choices = match conflict.clashes.is_empty() {
                true => conflict.choices.clone(),
                false => clashes.collect(),
            };
            let why = "have no injection points that satisfy all their requirements".to_owned();
            (choices, Code::Contradiction, why)
        }
        _ => {
            let why = refusal.describe(&asked.problem);
            ((0..asked.of.len()).collect(), Code::Placement, why)
        }
    };
    let last = choices.iter().map(|choice| asked.of[*choice].0).max();
    let scenario = asked.wanted[last.unwrap_or(0)].scenario;
    let mut faults = Vec::new();
    for choice in &choices {
        let file = &asked.wanted[asked.of[*choice].0].scenario.file;
        let named = (file.as_str(), asked.fault(*choice).id.as_str());
        if !faults.contains(&named) {
            faults.push(named);
        }
    }
    let named = faults.iter();
    let named = named.map(|(file, fault)| format!("`{fault}` of {file}"));
    let message = format!("planned together, faults {} {why}", few(named.collect()));
    let of_last = choices.iter().rev().find(|c| Some(asked.of[**c].0) == last);
    let span = of_last.map_or(Default::default(), |choice| asked.fault(*choice).span);
    let mut sink = Sink::new(scenario.source());
    sink.error(code, span, message)
        .hint("move faults to other switches with `where`; or check the files one at a time if they never run together");
    sink.into_diagnostics()
}

/// Reports that more faults act in a pipeline of a switch than it has fault units; `fault` is the first that does not fit.
pub(super) fn tell_units(
    sink: &mut Sink<'_>,
    fault: &Fault,
    count: usize,
    (direction, switch): (Direction, &str),
    target: &TargetModel,
) {
    let most = target.units;
    let message = format!(
        "{count} faults act in {direction} of switch `{switch}`, which has capacity for {most}"
    );
    sink.error(Code::Capacity, fault.span, message)
        .hint("move some faults to another switch: `where: SWITCH`");
}

impl<'s> InjectionProblem<'_, 's> {
    fn fault(&self, choice: usize) -> &'s Fault {
        let (scenario, choice) = self.of[choice];
        let wanted = self.wanted[scenario];
        &wanted.scenario.faults[wanted.choices[choice].fault]
    }

    /// Names of the faults in a conflict, each once, in declared order.
    fn names(&self, conflict: &Conflict) -> Vec<&'s str> {
        let mut names = Vec::new();
        for choice in &conflict.choices {
            let name = self.fault(*choice).id.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn last(&self, conflict: &Conflict) -> &'s Fault {
        self.fault(conflict.choices.last().copied().unwrap_or(0))
    }

    fn limits(&self, conflict: &Conflict) -> String {
        let limits = conflict.limits.iter().map(|(switch, resource)| {
            let limit = self.problem.limit(*switch, *resource);
            let resource = &self.problem.resources[*resource].name;
            format!(
                "{limit} {resource} of switch `{}`",
                self.problem.switches[*switch].name
            )
        });
        limits.collect::<Vec<_>>().join(" and ")
    }

    fn too_much(&self, conflict: &Conflict) -> String {
        format!(
            "{} take more than {}",
            few_names(self.names(conflict)),
            self.limits(conflict)
        )
    }

    /// Reports how many faults compete for a switch's fault units, if no other switch can inject them; returns whether it did.
    fn tell_units(&self, sink: &mut Sink<'_>, conflict: &Conflict, target: &TargetModel) -> bool {
        let [(switch, resource @ (UNITS_IN | UNITS_OUT))] = conflict.limits[..] else {
            return false;
        };
        let name = self.problem.switches[switch].name.as_str();
        let stand_here = self
            .problem
            .choices
            .iter()
            .enumerate()
            .filter(|(number, choice)| {
                let of = &self.wanted[0].choices[self.of[*number].1];
                choice.leaving == (resource == UNITS_OUT) && of.switches == [name]
            });
        let here: BTreeSet<usize> = stand_here
            .map(|(number, _)| self.wanted[0].choices[self.of[number].1].fault)
            .collect();
        let Some(first_beyond) = here.iter().nth(target.units) else {
            return false;
        };
        let direction = match resource {
            UNITS_IN => Direction::Ingress,
            _ => Direction::Egress,
        };
        let fault = &self.wanted[0].scenario.faults[*first_beyond];
        tell_units(sink, fault, here.len(), (direction, name), target);
        true
    }
}
