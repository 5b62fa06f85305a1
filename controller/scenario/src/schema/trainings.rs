//! A file of trainings, for `weir route`: who sends gradients to whom.

use std::collections::BTreeMap;

use planner::gradient::{Job, Server};
use planner::placement::workers::{self, Problem};
use planner::{Network, NodeId};

use super::reader;
use super::shape::{Object, RATE, Shape, may, needed};
use crate::diagnostic::{Code, Diagnostics, Sink, Source, Spanned, nearest};
use crate::units::Dimension;
use crate::yaml::{self, Entry, Kind, Node};

/// The version that this program reads.
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
            Shape::Names,
            "hosts of parameter servers, one or several",
        ),
        needed(
            "workers",
            Shape::Either(&[Shape::Names, Shape::Object(&COUNTED)]),
            "hosts, by rank; `*` stands for any letters, `h*` for all hosts that begin with h; or how many",
        ),
        may(
            "ingress",
            RATE,
            "what each server takes in; what its links carry",
        ),
    ],
};

/// Workers without hosts.
static COUNTED: Object = Object {
    what: "workers that are placed",
    keys: &[
        needed("count", Shape::Integer(1, MAX_WORKERS), "how many"),
        may(
            "on",
            Shape::Names,
            "hosts that they may run on, with `*` as above; all but the servers",
        ),
    ],
};

/// A training of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingInNetwork {
    /// Who sends to whom.
    pub job: Job,
    /// Where its workers were placed, if the file did not say.
    pub placed: Option<PlacedWorkers>,
}

/// Where workers were placed: the fewest idle hosts, then the fewest hosts ([`planner::placement::workers`]). Those on one
/// host are one sender of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedWorkers {
    /// By worker of the job: how many run on its host.
    pub on_host: Vec<usize>,
    /// Hosts that ran nothing before.
    pub idle: usize,
    /// Whether it is shown that no placement takes fewer idle hosts, nor as few and fewer hosts.
    pub proven: bool,
}

/// Reads a file of trainings in a network. Everything that is wrong with it comes back at once.
pub fn load_trainings(
    file: &str,
    text: &str,
    network: &Network,
) -> Result<Vec<Spanned<TrainingInNetwork>>, Diagnostics> {
    let mut sink = Sink::new(Source { file, text });
    let read = read(&mut sink, network);
    match read {
        Some(jobs) if !sink.has_errors() => Ok(jobs),
        _ => Err(sink.into_diagnostics()),
    }
}

fn read(sink: &mut Sink<'_>, network: &Network) -> Option<Vec<Spanned<TrainingInNetwork>>> {
    let root = yaml::parse(sink)?;
    let fields = reader::fields(sink, &root, &FILE)?;
    if let Some(version) = fields.get("weir-trainings") {
        reader::integer(sink, version, "`weir-trainings`", VERSION..=VERSION);
    }
    let entries: &[Entry] = reader::map(sink, fields.get("trainings")?, "`trainings`")?;
    if let Some(beyond) = entries.get(MAX_TRAININGS) {
        let message = format!(
            "{} trainings; at most {MAX_TRAININGS} are planned",
            entries.len()
        );
        sink.error(Code::Capacity, beyond.key_span, message);
        return None;
    }
    // Workers of the trainings so far, by host.
    let mut taken: BTreeMap<NodeId, usize> = BTreeMap::new();
    let trainings = entries.iter().filter_map(|entry| {
        let read = training(sink, entry, network, &taken)?;
        for (place, host) in read.value.job.workers.iter().enumerate() {
            let placed = read.value.placed.as_ref();
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
    taken: &BTreeMap<NodeId, usize>,
) -> Option<Spanned<TrainingInNetwork>> {
    let is_good = reader::check_name(sink, &entry.key, entry.key_span, "a training");
    let fields = reader::fields(sink, &entry.value, &TRAINING)?;
    let servers = fields
        .get("server")
        .and_then(|node| hosts(sink, node, network));
    let ingress = match fields.get("ingress") {
        Some(node) => Some(reader::quantity(sink, node, "`ingress`", Dimension::Rate)?.value),
        None => None,
    };
    let node = fields.get("workers")?;
    if let Kind::Number {
        integer: Some(count),
        ..
    } = node.kind
    {
        let message = "`workers` are hosts, or how many";
        sink.error(Code::WrongType, node.span, message)
            .hint(format!("`workers: {{count: {count}}}`"));
        return None;
    }
    let (workers, placed) = match (&node.kind, servers.as_deref()) {
        (Kind::Map(_), servers) => {
            let (workers, placed) =
                counted(sink, node, network, servers.unwrap_or_default(), taken)?;
            (workers, Some(placed))
        }
        (_, servers) => {
            let servers = servers.unwrap_or_default();
            let is_server = |host: &Meant| servers.iter().any(|server| server.node == host.node);
            // `*` means all others.
            let workers = hosts(sink, node, network)?.into_iter();
            let workers = workers.filter(|host| host.is_named || !is_server(host));
            (workers.map(|host| host.node).collect(), None)
        }
    };
    let job = Job {
        name: entry.key.clone(),
        workers,
        servers: (servers?.into_iter())
            .map(|server| Server {
                ingress_bps: ingress,
                ..Server::on(server.node)
            })
            .collect(),
    };
    if let Err(error) = job.check(network) {
        sink.error(Code::Contradiction, entry.key_span, error.to_string());
        return None;
    }
    let training = TrainingInNetwork { job, placed };
    is_good.then(|| Spanned::new(training, entry.key_span))
}

/// Places workers of which the file says how many there are.
fn counted(
    sink: &mut Sink<'_>,
    node: &Node,
    network: &Network,
    servers: &[Meant],
    taken: &BTreeMap<NodeId, usize>,
) -> Option<(Vec<NodeId>, PlacedWorkers)> {
    let fields = reader::fields(sink, node, &COUNTED)?;
    let count = fields.get("count")?;
    let wanted = reader::integer(sink, count, "`count`", 1..=MAX_WORKERS)?;
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
    let problem = Problem::of(network, wanted as usize, &may_run, taken);
    let placed = match workers::place(&problem) {
        Ok(placed) => placed,
        Err(refusal) => {
            let diagnostic = sink.error(Code::Capacity, count.span, refusal.describe(&problem));
            if taken.is_empty() {
                diagnostic.hint("a host has room for one worker unless its `slots` says more");
            } else {
                diagnostic.hint(
                    "a host has room for one worker unless its `slots` says more, less those of the trainings before",
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

/// A host that a file means.
struct Meant {
    node: NodeId,
    /// Whether it is called by its name.
    is_named: bool,
}

fn hosts(sink: &mut Sink<'_>, node: &Node, network: &Network) -> Option<Vec<Meant>> {
    let names = reader::texts(sink, node, "a host")?;
    let mut meant: Vec<Meant> = Vec::new();
    let mut is_known = true;
    for name in names {
        let found = named(network, &name.value);
        if found.is_empty() {
            is_known = false;
            let all = network.hosts().map(|host| network.name(host));
            let near = nearest(&name.value, all);
            let is_switch = network.node(&name.value).is_ok();
            let message = match is_switch {
                true => format!("`{}` is a switch, and no host", name.value),
                false => format!("no host is called `{}`", name.value),
            };
            let diagnostic = sink.error(Code::UnknownName, name.span, message);
            if let Some(near) = near.filter(|_| !is_switch) {
                diagnostic.hint(format!("did you mean `{near}`?"));
            }
        }
        let is_named = !name.value.contains('*');
        meant.extend(found.into_iter().map(|node| Meant { node, is_named }));
    }
    is_known.then_some(meant)
}

/// The host of a name, or those of a pattern, in the network's order.
fn named(network: &Network, name: &str) -> Vec<NodeId> {
    if !name.contains('*') {
        let node = network.node(name).ok();
        let host = node.filter(|node| network.host(*node).is_some());
        return host.into_iter().collect();
    }
    let hosts = network.hosts();
    hosts
        .filter(|host| matches(name, network.name(*host)))
        .collect()
}

/// Whether a name fits a pattern in which `*` stands for any letters, or none.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_letters() {
        for (pattern, name, fits) in [
            ("h*", "h1-2", true),
            ("h*", "g", false),
            ("*", "", true),
            ("h*-0", "h12-0", true),
            ("h*-0", "h12-01", false),
            ("*a*b*", "xxaybz", true),
            ("*a*b*", "xxbyaz", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
