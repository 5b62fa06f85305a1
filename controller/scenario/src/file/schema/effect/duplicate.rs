//! `duplicate: {copies: 3, spaced: 5ms}`.

use super::EffectSyntax;
use crate::file::schema::reader;
use crate::file::schema::shape::{DURATION, Object, Shape, may};
use crate::model::effect::{Duplicate, Effect, MAX_DELAY_NS};
use crate::units::Dimension;

/// Each copy is a replica of a multicast group.
const MAX_COPIES: u64 = 15;
/// All copies together wait no longer than the maximum delay.
const MAX_SPACED_NS: u64 = MAX_DELAY_NS / MAX_COPIES;

static DUPLICATE: Object = Object {
    what: "`duplicate`",
    keys: &[
        may(
            "copies",
            Shape::Integer(1, MAX_COPIES),
            "copies besides the packet itself; 1",
        ),
        may("spaced", DURATION, "time from one copy to the next; 0s"),
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
        let mut duplicate = Duplicate::ONCE;
        if let Some(node) = fields.get("copies") {
            duplicate.copies = reader::integer(sink, node, "`copies`", 1..=MAX_COPIES)? as u32;
        }
        if let Some(node) = fields.get("spaced") {
            let range = 0..=MAX_SPACED_NS;
            let spaced =
                reader::quantity_within(sink, node, "`spaced`", Dimension::Duration, range)?;
            duplicate.spaced_ns = spaced.value;
        }
        Some(Effect::Duplicate(duplicate))
    },
};
