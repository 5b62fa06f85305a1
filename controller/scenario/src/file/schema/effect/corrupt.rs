//! Reads the effect `corrupt: {field: ip.ttl, xor: 0x01}`. With `bits: 2` or `bytes: 1`, a random word chooses the bits.

use parser_gen::rewrite::{NewValue, Rewrite, RewriteError};

use super::EffectSyntax;
use super::set::{report, value};
use crate::diagnostic::{Code, Sink};
use crate::file::schema::reader;
use crate::file::schema::shape::{Object, Shape, may, needed};
use crate::file::yaml::Node;
use crate::model::effect::{Corrupt, Effect, masks};

const EXAMPLE: &str = "{field: ip.id, bits: 1}";

/// The keys that say which bits flip; the file gives exactly one of them.
const WAYS: [&str; 3] = ["xor", "bits", "bytes"];

static CORRUPT: Object = Object {
    what: "`corrupt`",
    keys: &[
        needed("field", Shape::Text, "as filters name it"),
        may("xor", Shape::Value, "these bits of it"),
        may(
            "bits",
            Shape::Integer(1, 128),
            "this many, drawn for each packet",
        ),
        may(
            "bytes",
            Shape::Integer(1, 16),
            "this many, drawn for each packet",
        ),
        may(
            "checksums",
            Shape::Word(&["left", "mended"]),
            "whether they fit the changed bytes",
        )
        .or_first(),
    ],
};

pub(super) const KIND: EffectSyntax = EffectSyntax {
    word: "corrupt",
    about: "bits of a field turn over",
    shape: Some(&Shape::Object(&CORRUPT)),
    example: EXAMPLE,
    read: |sink, protocols, written| {
        let (node, fields) = written.mapping(sink, &CORRUPT, EXAMPLE)?;
        let field = fields.text(sink, "field")?;
        let mut ways = WAYS.iter().filter_map(|way| Some((*way, fields.get(way)?)));
        let (Some((way, by)), None) = (ways.next(), ways.next()) else {
            let message = "`corrupt` needs one of `xor`, `bits` and `bytes`";
            sink.error(Code::WrongType, node.span, message)
                .hint("write `bits: 1` to flip one random bit of the field in each packet, or `xor: 0x01` to flip a fixed one");
            return None;
        };
        let to = match way {
            "xor" => NewValue::Xor(value(sink, protocols, by, "xor")?),
            _ => NewValue::Drawn,
        };
        let mends = fields.word(sink, "checksums")? == "mended";
        let change = [(field.value.as_str(), to)];
        let rewrite = match Rewrite::new(protocols, &change, mends) {
            Ok(rewrite) => rewrite,
            Err(error) => {
                // An error about the mask's value belongs to the mask.
                let span = match &error {
                    RewriteError::TooLarge { .. } | RewriteError::Nothing(_) => by.span,
                    _ => field.span,
                };
                report(sink, protocols, span, &error, None);
                return None;
            }
        };
        let (told, masks) = match (to, rewrite.drawn_bits()) {
            (NewValue::Drawn, Some(width)) => drawn(sink, way, by, width)?,
            (NewValue::Set(mask) | NewValue::Xor(mask), _) => {
                (format!("by {mask:#x}"), Box::default())
            }
            (NewValue::Drawn, None) => return None,
        };
        Some(Effect::Corrupt(Corrupt {
            rewrite,
            told: format!("{} {told}", field.value),
            masks,
        }))
    },
};

/// For bits that are chosen at random: text on the change for users, and for each random draw the mask of the bits to flip.
fn drawn(sink: &mut Sink<'_>, way: &str, by: &Node, width: usize) -> Option<(String, Box<[u128]>)> {
    let is_bytes = way == "bytes";
    if is_bytes && !width.is_multiple_of(8) {
        let message = format!("the field has {width} bits, which is not a whole number of bytes");
        sink.error(Code::OutOfRange, by.span, message)
            .hint("write `bits` instead of `bytes`");
        return None;
    }
    let unit = if is_bytes { 8 } else { 1 };
    let most = (width / unit) as u64;
    let what = format!("`{way}`");
    let count = reader::number(sink, by, &what, &Shape::Integer(1, most))?.value as usize;
    let what = way.trim_end_matches('s');
    let told = match count {
        1 => format!("by a random {what}"),
        _ => format!("by {count} random {way}"),
    };
    Some((told, masks(width, unit, count)))
}
