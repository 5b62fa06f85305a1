//! Reads how a training's gradient is cut into fragments, and the order in which workers send: for planners that count bytes.

use planner::gradient::Job;
use planner::gradient::goat::fastest::Learning;
use planner::{Network, NodeId};

use super::hosts::hosts;
use super::{PlacedWorkers, ReadFor, reader};
use crate::diagnostic::{Code, Sink, Span};
use crate::file::schema::reader::Fields;
use crate::file::schema::shape::{DURATION, Object, Shape, needed};
use crate::file::yaml::Node;
use crate::units::show_size;

pub(super) const MAX_FRAGMENTS: u64 = 256;
/// Maximum size of a gradient, in bytes: larger than any gradient in practice.
const MAX_BYTES: u64 = 1_000_000_000_000_000;

/// Maximum number of past rounds that the planner evaluates.
const MAX_ROUNDS: usize = 1000;

const KEYS: [&str; 6] = [
    "gradient",
    "fragments",
    "arrivals",
    "wait_for",
    "learning",
    "past_rounds",
];
const NEEDED: [(&str, &str); 2] = [("gradient", "44MB"), ("fragments", "48")];

const POSITIVE: Shape = Shape::Number(f64::MIN_POSITIVE, f64::MAX);

pub(super) static LEARNING: Object = Object {
    what: "how a model learns",
    keys: &[
        needed("loss", POSITIVE, "the loss that is still to be lost"),
        needed(
            "epsilon",
            POSITIVE,
            "how near to the optimum counts as there",
        ),
        needed(
            "variance",
            Shape::Number(0.0, f64::MAX),
            "the variance of gradients",
        ),
    ],
};

/// Past training rounds and learning parameters, from which the planner computes for how many workers a server should wait.
#[derive(Debug, Clone, PartialEq)]
pub struct PastRounds {
    /// The learning parameters of the model that is trained.
    pub learning: Learning,
    /// For each past round, for each worker by rank: when its gradient arrived, in nanoseconds since the round began.
    pub arrivals: Vec<Vec<u64>>,
}

/// A gradient that is cut into fragments, and the order in which the workers send theirs.
#[derive(Debug, Clone, PartialEq)]
pub struct CutGradient {
    /// Number of fragments of each worker's gradient.
    pub fragments: usize,
    /// Bytes of each fragment; the last fragment may be padded.
    pub fragment_bytes: u64,
    /// Ranks of the workers in the order in which their gradients arrive.
    pub order: Vec<usize>,
    /// Number of workers for whose gradients the server waits: the first ones in `order`.
    pub wait_for: usize,
    /// Past rounds from which the best `wait_for` can be computed; `None` if the file gives none.
    pub past: Option<PastRounds>,
}

/// Refuses keys that the chosen planner does not use, and reports missing keys that it needs.
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
                    .hint(format!("write for example `{key}: {example}`"));
            }
        }
    } else {
        for key in KEYS {
            if let Some(node) = fields.get(key) {
                let message = format!("`{key}` has no effect with `--by {by}`");
                sink.error(Code::NoEffect, node.span, message)
                    .hint("leave it out: only `--by goat` uses it");
            }
        }
    }
    sink.errors() == errors
}

/// Reads the keys that describe the gradient of a training.
pub(super) fn read(
    sink: &mut Sink<'_>,
    fields: &Fields<'_>,
    network: &Network,
    job: &Job,
    placed: &Option<PlacedWorkers>,
) -> Option<CutGradient> {
    let size = fields.number::<u64>(sink, "gradient")?;
    let fragments = fields.number::<u64>(sink, "fragments")?.value;
    if !(fragments..=MAX_BYTES).contains(&size.value) {
        let message = format!(
            "`gradient` must have at least one byte for each fragment, and at most {}",
            show_size(MAX_BYTES)
        );
        sink.error(Code::OutOfRange, size.span, message);
        return None;
    }
    let order = match fields.get("arrivals") {
        Some(node) => arrivals(sink, node, network, job, placed)?,
        None => (0..job.workers.len()).collect(),
    };
    let senders = job.workers.len();
    let wait_for = fields.optional_number(sink, "wait_for")?;
    if let Some(first) = wait_for.filter(|first| first.value > senders) {
        let message = format!(
            "`wait_for` is {}, but only {senders} hosts send",
            first.value
        );
        sink.error(Code::OutOfRange, first.span, message);
        return None;
    }
    let past = past_rounds(sink, fields, job)?;
    Some(CutGradient {
        fragments: fragments as usize,
        fragment_bytes: size.value.div_ceil(fragments),
        order,
        wait_for: wait_for.map_or(senders, |first| first.value),
        past,
    })
}

/// Reads past rounds: `Some(None)` if the file gives none, `None` if they were refused.
fn past_rounds(sink: &mut Sink<'_>, fields: &Fields<'_>, job: &Job) -> Option<Option<PastRounds>> {
    let (learning, rounds) = match (fields.get("learning"), fields.get("past_rounds")) {
        (None, None) => return Some(None),
        (Some(learning), Some(rounds)) => (learning, rounds),
        (Some(one), None) | (None, Some(one)) => {
            let message = "`learning` and `past_rounds` have an effect only together";
            sink.error(Code::MissingKey, one.span, message)
                .hint("give both, or leave both out");
            return None;
        }
    };
    let senders = job.workers.len();
    let known = reader::fields(sink, learning, &LEARNING)?;
    let learning = Learning {
        loss: known.float(sink, "loss")?,
        epsilon: known.float(sink, "epsilon")?,
        variance: known.float(sink, "variance")?,
        count: senders as f64,
    };
    if learning.rounds(senders).is_none() {
        let Learning {
            epsilon, variance, ..
        } = learning;
        let message = format!(
            "`variance` is {variance}, but must be below {senders} workers times `epsilon`, {}: otherwise the gradients are too noisy to get within `epsilon` of the optimum",
            epsilon * senders as f64
        );
        let span = known.get("variance")?.span;
        sink.error(Code::OutOfRange, span, message)
            .hint("write a larger `epsilon`, or add workers");
        return None;
    }
    let listed = reader::list(sink, rounds, "`past_rounds`")?;
    if listed.is_empty() || listed.len() > MAX_ROUNDS {
        let message = format!(
            "`past_rounds` has {} rounds; write 1 to {MAX_ROUNDS}",
            listed.len()
        );
        sink.error(Code::OutOfRange, rounds.span, message);
        return None;
    }
    let arrivals = listed.iter().map(|round| {
        let times = reader::list(sink, round, "a round of `past_rounds`")?;
        if times.len() != senders {
            let message = format!(
                "this round has {} times, but {senders} hosts send",
                times.len()
            );
            sink.error(Code::OutOfRange, round.span, message)
                .hint("write one time for each host that sends, in order of ranks");
            return None;
        }
        let times = times.iter();
        let times = times.map(|time| reader::number(sink, time, "a time", &DURATION));
        times.map(|time| Some(time?.value)).collect()
    });
    let arrivals = arrivals.collect::<Option<_>>()?;
    Some(Some(PastRounds { learning, arrivals }))
}

/// Reads the ranks in their order of arrival. A pattern stands for all matching workers that the list does not name before it.
fn arrivals(
    sink: &mut Sink<'_>,
    node: &Node,
    network: &Network,
    job: &Job,
    placed: &Option<PlacedWorkers>,
) -> Option<Vec<usize>> {
    if placed.is_some() {
        let message = "`arrivals` names hosts, but `workers` lets the planner choose them";
        sink.error(Code::Contradiction, node.span, message)
            .hint("leave `arrivals` out, or name the workers");
        return None;
    }
    let mut order: Vec<usize> = Vec::new();
    let rank = |host: NodeId| job.workers.iter().position(|worker| *worker == host);
    let mut is_good = true;
    for host in hosts(sink, node, network)? {
        let found = rank(host.node);
        let problem = match found {
            None => "is not a worker of this training",
            Some(rank) if order.contains(&rank) => "occurs twice in `arrivals`",
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
            .hint("add the missing workers; `*` at the end stands for all others");
        is_good = false;
    }
    is_good.then_some(order)
}
