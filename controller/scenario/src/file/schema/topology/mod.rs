//! Reads the section `topology`: a generated shape, a file, a wire, or listed switches, hosts and links.

mod alone;
mod attributes;
mod explicit;
mod file;
mod generated;

use std::collections::BTreeSet;

use super::shape::{Object, Shape, may, needed};
use super::{reader, sides};
use crate::diagnostic::{Code, Sink, Span};
use crate::file::schema::Given;
use crate::file::yaml::{Kind, Node};
use crate::model::topology::{DEFAULT_RATE_BPS, Topology, TopologySource};
use attributes::{Attributes, ECN, LATENCY, LINK_RATE, MTU, POSITIVE_RATE};

pub use alone::load_topology;

/// Maximum number of hosts and switches in a testbed.
const MAX_NODES: usize = 512;

pub(super) static TOPOLOGY: Shape = Shape::Either(&[
    Shape::Object(&IN_A_STAR),
    Shape::Object(&generated::FAT_TREE),
    Shape::Object(&generated::LEAF_SPINE),
    Shape::Object(&generated::RAIL_PODS),
    Shape::Object(&generated::JELLYFISH),
    Shape::Object(&file::FROM_FILE),
    Shape::Object(&WIRE),
    Shape::Object(&explicit::EXPLICIT),
]);

static IN_A_STAR: Object = Object {
    what: "a star as a topology",
    keys: &[needed(
        "star",
        Shape::Object(&STAR),
        "one switch, and each host on it",
    )],
};

static STAR: Object = Object {
    what: "a star",
    keys: &[
        needed("hosts", explicit::HOSTS, "names, or `{name, ip, mac}`"),
        may("switch", Shape::Name("a switch"), "its name").or_word("sw"),
        LINK_RATE,
        LATENCY,
        ECN,
        MTU,
    ],
};

static WIRE: Object = Object {
    what: "a wire",
    keys: &[
        needed(
            "wire",
            Shape::List(&SIDE_OR_NAME),
            "two sides that exist, for `weir between`",
        ),
        may("rate", POSITIVE_RATE, "what it carries").or(DEFAULT_RATE_BPS),
    ],
};

static SIDE_OR_NAME: Shape = Shape::Either(&[Shape::Name("a side"), Shape::Object(&sides::SIDE)]);

/// The purpose for which a topology is read, which determines what it may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// To run in a testbed: its size is limited, and hosts have one link.
    Running,
    /// For planners only: hosts may have several links, and the network may be larger.
    Planning,
}

impl For {
    fn most_nodes(self) -> usize {
        match self {
            For::Running => MAX_NODES,
            For::Planning => planner::network::MAX_NODES,
        }
    }
}

/// Reads the topology of a scenario; returns also the topology file if the scenario names one.
pub(super) fn read(
    sink: &mut Sink<'_>,
    node: &Node,
    given: &Given,
) -> Option<(Topology, Option<TopologySource>)> {
    section(sink, node, given, For::Running)
}

fn section(
    sink: &mut Sink<'_>,
    node: &Node,
    given: &Given,
    what_for: For,
) -> Option<(Topology, Option<TopologySource>)> {
    let Kind::Map(entries) = &node.kind else {
        return Some((explicit::read(sink, node, what_for)?, None));
    };
    let has = |key: &str| entries.iter().any(|entry| entry.key == key);
    if let [only] = entries.as_slice()
        && only.key == "star"
    {
        return Some((star(sink, &only.value, what_for)?, None));
    }
    if let [only] = entries.as_slice()
        && let Some(generated) = generated::read(sink, &only.key, &only.value, what_for)
    {
        return Some((generated?, None));
    }
    if has("file") {
        return file::read(sink, node, given, what_for).map(|(read, from)| (read, Some(from)));
    }
    let topology = match has("wire") {
        true => wire(sink, node)?,
        false => explicit::read(sink, node, what_for)?,
    };
    Some((topology, None))
}

/// Reads a star, `star: {hosts: [a, b], switch: sw, rate: …}`: hosts around one switch.
fn star(sink: &mut Sink<'_>, node: &Node, what_for: For) -> Option<Topology> {
    let fields = reader::fields(sink, node, &STAR)?;
    let switch = fields.name(sink, "switch")?.value;
    let attributes = Attributes::default().read(sink, &fields);
    let hosts = explicit::hosts(sink, fields.get("hosts")?, what_for)?;
    let links = hosts
        .iter()
        .map(|(host, _)| attributes.link(&host.name, &switch))
        .collect();
    explicit::check_addresses(sink, &hosts);
    let mut seen = BTreeSet::from([switch.clone()]);
    for (host, span) in &hosts {
        once(sink, &mut seen, &host.name, *span);
    }
    Some(Topology {
        switches: vec![switch],
        hosts: hosts.into_iter().map(|(host, _)| host).collect(),
        links,
        ..Topology::default()
    })
}

/// Reads a wire, `wire: [left, right]`: a switch between two existing hosts or networks. sides.rs reads what is at each side.
fn wire(sink: &mut Sink<'_>, node: &Node) -> Option<Topology> {
    let fields = reader::fields(sink, node, &WIRE)?;
    let attributes = Attributes::default().read_rate(sink, &fields);
    let named = fields.get("wire")?;
    let read = sides::read(sink, named)?;
    let sides: Vec<_> = read.iter().map(|(name, _)| name.clone()).collect();
    let [a, b] = sides.as_slice() else {
        let message = format!("a wire must have two sides; found {}", sides.len());
        sink.error(Code::Topology, named.span, message)
            .hint("write for example `wire: [left, right]`");
        return None;
    };
    let mut seen = BTreeSet::from([Topology::WIRE.to_owned()]);
    for side in [a, b] {
        once(sink, &mut seen, &side.value, side.span);
    }
    let mut topology = Topology::wire_between([&a.value, &b.value]);
    for link in &mut topology.links {
        link.rate_bps = attributes.rate_bps;
    }
    topology.sides = sides::together(sink, named, read)?;
    Some(topology)
}

fn once(sink: &mut Sink<'_>, seen: &mut BTreeSet<String>, name: &str, span: Span) {
    if !seen.insert(name.to_owned()) {
        sink.error(Code::Duplicate, span, format!("`{name}` is declared twice"))
            .hint("give each host and each switch a name of its own");
    }
}

fn too_many(sink: &mut Sink<'_>, what: &str, count: usize, span: Span, what_for: For) {
    let most = what_for.most_nodes();
    let message = format!("{count} {what}; a topology has at most {most}");
    sink.error(Code::Capacity, span, message);
}

/// Checks that a testbed can run a generated network; `span` is the position of the generator.
fn check_made(sink: &mut Sink<'_>, topology: &Topology, span: Span, what_for: For) {
    if what_for == For::Planning {
        return;
    }
    let count = topology.switches.len() + topology.hosts.len();
    if count > MAX_NODES {
        too_many(sink, "hosts and switches", count, span, what_for);
    }
    let links = explicit::links_of_hosts(topology);
    let wrong = topology.hosts.iter().find_map(|host| {
        let links = links.get(host.name.as_str()).map_or(0, Vec::len);
        (links != 1).then_some((host, links))
    });
    if let Some((host, links)) = wrong {
        explicit::report_links(sink, &host.name, links, span);
    }
}
