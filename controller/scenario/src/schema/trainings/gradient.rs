//! What a gradient is made of, and whose comes first: for planners that count bytes.

use planner::gradient::Job;
use planner::{Network, NodeId};

use super::hosts::hosts;
use super::{MAX_WORKERS, PlacedWorkers, ReadFor, reader};
use crate::diagnostic::{Code, Sink, Span};
use crate::schema::reader::Fields;
use crate::units::{Dimension, show_size};
use crate::yaml::Node;

pub(super) const MAX_FRAGMENTS: u64 = 256;
/// More is none that anything trains.
const MAX_BYTES: u64 = 1_000_000_000_000_000;

const KEYS: [&str; 4] = ["gradient", "fragments", "arrivals", "wait_for"];
const NEEDED: [(&str, &str); 2] = [("gradient", "44MB"), ("fragments", "48")];

/// A gradient in fragments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutGradient {
    /// How many.
    pub fragments: usize,
    /// Of each; the last may be filled up.
    pub fragment_bytes: u64,
    /// Workers by who is first.
    pub order: Vec<usize>,
    /// How many of these, the first, are waited for.
    pub wait_for: usize,
}

/// Refuses keys that mean nothing for the planner, and asks for those that it needs.
pub(super) fn belongs(sink: &mut Sink<'_>, fields: &Fields<'_>, wanted: ReadFor<'_>) -> bool {
    let by = wanted.by;
    let errors = sink.errors();
    if wanted.counts_bytes {
        for (key, example) in NEEDED {
            if fields.get(key).is_none() {
                let start = Span {
                    end: fields.span.start,
                    ..fields.span
                };
                let message = format!("`--by {by}` needs the key `{key}` of a training");
                sink.error(Code::MissingKey, start, message)
                    .hint(format!("such as `{key}: {example}`"));
            }
        }
    } else {
        for key in KEYS {
            if let Some(node) = fields.get(key) {
                let message = format!("`{key}` means nothing for `--by {by}`");
                sink.error(Code::NoEffect, node.span, message)
                    .hint("it is for `--by goat`");
            }
        }
    }
    sink.errors() == errors
}

/// Reads them.
pub(super) fn read(
    sink: &mut Sink<'_>,
    fields: &Fields<'_>,
    network: &Network,
    job: &Job,
    placed: &Option<PlacedWorkers>,
) -> Option<CutGradient> {
    let size = reader::quantity(sink, fields.get("gradient")?, "`gradient`", Dimension::Size)?;
    let node = fields.get("fragments")?;
    let fragments = reader::integer(sink, node, "`fragments`", 1..=MAX_FRAGMENTS)?;
    if !(fragments..=MAX_BYTES).contains(&size.value) {
        let message = format!(
            "`gradient` has a byte for each fragment, and at most {}",
            show_size(MAX_BYTES)
        );
        sink.error(Code::OutOfRange, size.span, message);
        return None;
    }
    let order = match fields.get("arrivals") {
        Some(node) => arrivals(sink, node, network, job, placed)?,
        None => (0..job.workers.len()).collect(),
    };
    let wait_for = match fields.get("wait_for") {
        Some(node) => wait_for(sink, node, job)?,
        None => job.workers.len(),
    };
    Some(CutGradient {
        fragments: fragments as usize,
        fragment_bytes: size.value.div_ceil(fragments),
        order,
        wait_for,
    })
}

fn wait_for(sink: &mut Sink<'_>, node: &Node, job: &Job) -> Option<usize> {
    let first = reader::integer(sink, node, "`wait_for`", 1..=MAX_WORKERS)? as usize;
    let senders = job.workers.len();
    if first > senders {
        let message = format!("`wait_for` is {first}, and {senders} hosts send");
        sink.error(Code::OutOfRange, node.span, message);
        return None;
    }
    Some(first)
}

/// Ranks by who is first. A pattern means all that it fits and that stand nowhere before it.
fn arrivals(
    sink: &mut Sink<'_>,
    node: &Node,
    network: &Network,
    job: &Job,
    placed: &Option<PlacedWorkers>,
) -> Option<Vec<usize>> {
    if placed.is_some() {
        let message = "`arrivals` names hosts, and `workers` leaves to the planner which";
        sink.error(Code::Contradiction, node.span, message)
            .hint("leave it out, or name the workers");
        return None;
    }
    let mut order: Vec<usize> = Vec::new();
    let rank = |host: NodeId| job.workers.iter().position(|worker| *worker == host);
    let mut is_good = true;
    for host in hosts(sink, node, network)? {
        let found = rank(host.node);
        let problem = match found {
            None => "is no worker of this training",
            Some(rank) if order.contains(&rank) => "stands in `arrivals` before",
            Some(rank) => {
                order.push(rank);
                continue;
            }
        };
        if host.is_named {
            let message = format!("`{}` {problem}", network.name(host.node));
            let code = match found {
                None => Code::UnknownName,
                Some(_) => Code::Duplicate,
            };
            sink.error(code, host.span, message);
            is_good = false;
        }
    }
    let mut all = 0..job.workers.len();
    if let Some(missing) = all.find(|rank| !order.contains(rank)).filter(|_| is_good) {
        let name = network.name(job.workers[missing]);
        let message = format!("`arrivals` leaves out `{name}`");
        sink.error(Code::MissingKey, node.span, message)
            .hint("`*` at its end stands for all others");
        is_good = false;
    }
    is_good.then_some(order)
}
