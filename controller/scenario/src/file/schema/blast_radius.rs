//! Reads the section `blast_radius`: limits on how many hosts, flows and packets the faults of a file may reach.

use crate::diagnostic::{Code, Sink};
use crate::file::schema::reader;
use crate::file::schema::shape::{Object, Shape, may};
use crate::file::yaml::Node;
use crate::model::{BlastRadius, MAX_FLOWS};

pub(super) static RADIUS: Object = Object {
    what: "`blast_radius`",
    keys: &[
        may("hosts", Shape::Names("a host"), "whose packets may be hit"),
        may(
            "flows",
            Shape::Integer(0, MAX_FLOWS as u64),
            "how many flows, at most",
        ),
        may("share", Shape::Probability, "of a flow's packets, at most"),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<BlastRadius> {
    let fields = reader::fields(sink, node, &RADIUS)?;
    let radius = BlastRadius {
        hosts: fields
            .get("hosts")
            .and_then(|_| fields.names(sink, "hosts")),
        flows: fields.number(sink, "flows"),
        share: fields.probability(sink, "share"),
        span: node.span,
    };
    if ["hosts", "flows", "share"]
        .iter()
        .all(|key| fields.get(key).is_none())
    {
        sink.error(
            Code::MissingKey,
            node.span,
            "`blast_radius` needs one of `hosts`, `flows` and `share`",
        )
        .hint("write for example `blast_radius: {share: 10%}`");
    }
    Some(radius)
}
