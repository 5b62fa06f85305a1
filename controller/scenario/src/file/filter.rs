//! Compiles flows' filters, in parser-gen's language: adds tests of hosts' addresses; errors get positions in the YAML file.

use parser_gen::{Filter, Library};

use crate::diagnostic::{Code, Sink};
use crate::file::yaml::{Kind, Node, locate};
use crate::model::topology::{Host, Topology};

/// Filter texts for a flow's `from` and `to`: tests of a packet's IPv4 addresses, or, on a wire, of its ingress port.
fn ends(topology: &Topology, from: Option<&Host>, to: Option<&Host>) -> Vec<String> {
    if !topology.wire {
        let from = from.map(|host| format!("ip.src == {}", host.ip));
        let to = to.map(|host| format!("ip.dst == {}", host.ip));
        return from.into_iter().chain(to).collect();
    }
    let opposite = to.and_then(|side| topology.across(&side.name));
    let senders = [from.map(|side| side.name.as_str()), opposite];
    let ports = senders.into_iter().flatten().filter_map(|side| {
        let port = topology.next_hop(Topology::WIRE, side)?;
        Some(format!("switch.port == {}", port.number))
    });
    let mut ports: Vec<String> = ports.collect();
    ports.dedup();
    ports
}

/// The hint for a name that is no header field. `fits` accepts suitable fields; `value` is the value that the file gives.
pub(crate) fn hint_for_field(
    library: &Library,
    name: &str,
    value: Option<u128>,
    fits: &dyn Fn(&str) -> bool,
) -> String {
    parser_gen::filter::hint_for_field(library, name, value, fits).unwrap_or_else(|| {
        "write a field of a header, such as `ip.ttl`; docs/filters.md lists them".to_owned()
    })
}

/// Test that excludes sums from a worker's flow: a switch sends a sum with the address of the worker who completed the sum.
const NO_SUM: &str = "!(agg.kind == 2)";
/// The field with the kind of an aggregation frame. If a flow's filter tests this field, [`NO_SUM`] is not added.
const KIND: &str = "agg.kind";

/// Checks a user's filter, and adds tests of the sender's and receiver's addresses. `is_rank` says whether the sender is a
/// worker whose values a switch sums.
pub(crate) fn compile(
    sink: &mut Sink<'_>,
    library: &Library,
    written: Option<&Node>,
    topology: &Topology,
    (from, is_rank): (Option<&Host>, bool),
    to: Option<&Host>,
) -> Option<Filter> {
    let own = match written {
        None => None,
        Some(node) => Some(check(sink, library, node)?),
    };
    let mut text = ends(topology, from, to);
    let asks_for_kinds = own.as_ref().is_some_and(|own| own.fields().contains(KIND));
    if is_rank && !topology.wire && !asks_for_kinds {
        text.push(NO_SUM.to_owned());
    }
    if let Some(own) = own {
        // Alone it needs no parentheses, and reads as the user wrote it.
        let own = own.text().trim();
        text.push(if text.is_empty() {
            own.to_owned()
        } else {
            format!("({own})")
        });
    }
    if text.is_empty() {
        // Reported where the flow is read.
        return None;
    }
    // Each part is a filter, so only the joined length can be refused.
    match Filter::parse(library, &text.join(" && ")) {
        Ok(filter) => Some(filter),
        Err(error) => {
            let span = written.map(|node| node.span).unwrap_or_default();
            sink.error(Code::Filter, span, error.kind.to_string());
            None
        }
    }
}

/// Parses a user's filter, and reports errors at their position in the YAML file.
fn check(sink: &mut Sink<'_>, library: &Library, node: &Node) -> Option<Filter> {
    let Kind::Text { value, .. } = &node.kind else {
        return None;
    };
    match Filter::parse(library, value) {
        Ok(filter) => Some(filter),
        Err(error) => {
            let span = locate(sink.source().text, node, error.span.start, error.span.end);
            let diagnostic = sink.error(Code::Filter, span, error.kind.to_string());
            if let Some(hint) = error.hint {
                diagnostic.hint(hint);
            }
            None
        }
    }
}
