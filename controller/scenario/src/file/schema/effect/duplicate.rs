//! Reads the effect `duplicate: {copies: 3, spaced: 5ms}`.

use super::EffectSyntax;
use crate::file::schema::shape::{Object, Shape, duration, may};
use crate::model::effect::{Duplicate, Effect, MAX_DELAY_NS};

/// Maximum number of copies; each copy is a replica of a multicast group.
const MAX_COPIES: u64 = 15;
/// Maximum time between copies, in nanoseconds, so that the last copy waits no longer than the maximum delay.
const MAX_SPACED_NS: u64 = MAX_DELAY_NS / MAX_COPIES;

static DUPLICATE: Object = Object {
    what: "`duplicate`",
    keys: &[
        may(
            "copies",
            Shape::Integer(1, MAX_COPIES),
            "copies besides the packet itself",
        )
        .or(Duplicate::ONCE.copies as u64),
        may(
            "spaced",
            duration(0, MAX_SPACED_NS),
            "time from one copy to the next",
        )
        .or(Duplicate::ONCE.spaced_ns),
    ],
};

pub(super) const KIND: EffectSyntax = EffectSyntax {
    word: "duplicate",
    about: "it is sent twice, or more often",
    shape: Some(&Shape::Object(&DUPLICATE)),
    example: "",
    read: |sink, _, written| {
        if written.payload.is_none() {
            return Some(Effect::Duplicate(Duplicate::ONCE));
        }
        let (_, fields) = written.mapping(sink, &DUPLICATE, "{copies: 3}")?;
        Some(Effect::Duplicate(Duplicate {
            copies: fields.number(sink, "copies")?.value,
            spaced_ns: fields.number(sink, "spaced")?.value,
        }))
    },
};
