//! Section `limits`: bounds of a run.

use super::reader;
use super::shape::{DURATION, Object, SIZE, Shape, may};
use crate::diagnostic::{Code, Sink, Spanned};
use crate::file::yaml::Node;
use crate::model::Limits;
use crate::units::{Dimension, show_size};

pub(super) static LIMITS: Object = Object {
    what: "`limits`",
    keys: &[
        may("time", DURATION, "the run fails when it takes longer; 60s"),
        may(
            "disk",
            SIZE,
            "bytes of frames that the run writes, at least 1MiB; beyond, it keeps no more frames; 1GiB",
        ),
        may(
            "hits",
            Shape::Integer(1, u32::MAX as u64),
            "that all faults together may make; beyond, it is aborted",
        ),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Limits {
    let mut limits = Limits::default();
    let Some(fields) = reader::fields(sink, node, &LIMITS) else {
        return limits;
    };
    if let Some(time) = fields.read("time", |node| {
        reader::quantity(sink, node, "`time`", Dimension::Duration)
    }) {
        limits.time_ns = time.value;
        limits.time_span = Some(time.span);
    }
    if let Some(disk) = fields.read("disk", |node| disk(sink, node)) {
        limits.disk_bytes = disk.value;
        limits.disk_span = Some(disk.span);
    }
    if let Some(node) = fields.get("hits")
        && let Some(hits) = reader::integer(sink, node, "`hits`", 1..=u64::from(u32::MAX))
    {
        limits.hits = Some(Spanned::new(hits, node.span));
    }
    limits
}

fn disk(sink: &mut Sink<'_>, node: &Node) -> Option<Spanned<u64>> {
    let least = Limits::LEAST_DISK_BYTES;
    let disk = reader::quantity_near(sink, node, "`disk`", Dimension::Size, &(least..=u64::MAX))?;
    if disk.value >= least {
        return Some(disk);
    }
    let message = format!(
        "`disk` is {}; it must be at least 1MiB, so that the largest frame fits",
        show_size(disk.value)
    );
    sink.error(Code::OutOfRange, node.span, message)
        .hint("write `1MiB` or more; to keep no frame, write `captures: none` in the scenario");
    None
}
