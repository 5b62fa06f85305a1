//! Upper bound of the rate: a relaxation of whole streams.
//!
//! At a rate λ capacities are whole numbers of streams, and the relaxation keeps them whole, as well as the number of open
//! switches of a class ([`Classes`]). An open switch sums as many workers as it has capacity for, and sends one stream. Only
//! streams and the tree of answers may be split. This is tighter than the paper's relaxation, in which one worker's share
//! suffices to open any switch by that share.

use std::collections::BTreeMap;

use super::classes::{Arcs, Classes, Kind};
use super::streams::Streams;
use crate::network::NodeId;
use crate::solve::{Answer, Cmp, Limits, Model, Sense, SolveError, Var, lp, milp};

/// Result of the relaxation at a rate of all workers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Relaxed {
    /// It is proved that not all workers can send at the rate.
    Refuted,
    /// All workers could send at the rate if streams could be split and these switches sum; the most used switches come first.
    Open(Vec<NodeId>),
    /// The limits of work were reached before the relaxation was solved.
    Unknown,
}

/// Maximum number of linear programs in one branch-and-bound search.
const NODES: usize = 200;
/// Maximum number of classes of switches of which a whole number must sum; with more classes, fractions are allowed.
const WHOLE_CLASSES: usize = 128;
/// Maximum number of classes of links in a relaxation that is solved.
const LINK_CLASSES: usize = 10_000;
/// A class counts as closed if less than this share of its switches sum: the solver's tolerance.
const CLOSED: f64 = 1e-6;

/// Solves the relaxation at a rate, with as few streams of switches as possible. `left` is the number of linear programs that
/// may still be solved, and is reduced; with 0 the result is unknown.
pub(super) fn relax(streams: &Streams<'_>, rate_bps: f64, left: &mut usize) -> Relaxed {
    let classes = Classes::new(streams, rate_bps);
    if *left == 0 || classes.arcs.len() > LINK_CLASSES {
        return Relaxed::Unknown;
    }
    let program = Program::new(streams, &classes, rate_bps);
    let is_whole = program.opens.len() <= WHOLE_CLASSES;
    let nodes = if is_whole { NODES.min(*left) } else { 1 };
    let answer = match is_whole {
        true => {
            // The gap is less than one switch of all.
            let limits = Limits { nodes, gap: 1e-4 };
            milp(&program.model, &limits, None)
        }
        false => lp(&program.model),
    };
    *left -= match &answer {
        Ok(answer) => answer.nodes.clamp(1, *left),
        // The error does not contain the number of solved programs.
        Err(SolveError::Unsolved(_)) => nodes,
        Err(_) => 1,
    };
    match answer {
        Ok(answer) => Relaxed::Open(program.open(&classes, &answer)),
        Err(SolveError::Infeasible) => Relaxed::Refuted,
        Err(_) => Relaxed::Unknown,
    }
}

struct Program {
    model: Model,
    /// Index of each class of switches that can sum, and the variable for the number of them that do.
    opens: Vec<(usize, Var)>,
}

/// Variables for the total flow over all arcs of a class.
#[derive(Default, Clone, Copy)]
struct Flows {
    raw: Option<Var>,
    summed: Option<Var>,
    answers: Option<Var>,
}

impl Program {
    fn new(streams: &Streams<'_>, classes: &Classes, rate_bps: f64) -> Program {
        let mut model = Model::new(Sense::Minimize);
        let mut opens = Vec::new();
        let mut takes = vec![None; classes.classes.len()];
        for (number, class) in classes.classes.iter().enumerate() {
            let Kind::Switch(room @ 2..) = class.kind else {
                continue;
            };
            let (count, room) = (class.nodes.len() as f64, room as f64);
            let open = model.integer(0.0, count, 1.0);
            let taken = model.variable(0.0, count * room, 0.0);
            model.constrain([(taken, 1.0), (open, -room)], Cmp::Le, 0.0);
            takes[number] = Some((taken, open));
            opens.push((number, open));
        }
        let mut flows: Vec<(Arcs, f64, Flows)> = Vec::new();
        for (arcs, count) in &classes.arcs {
            let count = *count as f64;
            let kinds = (
                classes.classes[arcs.from].kind,
                classes.classes[arcs.to].kind,
            );
            let flow = variables(&mut model, kinds, *arcs, count, streams.answers);
            flows.push((*arcs, count, flow));
        }
        // Balances of raw and of summed streams, by class.
        let none: [Vec<(Var, f64)>; 2] = Default::default();
        let mut balances = vec![none; classes.classes.len()];
        for (arcs, _, flow) in &flows {
            for (end, sign) in [(arcs.from, 1.0), (arcs.to, -1.0)] {
                let [raw, summed] = &mut balances[end];
                raw.extend(flow.raw.map(|var| (var, sign)));
                summed.extend(flow.summed.map(|var| (var, sign)));
            }
        }
        for ((number, class), balance) in classes.classes.iter().enumerate().zip(balances) {
            let count = class.nodes.len() as f64;
            let [mut raw, mut summed] = balance;
            match class.kind {
                Kind::Worker => {
                    model.constrain(raw, Cmp::Eq, count);
                }
                // A raw stream leaves the switch or is summed in it; a switch that sums sends one summed stream.
                Kind::Switch(_) => {
                    if let Some((taken, open)) = takes[number] {
                        raw.push((taken, 1.0));
                        summed.push((open, -1.0));
                    }
                    model.constrain(raw, Cmp::Eq, 0.0);
                    model.constrain(summed, Cmp::Eq, 0.0);
                }
                Kind::Server => {
                    let into = raw.into_iter().chain(summed).map(|(var, _)| (var, 1.0));
                    let into: Vec<(Var, f64)> = into.collect();
                    model.constrain(into, Cmp::Le, streams.takes(rate_bps) as f64);
                }
            }
        }
        if streams.answers {
            answers(&mut model, classes, &flows);
        }
        Program { model, opens }
    }

    /// Switches that sum in the solver's answer. Classes of which the greatest share is open come first.
    fn open(&self, classes: &Classes, answer: &Answer) -> Vec<NodeId> {
        let opened = self.opens.iter().map(|(class, var)| {
            let nodes = &classes.classes[*class].nodes;
            (
                answer.value(*var) / nodes.len() as f64,
                nodes,
                answer.value(*var),
            )
        });
        let mut opened: Vec<(f64, &Vec<NodeId>, f64)> =
            opened.filter(|(part, ..)| *part > CLOSED).collect();
        opened.sort_by(|(a, one, _), (b, other, _)| b.total_cmp(a).then(one.cmp(other)));
        let nodes = opened.into_iter().flat_map(|(_, nodes, count)| {
            let count = (count - CLOSED).ceil() as usize;
            nodes[..count.min(nodes.len())].iter().copied()
        });
        nodes.collect()
    }
}

/// Adds variables for the flows that are possible between nodes of these kinds.
fn variables(
    model: &mut Model,
    (from, to): (Kind, Kind),
    arcs: Arcs,
    count: f64,
    answers: bool,
) -> Flows {
    use Kind::{Server, Switch, Worker};
    let (raw, summed, back) = match (from, to) {
        (Worker, Switch(_)) => (true, false, false),
        (Switch(_), Switch(_)) => (true, true, true),
        (Switch(_), Server) => (true, true, false),
        (Server, Switch(_)) | (Switch(_), Worker) => (false, false, true),
        _ => (false, false, false),
    };
    let room = count * arcs.room as f64;
    let mut variable = |is: bool, most: f64| is.then(|| model.variable(0.0, most, 0.0));
    let flows = Flows {
        // Each worker has one raw stream.
        raw: variable(raw, room.min(if from == Worker { count } else { room })),
        summed: variable(summed, room),
        // Each link carries at most one copy of an answer.
        answers: variable(back && answers, room.min(count)),
    };
    let all = [flows.raw, flows.summed, flows.answers];
    let all: Vec<(Var, f64)> = all.into_iter().flatten().map(|var| (var, 1.0)).collect();
    if all.len() > 1 {
        model.constrain(all, Cmp::Le, room);
    }
    flows
}

/// Requires that links with answers may form a tree: at most one link enters each node, at least one each worker, and answers
/// leave a switch only if they entered it by another link.
fn answers(model: &mut Model, classes: &Classes, flows: &[(Arcs, f64, Flows)]) {
    let mut into: Vec<Vec<(Var, f64)>> = vec![Vec::new(); classes.classes.len()];
    let mut by_arcs: BTreeMap<Arcs, Var> = BTreeMap::new();
    for (arcs, _, flow) in flows {
        into[arcs.to].extend(flow.answers.map(|var| (var, 1.0)));
        by_arcs.extend(flow.answers.map(|var| (*arcs, var)));
    }
    for (class, into) in classes.classes.iter().zip(&into) {
        let count = class.nodes.len() as f64;
        match class.kind {
            Kind::Worker => model.constrain(into.clone(), Cmp::Ge, count),
            Kind::Switch(_) => model.constrain(into.clone(), Cmp::Le, count),
            Kind::Server => continue,
        };
    }
    for (arcs, count, flow) in flows {
        let class = &classes.classes[arcs.from];
        let (Kind::Switch(_), Some(on)) = (class.kind, flow.answers) else {
            continue;
        };
        let each = count / class.nodes.len() as f64;
        let back = by_arcs.get(&arcs.reverse());
        let mut row: Vec<(Var, f64)> = into[arcs.from]
            .iter()
            .map(|(var, _)| (*var, -each))
            .collect();
        row.push((on, 1.0));
        // If a class of arcs is its own reverse, its reverse arcs are among its arcs.
        row.extend(back.map(|back| (*back, 1.0)));
        model.constrain(row, Cmp::Le, 0.0);
    }
}
