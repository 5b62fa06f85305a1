//! Reads a topology from a file of another tool: GraphML, or NetworkX's node-link JSON.

use std::collections::BTreeMap;

use planner::Network;
use planner::import::{
    Hosts, ImportError, ImportErrorKind, Imported, Names, Options, graphml, node_link,
};
use planner::network::NetworkError;

use super::super::reader::{self, Fields};
use super::super::shape::{Object, Shape, may, needed};
use super::attributes::{
    self, Attributes, ECN, GPUS, MEMORY, MTU, POSITIVE_RATE, STAGES, THROUGHPUT, latency,
};
use super::{For, check_made};
use crate::diagnostic::{Code, Sink, Source, Span, Spanned};
use crate::file::schema::Given;
use crate::file::yaml::{Kind, Node};
use crate::model::topology::{
    DEFAULT_LATENCY_NS, DEFAULT_RATE_BPS, MAX_LATENCY_NS, Topology, TopologySource,
};
use crate::units::{self, Dimension};

const BY_WORD: [&str; 2] = ["declared", "leaves"];
const NAMES: [&str; 2] = ["labels", "ids"];

pub(super) static FROM_FILE: Object = Object {
    what: "a topology from a file",
    keys: &[
        needed(
            "file",
            Shape::Text,
            "a file that ends in .graphml or .json, relative to this one",
        ),
        may(
            "hosts",
            Shape::Either(&[Shape::Word(&BY_WORD), Shape::Object(&ATTACHED)]),
            "hosts among nodes without a kind: none, those with one link, or a number for each switch",
        )
        .or_first(),
        may(
            "names",
            Shape::Word(&NAMES),
            "what names a node: its label, or its identifier",
        )
        .or_first(),
        may(
            "rate",
            POSITIVE_RATE,
            "of links without `rate`; they are refused",
        ),
        latency("of links without `latency`, one way").or(DEFAULT_LATENCY_NS),
        may(
            "rate_unit",
            Shape::Text,
            "unit of rates without a unit, such as `Gbit/s`; they are refused",
        ),
        may(
            "latency_unit",
            Shape::Text,
            "unit of delays without a unit, such as `ms`; they are refused",
        ),
        ECN,
        MTU,
        GPUS,
        THROUGHPUT,
        MEMORY,
        STAGES,
    ],
};

static ATTACHED: Object = Object {
    what: "hosts of each switch",
    keys: &[
        needed("per_switch", Shape::Integer(1, u32::MAX as u64), "how many"),
        may("rate", POSITIVE_RATE, "of their links").or(DEFAULT_RATE_BPS),
    ],
};

/// Reads a topology section with the key `file`; returns the topology, and the file's path and text.
pub(super) fn read(
    sink: &mut Sink<'_>,
    node: &Node,
    given: &Given,
    what_for: For,
) -> Option<(Topology, TopologySource)> {
    let fields = reader::fields(sink, node, &FROM_FILE)?;
    let errors = sink.errors();
    let attributes = Attributes::default().read(sink, &fields);
    let options = options(sink, &fields, &attributes);
    let name = fields.text(sink, "file")?;
    let source = source(sink, &name, given)?;
    if sink.errors() > errors {
        return None;
    }
    let Some(read) = reader_of(&source.file) else {
        let message = format!("`{}` ends in neither .graphml nor .json", name.value);
        sink.error(Code::Topology, name.span, message);
        return None;
    };
    let mut file = Sink::new(Source {
        file: &source.file,
        text: &source.text,
    });
    let network = import(&mut file, read, &options?);
    sink.adopt(file);
    let network = plain(sink, &network?, name.span)?;
    if let Some(link) = network.links().iter().find(|l| l.delay_ns > MAX_LATENCY_NS) {
        let [a, b] = link.ends.map(|end| network.name(end));
        let message =
            format!("the link between `{a}` and `{b}` has a latency of more than 10s, one way");
        sink.error(Code::OutOfRange, name.span, message);
    }
    let topology = Topology::from_network(&network, &attributes.link("", ""));
    check_made(sink, &topology, name.span, what_for);
    Some((topology, source))
}

fn options(sink: &mut Sink<'_>, fields: &Fields<'_>, attributes: &Attributes) -> Option<Options> {
    let mut options = by_default();
    options.default_rate_bps = fields.get("rate").map(|_| attributes.rate_bps);
    options.default_delay_ns = attributes.latency_ns;
    options.host.gpus = attributes::count(sink, fields, "gpus").unwrap_or(0);
    let capacity = attributes::shared_capacity(sink, fields);
    options.switch.throughput_bps = capacity.throughput_bps;
    options.switch.memory_bytes = capacity.memory_bytes;
    options.switch.stages = capacity.stages;
    options.rate_unit_bps = unit(sink, fields, "rate_unit", Dimension::Rate);
    options.delay_unit_ns = unit(sink, fields, "latency_unit", Dimension::Duration);
    if fields.word(sink, "names") == Some("ids") {
        options.names = Names::Ids;
    }
    options.hosts = match fields.get("hosts") {
        None => Hosts::Declared,
        Some(node) => hosts(sink, node)?,
    };
    Some(options)
}

/// Options of an import for a testbed: unless the file says otherwise, its switches can sum and inject faults.
pub(super) fn by_default() -> Options {
    let mut options = Options::default();
    options.switch.programmable = true;
    options
}

/// Reads where the hosts of an imported network come from: `leaves`, or `{per_switch: 2, rate: 10Gbit/s}`.
fn hosts(sink: &mut Sink<'_>, node: &Node) -> Option<Hosts> {
    if !matches!(node.kind, Kind::Map(_)) {
        let word = reader::choice(sink, node, "`hosts`", &BY_WORD)?;
        return Some(match word {
            "leaves" => Hosts::Leaves,
            _ => Hosts::Declared,
        });
    }
    let fields = reader::fields(sink, node, &ATTACHED)?;
    let rate = fields.number(sink, "rate");
    Some(Hosts::Attach {
        per_switch: fields.number(sink, "per_switch")?.value,
        rate_bps: rate?.value,
    })
}

fn unit(sink: &mut Sink<'_>, fields: &Fields<'_>, key: &str, dimension: Dimension) -> Option<u64> {
    let unit = fields.text(sink, key)?;
    match units::unit(&unit.value) {
        Some((found, factor)) if found == dimension => Some(factor),
        _ => {
            let message = format!("`{}` is not a unit of {dimension}", unit.value);
            let units = format!("units are {}", dimension.unit_names());
            sink.error(Code::Unit, unit.span, message).hint(units);
            None
        }
    }
}

fn source(sink: &mut Sink<'_>, name: &Spanned<String>, given: &Given) -> Option<TopologySource> {
    match &given.topology {
        Some(Ok(source)) => return Some(source.clone()),
        Some(Err(why)) => {
            let message = format!("cannot read topology file `{}`: {why}", name.value);
            sink.error(Code::Topology, name.span, message)
                .hint("the path is relative to the scenario");
        }
        None => {
            let message = format!(
                "topology file `{}` is missing from the given files",
                name.value
            );
            sink.error(Code::Topology, name.span, message);
        }
    }
    None
}

/// A function that imports a network from the text of a file in one format.
pub(super) type ReadNetwork = fn(&str, &Options) -> Result<Imported, ImportError>;

/// The function that imports a file, chosen by the suffix of its name; `None` for an unknown suffix.
pub(super) fn reader_of(file: &str) -> Option<ReadNetwork> {
    match file.rsplit_once('.')?.1 {
        "graphml" => Some(graphml::read),
        "json" => Some(node_link::read),
        _ => None,
    }
}

/// Imports the network from the text of the file in the sink, and reports errors and warnings there.
pub(super) fn import(file: &mut Sink<'_>, read: ReadNetwork, options: &Options) -> Option<Network> {
    match read(file.source().text, options) {
        Ok(Imported { network, report }) => {
            if report.parts > 1 {
                let message = format!(
                    "the network is not connected: it consists of {} separate parts",
                    report.parts
                );
                file.warning(Code::Suspicious, Span::default(), message);
            }
            if network.links().iter().any(|link| link.loss > 0.0) {
                let message = "the file gives links a loss rate, which has no effect here";
                file.warning(Code::NoEffect, Span::default(), message)
                    .hint("to lose packets, declare a fault with `effect: drop`");
            }
            Some(network)
        }
        Err(error) => {
            report(file, &error);
            None
        }
    }
}

fn report(file: &mut Sink<'_>, error: &ImportError) {
    let code = match &error.kind {
        ImportErrorKind::Syntax(_) => Code::Syntax,
        ImportErrorKind::TooLarge { .. } | ImportErrorKind::Network(NetworkError::TooMany(..)) => {
            Code::Capacity
        }
        ImportErrorKind::IdTwice(_)
        | ImportErrorKind::NameTwice { .. }
        | ImportErrorKind::Network(NetworkError::NamedTwice(_)) => Code::Duplicate,
        ImportErrorKind::UnknownEnd(_) => Code::UnknownName,
        ImportErrorKind::NoUnit { .. } => Code::Unit,
        ImportErrorKind::Value { .. } => Code::WrongType,
        _ => Code::Topology,
    };
    let hint = match &error.kind {
        ImportErrorKind::NoRate(..) => Some(
            "give the edge a `rate`, or write `rate` beside `file:` for all edges without one"
                .into(),
        ),
        ImportErrorKind::NameTwice { .. } => {
            Some("write `names: ids` beside `file:` to name nodes by their identifiers".into())
        }
        kind => kind.hint(),
    };
    let span = place(file.source().text, error.line, error.column);
    let diagnostic = file.error(code, span, error.kind.to_string());
    if let Some(hint) = hint {
        diagnostic.hint(hint);
    }
}

/// The span of the one character at a line and column, both counted from 1.
fn place(text: &str, line: usize, column: usize) -> Span {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let rest = &text[before..];
    let mut characters = rest.char_indices().skip(column.saturating_sub(1));
    let (offset, width) = match characters.next() {
        Some((offset, found)) => (offset, found.len_utf8()),
        None => (rest.len(), 0),
    };
    Span {
        start: before + offset,
        end: before + offset + width,
    }
}

/// The network with names that scenarios accept: characters other than letters, digits, `-` and `_` become `-`, and a name that
/// does not begin with a letter gets the prefix `n`. `None` if two names become equal, which is reported.
pub(super) fn plain(sink: &mut Sink<'_>, network: &Network, span: Span) -> Option<Network> {
    let mut named: BTreeMap<String, &str> = BTreeMap::new();
    let mut names = Vec::with_capacity(network.nodes().len());
    for node in network.nodes() {
        let plain = plain_name(&node.name);
        if let Some(other) = named.insert(plain.clone(), &node.name) {
            let message = format!(
                "nodes `{other}` and `{}` would both get the name `{plain}`",
                node.name
            );
            let rule =
                "a name has at most 40 letters, digits, `-` and `_`, and starts with a letter";
            sink.error(Code::Duplicate, span, message).hint(format!(
                "{rule}; write `names: ids` to name nodes by their identifiers"
            ));
            return None;
        }
        names.push(plain);
    }
    network.renamed(names).ok()
}

fn plain_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let characters = name.chars().map(|c| if is_plain(c) { c } else { '-' });
    let mut plain: String = characters.collect();
    if !plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
        plain.insert(0, 'n');
    }
    plain.truncate(40);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_scenarios_can_say() {
        assert_eq!(plain_name("New York"), "New-York");
        assert_eq!(plain_name("7"), "n7");
        assert_eq!(plain_name("Zürich"), "Z-rich");
        assert_eq!(plain_name(""), "n");
        assert_eq!(plain_name(&"a".repeat(50)), "a".repeat(40));
    }

    #[test]
    fn places_of_lines_and_columns() {
        let text = "a\nbµc\n";
        let of = |line, column| {
            let Span { start, end } = place(text, line, column);
            &text[start..end]
        };
        assert_eq!((of(1, 1), of(2, 2), of(2, 3)), ("a", "µ", "c"));
        assert_eq!((of(2, 9), of(9, 9)), ("", ""));
    }
}
