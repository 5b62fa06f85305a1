//! Translates matches of key fields and of value sets (P4Runtime 1.4, section 9.1.1).

use super::TranslateError;
use crate::bytes;
use crate::v1;
use crate::v1::field_match::{self, FieldMatchType};
use p4lang::p4info::{MatchField, MatchType};
use p4lang::runtime::{Match, MatchKind, Value};

/// The exact match kind; every table entry must specify a key field of this kind.
pub(super) const EXACT: MatchType = MatchType::Standard(MatchKind::Exact);

type Result<T> = std::result::Result<T, TranslateError>;

/// Encodes the match of a key field as a P4Runtime message; `None` for a don't-care, which the protocol leaves out.
///
/// `table` is the name of the table or value set, for errors.
pub fn match_to_proto(
    table: &str,
    field: &MatchField,
    value: &Match,
) -> Result<Option<v1::FieldMatch>> {
    if is_dont_care(field, value) {
        return Ok(None);
    }
    check_match(table, field, value)?;
    let encode = |value: &Value| value.to_be_bytes().into();
    let kind = match value {
        Match::Exact(value) => FieldMatchType::Exact(field_match::Exact {
            value: encode(value),
        }),
        Match::Optional(value) => FieldMatchType::Optional(field_match::Optional {
            value: encode(value),
        }),
        Match::Lpm { value, prefix_len } => FieldMatchType::Lpm(field_match::Lpm {
            value: encode(value),
            prefix_len: prefix_len.cast_signed(),
        }),
        Match::Ternary { value, mask } => FieldMatchType::Ternary(field_match::Ternary {
            value: encode(value),
            mask: encode(mask),
        }),
        Match::Range { low, high } => FieldMatchType::Range(field_match::Range {
            low: encode(low),
            high: encode(high),
        }),
    };
    Ok(Some(v1::FieldMatch {
        field_id: field.id,
        field_match_type: Some(kind),
    }))
}

/// Decodes the match of a key field from a P4Runtime message.
///
/// `table` is the name of the table or value set, for errors.
pub fn match_from_proto(table: &str, field: &MatchField, given: &v1::FieldMatch) -> Result<Match> {
    let decode = |value: &[u8]| {
        bytes::decode(value, field.bitwidth).map_err(|source| TranslateError::Value {
            field: field.name.clone(),
            source,
        })
    };
    let unset = TranslateError::Unset {
        what: "field_match_type",
    };
    let value = match given.field_match_type.as_ref().ok_or(unset)? {
        FieldMatchType::Exact(exact) => Match::Exact(decode(&exact.value)?),
        FieldMatchType::Optional(optional) => Match::Optional(decode(&optional.value)?),
        FieldMatchType::Lpm(lpm) => Match::Lpm {
            value: decode(&lpm.value)?,
            prefix_len: u32::try_from(lpm.prefix_len).map_err(|_| {
                match_error(table, field, format!("prefix length {}", lpm.prefix_len))
            })?,
        },
        FieldMatchType::Ternary(ternary) => Match::Ternary {
            value: decode(&ternary.value)?,
            mask: decode(&ternary.mask)?,
        },
        FieldMatchType::Range(range) => Match::Range {
            low: decode(&range.low)?,
            high: decode(&range.high)?,
        },
        FieldMatchType::Other(_) => {
            return Err(TranslateError::Unsupported {
                what: "match kinds of an architecture".to_owned(),
            });
        }
    };
    check_match(table, field, &value)?;
    if is_dont_care(field, &value) {
        return Err(match_error(
            table,
            field,
            "this matches every value: leave the field out".to_owned(),
        ));
    }
    Ok(value)
}

fn is_dont_care(field: &MatchField, value: &Match) -> bool {
    match value {
        Match::Exact(_) | Match::Optional(_) => false,
        Match::Lpm { prefix_len, .. } => *prefix_len == 0,
        Match::Ternary { mask, .. } => mask.is_zero(),
        Match::Range { low, high } => low.is_zero() && *high == Value::ones(field.bitwidth),
    }
}

/// Checks that a match has the key field's match kind, fits its width, and sets no bits that are not compared.
fn check_match(table: &str, field: &MatchField, value: &Match) -> Result<()> {
    let declared = match field.match_type {
        MatchType::Standard(kind) if kind == value.kind() => None,
        MatchType::Standard(kind) => Some(kind.name()),
        MatchType::Other(_) => Some("by the architecture's rule"),
    };
    if let Some(declared) = declared {
        return Err(TranslateError::MatchKind {
            table: table.to_owned(),
            field: field.name.clone(),
            declared,
            given: value.kind().name(),
        });
    }
    let numbers = match value {
        Match::Exact(value) | Match::Optional(value) | Match::Lpm { value, .. } => [value, value],
        Match::Ternary { value, mask } => [value, mask],
        Match::Range { low, high } => [low, high],
    };
    for number in numbers {
        check_width(&field.name, number, field.bitwidth)?;
    }
    let reason = match value {
        Match::Lpm { prefix_len, .. } if *prefix_len > field.bitwidth => {
            format!(
                "prefix length {prefix_len} in a field of {} bits",
                field.bitwidth
            )
        }
        Match::Lpm { value, prefix_len }
            if !value.is_within(&Value::prefix(field.bitwidth, *prefix_len)) =>
        {
            format!("bits after the first {prefix_len} are set")
        }
        Match::Ternary { value, mask } if !value.is_within(mask) => {
            "bits outside the mask are set".to_owned()
        }
        Match::Range { low, high } if low > high => format!("{low} is greater than {high}"),
        _ => return Ok(()),
    };
    Err(match_error(table, field, reason))
}

/// Checks that a value fits a field of `bitwidth` bits.
pub fn check_width(field: &str, value: &Value, bitwidth: u32) -> Result<()> {
    if value.fits(bitwidth) {
        return Ok(());
    }
    Err(TranslateError::Value {
        field: field.to_owned(),
        source: bytes::BytesError::TooWide { bitwidth },
    })
}

fn match_error(table: &str, field: &MatchField, reason: String) -> TranslateError {
    TranslateError::Match {
        table: table.to_owned(),
        field: field.name.clone(),
        reason,
    }
}
