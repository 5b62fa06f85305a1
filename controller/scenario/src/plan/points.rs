//! Translates a scenario's faults and switches into a problem for [`planner::injection`], and its solution back.
//!
//! The limits are the resources of each switch: fault units, flows that it tells apart, table entries, and on a chip further
//! resources, of which each fault uses a measured average. The recirculation port sets no limit: packets beyond its rate are
//! late, which the plan reports.

use std::collections::{BTreeMap, BTreeSet};

use planner::injection::{Charge, Choice, InjectionSwitch, Problem, SwitchResource};

use super::TargetModel;
use super::cost::held_by;
use super::place::{Fullest, Placement};
use super::wanted::{Meetings, Wanted, meetings};
use crate::model::{Direction, MAX_FLOWS, MAX_SELECT_ENTRIES, Path};

/// Maximum cost of a choice: the costs of all choices in a scenario (fewer than 2^18) can be added without overflow.
const MAX_COST: u64 = u64::MAX >> 20;

pub(super) const UNITS_IN: usize = 0;
pub(super) const UNITS_OUT: usize = 1;
const FLOWS: usize = 2;
const ENTRIES: usize = 3;
const RECIRCULATION: usize = 4;
/// First index of the further resources of a chip, of which each fault uses a measured average.
const OF_CHIP: usize = 5;

/// A placement decision, if several scenarios are planned together: index of the scenario, index of the decision in it.
pub(super) type Of = (usize, usize);

/// Constraints between the placements of scenarios that run at the same time.
#[derive(Debug, Default)]
pub(super) struct Apart {
    /// Pairs of placement decisions whose faults act on the same packets and must not share a switch.
    pub clashes: BTreeSet<(Of, Of)>,
    /// For a placement decision: switches to avoid if possible, because another scenario protects flows there or restarts them.
    pub barred: BTreeMap<Of, BTreeSet<String>>,
}

/// The placement problem in the planner's terms, and what its indexes stand for.
pub(super) struct InjectionProblem<'w, 's> {
    pub wanted: &'w [&'w Wanted<'s>],
    pub problem: Problem,
    /// For each choice of the problem: index of the scenario, index of the scenario's choice.
    pub of: Vec<Of>,
}

impl<'w, 's> InjectionProblem<'w, 's> {
    pub(super) fn new(
        wanted: &'w [&'w Wanted<'s>],
        target: &TargetModel,
        apart: &Apart,
    ) -> InjectionProblem<'w, 's> {
        let mut asked = InjectionProblem {
            wanted,
            problem: Problem {
                resources: resources(target),
                ..Problem::default()
            },
            of: Vec::new(),
        };
        let mut numbers = BTreeMap::new();
        for one in wanted {
            for name in &one.scenario.topology.switches {
                let new = asked.problem.switches.len();
                let number = *numbers.entry(name.as_str()).or_insert(new);
                if number == new {
                    asked.problem.switches.push(switch(name, target));
                }
            }
        }
        let mut of = BTreeMap::new();
        for (number, one) in wanted.iter().enumerate() {
            let first = asked.of.len();
            of.extend((0..one.choices.len()).map(|choice| ((number, choice), first + choice)));
            asked.add(number, one, target, &numbers, apart);
        }
        let both = |(a, b): &(Of, Of)| Some((*of.get(a)?, *of.get(b)?));
        asked.problem.clashes = apart.clashes.iter().filter_map(both).collect();
        asked
    }

    fn add(
        &mut self,
        number: usize,
        wanted: &'w Wanted<'s>,
        target: &TargetModel,
        switches: &BTreeMap<&str, usize>,
        apart: &Apart,
    ) {
        let (scenario, first) = (wanted.scenario, self.of.len());
        let numbered = |name: &str| switches.get(name).copied();
        let mut units = BTreeMap::new();
        let mut paths = BTreeMap::new();
        for (choice, of) in wanted.choices.iter().enumerate() {
            let fault = &scenario.faults[of.fault];
            let unit = *units.entry(of.fault).or_insert_with(|| {
                let kind = match of.direction {
                    Direction::Ingress => UNITS_IN,
                    Direction::Egress => UNITS_OUT,
                };
                self.charge(std::iter::once((kind, 1)).chain(chip_resources(target)))
            });
            let entries = (of.flows.len() * fault.epochs.len()) as u64;
            let held: u64 = (of.flows.iter())
                .map(|(flow, _)| held_by(scenario, of.fault, *flow))
                .fold(0, u64::saturating_add);
            let looping = target.looping_bps(held).min(MAX_COST);
            let own = self.charge([(ENTRIES, entries), (RECIRCULATION, looping)]);
            let of_path = |path: &'s Path| {
                let Path { from, to, switches } = path;
                let all = &mut self.problem.paths;
                *paths.entry((from, to, switches)).or_insert_with(|| {
                    all.push(switches.iter().filter_map(|name| numbered(name)).collect());
                    all.len() - 1
                })
            };
            let on: Vec<usize> = of.paths.iter().map(of_path).collect();
            let free = |names: Vec<&str>| names.into_iter().filter_map(numbered).collect();
            let barred = apart.barred.get(&(number, choice));
            let is_barred = |name: &&str| barred.is_some_and(|barred| barred.contains(*name));
            let (kept, left): (Vec<&str>, Vec<&str>) =
                of.switches.iter().partition(|s| !is_barred(s));
            self.problem.choices.push(Choice {
                name: fault.id.clone(),
                paths: on,
                spreads: of.spreads,
                only: match (kept.is_empty(), left.is_empty()) {
                    _ if of.spreads => None,
                    (false, false) => Some(free(kept)),
                    _ => of.is_limited.then(|| free(of.switches.clone())),
                },
                pin: of.pin.and_then(numbered),
                leaving: of.direction == Direction::Egress,
                weight: of.flows.len() as u64,
                charges: vec![unit, own],
            });
            self.of.push((number, choice));
        }
        self.tell_flows_apart(wanted, first);
        let shifted = |choices: &Vec<usize>| choices.iter().map(|choice| first + choice).collect();
        let ties = wanted.ties.iter().map(|tie| shifted(&tie.choices));
        self.problem.ties.extend(ties);
        let choices = &self.problem.choices;
        let is_ordered = |(a, b): &(usize, usize)| {
            let of_a: BTreeSet<&usize> = choices[first + a].paths.iter().collect();
            let mut of_b = choices[first + b].paths.iter();
            wanted.choices[*a].fault != wanted.choices[*b].fault
                && of_b.any(|path| of_a.contains(path))
        };
        let met: Meetings = meetings(scenario, &wanted.choices);
        let orders = met.into_iter().filter(is_ordered);
        let orders: Vec<_> = orders.map(|(a, b)| (first + a, first + b)).collect();
        self.problem.orders.extend(orders);
    }

    /// Charges a switch for each flow that it must tell apart: once for all faults on the flow, once for each protected flow.
    fn tell_flows_apart(&mut self, wanted: &Wanted<'_>, first: usize) {
        let mut acted_on: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (choice, of) in wanted.choices.iter().enumerate() {
            for (flow, _) in &of.flows {
                acted_on.entry(*flow).or_default().push(first + choice);
            }
        }
        let mut alike: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
        for choices in acted_on.into_values() {
            *alike.entry(choices).or_default() += 1;
        }
        for (choices, flows) in alike {
            let charge = self.charge([(FLOWS, flows)]);
            for choice in choices {
                self.problem.choices[choice].charges.push(charge);
            }
        }
        for (_, flow) in wanted.scenario.protected() {
            let passed = flow.paths.iter().flat_map(|path| &path.switches);
            let passed: BTreeSet<&String> = passed.collect();
            for switch in &mut self.problem.switches {
                switch.opening[FLOWS] += u64::from(passed.contains(&switch.name));
            }
        }
    }

    fn charge(&mut self, cost: impl IntoIterator<Item = (usize, u64)>) -> usize {
        let cost = cost.into_iter().filter(|(_, cost)| *cost > 0);
        self.problem.charges.push(Charge {
            cost: cost.collect(),
        });
        self.problem.charges.len() - 1
    }

    /// Translates the planner's solution into a placement for each scenario, in order.
    pub(super) fn placements(&self, found: &planner::injection::Placement) -> Vec<Placement> {
        let mut at: Vec<Vec<Vec<String>>> = vec![Vec::new(); self.wanted.len()];
        for ((scenario, _), switches) in self.of.iter().zip(&found.at) {
            let names = switches
                .iter()
                .map(|s| self.problem.switches[*s].name.clone());
            at[*scenario].push(names.collect());
        }
        let fullest = self.fullest(found);
        let of = self.wanted.iter().zip(at);
        of.map(|(wanted, at)| wanted.placed(&at, fullest.clone()))
            .collect()
    }

    pub(super) fn fullest(&self, found: &planner::injection::Placement) -> Option<Fullest> {
        let rows = found.taken.iter().enumerate().flat_map(|(switch, taken)| {
            let taken = taken.iter().enumerate();
            taken.map(move |(resource, taken)| (switch, resource, *taken))
        });
        let mut binding = rows.filter(|(_, resource, _)| self.problem.resources[*resource].binds);
        let (switch, resource, taken) = binding.find(|(switch, resource, taken)| {
            let of = self.problem.free(*switch, *resource);
            *taken > 0 && planner::injection::Utilisation { taken: *taken, of } == found.cost.worst
        })?;
        Some(Fullest {
            switch: self.problem.switches[switch].name.clone(),
            resource: self.problem.resources[resource].name.clone(),
            taken,
            of: self.problem.free(switch, resource),
            at_least: found.bound.fraction(),
            is_least: found.proven || found.bound == found.cost.worst,
        })
    }
}

fn resources(target: &TargetModel) -> Vec<SwitchResource> {
    let resource = |name: &str| SwitchResource {
        name: name.to_owned(),
        binds: true,
        share_ppm: None,
    };
    let mut resources = Vec::from(
        [
            "units in ingress",
            "units in egress",
            "distinguishable flows",
            "entries of its units",
            "bit/s of recirculation",
        ]
        .map(resource),
    );
    resources[RECIRCULATION].binds = false;
    let chip_resources = target.fault_takes.iter();
    resources
        .extend(chip_resources.map(|(name, _)| resource(&format!("thousandths of its {name}"))));
    resources
}

fn switch(name: &str, target: &TargetModel) -> InjectionSwitch {
    let units = target.units as u64;
    let mut capacity = vec![
        units,
        units,
        MAX_FLOWS as u64,
        units * MAX_SELECT_ENTRIES as u64,
        target.loop_rate_bps,
    ];
    capacity.extend(target.fault_takes.iter().map(|_| 1_000));
    InjectionSwitch {
        name: name.to_owned(),
        used: vec![0; capacity.len()],
        opening: vec![0; capacity.len()],
        capacity,
    }
}

fn chip_resources(target: &TargetModel) -> impl Iterator<Item = (usize, u64)> {
    let takes = target.fault_takes.iter().enumerate();
    takes.map(|(number, (_, thousandths))| (OF_CHIP + number, *thousandths))
}
