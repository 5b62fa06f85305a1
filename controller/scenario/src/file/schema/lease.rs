//! Reads the section `lease`: how soon faults end if the controller does not refresh the lease.

use crate::diagnostic::{Code, Sink};
use crate::file::schema::reader::{self, Fields};
use crate::file::schema::shape::{Object, Shape, duration, may, needed};
use crate::file::yaml::{Kind, Node};
use crate::model::lease::{Lease, LeaseRequest, SHORTEST_REFRESH_NS};
use crate::units::show_duration;

/// The longest lease, in nanoseconds: a day, so that no switch clock wraps meanwhile.
const LONGEST_NS: u64 = 86_400_000_000_000;

const FOR: Shape = duration(0, LONGEST_NS);
/// The hint for a lease that is longer than the longest.
pub(super) const LONGER: &str = "write `lease: off`: faults then hold until they are disarmed";

pub(super) static LEASE: Shape =
    Shape::Either(&[FOR, Shape::Word(&["off"]), Shape::Object(&WITH_REFRESH)]);

static WITH_REFRESH: Object = Object {
    what: "`lease`",
    keys: &[
        needed(
            "for",
            FOR,
            "how long faults hold after the controller's last word",
        )
        .beyond(LONGER),
        may(
            "refresh",
            duration(SHORTEST_REFRESH_NS, u64::MAX),
            "period of refreshes; a quarter of `for`",
        )
        .beyond("write a longer `refresh`: each refresh reads from every switch and writes to it"),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, sections: &Fields<'_>) -> LeaseRequest {
    let Some(node) = sections.get("lease") else {
        return LeaseRequest::default();
    };
    let span = Some(node.span);
    if matches!(&node.kind, Kind::Text { value, .. } if value == "off") {
        return LeaseRequest { lease: None, span };
    }
    let lease = match node.kind {
        Kind::Map(_) => mapping(sink, node),
        _ => (sections.number(sink, "lease")).map(|time| Lease::with_duration(time.value)),
    };
    if let Some(Lease { for_ns, refresh_ns }) = lease
        && for_ns < refresh_ns.saturating_mul(2)
    {
        let message = format!(
            "a lease must be at least twice as long as its refresh; found {}, and a refresh of {}",
            show_duration(for_ns),
            show_duration(refresh_ns)
        );
        sink.error(Code::OutOfRange, node.span, message).hint(
            "write a longer `for`: otherwise one late refresh ends the faults in the middle of the run",
        );
    }
    LeaseRequest { lease, span }
}

fn mapping(sink: &mut Sink<'_>, node: &Node) -> Option<Lease> {
    let fields = reader::fields(sink, node, &WITH_REFRESH)?;
    let length = fields.number(sink, "for");
    let refresh = fields.optional_number(sink, "refresh");
    let for_ns: u64 = length?.value;
    let refresh_ns = match refresh? {
        Some(refresh) => refresh.value,
        None => Lease::with_duration(for_ns).refresh_ns,
    };
    Some(Lease { for_ns, refresh_ns })
}
