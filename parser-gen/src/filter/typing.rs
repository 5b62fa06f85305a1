//! Type checker: turns a filter's syntax tree into a typed filter, with the protocol library.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::{Range, RangeInclusive};

use super::error::{FilterError, FilterErrorKind};
use super::syntax::{Comparison, Condition, Item, Literal, LiteralKind, Name, Syntax, SyntaxKind};
use super::{Expr, Node, Test, TextPattern, ValueSet, foreign};
use crate::library::{FieldRef, FieldType, Library, max_value};

pub(super) fn node(library: &Library, syntax: &Syntax) -> Result<Node, FilterError> {
    let nodes = |parts: &[Syntax]| {
        parts
            .iter()
            .map(|part| node(library, part))
            .collect::<Result<Vec<_>, _>>()
    };
    let expr = match &syntax.kind {
        SyntaxKind::Or(parts) => Expr::Or(nodes(parts)?),
        SyntaxKind::And(parts) => Expr::And(nodes(parts)?),
        SyntaxKind::Not(inner) => Expr::Not(Box::new(node(library, inner)?)),
        SyntaxKind::Test { name, condition } => test(library, name, condition)?,
    };
    Ok(Node {
        expr,
        span: syntax.span.clone(),
    })
}

/// Hint in the error for a protocol that no other protocol carries.
pub const UNCARRIED: &str = "say by what: `carried_by: [{by: tcp, when: [PORT]}]` in its own file, or `next` in that of its \
                             carrier";

fn test(library: &Library, name: &Name, condition: &Condition) -> Result<Expr, FilterError> {
    let protocol = name.text.split('.').next().unwrap_or(&name.text);
    if library.hidden.iter().any(|hidden| hidden == protocol) {
        let kind = FilterErrorKind::BehindPayload {
            protocol: protocol.to_owned(),
        };
        return Err(FilterError::new(kind, name.span.clone()).hint(Some(
            "match its bytes by slices as well, or describe the bytes of the slices in a protocol file",
        )));
    }
    if library.uncarried.iter().any(|lost| lost == protocol) {
        let kind = FilterErrorKind::Uncarried {
            protocol: protocol.to_owned(),
        };
        return Err(FilterError::new(kind, name.span.clone()).hint(Some(UNCARRIED)));
    }
    if *condition == Condition::Bare && library.protocol_by_filter(&name.text).is_some() {
        return Ok(Expr::Present {
            protocol: name.text.clone(),
        });
    }
    let field = lookup(library, name, condition)?;
    let (negated, set) = match condition {
        Condition::Bare if field.ty == FieldType::Flag => (false, ValueSet::Numbers(vec![1..=1])),
        Condition::Bare => {
            return Err(FilterError::new(
                FilterErrorKind::BareField {
                    name: name.text.clone(),
                },
                name.span.clone(),
            )
            .hint(Some(
                "compare it with `==`, `!=`, `<`, `<=`, `>`, `>=`, `in` or `startswith`",
            )));
        }
        Condition::Compare {
            operator,
            span,
            literal,
        } => compare(&field, *operator, span, literal)?,
        Condition::In { items } => (false, in_set(&field, items)?),
        Condition::StartsWith { span, literal } => {
            if !field.ty.is_text() {
                return Err(operator_clash("startswith", &field, span));
            }
            let bytes = text(&field, literal)?;
            (
                false,
                ValueSet::Texts(vec![TextPattern {
                    bytes,
                    prefix: true,
                }]),
            )
        }
    };
    Ok(Expr::Test(Test {
        field: field.name.to_owned(),
        ignore_case: field.ty == FieldType::Name,
        negated,
        set,
    }))
}

fn lookup<'a>(
    library: &'a Library,
    name: &Name,
    condition: &Condition,
) -> Result<FieldRef<'a>, FilterError> {
    if let Some(field) = library.field(&name.text) {
        return Ok(field);
    }
    let known = library
        .protocols()
        .iter()
        .find(|protocol| protocol.filter == name.text);
    let hint = if known.is_some() {
        library
            .fields()
            .find(|field| field.name.split('.').next() == Some(&name.text))
            .map(|field| format!("its fields are named like `{}`", field.name))
    } else {
        foreign::for_filter(library, &name.text, condition)
    };
    let kind = match known {
        // Every packet has metadata, so its presence is not a test.
        Some(_) if *condition == Condition::Bare => FilterErrorKind::BareField {
            name: name.text.clone(),
        },
        Some(_) => FilterErrorKind::ProtocolCompared {
            name: name.text.clone(),
        },
        None => {
            let what = if name.text.contains('.') || *condition != Condition::Bare {
                "field"
            } else {
                "protocol"
            };
            FilterErrorKind::Unknown {
                what,
                name: name.text.clone(),
            }
        }
    };
    Err(FilterError::new(kind, name.span.clone()).hint(hint.as_deref()))
}

fn operator_clash(
    operator: &'static str,
    field: &FieldRef<'_>,
    span: &Range<usize>,
) -> FilterError {
    FilterError::new(
        FilterErrorKind::OperatorClash {
            operator,
            ty: field.ty.describe(),
        },
        span.clone(),
    )
}

fn compare(
    field: &FieldRef<'_>,
    operator: Comparison,
    span: &Range<usize>,
    literal: &Literal,
) -> Result<(bool, ValueSet), FilterError> {
    let negated = operator == Comparison::NotEqual;
    if field.ty.is_text() {
        if !matches!(operator, Comparison::Equal | Comparison::NotEqual) {
            return Err(operator_clash(operator.text(), field, span));
        }
        let bytes = whole_text(field, literal)?;
        return Ok((
            negated,
            ValueSet::Texts(vec![TextPattern {
                bytes,
                prefix: false,
            }]),
        ));
    }
    let range = number(field, literal)?;
    let max = field.max;
    let range = match operator {
        Comparison::Equal | Comparison::NotEqual => Some(range),
        // Only a network has several values, and networks have no order.
        _ if range.start() != range.end() => {
            return Err(FilterError::new(
                FilterErrorKind::OperatorClash {
                    operator: operator.text(),
                    ty: "a network",
                },
                span.clone(),
            )
            .hint(Some("use `==`, `!=` or `in`")));
        }
        Comparison::Less => range.start().checked_sub(1).map(|high| 0..=high),
        Comparison::LessEqual => Some(0..=*range.end()),
        Comparison::Greater if *range.end() == max => None,
        Comparison::Greater => Some(range.end() + 1..=max),
        Comparison::GreaterEqual => Some(*range.start()..=max),
    };
    match range {
        Some(range) => Ok((negated, ValueSet::Numbers(vec![range]))),
        None => Err(FilterError::new(
            FilterErrorKind::NeverTrue,
            span.start..literal.span.end,
        )),
    }
}

fn in_set(field: &FieldRef<'_>, items: &[Item]) -> Result<ValueSet, FilterError> {
    if field.ty.is_text() {
        let mut patterns = Vec::new();
        for item in items {
            if let Some(high) = &item.high {
                return Err(operator_clash(
                    "..",
                    field,
                    &(item.low.span.start..high.span.end),
                ));
            }
            patterns.push(TextPattern {
                bytes: whole_text(field, &item.low)?,
                prefix: false,
            });
        }
        return Ok(ValueSet::Texts(patterns));
    }
    let mut ranges = Vec::new();
    for item in items {
        let low = number(field, &item.low)?;
        ranges.push(match &item.high {
            None => low,
            Some(high) => {
                let span = item.low.span.start..high.span.end;
                let high = number(field, high)?;
                if low.start() != low.end() || high.start() != high.end() {
                    return Err(operator_clash("..", field, &span)
                        .hint(Some("a range needs two addresses")));
                }
                if low.start() > high.end() {
                    return Err(FilterError::new(FilterErrorKind::EmptyRange, span));
                }
                *low.start()..=*high.end()
            }
        });
    }
    Ok(ValueSet::Numbers(merged(ranges)))
}

/// Sorts ranges, and merges those that overlap or adjoin.
pub(crate) fn merged(mut ranges: Vec<RangeInclusive<u128>>) -> Vec<RangeInclusive<u128>> {
    ranges.sort_by_key(|range| *range.start());
    let mut merged: Vec<RangeInclusive<u128>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if *range.start() <= last.end().saturating_add(1) => {
                *last = *last.start()..=*last.end().max(range.end());
            }
            _ => merged.push(range),
        }
    }
    merged
}

fn type_clash(field: &FieldRef<'_>, literal: &Literal) -> FilterError {
    let found = match &literal.kind {
        LiteralKind::Text(_) => "a string".to_owned(),
        LiteralKind::Word(word) => format!("`{word}`"),
    };
    let kind = FilterErrorKind::TypeClash {
        field: field.name.to_owned(),
        expected: field.ty.describe(),
        found,
    };
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let hint = match (field.ty, &literal.kind) {
        (FieldType::Name | FieldType::Text, _) => Some("put it in double quotes"),
        (FieldType::Unsigned | FieldType::Flag, LiteralKind::Word(word))
            if matches!(word.as_str(), "tcp" | "udp" | "icmp") =>
        {
            Some("a protocol is tested by its name alone, as in `tcp && ip.ttl < 3`")
        }
        (FieldType::Unsigned | FieldType::Flag, LiteralKind::Text(text)) if !is_number(text) => {
            Some("write a number, as in 80 or 0x50")
        }
        (_, LiteralKind::Text(_)) => Some("write it without quotes"),
        (FieldType::Ipv4, _) => Some("write it as in 10.0.0.1 or 10.0.0.0/8"),
        (FieldType::Ipv6, _) => Some("write it as in 2001:db8::1 or 2001:db8::/32"),
        (FieldType::Mac, _) => Some("write it as in 02:00:00:00:00:01"),
        (FieldType::Unsigned | FieldType::Flag, _) => Some("write a number, as in 80 or 0x50"),
    };
    FilterError::new(kind, literal.span.clone()).hint(hint)
}

/// Whether the field is a slice such as `tcp.payload[4:2]`, which can be compared with numbers and strings.
fn is_slice(field: &FieldRef<'_>) -> bool {
    field.name.ends_with(']')
}

fn text_length(
    field: &FieldRef<'_>,
    found: usize,
    expected: usize,
    literal: &Literal,
) -> FilterError {
    let kind = FilterErrorKind::TextLength {
        field: field.name.to_owned(),
        expected,
        found,
    };
    FilterError::new(kind, literal.span.clone())
}

/// Bytes of a string literal that is compared with the whole field.
fn whole_text(field: &FieldRef<'_>, literal: &Literal) -> Result<Vec<u8>, FilterError> {
    let bytes = text(field, literal)?;
    match field.is_fixed && bytes.len() != field.max_bytes {
        true => Err(text_length(field, bytes.len(), field.max_bytes, literal)
            .hint(Some("compare its beginning with `startswith`"))),
        false => Ok(bytes),
    }
}

fn text(field: &FieldRef<'_>, literal: &Literal) -> Result<Vec<u8>, FilterError> {
    let LiteralKind::Text(bytes) = &literal.kind else {
        return Err(type_clash(field, literal));
    };
    if is_slice(field) && bytes.len() != field.max_bytes {
        return Err(text_length(field, bytes.len(), field.max_bytes, literal));
    }
    let bytes = match field.labels {
        true => labels(bytes).ok_or_else(|| {
            FilterError::new(FilterErrorKind::NotLabels, literal.span.clone())
                .hint(Some("as in \"www.example.com\": labels of 1 to 63 bytes"))
        })?,
        false => bytes.clone(),
    };
    if let Some(end) = bytes.iter().find(|byte| field.ends.contains(byte)) {
        let kind = FilterErrorKind::BeyondEnd {
            field: field.name.to_owned(),
            end: end.escape_ascii().to_string(),
        };
        return Err(FilterError::new(kind, literal.span.clone()));
    }
    if bytes.len() > field.max_bytes {
        let kind = FilterErrorKind::TextTooLong {
            field: field.name.to_owned(),
            length: bytes.len(),
            limit: field.max_bytes,
        };
        return Err(FilterError::new(kind, literal.span.clone()));
    }
    Ok(bytes)
}

/// Encodes a domain name as DNS does: each label behind its length byte. A dot at the end is ignored. `None`: invalid.
fn labels(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b".").unwrap_or(text);
    let mut wire = Vec::new();
    for label in text.split(|byte| *byte == b'.') {
        if !(1..=63).contains(&label.len()) {
            return None;
        }
        wire.push(label.len() as u8);
        wire.extend(label);
    }
    Some(wire)
}

/// Range of values that a literal denotes: one value, or all addresses of a network.
fn number(field: &FieldRef<'_>, literal: &Literal) -> Result<RangeInclusive<u128>, FilterError> {
    let word = match &literal.kind {
        LiteralKind::Word(word) => word,
        LiteralKind::Text(bytes) if is_slice(field) => {
            let expected = field.bits as usize / 8;
            if bytes.len() != expected {
                return Err(text_length(field, bytes.len(), expected, literal));
            }
            let value = bytes
                .iter()
                .fold(0, |value, byte| value << 8 | u128::from(*byte));
            return Ok(value..=value);
        }
        LiteralKind::Text(_) => return Err(type_clash(field, literal)),
    };
    let single = |value: Option<u128>| {
        value
            .map(|value| value..=value)
            .ok_or_else(|| type_clash(field, literal))
    };
    match field.ty {
        FieldType::Mac => single(mac(word)),
        FieldType::Ipv4 => network(field, literal, word, |text| {
            text.parse::<Ipv4Addr>()
                .ok()
                .map(|address| u128::from(u32::from(address)))
        }),
        FieldType::Ipv6 => network(field, literal, word, |text| {
            text.parse::<Ipv6Addr>().ok().map(u128::from)
        }),
        FieldType::Unsigned | FieldType::Flag => {
            let (digits, radix) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"))
            {
                Some(digits) => (digits, 16),
                None => (word.as_str(), 10),
            };
            if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
                return Err(type_clash(field, literal));
            }
            match u128::from_str_radix(digits, radix) {
                Ok(value) if value <= field.max => Ok(value..=value),
                _ => Err(FilterError::new(
                    FilterErrorKind::OutOfRange {
                        field: field.name.to_owned(),
                        value: word.clone(),
                        bits: field.bits,
                    },
                    literal.span.clone(),
                )
                .hint(Some(&format!("the largest value is {}", field.max)))),
            }
        }
        FieldType::Name | FieldType::Text => Err(type_clash(field, literal)),
    }
}

fn network(
    field: &FieldRef<'_>,
    literal: &Literal,
    word: &str,
    address: impl Fn(&str) -> Option<u128>,
) -> Result<RangeInclusive<u128>, FilterError> {
    let (base, length) = match word.split_once('/') {
        None => (word, field.bits),
        Some((base, length)) => (
            base,
            length.parse().map_err(|_| type_clash(field, literal))?,
        ),
    };
    let base = address(base).ok_or_else(|| type_clash(field, literal))?;
    if length > field.bits {
        let kind = FilterErrorKind::PrefixLength {
            length,
            bits: field.bits,
        };
        return Err(FilterError::new(kind, literal.span.clone()));
    }
    let hosts = if length == field.bits {
        0
    } else {
        max_value(field.bits - length)
    };
    if base & hosts != 0 {
        return Err(
            FilterError::new(FilterErrorKind::HostBits, literal.span.clone())
                .hint(Some("clear these bits, or omit the prefix length")),
        );
    }
    Ok(base..=base | hosts)
}

fn mac(word: &str) -> Option<u128> {
    let separator = if word.contains('-') { '-' } else { ':' };
    let mut value = 0;
    let mut octets = 0;
    for octet in word.split(separator) {
        if octet.len() != 2 || !octet.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        value = value << 8 | u128::from_str_radix(octet, 16).ok()?;
        octets += 1;
    }
    (octets == 6).then_some(value)
}
