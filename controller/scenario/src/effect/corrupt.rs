//! `corrupt: {field: ip.ttl, xor: 0x01}`: flips bits of a field. Checksums stay as they were, as in real corruption,
//! unless the file asks for `mended`. With `bits: 2` or `bytes: 1` the drawn word selects the bits.

use parser_gen::engine::Action;
use parser_gen::rewrite::{NewValue, Rewrite, RewriteError};
use parser_gen::{Headers, Library};

use super::distribution::{QUANTILES, of_lot};
use super::set::{are_mended, report, value};
use super::{Behaviour, Effect, Fate, Kind, MENDS};
use crate::decision;
use crate::diagnostic::{Code, Sink};
use crate::plan::TargetModel;
use crate::schema::reader;
use crate::schema::shape::{Object, Shape, may, needed};
use crate::yaml::Node;

/// Flips bits of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// The field and the change.
    pub rewrite: Rewrite,
    /// Description as in the file: `ip.ttl by 0x1`.
    pub told: String,
    /// The bits to flip, indexed by the upper bits of the drawn word. Empty if the bits are fixed.
    masks: Box<[u128]>,
}

const EXAMPLE: &str = "{field: ip.id, bits: 1}";

/// The keys beside `field`, of which the file gives exactly one.
const WAYS: [&str; 3] = ["xor", "bits", "bytes"];

static CORRUPT: Object = Object {
    what: "`corrupt`",
    keys: &[
        needed("field", Shape::Text, "as filters name it"),
        may("xor", Shape::Value, "these bits of it"),
        may(
            "bits",
            Shape::Integer(1, 128),
            "so many, which ones is drawn",
        ),
        may(
            "bytes",
            Shape::Integer(1, 16),
            "so many, which ones is drawn",
        ),
        may("checksums", Shape::Word(&["mended", "left"]), "`left`"),
    ],
};

pub(super) const KIND: Kind = Kind {
    word: "corrupt",
    about: "bits of a field turn over",
    shape: Some(&Shape::Object(&CORRUPT)),
    example: EXAMPLE,
    read: |sink, written| {
        let (node, fields) = written.mapping(sink, &CORRUPT, EXAMPLE)?;
        let field = reader::text(sink, fields.get("field")?, "`field`")?;
        let mut ways = WAYS.iter().filter_map(|way| Some((*way, fields.get(way)?)));
        let (Some((way, by)), None) = (ways.next(), ways.next()) else {
            let message = "`corrupt` needs one of `xor`, `bits` and `bytes`";
            sink.error(Code::WrongType, node.span, message)
                .hint("write `bits: 1` for one bit of the field, drawn for each packet, or `xor: 0x01` for a fixed one");
            return None;
        };
        let to = match way {
            "xor" => NewValue::Xor(value(sink, by, "xor")?),
            _ => NewValue::Drawn,
        };
        let mends = match fields.get("checksums") {
            Some(node) => are_mended(sink, node)?,
            None => false,
        };
        let change = [(field.value.as_str(), to)];
        let rewrite = match Rewrite::new(&sink.protocols(), &change, mends) {
            Ok(rewrite) => rewrite,
            Err(error) => {
                // An error about the mask's value belongs to the mask.
                let span = match &error {
                    RewriteError::TooLarge { .. } | RewriteError::Nothing(_) => by.span,
                    _ => field.span,
                };
                report(sink, span, &error, None);
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

/// The description of the change, and the mask for each draw.
fn drawn(sink: &mut Sink<'_>, way: &str, by: &Node, width: usize) -> Option<(String, Box<[u128]>)> {
    let is_bytes = way == "bytes";
    if is_bytes && !width.is_multiple_of(8) {
        let message = format!("the field has {width} bits, which are no whole bytes");
        sink.error(Code::OutOfRange, by.span, message)
            .hint("write `bits` in place of `bytes`");
        return None;
    }
    let unit = if is_bytes { 8 } else { 1 };
    let most = (width / unit) as u64;
    let count = reader::integer(sink, by, &format!("`{way}`"), 1..=most)? as usize;
    let what = way.trim_end_matches('s');
    let told = match count {
        1 => format!("by a random {what}"),
        _ => format!("by {count} random {way}"),
    };
    Some((told, masks(width, unit, count)))
}

/// For each draw, a mask of `count` distinct units of a field. The first unit cycles through the field in order, so that
/// with one unit all units are equally likely, as far as they divide the number of draws.
fn masks(width: usize, unit: usize, count: usize) -> Box<[u128]> {
    let units = width / unit;
    let mask = |lot: usize| {
        let number = |n: usize| decision::mix((lot << 16 | n) as u64);
        let mut places: Vec<usize> = (0..units).collect();
        places.swap(0, lot * units / QUANTILES);
        for place in 1..count {
            let other = place + number(place) as usize % (units - place);
            places.swap(place, other);
        }
        let chosen = places[..count].iter().enumerate();
        chosen.fold(0_u128, |mask, (n, place)| {
            // A corrupted byte becomes any other byte.
            let bits = match unit {
                8 => 1 + u128::from(number(0x100 + n) % 255),
                _ => 1,
            };
            mask | bits << (place * unit)
        })
    };
    (0..QUANTILES).map(mask).collect()
}

impl Corrupt {
    /// Always flips the same bits of a field.
    #[must_use]
    pub fn by(rewrite: Rewrite, told: String) -> Corrupt {
        Corrupt {
            rewrite,
            told,
            masks: Box::default(),
        }
    }
}

impl Behaviour for Corrupt {
    fn word(&self) -> &'static str {
        KIND.word
    }

    fn verb(&self) -> &'static str {
        "corrupts"
    }

    fn action(&self) -> Action {
        Action::Rewrite(self.rewrite.clone())
    }

    fn compose(&self, _w: u32, _fate: &mut Fate) {}

    fn lots(&self) -> Vec<u128> {
        self.masks.to_vec()
    }

    fn draws(&self) -> bool {
        !self.masks.is_empty()
    }

    fn takes(&self) -> bool {
        true
    }

    fn changes(&self) -> bool {
        true
    }

    fn change(&self, library: &Library, headers: &Headers, w: u32, frame: &mut [u8]) {
        let mask = self.masks.get(of_lot(w)).copied().unwrap_or(0);
        self.rewrite.apply(library, headers, frame, mask);
    }

    fn refused_by(&self, target: &TargetModel) -> Option<&'static str> {
        (self.rewrite.has_sums_to_mend() && !target.mends_checksums).then_some(MENDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_as_many_units_as_asked_and_all_units_come() {
        for (width, unit, count) in [(8, 1, 1), (13, 1, 3), (128, 1, 128), (32, 8, 2), (16, 8, 1)] {
            let masks = masks(width, unit, count);
            let touched = |mask: u128| {
                let units = (0..width / unit).filter(|place| {
                    let bits = mask >> (place * unit);
                    bits & ((1 << unit) - 1) != 0
                });
                units.count()
            };
            assert!(masks.iter().all(|mask| touched(*mask) == count), "{width}");
            assert!(masks.iter().all(|mask| width == 128 || mask >> width == 0));
            let all = masks.iter().fold(0, |all, mask| all | mask);
            assert_eq!(all.count_ones() as usize, width, "{width} by {unit}");
        }
        // One bit of eight: each is drawn equally often.
        let even = masks(8, 1, 1);
        assert!((0..8).all(|bit| even.iter().filter(|mask| **mask == 1 << bit).count() == 128));
    }
}
