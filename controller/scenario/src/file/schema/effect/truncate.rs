//! Reads the effect `truncate: 64B`.

use super::EffectSyntax;
use crate::file::schema::reader;
use crate::file::schema::shape::{Shape, size};
use crate::model::effect::{Effect, Truncate};

/// Minimum length of a cut frame, in bytes: an Ethernet header. A host does not accept anything shorter as a frame.
const LEAST: u64 = 14;
/// Maximum length of a cut frame, in bytes. With the header of a held packet, it fits the largest clone session number.
const MOST: u64 = 32_000;

static TO: Shape = size(LEAST, MOST);

const EXAMPLE: &str = "64B";

pub(super) const KIND: EffectSyntax = EffectSyntax {
    word: "truncate",
    about: "it is cut to this length",
    shape: Some(&TO),
    example: EXAMPLE,
    read: |sink, _, written| {
        let node = written.needed(sink, EXAMPLE)?;
        let size = reader::number(sink, node, "`truncate`", &TO)?;
        Some(Effect::Truncate(Truncate {
            to_bytes: size.value as u16,
        }))
    },
};
