//! Plans and checks scenarios that run on the same network at the same time.

use std::collections::{BTreeMap, BTreeSet};

use parser_gen::Classes;

use super::points::Apart;
use super::solve::place_together;
use super::wanted::Wanted;
use super::{Plan, TargetModel, same};
use crate::diagnostic::{Code, Diagnostics, Sink};
use crate::model::disruption::Subject;
use crate::model::{Direction, Fault, Scenario};

/// Plans scenarios that run at the same time in one network; all of them must describe the same network. Their resource use on
/// a switch adds up. Where another placement exists, no switch gets two faults that may hit the same packet at the same time,
/// nor a fault on a switch that another scenario restarts. Each scenario must also have a plan on its own.
pub fn plan_together(
    scenarios: &[&Scenario],
    target: &TargetModel,
) -> Result<Vec<Plan>, Diagnostics> {
    same::check(scenarios)?;
    let mut wanted = Vec::new();
    let mut alone = Vec::new();
    for scenario in scenarios {
        alone.push(super::plan(scenario, target)?);
        let mut sink = scenario.sink();
        match Wanted::new(&mut sink, scenario) {
            Some(one) => wanted.push(one),
            None => return Err(sink.into_diagnostics()),
        }
    }
    let refused = |plans: &[Plan]| {
        let pairs: Vec<_> = scenarios.iter().copied().zip(plans).collect();
        Some(check_together(&pairs, target)).filter(|found| !found.0.is_empty())
    };
    let all: Vec<&Wanted<'_>> = wanted.iter().collect();
    let apart = match apart(&all) {
        Some(apart) => apart,
        None => return Err(refused(&alone).unwrap_or_default()),
    };
    // Diagnostics about the separate plans name both faults of every pair.
    let placements =
        place_together(&all, target, &apart).map_err(|why| refused(&alone).unwrap_or(why))?;
    let plans = scenarios
        .iter()
        .zip(placements)
        .map(|(scenario, placement)| {
            super::plan_placed(scenario.sink(), scenario, target, |_| Some(placement))
        });
    let plans: Vec<Plan> = plans.collect::<Result<_, _>>()?;
    match refused(&plans) {
        Some(found) => Err(found),
        None => Ok(plans),
    }
}

/// The constraints between placements of different scenarios; `None` if their protocol files contradict each other.
fn apart(wanted: &[&Wanted<'_>]) -> Option<Apart> {
    let mut apart = Apart::default();
    for (second, later) in wanted.iter().enumerate() {
        for (first, earlier) in wanted[..second].iter().enumerate() {
            let pair = Meeting::new(earlier.scenario, later.scenario).ok()?;
            for (a, choice) in earlier.choices.iter().enumerate() {
                let met = choice
                    .flows
                    .iter()
                    .flat_map(|(flow, _)| pair.meeting(*flow, false));
                let met: BTreeSet<usize> = met.collect();
                for (b, other) in later.choices.iter().enumerate() {
                    let faults = (
                        &earlier.scenario.faults[choice.fault],
                        &later.scenario.faults[other.fault],
                    );
                    if other.flows.iter().any(|(flow, _)| met.contains(flow))
                        && overlap_in_time(earlier.scenario, faults.0, later.scenario, faults.1)
                    {
                        apart.clashes.insert(((first, a), (second, b)));
                    }
                }
                let of_choice = apart.barred.entry((first, a)).or_default();
                of_choice.extend(restarted(later.scenario));
            }
            for b in 0..later.choices.len() {
                let of_choice = apart.barred.entry((second, b)).or_default();
                of_choice.extend(restarted(earlier.scenario));
            }
        }
    }
    Some(apart)
}

/// Names of the switches that the scenario's disruptions restart.
fn restarted(scenario: &Scenario) -> BTreeSet<String> {
    let subjects = scenario.disruptions.iter();
    let subjects = subjects.map(|disruption| disruption.does.subject());
    let switches = subjects.filter_map(|subject| match subject {
        Subject::Switch(switch) => Some(switch.to_owned()),
        _ => None,
    });
    switches.collect()
}

/// Finds conflicts between scenarios that run together: faults of two scenarios that may hit the same packet on a switch at the
/// same time, faults that may hit another scenario's protected flow, and switches that are too small for all scenarios.
/// Switches with the same name are shared; times count from one common start.
#[must_use]
pub fn check_together(scenarios: &[(&Scenario, &Plan)], target: &TargetModel) -> Diagnostics {
    let mut found = Vec::new();
    for (i, later) in scenarios.iter().enumerate() {
        let mut sink = Sink::new(later.0.source());
        for earlier in &scenarios[..i] {
            match Pair::new(*earlier, *later) {
                Ok(pair) => {
                    pair.restarts(&mut sink);
                    pair.faults(&mut sink);
                    pair.protected(&mut sink);
                }
                Err((code, why)) => {
                    let message = format!("together with {}: {why}", earlier.0.file);
                    sink.error(code, Default::default(), message);
                }
            }
        }
        units(&mut sink, &scenarios[..=i], target);
        found.extend(sink.into_diagnostics().0);
    }
    Diagnostics(found)
}

/// Refuses the last scenario if a switch has too few fault units for all scenarios together.
fn units(sink: &mut Sink<'_>, scenarios: &[(&Scenario, &Plan)], target: &TargetModel) {
    let Some(((last, plan), others)) = scenarios.split_last() else {
        return;
    };
    for switch in &plan.switches {
        for direction in [Direction::Ingress, Direction::Egress] {
            let of = |plan: &Plan| {
                let units = plan.switch(&switch.name).map(|switch| switch.units.iter());
                let units = units.into_iter().flatten();
                units.filter(|unit| unit.direction == direction).count()
            };
            let (own, before) = (
                of(plan),
                others.iter().map(|(_, plan)| of(plan)).sum::<usize>(),
            );
            if own == 0 || own + before <= target.units {
                continue;
            }
            let mut here = switch
                .units
                .iter()
                .filter(|unit| unit.direction == direction);
            let beyond = here.nth(target.units.saturating_sub(before));
            let mut faults = last.faults.iter();
            let fault = beyond.and_then(|unit| faults.find(|fault| fault.id == unit.fault));
            let message = format!(
                "together with {}: {} faults act in {direction} of switch `{}`, which has capacity for {}",
                enumerate(others.iter().map(|(scenario, _)| scenario.file.as_str())),
                own + before,
                switch.name,
                target.units
            );
            sink.error(
                Code::Capacity,
                fault.map_or_else(Default::default, |f| f.span),
                message,
            )
            .hint("move some faults to another switch: `where: SWITCH`");
        }
    }
}

fn enumerate<'a>(files: impl Iterator<Item = &'a str>) -> String {
    files.collect::<Vec<_>>().join(", ")
}

/// Which flows of two scenarios can have packets in common.
struct Meeting {
    /// Each set of flows to which one packet can belong. The later scenario's flows are numbered after those of the earlier
    /// one.
    classes: Classes,
    /// Number of flows of the earlier scenario, and thus the index of the later scenario's first flow.
    border: usize,
}

impl Meeting {
    fn new(earlier: &Scenario, later: &Scenario) -> Result<Meeting, (Code, String)> {
        let protocols = earlier.protocols.union(&later.protocols);
        let protocols = protocols.map_err(|error| (Code::Protocol, error.to_string()))?;
        let flows = earlier.flows.iter().chain(&later.flows);
        let flows: Vec<parser_gen::Flow> = flows
            .map(|flow| parser_gen::Flow {
                name: flow.name.clone(),
                filter: flow.filter.clone(),
            })
            .collect();
        Ok(Meeting {
            classes: Classes::new(&protocols, &flows)
                .map_err(|error| (Code::Capacity, error.to_string()))?,
            border: earlier.flows.len(),
        })
    }

    /// Indexes of one scenario's flows that share packets with `flow` of the other one, which is the later one if `of_later`.
    fn meeting(&self, flow: usize, of_later: bool) -> BTreeSet<usize> {
        let border = self.border;
        let number = if of_later { border + flow } else { flow };
        let classes = self.classes.containing(number).iter();
        let flows = classes.flat_map(|class| &self.classes.sets()[*class as usize]);
        let others = flows.filter(|other| (**other >= border) != of_later);
        let own = |other: &usize| if of_later { *other } else { other - border };
        others.map(own).collect()
    }
}

/// Two scenarios that run together, with their plans.
struct Pair<'a> {
    earlier: (&'a Scenario, &'a Plan),
    later: (&'a Scenario, &'a Plan),
    met: Meeting,
}

impl<'a> Pair<'a> {
    /// Reports switches that one scenario restarts while the other injects faults there: the faults' counts would be lost.
    fn restarts(&self, sink: &mut Sink<'_>) {
        let (earlier, later) = (self.earlier, self.later);
        for (restarting, injecting) in [(earlier, later), (later, earlier)] {
            for disruption in &restarting.0.disruptions {
                let Subject::Switch(switch) = disruption.does.subject() else {
                    continue;
                };
                let mut points = injecting.1.injections.iter();
                let Some(point) = points.find(|point| point.switch == switch) else {
                    continue;
                };
                let mut faults = later.0.faults.iter();
                let fault = faults.find(|fault| fault.id == point.fault);
                let span = match std::ptr::eq(restarting.0, later.0) {
                    true => disruption.span,
                    false => fault.map_or_else(Default::default, |fault| fault.place_span),
                };
                let message = format!(
                    "together with {}: `{}` restarts switch `{switch}`, and fault `{}` cannot be proved there",
                    earlier.0.file, disruption.id, point.fault
                );
                sink.error(Code::Unprovable, span, message);
            }
        }
    }

    fn new(
        earlier: (&'a Scenario, &'a Plan),
        later: (&'a Scenario, &'a Plan),
    ) -> Result<Pair<'a>, (Code, String)> {
        Ok(Pair {
            earlier,
            later,
            met: Meeting::new(earlier.0, later.0)?,
        })
    }

    fn faults(&self, sink: &mut Sink<'_>) {
        let ((earlier, earlier_plan), (later, later_plan)) = (self.earlier, self.later);
        let acting: Vec<Points<'_>> = points(earlier, earlier_plan);
        for (second, of_second) in later.faults.iter().zip(points(later, later_plan)) {
            for (first, of_first) in earlier.faults.iter().zip(&acting) {
                if !overlap_in_time(earlier, first, later, second) {
                    continue;
                }
                let Some((switch, a, b)) = self.meet(of_first, &of_second) else {
                    continue;
                };
                let message = format!(
                    "fault `{}` and fault `{}` of {} may hit the same packet on switch `{switch}` at the same time",
                    second.id, first.id, earlier.file
                );
                sink.error(Code::Contradiction, second.span, message)
                    .related(&later.source(), second.span, rule(second, &later.flows[b].name, later.flows[b].filter.text()))
                    .related(&earlier.source(), first.span, rule(first, &earlier.flows[a].name, earlier.flows[a].filter.text()))
                    .hint("give the faults disjoint flows or steps; or check the files one at a time if they never run together");
            }
        }
    }

    /// A switch where both faults may hit one packet, and a flow (by index) of each that can have this packet; `None` without
    /// one.
    fn meet<'p>(&self, first: &Points<'p>, second: &Points<'_>) -> Option<(&'p str, usize, usize)> {
        first.iter().find_map(|(a, switches)| {
            let met = self.met.meeting(*a, false);
            met.into_iter().find_map(|b| {
                let others = second.get(&b)?;
                let shared = switches.iter().find(|switch| others.contains(*switch))?;
                Some((*shared, *a, b))
            })
        })
    }

    fn protected(&self, sink: &mut Sink<'_>) {
        let directions = [
            (self.earlier, self.later, true),
            (self.later, self.earlier, false),
        ];
        for ((guarding, _), (acting, plan), acting_is_later) in directions {
            for (fault, points) in acting.faults.iter().zip(points(acting, plan)) {
                for (flow, switches) in points {
                    for guarded in self.met.meeting(flow, acting_is_later) {
                        let guarded = &guarding.flows[guarded];
                        let passes = |switch: &&&str| {
                            let mut all = guarded.paths.iter().flat_map(|path| &path.switches);
                            all.any(|other| other == **switch)
                        };
                        let Some(switch) =
                            switches.iter().find(passes).filter(|_| guarded.protected)
                        else {
                            continue;
                        };
                        let span = if acting_is_later {
                            fault.span
                        } else {
                            guarded.span
                        };
                        let flow = &acting.flows[flow];
                        let message = format!(
                            "fault `{}` of {} may hit flow `{}`, which {} protects, on switch `{switch}`",
                            fault.id, acting.file, guarded.name, guarding.file
                        );
                        sink.error(Code::Protected, span, message)
                            .related(
                                &acting.source(),
                                fault.span,
                                rule(fault, &flow.name, flow.filter.text()),
                            )
                            .related(
                                &guarding.source(),
                                guarded.span,
                                format!("protected: `{}`", guarded.filter.text()),
                            );
                    }
                }
            }
        }
    }
}

/// The injection points of one fault: for each flow, by index, the names of the switches where the fault acts on it.
type Points<'p> = BTreeMap<usize, BTreeSet<&'p str>>;

/// For each fault of the scenario, its injection points in the plan.
fn points<'p>(scenario: &Scenario, plan: &'p Plan) -> Vec<Points<'p>> {
    let flows: BTreeMap<&str, usize> = scenario
        .flows
        .iter()
        .enumerate()
        .map(|(index, flow)| (flow.name.as_str(), index))
        .collect();
    let faults: BTreeMap<&str, usize> = scenario
        .faults
        .iter()
        .enumerate()
        .map(|(index, fault)| (fault.id.as_str(), index))
        .collect();
    let mut points = vec![Points::new(); scenario.faults.len()];
    for injection in &plan.injections {
        let fault = faults.get(injection.fault.as_str());
        let flow = flows.get(injection.flow.as_str());
        if let (Some(fault), Some(flow)) = (fault, flow) {
            points[*fault]
                .entry(*flow)
                .or_default()
                .insert(&injection.switch);
        }
    }
    points
}

/// Start and end of each time range in which a fault acts, in nanoseconds; the end is `u64::MAX` if it is unknown or never.
fn times<'s>(scenario: &'s Scenario, fault: &'s Fault) -> impl Iterator<Item = (u64, u64)> + 's {
    // A step that waits for a condition may start at any time.
    let start = |epoch: u16| scenario.begins_ns(epoch);
    fault.epochs.iter().map(move |range| {
        let end = start(range.end().saturating_add(1));
        (start(*range.start()).unwrap_or(0), end.unwrap_or(u64::MAX))
    })
}

fn overlap_in_time(a: &Scenario, first: &Fault, b: &Scenario, second: &Fault) -> bool {
    times(a, first).any(|(start, end)| {
        times(b, second).any(|(other, other_end)| start < other_end && other < end)
    })
}

fn rule(fault: &Fault, flow: &str, filter: &str) -> String {
    format!(
        "`{}` {} packets of `{flow}`: `{filter}`",
        fault.id,
        fault.effect.verb()
    )
}
