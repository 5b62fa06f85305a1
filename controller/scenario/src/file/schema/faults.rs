//! Reads the sections `flows` and `faults`.

use std::collections::BTreeSet;

use super::disruptions::{self, RawDisruption};
use super::effect::{EFFECT, effect};
use super::per::{self, numbered, per};
use super::selection::{self, selection};
use super::shape::{Object, Shape, may, needed};
use super::{RawFault, RawFlow, RawPlace, partition, reader};
use crate::diagnostic::{Code, Sink, Spanned};
use crate::file::yaml::{Kind, Node};
use crate::model::Direction;
use crate::model::effect::{Drop, Effect};
use crate::model::protocols::Protocols;
use crate::model::selection::Selection;

/// Maximum number of faults in a scenario, which limits the work of the checks and the planner.
const MAX_FAULTS: usize = 64;

pub(super) static FLOW: Shape = Shape::Either(&[Shape::Text, Shape::Object(&FLOW_FIELDS)]);

static FLOW_FIELDS: Object = Object {
    what: "a flow",
    keys: &[
        may(
            "filter",
            Shape::Text,
            "what its packets have in common (docs/filters.md)",
        ),
        may(
            "from",
            Shape::Names("a host"),
            "hosts; of several, each has a flow of its own",
        ),
        may("to", Shape::Names("a host"), "the same"),
        may(
            "on",
            Shape::Name("a switch"),
            "the switch at which it is identified",
        ),
    ],
};

pub(super) static FAULT_OR_PARTITION: Shape = Shape::Either(&[
    Shape::Object(&FAULT),
    Shape::Object(&PARTITIONING),
    Shape::Object(&disruptions::DISRUPTION),
]);

static FAULT: Object = Object {
    what: "a fault",
    keys: &[
        needed("id", Shape::Name("a fault"), "its name"),
        needed("flows", Shape::Names("a flow"), "whose packets it looks at"),
        needed(
            "effect",
            Shape::At(&EFFECT),
            "what happens to those that it selects",
        ),
        may("select", Shape::At(&selection::SELECTION), "which of them").or_word("always"),
        may(
            "per",
            Shape::At(&per::PER),
            "by what packets are numbered and drawn",
        )
        .or_first(),
        may(
            "keys",
            Shape::Integer(1, per::MAX_KEYS),
            "capacity for keys of `per`",
        )
        .or(per::KEYS),
        may(
            "where",
            Shape::At(&PLACE),
            "where it acts; the plan chooses",
        ),
        may(
            "when",
            Shape::Name("a trigger"),
            "the trigger that it waits for",
        ),
        may(
            "during",
            Shape::Names("a step"),
            "steps of the timeline; the whole run",
        ),
    ],
};

static PLACE: Shape = Shape::Either(&[Shape::Name("a switch"), Shape::Object(&HALF)]);

static HALF: Object = Object {
    what: "a place",
    keys: &[
        may("ingress", Shape::Name("a switch"), "where packets come in"),
        may("egress", Shape::Name("a switch"), "where copies go out"),
    ],
};

static PARTITIONING: Object = Object {
    what: "a partition",
    keys: &[
        needed("id", Shape::Name("a fault"), "its name"),
        needed(
            "partition",
            Shape::Object(&partition::PARTITION),
            "hosts that cannot reach each other",
        ),
        may(
            "during",
            Shape::Names("a step"),
            "steps of the timeline; the whole run",
        ),
    ],
};

/// The names of all flows in the section `flows`.
pub(super) fn keys(node: &Node) -> Vec<String> {
    match &node.kind {
        Kind::Map(entries) => entries.iter().map(|entry| entry.key.clone()).collect(),
        _ => Vec::new(),
    }
}

/// The names of all faults in the section `faults`.
pub(super) fn ids(node: &Node) -> Vec<String> {
    let Kind::List(items) = &node.kind else {
        return Vec::new();
    };
    let ids = items.iter().filter_map(|item| match &item.get("id")?.kind {
        Kind::Text { value, .. } => Some(value.clone()),
        _ => None,
    });
    ids.collect()
}

pub(super) fn flows(sink: &mut Sink<'_>, node: &Node) -> Vec<RawFlow> {
    let mut flows = Vec::new();
    for entry in reader::map(sink, node, "`flows`").unwrap_or_default() {
        let named = reader::check_name(sink, &entry.key, entry.key_span, "a flow");
        let name = Spanned::new(entry.key.clone(), entry.key_span);
        flows.extend(flow(sink, name, &entry.value).filter(|_| named));
    }
    flows
}

/// Reads a flow: `{filter, from, to, on}`, or only the filter.
fn flow(sink: &mut Sink<'_>, name: Spanned<String>, node: &Node) -> Option<RawFlow> {
    if let Kind::Text { .. } = node.kind {
        return Some(RawFlow {
            name,
            from: Vec::new(),
            to: Vec::new(),
            filter: Some(node.clone()),
            on: None,
        });
    }
    let fields = reader::fields(sink, node, &FLOW_FIELDS)?;
    let filter = fields
        .get("filter")
        .filter(|_| fields.text(sink, "filter").is_some())
        .cloned();
    let hosts = |sink: &mut Sink<'_>, key: &str| {
        let named = fields.names(sink, key).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for host in &named {
            if !seen.insert(&host.value) {
                let message = format!("host `{}` is named twice", host.value);
                sink.error(Code::Duplicate, host.span, message);
            }
        }
        named
    };
    let (from, to) = (hosts(sink, "from"), hosts(sink, "to"));
    if ["filter", "from", "to"]
        .iter()
        .all(|key| fields.get(key).is_none())
    {
        sink.error(
            Code::MissingKey,
            name.span,
            format!("flow `{}` needs `filter`, `from` or `to`", name.value),
        )
        .hint("write for example `{from: a, to: b}`, or `filter: eth` for all packets");
    }
    let on = fields.name(sink, "on");
    Some(RawFlow {
        name,
        from,
        to,
        filter,
        on,
    })
}

/// The faults of a file, by kind.
#[derive(Default)]
pub(super) struct ReadFaults {
    /// Faults on packets.
    pub faults: Vec<RawFault>,
    /// The flows to which the file's partitions were expanded. (A partition is a fault that separates groups of hosts.)
    pub flows: Vec<RawFlow>,
    /// Faults on programs and switches.
    pub disruptions: Vec<RawDisruption>,
}

pub(super) fn faults(sink: &mut Sink<'_>, protocols: &Protocols, node: &Node) -> ReadFaults {
    let mut read = ReadFaults::default();
    let items = reader::list(sink, node, "`faults`").unwrap_or_default();
    if let Some(beyond) = items.get(MAX_FAULTS) {
        sink.error(
            Code::Capacity,
            beyond.span,
            format!(
                "{} faults; a scenario has at most {MAX_FAULTS}",
                items.len()
            ),
        );
        return read;
    }
    for item in items {
        if let Some(partition) = item.get("partition") {
            let Some((fault, flows)) = partitioning(sink, item, partition) else {
                continue;
            };
            read.flows.extend(flows);
            read.faults.push(fault);
        } else if disruptions::is_one(item) {
            read.disruptions.extend(disruptions::read(sink, item));
        } else {
            read.faults.extend(fault(sink, protocols, item));
        }
    }
    read
}

/// Reads a partition, `{id: split, partition: {halves: [a, b, c]}, during: apart}`: a fault that drops packets, and its flows.
fn partitioning(
    sink: &mut Sink<'_>,
    node: &Node,
    partition: &Node,
) -> Option<(RawFault, Vec<RawFlow>)> {
    let fields = reader::fields(sink, node, &PARTITIONING)?;
    let id = fields.name(sink, "id")?;
    let made = partition::flows(sink, &id, partition)?;
    let during = fields.names(sink, "during");
    let fault = RawFault {
        id,
        flows: made.iter().map(|flow| flow.name.clone()).collect(),
        effect: Spanned::new(Effect::Drop(Drop), partition.span),
        selection: Spanned::new(Selection::Always, fields.span),
        keys: None,
        place: None,
        when: None,
        during: during.unwrap_or_default(),
        span: node.span,
    };
    Some((fault, made))
}

fn fault(sink: &mut Sink<'_>, protocols: &Protocols, node: &Node) -> Option<RawFault> {
    let fields = reader::fields(sink, node, &FAULT)?;
    let id = fields.name(sink, "id");
    let flows = fields.names(sink, "flows");
    let effect = fields.read("effect", |node| {
        effect(sink, protocols, node).map(|effect| Spanned::new(effect, node.span))
    });
    let per = fields.optional("per", |node| per(sink, protocols, node))?;
    let per = per.flatten();
    let selection = match fields.get("select") {
        Some(node) => {
            let per = per.as_ref();
            selection(sink, node, per).map(|selection| Spanned::new(selection, node.span))
        }
        None => Some(Spanned::new(Selection::Always, fields.span)),
    };
    let keys = match (&selection, &effect) {
        (Some(selection), Some(effect)) => numbered(
            sink,
            protocols,
            &fields,
            per,
            (&selection.value, selection.span),
            &effect.value,
        ),
        _ => None,
    };
    let place = fields.optional("where", |node| place(sink, node))?;
    let when = fields.optional("when", |_| fields.name(sink, "when"))?;
    let during = fields.names(sink, "during").unwrap_or_default();
    if let (Some(node), Some(flows)) = (fields.get("flows"), &flows)
        && flows.is_empty()
    {
        sink.error(
            Code::OutOfRange,
            node.span,
            "`flows` is empty; a fault needs at least one flow",
        );
    }
    Some(RawFault {
        id: id?,
        flows: flows?,
        effect: effect?,
        selection: selection?,
        keys,
        place,
        when,
        during,
        span: node.span,
    })
}

/// Reads the injection point of a fault: `edge`, `{ingress: edge}` or `{egress: core}`.
fn place(sink: &mut Sink<'_>, node: &Node) -> Option<RawPlace> {
    if let Kind::Map(_) = node.kind {
        let variant = reader::variant(sink, node, "a place", &["ingress", "egress"])?;
        let node = variant.needed(sink, "core")?;
        let switch = reader::name(sink, node, "a switch")?;
        let direction = match variant.name {
            "ingress" => Direction::Ingress,
            _ => Direction::Egress,
        };
        return Some(RawPlace { switch, direction });
    }
    let switch = reader::name(sink, node, "a switch")?;
    let direction = Direction::Ingress;
    Some(RawPlace { switch, direction })
}
