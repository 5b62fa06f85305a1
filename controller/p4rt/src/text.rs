//! Prints P4Info as protobuf text, in p4c's layout: one field per line, and a line for each element of a repeated field.

use crate::{DESCRIPTORS, config};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, Value};
use std::fmt::Write as _;

/// The protobuf text of the P4Info `info`, as p4runtime-shell and other clients read it.
#[must_use]
pub fn p4info(info: &config::P4Info) -> String {
    // Neither can fail: the descriptors are those that the message type was generated from.
    let pool = DescriptorPool::decode(DESCRIPTORS).expect("the crate's own descriptors");
    let descriptor = pool
        .get_message_by_name("p4.config.v1.P4Info")
        .expect("declared in p4info.proto");
    let message =
        DynamicMessage::decode(descriptor, info.encode_to_vec().as_slice()).expect("a P4Info");
    let mut text = String::new();
    write_message(&mut text, &message, 0);
    text
}

fn write_message(text: &mut String, message: &DynamicMessage, depth: usize) {
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(|(field, _)| field.number());
    for (field, value) in fields {
        match value {
            Value::List(values) => values
                .iter()
                .for_each(|value| write_field(text, &field, value, depth)),
            Value::Map(entries) => write_map(text, &field, entries, depth),
            value => write_field(text, &field, value, depth),
        }
    }
}

/// Writes a protobuf map as a repeated message of key and value, sorted by key, so that the text does not depend on a hash.
fn write_map<'a>(
    text: &mut String,
    field: &FieldDescriptor,
    entries: impl IntoIterator<Item = (&'a MapKey, &'a Value)>,
    depth: usize,
) {
    let Kind::Message(entry) = field.kind() else {
        return;
    };
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_by(|(a, _), (b, _)| format!("{a:?}").cmp(&format!("{b:?}")));
    for (key, value) in entries {
        let mut message = DynamicMessage::new(entry.clone());
        message.set_field(&entry.map_entry_key_field(), key.clone().into());
        message.set_field(&entry.map_entry_value_field(), value.clone());
        write_field(text, field, &Value::Message(message), depth);
    }
}

fn write_field(text: &mut String, field: &FieldDescriptor, value: &Value, depth: usize) {
    let (indent, name) = ("  ".repeat(depth), field.name());
    // Writing to a string cannot fail.
    let _ = match value {
        Value::Message(message) => {
            let _ = writeln!(text, "{indent}{name} {{");
            write_message(text, message, depth + 1);
            writeln!(text, "{indent}}}")
        }
        Value::EnumNumber(number) => {
            let known = match field.kind() {
                Kind::Enum(kind) => kind.get_value(*number),
                _ => None,
            };
            match known {
                Some(value) => writeln!(text, "{indent}{name}: {}", value.name()),
                None => writeln!(text, "{indent}{name}: {number}"),
            }
        }
        Value::String(string) => {
            writeln!(text, "{indent}{name}: \"{}\"", escape(string.as_bytes()))
        }
        Value::Bytes(bytes) => writeln!(text, "{indent}{name}: \"{}\"", escape(bytes)),
        Value::Bool(value) => writeln!(text, "{indent}{name}: {value}"),
        Value::I32(value) => writeln!(text, "{indent}{name}: {value}"),
        Value::I64(value) => writeln!(text, "{indent}{name}: {value}"),
        Value::U32(value) => writeln!(text, "{indent}{name}: {value}"),
        Value::U64(value) => writeln!(text, "{indent}{name}: {value}"),
        Value::F32(value) => writeln!(text, "{indent}{name}: {value}"),
        Value::F64(value) => writeln!(text, "{indent}{name}: {value}"),
        // The caller handles lists and maps.
        Value::List(_) | Value::Map(_) => Ok(()),
    };
}

fn escape(bytes: &[u8]) -> String {
    let mut escaped = String::new();
    for &byte in bytes {
        match byte {
            b'"' => escaped.push_str("\\\""),
            b'\'' => escaped.push_str("\\'"),
            b'\\' => escaped.push_str("\\\\"),
            b'\n' => escaped.push_str("\\n"),
            b' '..=b'~' => escaped.push(char::from(byte)),
            _ => {
                let _ = write!(escaped, "\\{byte:03o}");
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use crate::p4info::{tests::sample, to_proto};

    #[test]
    fn one_field_a_line() {
        let mut info = sample();
        info.actions[0].preamble.annotations = vec!["@brief(\"a \\ ü'\")".into()];
        let text = super::p4info(&to_proto(&info));
        assert!(
            text.starts_with("pkg_info {\n  arch: \"psa\"\n}\ntables {\n  preamble {\n"),
            "{text}"
        );
        assert!(text.contains("    match_type: TERNARY\n"), "{text}");
        assert!(
            text.contains("    annotations: \"@brief(\\\"a \\\\ \\303\\274\\'\\\")\"\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "type_info {\n  structs {\n    key: \"cell_t\"\n    value {\n      members {\n"
            ),
            "{text}"
        );
        assert_eq!(text.matches("\ntables {\n").count(), 2, "{text}");
    }
}
