//! Reads the section `limits`: limits of a run's duration, disk space and hits.

use super::reader;
use super::shape::{DURATION, Object, Shape, may, size};
use crate::diagnostic::Sink;
use crate::file::yaml::Node;
use crate::model::Limits;

pub(super) static LIMITS: Object = Object {
    what: "`limits`",
    keys: &[
        may("time", DURATION, "the run fails when it takes longer").or(Limits::DEFAULT.time_ns),
        may(
            "disk",
            size(Limits::LEAST_DISK_BYTES, u64::MAX),
            "bytes of frames that the run writes; beyond, it keeps no more frames",
        )
        .or(Limits::DEFAULT.disk_bytes)
        .beyond(
            "the largest frame must fit; to keep no frame, write `captures: none` in the scenario",
        ),
        may(
            "hits",
            Shape::Integer(1, u32::MAX as u64),
            "that all faults together may make; beyond, it is aborted",
        ),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Limits {
    let Some(fields) = reader::fields(sink, node, &LIMITS) else {
        return Limits::DEFAULT;
    };
    let (time, disk) = (fields.number(sink, "time"), fields.number(sink, "disk"));
    let span = |key: &str| fields.get(key).map(|node| node.span);
    Limits {
        time_ns: time.map_or(Limits::DEFAULT.time_ns, |time| time.value),
        time_span: span("time"),
        disk_bytes: disk.map_or(Limits::DEFAULT.disk_bytes, |disk| disk.value),
        disk_span: span("disk"),
        hits: fields.number(sink, "hits"),
    }
}
