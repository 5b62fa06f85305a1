//! Checks that scenarios which run together describe the same network: topology and routing must be equal.

use crate::diagnostic::{Code, Diagnostics, Span};
use crate::model::Scenario;
use crate::model::topology::{Link, Topology};

/// Refuses scenarios whose `topology` or `routing` differs from that of the first scenario.
pub(super) fn check(scenarios: &[&Scenario]) -> Result<(), Diagnostics> {
    let Some((first, others)) = scenarios.split_first() else {
        return Ok(());
    };
    for other in others {
        let what = difference(&first.topology, &other.topology);
        let places = [first, other].map(|one| topology(one));
        let (what, [at_first, at_other], hint) = match what {
            Some(what) => (
                format!("the topologies differ: {what}"),
                places,
                "write the same `topology` in each file: scenarios that run together share one network",
            ),
            None if first.topology.routing != other.topology.routing => (
                "`routing` differs".to_owned(),
                [first, other].map(|one| routing(one)),
                "write the same `routing` in each file: it applies to all packets",
            ),
            None => continue,
        };
        let mut sink = other.sink();
        let message = format!("together with {}: {what}", first.file);
        sink.error(Code::Topology, at_other, message)
            .related(&first.source(), at_first, "first declared here")
            .hint(hint);
        return Err(sink.into_diagnostics());
    }
    Ok(())
}

fn topology(scenario: &Scenario) -> Span {
    scenario.span_of(&["topology"]).unwrap_or_default()
}

/// Position of `routing` in the file; if it is absent, the position where it could be written.
fn routing(scenario: &Scenario) -> Span {
    let said = scenario.span_of(&["routing"]);
    said.unwrap_or_else(|| topology(scenario))
}

/// Text on the first difference between two networks; `None` if they are equal. The order of links determines port numbers, and
/// the order of hosts their addresses.
fn difference(first: &Topology, other: &Topology) -> Option<String> {
    if let Some((a, b)) = unlike(&first.switches, &other.switches, |a, b| a == b) {
        return Some(pair("switch", a, b, String::clone));
    }
    if let Some((a, b)) = unlike(&first.hosts, &other.hosts, |a, b| a == b) {
        return Some(pair("host", a, b, |host| {
            format!("{} ({})", host.name, host.ip)
        }));
    }
    if let Some((a, b)) = unlike(&first.links, &other.links, is_same_link) {
        return Some(pair("link", a, b, |link| link.ends.join("–")));
    }
    let is_same = first.capacities == other.capacities
        && first.wire == other.wire
        && first.sides == other.sides;
    (!is_same).then(|| "the capacities of switches, or the sides of the wire, differ".to_owned())
}

/// The first pair of elements at the same index of two lists that differ.
fn unlike<'a, T>(
    first: &'a [T],
    other: &'a [T],
    is_same: fn(&T, &T) -> bool,
) -> Option<(Option<&'a T>, Option<&'a T>)> {
    let most = first.len().max(other.len());
    let mut pairs = (0..most).map(|place| (first.get(place), other.get(place)));
    pairs.find(|pair| !matches!(pair, (Some(a), Some(b)) if is_same(a, b)))
}

/// Whether two links are equal, apart from their positions in the file.
fn is_same_link(a: &Link, b: &Link) -> bool {
    let elsewhere = Link {
        latency_span: a.latency_span,
        mark_span: a.mark_span,
        ..b.clone()
    };
    *a == elsewhere
}

fn pair<T>(
    what: &str,
    first: Option<&T>,
    other: Option<&T>,
    show: impl Fn(&T) -> String,
) -> String {
    match (first, other) {
        (Some(first), Some(other)) if show(first) == show(other) => {
            format!("{what} `{}` differs", show(first))
        }
        (Some(first), Some(other)) => {
            format!("{what} `{}` instead of `{}`", show(other), show(first))
        }
        (Some(first), None) => format!("{what} `{}` is missing", show(first)),
        (None, Some(other)) => format!("{what} `{}` is additional", show(other)),
        (None, None) => what.to_owned(),
    }
}
