//! `reorder: {distance: 3, within: 50ms}`.

use super::EffectSyntax;
use crate::file::schema::reader;
use crate::file::schema::shape::{DURATION, Object, Shape, needed};
use crate::model::effect::{Effect, Reorder};
use crate::units::Dimension;

/// Larger than any window that TCP keeps open for long.
const MAX_DISTANCE: u64 = 10_000;
/// Slightly less than the number of nanoseconds that a 32-bit word holds.
const MAX_WITHIN_NS: u64 = 4_000_000_000;

static REORDER: Object = Object {
    what: "`reorder`",
    keys: &[
        needed(
            "distance",
            Shape::Integer(1, MAX_DISTANCE),
            "number of later packets that pass it",
        ),
        needed("within", DURATION, "but for no longer than this"),
    ],
};

const EXAMPLE: &str = "{distance: 3, within: 50ms}";

pub(super) const KIND: EffectSyntax = EffectSyntax {
    word: "reorder",
    about: "it lets others of its flow pass",
    shape: Some(&Shape::Object(&REORDER)),
    example: EXAMPLE,
    read: |sink, _, written| {
        let (_, fields) = written.mapping(sink, &REORDER, EXAMPLE)?;
        let distance = fields.read("distance", |node| {
            let what = "`distance`";
            reader::integer(sink, node, what, 1..=MAX_DISTANCE)
        });
        let within = fields.read("within", |node| {
            let range = 1..=MAX_WITHIN_NS;
            reader::quantity_within(sink, node, "`within`", Dimension::Duration, range)
        })?;
        Some(Effect::Reorder(Reorder {
            distance: distance? as u32,
            within_ns: within.value,
        }))
    },
};
