//! Reads partitions, `partition: {groups: [[a, b], [c]]}`: sets of hosts that cannot reach each other. The words are those of
//! Jepsen. A partition is expanded to flows between the hosts, and all packets of these flows are dropped.

use std::collections::BTreeSet;

use super::shape::{Object, Shape, may};
use super::{RawFlow, reader};
use crate::diagnostic::{Code, Sink, Spanned};
use crate::file::yaml::{Kind, Node};

/// Keys of the shapes of a partition, which determine which hosts can reach each other.
const SHAPES: [&str; 4] = ["groups", "halves", "bridge", "ring"];

pub(super) static PARTITION: Object = Object {
    what: "`partition`",
    keys: &[
        may(
            "groups",
            Shape::List(&Shape::Names("a host")),
            "each hears only its own",
        ),
        may(
            "halves",
            Shape::Names("a host"),
            "two groups of these, in order",
        ),
        may(
            "bridge",
            Shape::Names("a host"),
            "two halves, and one between them that hears both",
        ),
        may(
            "ring",
            Shape::Names("a host"),
            "each hears its two neighbours",
        ),
        may(
            "direction",
            Shape::Word(&["both", "one_way"]),
            "`one_way`: the first group is not heard",
        )
        .or_first(),
    ],
};

type Hosts = Vec<Spanned<String>>;

/// A flow of a partition: all packets that the hosts `from` send to the hosts `to`. The partition drops them.
struct Cut {
    /// End of the flow's name. Its beginning is the name of the fault that declares the partition.
    name: String,
    from: Hosts,
    to: Hosts,
}

/// The flows whose packets a partition drops. Their names begin with the partition's name.
pub(super) fn flows(
    sink: &mut Sink<'_>,
    id: &Spanned<String>,
    node: &Node,
) -> Option<Vec<RawFlow>> {
    if let Kind::List(items) = &node.kind {
        let text = sink.source().text.get(node.span.start..node.span.end);
        let text = text.unwrap_or_default();
        let is_groups = items.iter().all(|item| matches!(item.kind, Kind::List(_)));
        let hint = match (is_groups, items.as_slice()) {
            (true, _) => format!("write `{{groups: {text}}}`"),
            (false, [_, _]) => {
                format!("write `{{halves: {text}}}`: the two do not reach each other")
            }
            (false, _) => {
                format!("write `{{halves: {text}}}` for two groups, or `{{ring: {text}}}`")
            }
        };
        let message = "`partition` must be a mapping; found a list";
        sink.error(Code::WrongType, node.span, message).hint(hint);
        return None;
    }
    let fields = reader::fields(sink, node, &PARTITION)?;
    let mut shapes = SHAPES
        .iter()
        .filter_map(|shape| Some((*shape, fields.get(shape)?)));
    let (Some((shape, hosts)), None) = (shapes.next(), shapes.next()) else {
        let message = "`partition` needs one of `groups`, `halves`, `bridge` and `ring`";
        sink.error(Code::WrongType, node.span, message)
            .hint("write for example `{partition: {groups: [[a, b], [s]]}}`");
        return None;
    };
    let direction = fields.word(sink, "direction")?;
    if let (Some(node), "ring", "one_way") = (fields.get("direction"), shape, direction) {
        let message = "`direction: one_way` needs two sides, but a `ring` has none";
        sink.error(Code::Effect, node.span, message)
            .hint("leave `direction` out, or write `groups: [[a], [b]]`");
        return None;
    }
    let both_ways = direction == "both";
    let cuts = match shape {
        "groups" => {
            let groups = reader::list(sink, hosts, "`groups`")?;
            let groups = groups
                .iter()
                .map(|group| reader::names(sink, group, "a host"));
            let groups: Vec<Hosts> = groups.collect::<Option<_>>()?;
            between(sink, node, &groups, both_ways)?
        }
        _ => {
            if let Kind::Bool(_) | Kind::Null = hosts.kind {
                let message = format!("`{shape}` must name hosts; found {}", hosts.describe());
                sink.error(Code::WrongType, hosts.span, message)
                    .hint(format!(
                        "name all hosts in order, for example `{shape}: [a, b, c, d]`"
                    ));
                return None;
            }
            let hosts = fields.names(sink, shape)?;
            match shape {
                "halves" => {
                    let (first, second) = hosts.split_at(hosts.len() / 2);
                    between(sink, node, &[first.to_vec(), second.to_vec()], both_ways)?
                }
                "bridge" => {
                    // The middle host reaches both sides.
                    let middle = hosts.len() / 2;
                    let (first, rest) = hosts.split_at(middle);
                    let second = rest.get(1..).unwrap_or_default();
                    between(sink, node, &[first.to_vec(), second.to_vec()], both_ways)?
                }
                _ => ring(sink, node, &hosts)?,
            }
        }
    };
    let flows = cuts.into_iter().map(|cut| RawFlow {
        name: Spanned::new(format!("{}-{}", id.value, cut.name), node.span),
        from: cut.from,
        to: cut.to,
        filter: None,
        on: None,
    });
    let flows: Vec<RawFlow> = flows.collect();
    let named = |flow: &RawFlow| reader::check_name(sink, &flow.name.value, id.span, "a flow");
    flows.iter().all(named).then_some(flows)
}

/// The flows that a partition drops between groups of hosts. If it separates both ways, no group receives from any other;
/// otherwise no group receives from the groups before it in the list.
fn between(
    sink: &mut Sink<'_>,
    node: &Node,
    groups: &[Hosts],
    both_ways: bool,
) -> Option<Vec<Cut>> {
    if groups.len() < 2 || groups.iter().any(Vec::is_empty) {
        let message = "a partition needs at least two groups, with at least one host in each";
        sink.error(Code::OutOfRange, node.span, message)
            .hint("write for example `groups: [[a, b], [s]]`");
        return None;
    }
    if let Some(host) = shared(groups) {
        let message = format!(
            "host `{}` is in two groups that the partition separates",
            host.value
        );
        sink.error(Code::Duplicate, host.span, message)
            .hint(hint_for_shared(groups, &host.value));
        return None;
    }
    are_apart(sink, groups.iter().flatten())?;
    let mut cuts = Vec::new();
    for (i, from) in groups.iter().enumerate() {
        for (j, to) in groups.iter().enumerate() {
            if i < j || (both_ways && i != j) {
                cuts.push(Cut {
                    name: format!("{}-to-{}", i + 1, j + 1),
                    from: from.clone(),
                    to: to.clone(),
                });
            }
        }
    }
    Some(cuts)
}

/// The first host that is in two of the groups; `None` if there is none.
fn shared(groups: &[Hosts]) -> Option<&Spanned<String>> {
    let before = |index: usize, host: &Spanned<String>| {
        let mut others = groups[..index].iter().flatten();
        others.any(|other| other.value == host.value)
    };
    groups.iter().enumerate().find_map(|(index, group)| {
        let mut group = group.iter();
        group.find(|host| before(index, host))
    })
}

/// The hint for two groups that have a host in common: the user may want this host to reach both groups.
fn hint_for_shared(groups: &[Hosts], host: &str) -> String {
    let alone = |group: &Hosts| -> Vec<String> {
        let names = group.iter().map(|other| other.value.clone());
        names.filter(|name| name != host).collect()
    };
    let (first, second) = match groups {
        [first, second] => (alone(first), alone(second)),
        _ => Default::default(),
    };
    // `bridge` splits its list in the middle.
    let is_middle = matches!(first.len().checked_sub(second.len()), Some(0 | 1));
    let common = first.iter().any(|name| second.contains(name));
    if is_middle && !common && !second.is_empty() {
        let bridge = [first, vec![host.to_owned()], second].concat().join(", ");
        return format!(
            "write `bridge: [{bridge}]`: `{host}` in the middle reaches both sides, which cannot reach each other"
        );
    }
    format!(
        "write `bridge: [a, {host}, b]` for a host between two groups of equal size; for other groups, write `effect: drop` for the flows between them"
    )
}

/// The flows that a partition of the kind `ring` drops. Each host receives only from its neighbors in the ring. With them it
/// forms a majority of the hosts, but no two hosts have the same neighbors.
fn ring(sink: &mut Sink<'_>, node: &Node, hosts: &Hosts) -> Option<Vec<Cut>> {
    are_apart(sink, hosts.iter())?;
    let count = hosts.len();
    // For five hosts: one neighbor on either side.
    let reach = (count / 2).div_ceil(2);
    let is_near = |a: usize, b: usize| {
        let apart = a.abs_diff(b);
        apart.min(count - apart) <= reach
    };
    let cuts = hosts.iter().enumerate().map(|(from, host)| Cut {
        name: host.value.clone(),
        from: vec![host.clone()],
        to: (0..count)
            .filter(|to| !is_near(from, *to))
            .map(|to| hosts[to].clone())
            .collect(),
    });
    let cuts: Vec<Cut> = cuts.filter(|cut| !cut.to.is_empty()).collect();
    if cuts.is_empty() {
        let message = format!(
            "`ring` needs at least 4 hosts; found {count}, which would all reach each other"
        );
        sink.error(Code::OutOfRange, node.span, message)
            .hint("write for example `ring: [a, b, c, d]`, or `groups: [[a], [b, c]]`");
        return None;
    }
    Some(cuts)
}

fn are_apart<'h>(
    sink: &mut Sink<'_>,
    hosts: impl Iterator<Item = &'h Spanned<String>>,
) -> Option<()> {
    let mut seen = BTreeSet::new();
    for host in hosts {
        if !seen.insert(&host.value) {
            let message = format!("host `{}` is named twice", host.value);
            sink.error(Code::Duplicate, host.span, message);
            return None;
        }
    }
    Some(())
}
