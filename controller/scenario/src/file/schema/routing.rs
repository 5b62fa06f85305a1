//! Reads `routing`, such as `routing: ecmp`: which paths packets take if several lead to a host.

use super::reader;
use super::shape::{Alternative, Shape};
use crate::diagnostic::{Code, Sink};
use crate::file::yaml::Node;
use crate::model::topology::{Routing, Topology};

const WAYS: Shape = Shape::Integer(2, Routing::MOST_WAYS as u64);

pub(super) const ROUTING: Shape = Shape::Variant(|| {
    vec![
        Alternative::alone("shortest", "one shortest path, over the lowest ports"),
        Alternative::alone(
            "ecmp",
            "all shortest paths: a flow takes one of them, by its addresses, protocol and ports",
        ),
        Alternative::with(
            "k_shortest",
            WAYS,
            "this number of the shortest paths, including longer ones",
        ),
    ]
});

/// Reads `routing`, and stores it in the topology.
pub(super) fn read(sink: &mut Sink<'_>, node: &Node, topology: &mut Topology) {
    let Some(written) = reader::variant(sink, node, "`routing`", &Routing::WORDS) else {
        return;
    };
    topology.routing_span = node.span;
    topology.routing = match written.name {
        "k_shortest" => {
            let Some(node) = written.needed(sink, "4") else {
                return;
            };
            match reader::number(sink, node, "`k_shortest`", &WAYS) {
                Some(ways) => Routing::KShortest(ways.value as u32),
                None => return,
            }
        }
        word => {
            written.nothing(sink);
            match word {
                "ecmp" => Routing::Ecmp,
                _ => Routing::Shortest,
            }
        }
    };
    if topology.wire && !topology.routing.is_single() {
        sink.error(Code::Topology, node.span, "a wire has one path".to_owned())
            .hint("leave `routing` out");
    }
}
