//! Reads constraints of placements (from Titan): which pairs of workers communicate, and how many may be in different racks.

use planner::Network;
use planner::placement::workers::{Pattern, RackId, RackLimit, WorkerProblem};

use super::hosts::Meant;
use super::{MAX_WORKERS, reader};
use crate::diagnostic::{Code, Sink, Spanned, enumerate_names, nearest};
use crate::file::schema::reader::Fields;
use crate::file::schema::shape::{Object, Shape, needed};
use crate::file::yaml::Node;

/// Maximum number of hosts, and of workers, if pairs between racks are limited: then each search step tries all hosts.
const MOST: usize = 128;
/// Maximum number of racks that a hint lists.
const LISTED: usize = 8;

pub(super) const TALKS: [&str; 3] = ["server", "ring", "halving-doubling"];

pub(super) static BETWEEN: Object = Object {
    what: "pairs between racks",
    keys: &[
        needed(
            "racks",
            Shape::Names("a rack"),
            "two racks, each by the name of its switch",
        ),
        needed(
            "pairs",
            Shape::Integer(0, MAX_WORKERS),
            "how many pairs may talk between them in one step",
        ),
    ],
};

/// Adds to a placement problem which pairs of workers communicate, and how many pairs may span two racks.
pub(super) fn limit(
    sink: &mut Sink<'_>,
    fields: &Fields<'_>,
    network: &Network,
    servers: &[Meant],
    problem: &mut WorkerProblem,
) -> Option<()> {
    let talk = fields.word(sink, "talk")?;
    let Some(between) = fields.get("between") else {
        if let Some(node) = fields.get("talk") {
            sink.error(
                Code::NoEffect,
                node.span,
                "`talk` has no effect without `between`",
            )
            .hint("set with `between` how many pairs may communicate, or leave `talk` out");
            return None;
        }
        return Some(());
    };
    let (hosts, workers) = (problem.machines.len(), problem.workers);
    if hosts.max(workers) > MOST {
        let message = format!(
            "{workers} workers on {hosts} hosts; `between` is for {MOST} workers and {MOST} hosts at most"
        );
        sink.error(Code::Capacity, between.span, message)
            .hint("name fewer hosts in `on`, or leave `between` out");
        return None;
    }
    problem.pattern = match talk {
        "ring" => Pattern::ring(workers),
        "halving-doubling" => Pattern::halving_doubling(workers),
        _ => {
            let racks = servers
                .iter()
                .map(|server| problem.rack(network, server.node));
            let racks: Vec<RackId> = racks.collect();
            let steps = racks
                .iter()
                .map(|rack| Pattern::to_server(workers, *rack).steps.concat());
            Pattern {
                steps: vec![steps.flatten().collect()],
            }
        }
    };
    for node in reader::list(sink, between, "`between`")? {
        let limit = pairs(sink, node, problem)?;
        problem.limits.push(limit);
    }
    Some(())
}

fn pairs(sink: &mut Sink<'_>, node: &Node, problem: &WorkerProblem) -> Option<RackLimit> {
    let fields = reader::fields(sink, node, &BETWEEN)?;
    let racks = fields.get("racks")?;
    let names = reader::texts(sink, racks, "a rack")?;
    let pairs = fields.number(sink, "pairs")?;
    let [one, other] = names.as_slice() else {
        let message = format!(
            "`racks` has {} names; a limit is between two racks",
            names.len()
        );
        sink.error(Code::OutOfRange, racks.span, message)
            .hint("write for example `racks: [l1, l2]`");
        return None;
    };
    let racks = (rack(sink, one, problem)?, rack(sink, other, problem)?);
    if racks.0 == racks.1 {
        let message = format!(
            "`racks` names `{}` twice; a limit is between two racks",
            one.value
        );
        sink.error(Code::Contradiction, other.span, message)
            .hint("pairs within a rack are not limited: name another rack");
        return None;
    }
    Some(RackLimit {
        racks,
        pairs: pairs.value,
    })
}

fn rack(sink: &mut Sink<'_>, name: &Spanned<String>, problem: &WorkerProblem) -> Option<RackId> {
    let names = || problem.racks.iter().map(String::as_str);
    let known = names().position(|rack| rack == name.value);
    if known.is_none() {
        let message = format!(
            "no worker and no server of this training can be in a rack `{}`",
            name.value
        );
        let hint = match nearest(&name.value, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "racks are named by their switches: {}",
                enumerate_names(names().take(LISTED))
            ),
        };
        sink.error(Code::UnknownName, name.span, message).hint(hint);
    }
    known
}
