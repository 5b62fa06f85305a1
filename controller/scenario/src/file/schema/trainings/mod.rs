//! Reads a file of trainings, for `weir route`: the server and the workers of each training.

mod gradient;
mod hosts;
mod racks;
mod refused;

use std::collections::BTreeMap;

use planner::gradient::{Job, Server};
use planner::placement::workers::{self, WorkerProblem};
use planner::{Network, NodeId};

use super::reader;
use super::shape::{DURATION, Object, RATE, SIZE, Shape, may, needed};
use crate::diagnostic::{Code, Diagnostics, Sink, Source, Span};
use crate::file::yaml::{self, Entry, Kind, Node};
use hosts::{Meant, hosts};

pub use gradient::{CutGradient, PastRounds};
pub use hosts::hosts_named;
pub use refused::refused_training;

/// The version of files of trainings that this program reads.
const VERSION: u64 = 1;
const MAX_TRAININGS: usize = 1024;
const MAX_WORKERS: u64 = 10_000;

static FILE: Object = Object {
    what: "a file of trainings",
    keys: &[
        needed(
            "weir-trainings",
            Shape::Integer(VERSION, VERSION),
            "the version of the schema",
        ),
        needed(
            "trainings",
            Shape::Map(&Shape::Object(&TRAINING)),
            "by name; one after the other, each has what those before it leave",
        ),
    ],
};

static TRAINING: Object = Object {
    what: "a training",
    keys: &[
        needed(
            "server",
            Shape::Names("a host"),
            "hosts of parameter servers, one or several",
        ),
        needed(
            "workers",
            Shape::Either(&[Shape::Names("a host"), Shape::Object(&COUNTED)]),
            "hosts, by rank; `*` matches any letters, `h*` all hosts that begin with h; or their number",
        ),
        may(
            "ingress",
            RATE,
            "what each server takes in; what its links carry",
        ),
        may(
            "gradient",
            SIZE,
            "for `--by goat`, which needs it: its bytes",
        ),
        may(
            "fragments",
            Shape::Integer(1, gradient::MAX_FRAGMENTS),
            "for `--by goat`, which needs it: equal ones that it is cut into",
        ),
        may(
            "arrivals",
            Shape::Names("a host"),
            "for `--by goat`: the workers, in order of arrival; by rank",
        ),
        may(
            "wait_for",
            Shape::Integer(1, MAX_WORKERS),
            "for `--by goat`: number of workers, the first ones, that a round waits for; all",
        ),
        may(
            "learning",
            Shape::Object(&gradient::LEARNING),
            "for `--by goat`, with `past_rounds`: how the model learns, to choose how many workers a round waits for",
        ),
        may(
            "past_rounds",
            Shape::List(&Shape::List(&DURATION)),
            "for `--by goat`: of each past round, after how long each worker's gradient was there, by rank",
        ),
    ],
};

/// The keys of `workers` if the file gives only their number, and the planner chooses their hosts.
static COUNTED: Object = Object {
    what: "workers that are placed",
    keys: &[
        needed("count", Shape::Integer(1, MAX_WORKERS), "how many"),
        may(
            "on",
            Shape::Names("a host"),
            "hosts that they may run on, with `*` as above; all but the servers",
        ),
        may(
            "talk",
            Shape::Word(&racks::TALKS),
            "for `between`: which pairs talk in a step: each worker with its `server`, as a `ring`, by `halving-doubling`",
        )
        .or_first(),
        may(
            "between",
            Shape::List(&Shape::Object(&racks::BETWEEN)),
            "how many pairs may talk between two racks in each step; any number",
        ),
    ],
};

/// A training in a file of trainings, with its hosts in the network.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingInNetwork {
    /// The server and the workers, as nodes of the network.
    pub job: Job,
    /// The placement of the workers that the planner chose; `None` if the file gives their hosts.
    pub placed: Option<PlacedWorkers>,
    /// The fragments of the gradient, for a planner that counts bytes; otherwise `None`.
    pub gradient: Option<CutGradient>,
    /// Positions of the training's keys in the file.
    pub spans: TrainingSpans,
}

/// Positions of a training's keys in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingSpans {
    /// Position of the training's name.
    pub name: Span,
    /// Position of the key `server`.
    pub server: Span,
    /// Position of the key `workers`.
    pub workers: Span,
    /// Position of `ingress`; `None` if the file does not have the key.
    pub ingress: Option<Span>,
    /// The hosts that the file gives by name or pattern, each with its position in the file; servers come first.
    hosts: Vec<(NodeId, Span)>,
}

/// The planner for which a file of trainings is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadFor<'a> {
    /// The planner's name on the command line: `--by`.
    pub by: &'a str,
    /// Whether the planner counts bytes. Only then must trainings describe their gradients; otherwise they must not.
    pub counts_bytes: bool,
}

/// Hosts that the planner chose for the workers of a training ([`planner::placement::workers`]). It uses as few idle hosts as
/// possible, then as few hosts as possible. All workers on one host send as one sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedWorkers {
    /// For each sender of the job, by its index: how many workers run on the sender's host.
    pub on_host: Vec<usize>,
    /// Number of used hosts that ran nothing before.
    pub idle: usize,
    /// Whether it is proven that no placement uses fewer idle hosts, or as few idle hosts but fewer hosts.
    pub proven: bool,
}

/// Reads a file of trainings for a network. Returns all errors at once.
pub fn load_trainings(
    file: &str,
    text: &str,
    network: &Network,
    wanted: ReadFor<'_>,
) -> Result<Vec<TrainingInNetwork>, Diagnostics> {
    let mut sink = Sink::new(Source { file, text });
    let read = read(&mut sink, network, wanted);
    match read {
        Some(jobs) if !sink.has_errors() => Ok(jobs),
        _ => Err(sink.into_diagnostics()),
    }
}

fn read(
    sink: &mut Sink<'_>,
    network: &Network,
    wanted: ReadFor<'_>,
) -> Option<Vec<TrainingInNetwork>> {
    let root = yaml::parse(sink)?;
    let fields = reader::fields(sink, &root, &FILE)?;
    fields.number::<u64>(sink, "weir-trainings");
    let entries: &[Entry] = reader::map(sink, fields.get("trainings")?, "`trainings`")?;
    if let Some(beyond) = entries.get(MAX_TRAININGS) {
        let message = format!(
            "{} trainings; at most {MAX_TRAININGS} are planned",
            entries.len()
        );
        sink.error(Code::Capacity, beyond.key_span, message);
        return None;
    }
    // Number of workers of the trainings so far, by host.
    let mut taken: BTreeMap<NodeId, usize> = BTreeMap::new();
    let trainings = entries.iter().filter_map(|entry| {
        let read = training(sink, entry, network, wanted, &taken)?;
        for (place, host) in read.job.workers.iter().enumerate() {
            let placed = read.placed.as_ref();
            *taken.entry(*host).or_default() += placed.map_or(1, |placed| placed.on_host[place]);
        }
        Some(read)
    });
    Some(trainings.collect())
}

fn training(
    sink: &mut Sink<'_>,
    entry: &Entry,
    network: &Network,
    wanted: ReadFor<'_>,
    taken: &BTreeMap<NodeId, usize>,
) -> Option<TrainingInNetwork> {
    let is_good = reader::check_name(sink, &entry.key, entry.key_span, "a training");
    let fields = reader::fields(sink, &entry.value, &TRAINING)?;
    let is_for_it = gradient::belongs(sink, &fields, wanted);
    let servers = fields.read("server", |node| hosts(sink, node, network));
    let ingress = fields.optional_number(sink, "ingress")?;
    let ingress = ingress.map(|rate| rate.value);
    let node = fields.get("workers")?;
    if let Kind::Number {
        integer: Some(count),
        ..
    } = node.kind
    {
        let message = "`workers` must be a list of hosts, or a mapping with their `count`";
        sink.error(Code::WrongType, node.span, message)
            .hint(format!("write `workers: {{count: {count}}}`"));
        return None;
    }
    let mut spans = TrainingSpans {
        name: entry.key_span,
        server: fields.get("server")?.span,
        workers: node.span,
        ingress: fields.get("ingress").map(|node| node.span),
        hosts: Vec::new(),
    };
    let servers = servers.as_deref();
    let called = servers.unwrap_or_default().iter();
    spans.hosts = called.map(|host| (host.node, host.span)).collect();
    let (workers, placed) = match &node.kind {
        Kind::Map(_) => {
            let servers = servers.unwrap_or_default();
            let (workers, placed) = counted(sink, node, network, servers, taken)?;
            (workers, Some(placed))
        }
        _ => {
            let servers = servers.unwrap_or_default();
            let is_server = |host: &Meant| servers.iter().any(|server| server.node == host.node);
            // `*` stands for all other hosts.
            let workers = hosts(sink, node, network)?.into_iter();
            let workers = workers.filter(|host| host.is_named || !is_server(host));
            let called = workers.map(|host| (host.node, host.span));
            let called: Vec<(NodeId, Span)> = called.collect();
            spans.hosts.extend(&called);
            (called.into_iter().map(|(node, _)| node).collect(), None)
        }
    };
    let job = Job {
        name: entry.key.clone(),
        workers,
        servers: (servers?.iter())
            .map(|server| Server {
                ingress_bps: ingress,
                ..Server::on(server.node)
            })
            .collect(),
    };
    if let Err(error) = job.check(network) {
        refused::tell(sink, network, &spans, &error);
        return None;
    }
    let gradient = match wanted.counts_bytes {
        true => Some(gradient::read(sink, &fields, network, &job, &placed)?),
        false => None,
    };
    let training = TrainingInNetwork {
        job,
        placed,
        gradient,
        spans,
    };
    (is_good && is_for_it).then_some(training)
}

/// Chooses hosts for workers of which the file gives only the number.
fn counted(
    sink: &mut Sink<'_>,
    node: &Node,
    network: &Network,
    servers: &[Meant],
    taken: &BTreeMap<NodeId, usize>,
) -> Option<(Vec<NodeId>, PlacedWorkers)> {
    let fields = reader::fields(sink, node, &COUNTED)?;
    let count = fields.get("count")?;
    let wanted = fields.number(sink, "count")?.value;
    let on = match fields.get("on") {
        Some(node) => hosts(sink, node, network)?
            .into_iter()
            .map(|host| host.node)
            .collect(),
        None => network.hosts().collect::<Vec<_>>(),
    };
    let mut may_run: Vec<NodeId> = Vec::new();
    for host in on {
        if !may_run.contains(&host) && !servers.iter().any(|server| server.node == host) {
            may_run.push(host);
        }
    }
    let mut problem = WorkerProblem::from_network(network, wanted, &may_run, taken);
    racks::limit(sink, &fields, network, servers, &mut problem)?;
    let placed = match workers::place(&problem) {
        Ok(placed) => placed,
        Err(refusal) => {
            let diagnostic = sink.error(Code::Capacity, count.span, refusal.describe(&problem));
            if taken.is_empty() {
                diagnostic.hint("raise the `slots` of hosts: a host has capacity for one worker unless its `slots` is larger");
            } else {
                diagnostic.hint(
                    "raise the `slots` of hosts: a host has capacity for one worker unless its `slots` is larger, and earlier trainings occupy some",
                );
            }
            return None;
        }
    };
    let hosts = placed.hosts();
    let nodes = hosts.iter().map(|(host, _)| may_run[*host]);
    let on_host = hosts.iter().map(|(_, count)| *count);
    let told = PlacedWorkers {
        on_host: on_host.collect(),
        idle: placed.idle,
        proven: placed.proven,
    };
    Some((nodes.collect(), told))
}
