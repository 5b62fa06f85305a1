//! What no plan is above: a relaxation of whole streams.
//!
//! At a rate λ capacities are whole numbers of streams, and those are kept whole here: a switch that is open by the part u
//! sums u times as many workers as it has room for, and sends u streams. Only the streams may be split. This is a sharper
//! relaxation than the paper's, which may open every switch by the share of one worker.

use super::streams::Streams;
use crate::network::NodeId;
use crate::solve::{Cmp, Model, Sense, SolveError, Var, lp};

/// What the relaxation of a rate says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Relaxed {
    /// Workers cannot all send so much.
    Refuted,
    /// If streams could be split, they could.
    Open {
        /// All of them.
        rate_bps: f64,
        /// By which part each switch is open, the most open first.
        switches: Vec<NodeId>,
    },
    /// Nothing that can be relied on.
    Unknown,
}

/// Solves the relaxation, with as few streams of switches as it allows.
pub(super) fn relax(streams: &Streams<'_>, rate_bps: f64) -> Relaxed {
    let (model, opens) = relaxation(streams, rate_bps);
    let answer = match lp(&model) {
        Ok(answer) => answer,
        Err(SolveError::Infeasible) => return Relaxed::Refuted,
        Err(_) => return Relaxed::Unknown,
    };
    let mut open: Vec<(NodeId, f64)> = opens
        .into_iter()
        .map(|(switch, open)| (switch, answer.value(open)))
        .filter(|(_, part)| *part > CLOSED)
        .collect();
    open.sort_by(|(a, one), (b, other)| other.total_cmp(one).then(a.cmp(b)));
    Relaxed::Open {
        rate_bps,
        switches: open.into_iter().map(|(switch, _)| switch).collect(),
    }
}

/// A switch that is open by less is closed: what the solver's tolerance leaves.
const CLOSED: f64 = 1e-6;

/// The terms of a switch's balance: what goes on from it is positive.
#[derive(Default, Clone)]
struct Balance {
    workers: Vec<(Var, f64)>,
    sums: Vec<(Var, f64)>,
    /// Workers at this switch alone.
    attached: f64,
}

fn relaxation(streams: &Streams<'_>, rate_bps: f64) -> (Model, Vec<(NodeId, Var)>) {
    let network = streams.network;
    let mut model = Model::new(Sense::Minimize);
    let many = streams.job.workers.len() as f64;
    let mut balances = vec![Balance::default(); network.nodes().len()];
    let mut opens = Vec::new();
    let mut into_server: Vec<(Var, f64)> = Vec::new();
    for (arc, room) in streams.arcs(rate_bps) {
        let room = (room as f64).min(many);
        let raw = model.variable(0.0, room, 0.0);
        let summed = model.variable(0.0, room, 0.0);
        model.constrain([(raw, 1.0), (summed, 1.0)], Cmp::Le, room);
        let (from, to) = network.ends(arc);
        for (node, sign) in [(from, 1.0), (to, -1.0)] {
            balances[node.index()].workers.push((raw, sign));
            balances[node.index()].sums.push((summed, sign));
        }
        if to == streams.server.host {
            into_server.extend([(raw, 1.0), (summed, 1.0)]);
        }
    }
    for (switch, room) in streams.rooms(rate_bps) {
        let room = (room as f64).min(many);
        let open = model.variable(0.0, 1.0, 1.0);
        opens.push((switch, open));
        let takes = model.variable(0.0, room, 0.0);
        model.constrain([(takes, 1.0), (open, -room)], Cmp::Le, 0.0);
        balances[switch.index()].workers.push((takes, 1.0));
        balances[switch.index()].sums.push((open, -1.0));
    }
    for (switches, count) in streams.entries(rate_bps) {
        let count = count as f64;
        match switches.as_slice() {
            [switch] => balances[switch.index()].attached += count,
            switches => {
                let by = switches.iter().map(|switch| {
                    let by = model.variable(0.0, count, 0.0);
                    balances[switch.index()].workers.push((by, -1.0));
                    (by, 1.0)
                });
                let by: Vec<(Var, f64)> = by.collect();
                model.constrain(by, Cmp::Eq, count);
            }
        }
    }
    // What comes to a switch goes on, or is summed there; what it sums goes on as one.
    let switches: Vec<NodeId> = network.switches().collect();
    for switch in switches {
        let balance = std::mem::take(&mut balances[switch.index()]);
        model.constrain(balance.workers, Cmp::Eq, balance.attached);
        model.constrain(balance.sums, Cmp::Eq, 0.0);
    }
    model.constrain(into_server, Cmp::Le, streams.takes(rate_bps) as f64);
    (model, opens)
}
