//! Reads the effect `reorder: {distance: 3, within: 50ms}`.

use super::EffectSyntax;
use crate::file::schema::shape::{Object, Shape, duration, needed};
use crate::model::effect::{Effect, Reorder};

/// Maximum number of packets that overtake: more than any window that TCP keeps open for long.
const MAX_DISTANCE: u64 = 10_000;
/// Maximum time for which a packet waits, in nanoseconds: slightly less than a 32-bit word can hold.
const MAX_WITHIN_NS: u64 = 4_000_000_000;

static REORDER: Object = Object {
    what: "`reorder`",
    keys: &[
        needed(
            "distance",
            Shape::Integer(1, MAX_DISTANCE),
            "number of later packets that pass it",
        ),
        needed(
            "within",
            duration(1, MAX_WITHIN_NS),
            "but for no longer than this",
        ),
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
        let distance = fields.number(sink, "distance");
        let within = fields.number(sink, "within");
        Some(Effect::Reorder(Reorder {
            distance: distance?.value,
            within_ns: within?.value,
        }))
    },
};
