//! Reads the effect `set: {ip.ecn: 3}`.

use std::net::{Ipv4Addr, Ipv6Addr};

use parser_gen::FieldType;
use parser_gen::rewrite::{NewValue, Rewrite, RewriteError};

use super::EffectSyntax;
use crate::diagnostic::{Code, Sink, Span};
use crate::file::filter::hint_for_field;
use crate::file::schema::reader;
use crate::file::schema::shape::Shape;
use crate::file::yaml::{Kind, Node};
use crate::model::effect::{Effect, Set};
use crate::model::protocols::Protocols;

/// Maximum number of fields that one fault may set.
const MAX_FIELDS: usize = 8;
/// The key that says whether checksums are updated. No field has this name, because names of fields contain a dot.
const CHECKSUMS: &str = "checksums";

const EXAMPLE: &str = "{ip.ecn: 3}";

pub(super) const KIND: EffectSyntax = EffectSyntax {
    word: "set",
    about: "fields get these values, by name; `checksums: left` leaves checksums alone",
    shape: Some(&Shape::Map(&Shape::Value)),
    example: EXAMPLE,
    read: |sink, protocols, written| {
        let node = written.needed(sink, EXAMPLE)?;
        if let Kind::Text { value, .. } = &node.kind {
            let message = format!("`set` must be a mapping; found {}", node.describe());
            sink.error(Code::WrongType, node.span, message)
                .hint(format!(
                    "write the new value after the field, for example `{{set: {{{value}: 1}}}}`"
                ));
            return None;
        }
        let entries = reader::map(sink, node, "`set`")?;
        let mends = match entries.iter().find(|entry| entry.key == CHECKSUMS) {
            Some(entry) => {
                let words = ["mended", "left"];
                reader::choice(sink, &entry.value, "`checksums`", &words)? == "mended"
            }
            None => true,
        };
        let fields = || entries.iter().filter(|entry| entry.key != CHECKSUMS);
        let count = fields().count();
        if count == 0 || count > MAX_FIELDS {
            let message = format!("`set` must name 1 to {MAX_FIELDS} fields; found {count}");
            sink.error(Code::OutOfRange, node.span, message);
            return None;
        }
        let mut changes: Vec<(&str, NewValue)> = Vec::new();
        for entry in fields() {
            // Each field is checked on its own, so that the error points at the wrong one. An unknown field has no value.
            let alone = |to| Rewrite::new(protocols, &[(entry.key.as_str(), to)], mends);
            if let Err(error) = alone(NewValue::Set(0)) {
                let value = wanted(&entry.value);
                report(sink, protocols, entry.key_span, &error, value);
                continue;
            }
            let Some(value) = value(sink, protocols, &entry.value, &entry.key) else {
                continue;
            };
            let to = NewValue::Set(value);
            let alone = Rewrite::new(protocols, &[(entry.key.as_str(), to)], mends);
            match alone {
                Ok(_) => changes.push((&entry.key, to)),
                Err(error) => report(sink, protocols, entry.key_span, &error, None),
            }
        }
        if changes.len() < count {
            return None;
        }
        let told = changes.iter().map(|(name, to)| match to {
            NewValue::Set(value) | NewValue::Xor(value) => format!("{name} {value}"),
            NewValue::Drawn => (*name).to_owned(),
        });
        let told = told.collect::<Vec<_>>().join(", ");
        Some(Effect::Set(Set {
            rewrite: Rewrite::new(protocols, &changes, mends).ok()?,
            told,
        }))
    },
};

/// Reads the new value of a field: a number, or an IPv4, IPv6 or MAC address.
pub(super) fn value(
    sink: &mut Sink<'_>,
    protocols: &Protocols,
    node: &Node,
    field: &str,
) -> Option<u128> {
    let Kind::Text { value, .. } = &node.kind else {
        let what = format!("`{field}`");
        let number = reader::number(sink, node, &what, &Shape::Integer(0, u64::MAX))?;
        return Some(u128::from(number.value));
    };
    let mac = || {
        let bytes: Option<Vec<u8>> = value
            .split(':')
            .map(|byte| u8::from_str_radix(byte, 16).ok())
            .collect();
        let bytes = bytes.filter(|bytes| bytes.len() == 6)?;
        Some(
            bytes
                .iter()
                .fold(0, |all, byte| all << 8 | u128::from(*byte)),
        )
    };
    let hexadecimal = || u128::from_str_radix(value.strip_prefix("0x")?, 16).ok();
    let ipv4 = value
        .parse::<Ipv4Addr>()
        .ok()
        .map(|ip| u128::from(ip.to_bits()));
    let ipv6 = value.parse::<Ipv6Addr>().ok().map(|ip| ip.to_bits());
    let read = ipv4.or_else(mac).or(ipv6).or_else(hexadecimal);
    if read.is_none() {
        let example = match protocols.field(field).map(|field| field.ty) {
            Some(FieldType::Ipv4) => "an address, such as 10.0.0.1",
            Some(FieldType::Ipv6) => "an address, such as 2001:db8::1",
            Some(FieldType::Mac) => "an address, such as 02:00:00:00:00:01",
            _ => "a number, such as 3 or 0xff",
        };
        let message = format!("`{value}` is neither a number nor an address");
        sink.error(Code::WrongType, node.span, message)
            .hint(format!("write {example}"));
    }
    read
}

/// The number that the file gives for a field which does not exist; `None` if the value is no number.
fn wanted(node: &Node) -> Option<u128> {
    match &node.kind {
        Kind::Number { integer, .. } => u128::try_from((*integer)?).ok(),
        _ => None,
    }
}

/// Reports why a fault cannot change a field. `wanted` is the new value in the file, for the hint.
pub(super) fn report(
    sink: &mut Sink<'_>,
    protocols: &Protocols,
    span: Span,
    error: &RewriteError,
    wanted: Option<u128>,
) {
    let code = match error {
        RewriteError::Unknown(_) => Code::UnknownName,
        _ => Code::Effect,
    };
    let diagnostic = sink.error(code, span, error.to_string());
    match error {
        RewriteError::Unknown(name) => {
            let fits =
                |field: &str| Rewrite::new(protocols, &[(field, NewValue::Drawn)], false).is_ok();
            diagnostic.hint(hint_for_field(protocols, name, wanted, &fits));
        }
        RewriteError::Layout(_)
        | RewriteError::Icrc(_)
        | RewriteError::Checksum(_)
        | RewriteError::UnknownChecksum { .. } => {
            diagnostic
                .hint("write `checksums: left` to change the field without updating checksums");
        }
        RewriteError::TooLarge { bits, .. } => {
            let most = u128::MAX.checked_shr(128 - bits).unwrap_or(0);
            diagnostic.hint(format!("write a number up to {most}"));
        }
        RewriteError::Nothing(_) => {
            diagnostic.hint("write a mask with at least one bit set, such as `xor: 0x01`");
        }
        RewriteError::NoHeader(_) => {
            diagnostic.hint("write a field of a header, such as `ip.ttl` or `tcp.window`: docs/filters.md lists them");
        }
        RewriteError::Forwarding(_) => {
            diagnostic.hint("to lose the packet, write `effect: drop`");
        }
        RewriteError::Own(_) => {
            diagnostic.hint("faults can drop, delay or duplicate such packets: write for example `effect: drop`");
        }
    }
}
