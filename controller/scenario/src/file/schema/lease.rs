//! `lease`: how soon faults end without a refresh by the controller.

use crate::diagnostic::{Code, Sink};
use crate::file::schema::reader;
use crate::file::schema::shape::{DURATION, Object, Shape, may, needed};
use crate::file::yaml::{Kind, Node};
use crate::model::lease::{Lease, LeaseRequest, SHORTEST_REFRESH_NS};
use crate::units::{Dimension, show_duration};

/// The longest lease, in nanoseconds: a day, so that no switch clock wraps meanwhile.
const LONGEST_NS: u64 = 86_400_000_000_000;

pub(super) static LEASE: Shape = Shape::Either(&[
    DURATION,
    Shape::Word(&["off"]),
    Shape::Object(&WITH_REFRESH),
]);

static WITH_REFRESH: Object = Object {
    what: "`lease`",
    keys: &[
        needed(
            "for",
            DURATION,
            "how long faults hold after the controller's last word",
        ),
        may(
            "refresh",
            DURATION,
            "period of refreshes; a quarter of `for`",
        ),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> LeaseRequest {
    let span = Some(node.span);
    if matches!(&node.kind, Kind::Text { value, .. } if value == "off") {
        return LeaseRequest { lease: None, span };
    }
    let lease = match node.kind {
        Kind::Map(_) => mapping(sink, node),
        _ => reader::quantity(sink, node, "`lease`", Dimension::Duration)
            .map(|length| Lease::with_duration(length.value)),
    };
    if let Some(lease) = lease {
        check(sink, node, lease);
    }
    LeaseRequest { lease, span }
}

fn mapping(sink: &mut Sink<'_>, node: &Node) -> Option<Lease> {
    let fields = reader::fields(sink, node, &WITH_REFRESH)?;
    let mut duration = |key: &str| {
        let node = fields.get(key)?;
        reader::quantity(sink, node, &format!("`{key}`"), Dimension::Duration)
    };
    let (length, refresh) = (duration("for")?, duration("refresh"));
    let lease = Lease::with_duration(length.value);
    let refresh_ns = refresh.map_or(lease.refresh_ns, |refresh| refresh.value);
    Some(Lease {
        refresh_ns,
        ..lease
    })
}

fn check(sink: &mut Sink<'_>, node: &Node, lease: Lease) {
    let Lease { for_ns, refresh_ns } = lease;
    if refresh_ns < SHORTEST_REFRESH_NS {
        let message = format!(
            "`refresh` must be at least {}; found {}",
            show_duration(SHORTEST_REFRESH_NS),
            show_duration(refresh_ns)
        );
        sink.error(Code::OutOfRange, node.span, message).hint(
            "write a longer `refresh`: each refresh reads from every switch and writes to it",
        );
    } else if for_ns < refresh_ns.saturating_mul(2) {
        let message = format!(
            "a lease must be at least twice as long as its refresh; found {}, and a refresh of {}",
            show_duration(for_ns),
            show_duration(refresh_ns)
        );
        sink.error(Code::OutOfRange, node.span, message).hint(
            "write a longer `for`: otherwise one late refresh ends the faults in the middle of the run",
        );
    } else if for_ns > LONGEST_NS {
        let message = format!(
            "a lease can last at most a day; found {}",
            show_duration(for_ns)
        );
        sink.error(Code::OutOfRange, node.span, message)
            .hint("write `lease: off`: faults then hold until they are disarmed");
    }
}
