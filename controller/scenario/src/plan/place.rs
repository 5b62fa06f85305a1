//! Which switch injects which fault.
//!
//! Per (fault, flow) the candidates are the switches that lie on *every* path of the flow, or the one that the file
//! names (`where`, or the flow's `on`): there each packet is met exactly once, and its ordinals are counted in one place. A fault that keeps no
//! state (`always`) may also be spread over several switches of which each path crosses exactly one. Among the
//! candidates: the least used busiest switch, then the fewest switches, then nearest to the sender; and never an order
//! in which a packet meets a later fault before an earlier one. Flows of a fault with the same paths are placed together.

use std::collections::{BTreeMap, BTreeSet};

use super::triggered;
use crate::diagnostic::{Code, Sink};
use crate::model::{Direction, Fault, Flow, Path, Scenario};
use crate::selection::Selection;

/// Steps of the search; the best placement found until then is taken.
const MAX_STEPS: usize = 20_000;
/// Ways to spread one stateless fault that are looked at.
const MAX_SPREADS: usize = 16;

/// Where a fault meets a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    /// Index into the scenario's faults.
    pub fault: usize,
    /// Index into the scenario's flows.
    pub flow: usize,
    /// Position of the flow in the fault's list.
    pub cell: usize,
    pub switch: String,
    pub direction: Direction,
}

#[derive(Debug, Clone)]
pub(super) struct Placement {
    /// In declared order of fault, flow, switch.
    pub points: Vec<Point>,
    /// The switch of each trigger.
    pub triggers: Vec<Option<String>>,
}

impl Placement {
    /// The faults that act at a place, in declared order.
    pub fn faults_at<'s>(
        &'s self,
        scenario: &'s Scenario,
        switch: &'s str,
        direction: Direction,
    ) -> impl Iterator<Item = &'s Fault> {
        let here = move |fault: usize| {
            self.points.iter().any(|point| {
                point.fault == fault && point.switch == switch && point.direction == direction
            })
        };
        scenario
            .faults
            .iter()
            .enumerate()
            .filter(move |(index, _)| here(*index))
            .map(|(_, fault)| fault)
    }
}

/// One decision: a fault on flows that take the same paths, and the sets of switches that can take it.
pub(super) struct Choice<'s> {
    pub fault: usize,
    /// Flow and cell of each.
    flows: Vec<(usize, usize)>,
    paths: &'s [Path],
    direction: Direction,
    pub sets: Vec<Vec<&'s str>>,
}

/// What makes two flows of a fault alike: their ends, and where they can be met.
type Alike<'s> = (Vec<(&'s str, &'s str)>, Vec<Vec<&'s str>>);

pub(super) fn place(sink: &mut Sink<'_>, scenario: &Scenario) -> Option<Placement> {
    let mut choices: Vec<Choice<'_>> = Vec::new();
    let mut complete = true;
    for (index, fault) in scenario.faults.iter().enumerate() {
        let mut alike: BTreeMap<Alike<'_>, usize> = BTreeMap::new();
        for (cell, &flow) in fault.flows.iter().enumerate() {
            let Some(sets) = candidates(sink, fault, &scenario.flows[flow]) else {
                complete = false;
                continue;
            };
            let direction = fault
                .place
                .as_ref()
                .map_or(Direction::Ingress, |place| place.direction);
            let paths = &scenario.flows[flow].paths;
            let ends = paths
                .iter()
                .map(|path| (path.from.as_str(), path.to.as_str()));
            let choice = *alike
                .entry((ends.collect(), sets.clone()))
                .or_insert(choices.len());
            if choice == choices.len() {
                choices.push(Choice {
                    fault: index,
                    flows: Vec::new(),
                    paths,
                    direction,
                    sets,
                });
            }
            choices[choice].flows.push((flow, cell));
        }
    }
    if !complete {
        return None;
    }
    let errors = sink.errors();
    let triggers = triggered::tie(sink, scenario, &mut choices);
    if sink.errors() > errors {
        return None;
    }
    let meetings = meetings(scenario, &choices);
    let mut search = Search {
        choices: &choices,
        meetings: &meetings,
        chosen: Vec::new(),
        best: None,
        steps: 0,
    };
    search.descend();
    let Some((_, chosen)) = search.best else {
        report_order(sink, scenario, &choices, &meetings);
        return None;
    };
    let mut points = Vec::new();
    for (choice, set) in choices.iter().zip(chosen) {
        for &(flow, cell) in &choice.flows {
            points.extend(choice.sets[set].iter().map(|switch| Point {
                fault: choice.fault,
                flow,
                cell,
                switch: (*switch).to_owned(),
                direction: choice.direction,
            }));
        }
    }
    points.sort_by_key(|point| (point.fault, point.cell));
    Some(Placement { points, triggers })
}

/// The sets of switches at which every packet of the flow is met exactly once; nearest to the senders first.
fn candidates<'s>(sink: &mut Sink<'_>, fault: &Fault, flow: &'s Flow) -> Option<Vec<Vec<&'s str>>> {
    let first = flow.paths.first()?;
    let on_all = |switch: &str| {
        flow.paths
            .iter()
            .all(|path| path.switches.iter().any(|other| other == switch))
    };
    let common: Vec<&str> = first
        .switches
        .iter()
        .map(String::as_str)
        .filter(|switch| on_all(switch))
        .collect();
    if let (Some(on), Some(place)) = (&flow.on, &fault.place)
        && *on != place.switch
    {
        let message = format!(
            "fault `{}` acts on switch `{}`, but flow `{}` is only known `on: {on}`",
            fault.id, place.switch, flow.name
        );
        sink.error(Code::Placement, fault.place_span, message);
        return None;
    }
    if let Some(on) = &flow.on {
        // Resolution kept only the paths across it.
        return Some(vec![vec![on]]);
    }
    if let Some(place) = &fault.place {
        if let Some(switch) = common.iter().find(|switch| **switch == place.switch) {
            return Some(vec![vec![switch]]);
        }
        report_place(sink, fault, flow, &place.switch);
        return None;
    }
    let mut sets: Vec<Vec<&str>> = common.into_iter().map(|switch| vec![switch]).collect();
    let is_alike = !fault.effect.draws() && !fault.effect.goes_by_time();
    if sets.is_empty() && fault.selection == Selection::Always && is_alike {
        spread(&flow.paths, &mut Vec::new(), &mut sets);
        sets.sort_by_key(Vec::len);
    }
    if sets.is_empty() {
        let (a, b) = apart(&flow.paths);
        let message = format!(
            "no single switch sees every packet of flow `{}` for fault `{}`",
            flow.name, fault.id
        );
        sink.error(Code::Placement, fault.span, message)
            .hint(format!(
                "{a} and {b} have no switch in common: split the flow with `from` or `to`"
            ));
        return None;
    }
    Some(sets)
}

/// Exact covers: sets of switches of which every path crosses exactly one.
fn spread<'s>(paths: &'s [Path], chosen: &mut Vec<&'s str>, found: &mut Vec<Vec<&'s str>>) {
    let crossed = |path: &Path| {
        path.switches
            .iter()
            .filter(|switch| chosen.contains(&switch.as_str()))
            .count()
    };
    if found.len() == MAX_SPREADS || paths.iter().any(|path| crossed(path) > 1) {
        return;
    }
    let Some(open) = paths.iter().find(|path| crossed(path) == 0) else {
        found.push(chosen.clone());
        return;
    };
    for switch in &open.switches {
        chosen.push(switch);
        spread(paths, chosen, found);
        chosen.pop();
    }
}

fn report_place(sink: &mut Sink<'_>, fault: &Fault, flow: &Flow, switch: &str) {
    let crosses = |path: &&Path| path.switches.iter().any(|other| other == switch);
    let show = |path: &Path| {
        format!(
            "{} → {} by way of {}",
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
            .hint(format!("its packets go {}", show(bypass)));
    }
}

/// Two paths that show why there is no common switch.
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
        "the others".to_owned(),
    )
}

/// Busiest switch's faults, switches touched, hops from the senders.
type Cost = (usize, usize, usize);

/// Pairs of choices, the earlier one first, of whose flows a packet can be in both.
type Meetings = BTreeSet<(usize, usize)>;

fn meetings(scenario: &Scenario, choices: &[Choice<'_>]) -> Meetings {
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
    // Most classes meet the same choices.
    let sets: BTreeSet<BTreeSet<usize>> = sets.collect();
    let mut meetings = Meetings::new();
    for set in sets {
        for a in &set {
            meetings.extend(set.range(a + 1..).map(|b| (*a, *b)));
        }
    }
    meetings
}

struct Search<'s> {
    meetings: &'s Meetings,
    choices: &'s [Choice<'s>],
    chosen: Vec<usize>,
    best: Option<(Cost, Vec<usize>)>,
    steps: usize,
}

impl Search<'_> {
    /// Depth first, nearest to the sender first; cut where the cost cannot fall any more.
    fn descend(&mut self) {
        self.steps += 1;
        let cost = self.cost();
        if self.steps > MAX_STEPS || self.best.as_ref().is_some_and(|(best, _)| cost >= *best) {
            return;
        }
        let next = self.chosen.len();
        let Some(choice) = self.choices.get(next) else {
            self.best = Some((cost, self.chosen.clone()));
            return;
        };
        for set in 0..choice.sets.len() {
            if (0..next).all(|earlier| self.in_order(earlier, next, set)) {
                self.chosen.push(set);
                self.descend();
                self.chosen.pop();
            }
        }
    }

    fn cost(&self) -> Cost {
        let mut used: Vec<(&str, Direction, usize)> = Vec::new();
        let mut hops = 0;
        for (choice, set) in self.choices.iter().zip(&self.chosen) {
            for &switch in &choice.sets[*set] {
                used.push((switch, choice.direction, choice.fault));
                let paths = choice.paths.iter();
                let nearest = paths
                    .filter_map(|path| path.switches.iter().position(|other| other == switch))
                    .min()
                    .unwrap_or(0);
                hops += nearest * choice.flows.len();
            }
        }
        used.sort_unstable();
        used.dedup();
        let busiest = used
            .chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
            .map(<[_]>::len)
            .max()
            .unwrap_or(0);
        let touched = used.chunk_by(|a, b| a.0 == b.0).count();
        (busiest, touched, hops)
    }

    fn in_order(&self, earlier: usize, next: usize, set: usize) -> bool {
        let before = (&self.choices[earlier], self.chosen[earlier]);
        !self.meetings.contains(&(earlier, next)) || in_order(before, (&self.choices[next], set))
    }
}

/// Whether no packet meets the later of two faults first.
fn in_order(before: (&Choice<'_>, usize), after: (&Choice<'_>, usize)) -> bool {
    if before.0.fault == after.0.fault {
        return true;
    }
    let position = |path: &Path, (choice, set): (&Choice<'_>, usize)| {
        let at = path
            .switches
            .iter()
            .position(|switch| choice.sets[set].contains(&switch.as_str()));
        at.map(|hop| (hop, choice.direction))
    };
    let shared = before
        .0
        .paths
        .iter()
        .filter(|path| after.0.paths.contains(path));
    shared.into_iter().all(
        |path| match (position(path, before), position(path, after)) {
            (Some(first), Some(second)) => first <= second,
            _ => true,
        },
    )
}

/// Only places named in the file can force the wrong order; name two faults that do.
fn report_order(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    choices: &[Choice<'_>],
    meetings: &Meetings,
) {
    let source = sink.source();
    for (i, after) in choices.iter().enumerate() {
        for (j, before) in choices[..i].iter().enumerate() {
            let possible = !meetings.contains(&(j, i))
                || (0..before.sets.len())
                    .any(|a| (0..after.sets.len()).any(|b| in_order((before, a), (after, b))));
            if !possible {
                let (first, second) = (
                    &scenario.faults[before.fault],
                    &scenario.faults[after.fault],
                );
                let message = format!(
                    "packets meet fault `{}` before fault `{}`, which is declared first",
                    second.id, first.id
                );
                sink.error(Code::Placement, second.place_span, message)
                    .related(
                        &source,
                        first.place_span,
                        format!("`{}` acts here", first.id),
                    )
                    .hint(
                        "declare faults in the order in which packets meet them, or change `where`",
                    );
                return;
            }
        }
    }
    sink.error(
        Code::Placement,
        scenario.faults[0].span,
        "no placement meets all faults in their declared order",
    )
    .hint("name a switch with `where`");
}
