//! Reads the JSON file of `weir p4 run --entries`: table entries, multicast groups and clone sessions.

use p4lang::runtime::{
    self, ActionCall, CloneSession, FieldMatch, Match, MulticastGroup, Replica, TableEntry,
};
use serde_json::{Map, Value};

/// The table entries, multicast groups and clone sessions that are written to a switch before the first packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlState {
    /// Table entries to write.
    pub entries: Vec<TableEntry>,
    /// Multicast groups to write.
    pub groups: Vec<MulticastGroup>,
    /// Clone sessions to write.
    pub sessions: Vec<CloneSession>,
}

impl ControlState {
    /// Reads a list of table entries, or the object `{"entries": [], "groups": [], "sessions": []}` that `weir plan
    /// --emit-p4` writes.
    ///
    /// An entry is `{"table": "ingress.t", "key": {"hdr.x.a": 1}, "action": "ingress.set", "params": {"v": "0x10"}, "priority": 1}`.
    /// A number may be a string in decimal or `0x` hexadecimal. A key field is a number (exact), `{"value", "prefix"}`,
    /// `{"value", "mask"}`, `{"low", "high"}` or `{"optional"}`, or one of the strings `"VALUE/PREFIX"`, `"VALUE &&& MASK"` and
    /// `"LOW..HIGH"`. A group is `{"id", "ports"}`, a session `{"id", "ports", "packet_length_bytes"}`. The copies have the
    /// instances 1, 2, … unless `instances` lists others.
    ///
    /// # Errors
    /// Returns the reason, with the number of the wrong entry, group or session.
    pub fn parse(text: &str) -> Result<ControlState, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let object = match &value {
            Value::Array(list) => {
                return Ok(ControlState {
                    entries: each(list, "entry", entry)?,
                    ..ControlState::default()
                });
            }
            Value::Object(object) => object,
            _ => return Err("expected a list of entries, or an object with `entries`".to_owned()),
        };
        only(object, &["entries", "groups", "sessions"])?;
        let list = |name: &str| match object.get(name) {
            None => Ok(&[][..]),
            Some(Value::Array(list)) => Ok(&list[..]),
            Some(_) => Err(format!("`{name}` must be a list")),
        };
        if !object.contains_key("entries") {
            return Err("`entries` is missing: write a list of entries".to_owned());
        }
        Ok(ControlState {
            entries: each(list("entries")?, "entry", entry)?,
            groups: each(list("groups")?, "group", group)?,
            sessions: each(list("sessions")?, "session", session)?,
        })
    }
}

fn each<T>(
    list: &[Value],
    what: &str,
    read: impl Fn(&Map<String, Value>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let read = list.iter().zip(1..).map(|(value, number): (_, usize)| {
        let object = value.as_object().ok_or("expected an object".to_owned());
        let read = object.and_then(&read);
        read.map_err(|error| format!("{what} {number}: {error}"))
    });
    read.collect()
}

/// Refuses a JSON object that has a key other than the known ones.
fn only(object: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(other) => Err(format!(
            "unknown key `{other}`, expected one of {}",
            known.join(", ")
        )),
        None => Ok(()),
    }
}

fn group(object: &Map<String, Value>) -> Result<MulticastGroup, String> {
    only(object, &["id", "ports", "instances"])?;
    Ok(MulticastGroup {
        id: small(object, "id")?,
        replicas: replicas(object)?,
    })
}

fn session(object: &Map<String, Value>) -> Result<CloneSession, String> {
    only(object, &["id", "ports", "instances", "packet_length_bytes"])?;
    Ok(CloneSession {
        id: small(object, "id")?,
        replicas: replicas(object)?,
        class_of_service: 0,
        packet_length_bytes: match object.contains_key("packet_length_bytes") {
            true => small(object, "packet_length_bytes")?,
            false => 0,
        },
    })
}

fn small(object: &Map<String, Value>, name: &str) -> Result<u32, String> {
    let value = object.get(name).ok_or(format!("`{name}` is missing"))?;
    let value = number(value).map_err(|error| format!("`{name}`: {error}"))?;
    value.to().ok_or(format!("`{name}` is out of range"))
}

fn replicas(object: &Map<String, Value>) -> Result<Vec<Replica>, String> {
    let numbers = |name: &str| -> Result<Vec<u32>, String> {
        let list = object.get(name).and_then(Value::as_array);
        let list = list.ok_or(format!("`{name}` is missing or not a list"))?;
        let read = list.iter().map(|value| {
            let value = number(value).map_err(|error| format!("`{name}`: {error}"))?;
            value
                .to()
                .ok_or(format!("`{name}`: {value} is out of range"))
        });
        read.collect()
    };
    let ports = numbers("ports")?;
    let instances: Vec<u32> = match object.contains_key("instances") {
        true => numbers("instances")?,
        false => (1..).take(ports.len()).collect(),
    };
    if instances.len() != ports.len() {
        return Err("`instances` must have one number for each port".to_owned());
    }
    let pairs = ports.into_iter().zip(instances);
    let replica = |(port, instance): (u32, u32)| {
        let instance = instance.try_into();
        let instance = instance.map_err(|_| "`instances`: use at most 65535".to_owned())?;
        Ok(Replica { port, instance })
    };
    pairs.map(replica).collect()
}

fn entry(object: &Map<String, Value>) -> Result<TableEntry, String> {
    only(object, &["table", "key", "action", "params", "priority"])?;
    let text = |name: &str| {
        let found = object.get(name).and_then(Value::as_str);
        found
            .map(str::to_owned)
            .ok_or(format!("`{name}` is missing or not a string"))
    };
    let pairs = |name: &str| match object.get(name) {
        None => Ok(Vec::new()),
        Some(Value::Object(found)) => Ok(found.iter().collect()),
        Some(_) => Err(format!("`{name}` is not an object of names and numbers")),
    };
    let mut key = Vec::new();
    for (field, value) in pairs("key")? {
        let value = matched(value).map_err(|error| format!("key `{field}`: {error}"))?;
        key.push(FieldMatch {
            field: field.clone(),
            value,
        });
    }
    let mut params = Vec::new();
    for (name, value) in pairs("params")? {
        let value = number(value).map_err(|error| format!("parameter `{name}`: {error}"))?;
        params.push((name.clone(), value));
    }
    let priority = match object.get("priority") {
        None => 0,
        Some(n) => number(n)
            .and_then(|n| n.to().ok_or("out of range, at most 2147483647".to_owned()))
            .map_err(|error| format!("`priority`: {error}"))?,
    };
    Ok(TableEntry {
        table: text("table")?,
        key,
        priority,
        action: ActionCall {
            name: text("action")?,
            params,
        },
    })
}

fn matched(value: &Value) -> Result<Match, String> {
    if let Some(text) = value.as_str() {
        return matched_text(text);
    }
    let Some(object) = value.as_object() else {
        return Ok(Match::Exact(number(value)?));
    };
    let part = |name: &str| object.get(name).map(number).transpose();
    let parts = (
        part("value")?,
        part("prefix")?,
        part("mask")?,
        part("low")?,
        part("high")?,
        part("optional")?,
    );
    match parts {
        (Some(value), Some(prefix), None, None, None, None) => Ok(Match::Lpm {
            value,
            prefix_len: prefix.to().ok_or("the prefix is out of range")?,
        }),
        (Some(value), None, Some(mask), None, None, None) => Ok(Match::Ternary { value, mask }),
        (None, None, None, Some(low), Some(high), None) => Ok(Match::Range { low, high }),
        (None, None, None, None, None, Some(value)) => Ok(Match::Optional(value)),
        _ => Err(
            "expected a number, {value, prefix}, {value, mask}, {low, high} or {optional}".into(),
        ),
    }
}

/// Parses the match of a key field: `VALUE`, `VALUE/PREFIX`, `VALUE &&& MASK` or `LOW..HIGH`.
fn matched_text(text: &str) -> Result<Match, String> {
    let number = |part: &str| number(&Value::from(part.trim()));
    Ok(if let Some((value, mask)) = text.split_once("&&&") {
        Match::Ternary {
            value: number(value)?,
            mask: number(mask)?,
        }
    } else if let Some((low, high)) = text.split_once("..") {
        Match::Range {
            low: number(low)?,
            high: number(high)?,
        }
    } else if let Some((value, prefix)) = text.split_once('/') {
        let prefix = number(prefix)?.to();
        Match::Lpm {
            value: number(value)?,
            prefix_len: prefix.ok_or("the prefix is out of range")?,
        }
    } else {
        Match::Exact(number(text)?)
    })
}

fn number(value: &Value) -> Result<runtime::Value, String> {
    let parsed = match value {
        Value::Number(n) => n.as_u64().map(|n| u128::from(n).into()),
        Value::String(text) => match text.strip_prefix("0x") {
            Some(digits) => runtime::Value::from_str_radix(digits, 16),
            None => runtime::Value::from_str_radix(text, 10),
        },
        _ => None,
    };
    parsed.ok_or_else(|| {
        let hint = match value {
            Value::Number(_) => {
                "write a whole number, not negative, and beyond 64 bits as a string"
            }
            _ => "write a whole number, not negative; a string may be decimal or 0x hexadecimal",
        };
        format!("{value} is not a valid value: {hint}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_every_kind() {
        let text = r#"[{"table": "t", "key": {"a": 1, "b": {"value": "0x10", "prefix": 8}, "c": {"value": 3, "mask": 7},
            "d": {"low": 1, "high": "2"}, "e": {"optional": 9}}, "action": "x", "params": {"p": "0xff"}, "priority": 2}]"#;
        let entries = ControlState::parse(text).unwrap().entries;
        assert_eq!(entries[0].priority, 2);
        assert_eq!(entries[0].action.params, [("p".to_owned(), 255.into())]);
        let kinds: Vec<_> = entries[0].key.iter().map(|f| f.value.clone()).collect();
        assert_eq!(
            kinds,
            [
                Match::exact(1),
                Match::lpm(16, 8),
                Match::ternary(3, 7),
                Match::range(1, 2),
                Match::optional(9),
            ]
        );
    }

    #[test]
    fn errors_name_the_wrong_part() {
        for (text, names) in [
            ("1", "a list"),
            ("{}", "`entries` is missing"),
            (r#"{"entries": [], "group": []}"#, "unknown key `group`"),
            (
                r#"{"entries": [], "groups": [{"id": 1, "ports": [1], "instances": []}]}"#,
                "group 1: `instances` must have one number for each port",
            ),
            (
                r#"[{"table": "t", "action": "a", "key": {"f": "1 &&& x"}}]"#,
                "key `f`: \"x\" is not a valid value",
            ),
            (
                r#"[{"table": "t"}]"#,
                "entry 1: `action` is missing or not a string",
            ),
            (r#"[{"tabel": "t"}]"#, "unknown key `tabel`"),
            (
                r#"[{"table": "t", "action": "a", "key": {"f": {"value": 1}}}]"#,
                "key `f`",
            ),
            (
                r#"[{"table": "t", "action": "a", "params": {"p": "0xg"}}]"#,
                "parameter `p`",
            ),
            (
                r#"[{"table": "t", "action": "a", "params": {"p": -1}}]"#,
                "parameter `p`: -1 is not a valid value: write a whole number, not negative",
            ),
            (
                r#"[{"table": "t", "action": "a", "key": 1}]"#,
                "`key` is not an object",
            ),
            (
                r#"[{"table": "t", "action": "a", "priority": 2147483648}]"#,
                "`priority`: out of range",
            ),
        ] {
            let message = ControlState::parse(text).unwrap_err();
            assert!(message.contains(names), "{text}: {message}");
        }
    }

    #[test]
    fn an_object_has_groups_and_sessions_too() {
        let text = r#"{"entries": [{"table": "t", "key": {"a": "0x1", "b": "0x10/8", "c": "3 &&& 0x7", "d": "1..2"}, "action": "x"}],
            "groups": [{"id": 1, "ports": [7, 7]}, {"id": 2, "ports": [5], "instances": [16]}],
            "sessions": [{"id": 3, "ports": [4], "packet_length_bytes": 64}]}"#;
        let written = ControlState::parse(text).unwrap();
        let key = written.entries[0].key.iter();
        assert_eq!(
            key.map(|field| field.value.clone()).collect::<Vec<_>>(),
            [
                Match::exact(1),
                Match::lpm(16, 8),
                Match::ternary(3, 7),
                Match::range(1, 2),
            ]
        );
        let replica = |port, instance| Replica { port, instance };
        assert_eq!(written.groups[0].replicas, [replica(7, 1), replica(7, 2)]);
        assert_eq!(written.groups[1].replicas, [replica(5, 16)]);
        assert_eq!(written.sessions[0].replicas, [replica(4, 1)]);
        assert_eq!(written.sessions[0].packet_length_bytes, 64);
    }
}
