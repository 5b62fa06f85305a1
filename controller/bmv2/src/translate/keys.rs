//! Converts table keys and values between P4Runtime's form and the bytes that BMv2's calls use.

use p4lang::runtime::{FieldMatch, Match, Value};

use super::{Result, TranslateError};
use crate::program::{KeyField, MatchKind, Part, Table};
use crate::thrift::KeyPart;

/// Converts a table entry's priority between P4Runtime, where the largest wins, and BMv2, where the smallest wins.
pub(super) fn priority(priority: i32) -> i32 {
    i32::MAX - priority
}

pub(super) fn key(table: &str, declared: &Table, given: &[FieldMatch]) -> Result<Vec<KeyPart>> {
    if let Some(stray) = given
        .iter()
        .find(|field| declared.key.iter().all(|own| own.name != field.field))
    {
        return Err(TranslateError::Field {
            table: table.to_owned(),
            field: stray.field.clone(),
            fields: declared.key.iter().map(|own| own.name.clone()).collect(),
        });
    }
    let part = |field: &KeyField| {
        let given = given.iter().find(|given| given.field == field.name);
        key_part(table, field, given.map(|given| &given.value))
    };
    declared.key.iter().map(part).collect()
}

pub(super) fn key_part(table: &str, field: &KeyField, given: Option<&Match>) -> Result<KeyPart> {
    let encode = |value: &Value| encode(&field.name, value, field.width);
    let (zero, ones) = (&Value::ZERO, &Value::ones(field.width));
    Ok(match (field.kind, given) {
        (MatchKind::Exact, Some(Match::Exact(value))) => match field.part {
            Some(part) => KeyPart::Exact(encode(&in_its_place(field, part, value)?)?),
            None => KeyPart::Exact(encode(value)?),
        },
        (MatchKind::Valid, Some(Match::Exact(value))) => KeyPart::Valid(!value.is_zero()),
        (MatchKind::Exact | MatchKind::Valid, None) => {
            return Err(TranslateError::Missing {
                table: table.to_owned(),
                field: field.name.clone(),
            });
        }
        (MatchKind::Lpm, None) => KeyPart::Lpm(encode(zero)?, 0),
        (MatchKind::Lpm, Some(Match::Lpm { value, prefix_len })) => {
            // The width limits the prefix length; a value that is too long is reported as too wide.
            KeyPart::Lpm(
                encode(value)?,
                i32::try_from((*prefix_len).min(field.width)).unwrap_or(0),
            )
        }
        (MatchKind::Ternary | MatchKind::Optional, None) => {
            KeyPart::Ternary(encode(zero)?, encode(zero)?)
        }
        (MatchKind::Ternary, Some(Match::Ternary { value, mask })) => {
            KeyPart::Ternary(encode(value)?, encode(mask)?)
        }
        (MatchKind::Optional, Some(Match::Optional(value))) => {
            KeyPart::Ternary(encode(value)?, encode(ones)?)
        }
        (MatchKind::Range, None) => KeyPart::Range(encode(zero)?, encode(ones)?),
        (MatchKind::Range, Some(Match::Range { low, high })) => {
            KeyPart::Range(encode(low)?, encode(high)?)
        }
        (expected, Some(given)) => {
            return Err(TranslateError::Kind {
                table: table.to_owned(),
                field: field.name.clone(),
                expected,
                given: given.clone(),
            });
        }
    })
}

/// Shifts a value for a slice of a field to the slice's position in the whole field.
fn in_its_place(field: &KeyField, part: Part, value: &Value) -> Result<Value> {
    let number = value.to_u128().filter(|_| value.fits(part.width));
    let number = number.ok_or_else(|| TranslateError::Width {
        what: field.name.clone(),
        value: value.clone(),
        width: part.width,
    })?;
    Ok(Value::from(number << part.low))
}

/// Encodes a value in as many bytes as its width in bits needs: BMv2 accepts no shorter form.
pub(super) fn encode(what: &str, value: &Value, width: u32) -> Result<Vec<u8>> {
    if !value.fits(width) {
        return Err(TranslateError::Width {
            what: what.to_owned(),
            value: value.clone(),
            width,
        });
    }
    let length = width.div_ceil(8) as usize;
    let bytes = value.to_be_bytes();
    // Zero is encoded as one byte, even in a field without bits.
    let mut encoded = vec![0; length.saturating_sub(bytes.len())];
    encoded.extend(&bytes[bytes.len() - (length - encoded.len())..]);
    Ok(encoded)
}

pub(super) fn field_match(field: &KeyField, part: &KeyPart) -> Option<Option<Match>> {
    let decode = |bytes: &[u8]| Value::from_be_bytes(bytes);
    let ones = Value::ones(field.width);
    Some(match part {
        KeyPart::Exact(value) => Some(Match::Exact(match field.part {
            Some(part) => Value::from(decode(value).to_u128()? >> part.low),
            None => decode(value),
        })),
        KeyPart::Valid(valid) => Some(Match::exact(u128::from(*valid))),
        KeyPart::Lpm(_, 0) => None,
        KeyPart::Lpm(value, length) => Some(Match::Lpm {
            value: decode(value),
            prefix_len: u32::try_from(*length).ok()?,
        }),
        KeyPart::Ternary(value, mask) => match (decode(value), decode(mask)) {
            (_, mask) if mask.is_zero() => None,
            (value, mask) if field.kind == MatchKind::Optional && mask == ones => {
                Some(Match::Optional(value))
            }
            (value, mask) => Some(Match::Ternary { value, mask }),
        },
        KeyPart::Range(low, high) => match (decode(low), decode(high)) {
            (low, high) if low.is_zero() && high == ones => None,
            (low, high) => Some(Match::Range { low, high }),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_field_stands_in_its_place() {
        let json = r#"{"header_types": [{"name": "s", "fields": [["x", 32, false]]}],
            "headers": [{"name": "scalars", "header_type": "s"}], "actions": [], "pipelines": [{"tables": [{"name": "t",
            "actions": [], "key": [{"match_type": "exact", "name": "byte", "target": ["scalars", "x"],
            "mask": "0x0000ff00"}]}]}]}"#;
        let program = crate::program::Program::parse(json).unwrap();
        let field = &program.tables["t"].key[0];
        assert_eq!(field.part, Some(Part { low: 8, width: 8 }));
        let given = Match::exact(0xAB);
        let part = key_part("t", field, Some(&given)).unwrap();
        assert_eq!(part, KeyPart::Exact(vec![0, 0, 0xAB, 0]));
        assert_eq!(field_match(field, &part), Some(Some(given)));
        let wide = key_part("t", field, Some(&Match::exact(0x100)));
        assert!(
            matches!(wide, Err(TranslateError::Width { width: 8, .. })),
            "{wide:?}"
        );
    }
}
