//! A file of trainings, for `weir route`: who sends gradients to whom.

use planner::gradient::{Job, Server};
use planner::{Network, NodeId};

use super::reader;
use super::shape::{Object, RATE, Shape, may, needed};
use crate::diagnostic::{Code, Diagnostics, Sink, Source, Spanned, nearest};
use crate::units::Dimension;
use crate::yaml::{self, Entry, Node};

/// The version that this program reads.
const VERSION: u64 = 1;
const MAX_TRAININGS: usize = 1024;

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
            Shape::Names,
            "hosts, by rank; `*` stands for any letters, `h*` for all hosts that begin with h",
        ),
        may(
            "ingress",
            RATE,
            "what each server takes in; what its links carry",
        ),
    ],
};

/// Reads a file of trainings in a network. Everything that is wrong with it comes back at once.
pub fn load_trainings(
    file: &str,
    text: &str,
    network: &Network,
) -> Result<Vec<Spanned<Job>>, Diagnostics> {
    let mut sink = Sink::new(Source { file, text });
    let read = read(&mut sink, network);
    match read {
        Some(jobs) if !sink.has_errors() => Ok(jobs),
        _ => Err(sink.into_diagnostics()),
    }
}

fn read(sink: &mut Sink<'_>, network: &Network) -> Option<Vec<Spanned<Job>>> {
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
    let jobs = entries
        .iter()
        .filter_map(|entry| training(sink, entry, network));
    Some(jobs.collect())
}

fn training(sink: &mut Sink<'_>, entry: &Entry, network: &Network) -> Option<Spanned<Job>> {
    let is_good = reader::check_name(sink, &entry.key, entry.key_span, "a training");
    let fields = reader::fields(sink, &entry.value, &TRAINING)?;
    let servers = fields
        .get("server")
        .and_then(|node| hosts(sink, node, network));
    let workers = fields
        .get("workers")
        .and_then(|node| hosts(sink, node, network));
    let ingress = match fields.get("ingress") {
        Some(node) => Some(reader::quantity(sink, node, "`ingress`", Dimension::Rate)?.value),
        None => None,
    };
    let (servers, mut workers) = (servers?, workers?);
    // `*` means all others.
    workers.retain(|worker| {
        worker.is_named || !servers.iter().any(|server| server.node == worker.node)
    });
    let job = Job {
        name: entry.key.clone(),
        workers: workers.into_iter().map(|worker| worker.node).collect(),
        servers: servers
            .into_iter()
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
    is_good.then(|| Spanned::new(job, entry.key_span))
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
            let message = format!("no host is called `{}`", name.value);
            let diagnostic = sink.error(Code::UnknownName, name.span, message);
            if let Some(near) = near {
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
