//! Writes hints for values of the wrong shape: shows the user's values at keys that accept them.

use super::{foreign, is_name, scalars};
use crate::diagnostic::Sink;
use crate::file::schema::shape::{Key, Object, Shape};
use crate::file::yaml::{Entry, Kind, Node};
use crate::units;

/// Keys that only make sense beside another key, so that no hint proposes them alone.
const SAYS_MORE: [&str; 3] = ["within", "pause", "jitter"];

/// The hint for a value that should be a mapping of `object`: shows the user's values at keys that accept them. If several keys
/// accept a single value, it shows all of these keys.
pub(super) fn as_mapping(object: &'static Object, values: &[String]) -> String {
    let needed = || object.keys.iter().filter(|key| key.is_needed);
    if let ([value], None) = (values, needed().next()) {
        let keys = object
            .keys
            .iter()
            .filter(|key| !SAYS_MORE.contains(&key.name));
        let taken = keys.filter_map(|key| Some((key, takes(&key.shape, value)?)));
        let mut taken: Vec<_> = taken.collect();
        // A key that accepts the value as it is takes precedence over one that requires a unit.
        if taken.iter().any(|(_, (_, asked))| asked.is_none()) {
            taken.retain(|(_, (_, asked))| asked.is_none());
        }
        let asked = taken.iter().find_map(|(_, (_, asked))| asked.clone());
        let written = taken
            .iter()
            .map(|(key, (value, _))| format!("`{{{}: {value}}}`", key.name));
        let written: Vec<String> = written.collect();
        if !written.is_empty() {
            let asked = asked.map_or_else(String::new, |asked| format!("; {asked}"));
            return format!("write {}{asked}", written.join(" or "));
        }
    }
    let keys: Vec<&Key> = match needed().next() {
        Some(_) => needed().collect(),
        None => object.keys.iter().take(1).collect(),
    };
    let pairs: Vec<String> = keys.into_iter().map(pair).collect();
    with_values(
        object,
        ["", &format!("{{{}}}", pairs.join(", ")), ""],
        values,
    )
}

/// A key and an example of its value, as text for a hint: `within: 20ms`, `flows: …`.
pub(super) fn pair(key: &Key) -> String {
    let value = example(&key.shape).unwrap_or_else(|| "…".to_owned());
    format!("{}: {value}", key.name)
}

/// Whether [`pair`] writes an example that the user's value may replace: not if the shape accepts only one number.
pub(super) fn is_example(shape: &Shape) -> bool {
    let is_only = matches!(shape, Shape::Integer(low, high) if low == high);
    example(shape).is_some() && !is_only
}

/// An example of a value of a shape; `None` if an example would not help.
fn example(shape: &Shape) -> Option<String> {
    Some(match shape {
        Shape::Quantity(dimension, ..) => dimension.example().to_owned(),
        Shape::Integer(low, _) => low.to_string(),
        Shape::Probability => "1%".to_owned(),
        Shape::At(shape) => return example(shape),
        Shape::Either(shapes) => return shapes.first().and_then(example),
        _ => return None,
    })
}

/// The hint for a mapping that should be a list: the mapping's keys may be names of items, or the mapping may be one item.
pub(super) fn as_list(what: &str, entries: &[Entry]) -> String {
    match entries.first() {
        Some(Entry { key, value, .. }) if matches!(value.kind, Kind::Map(_)) => {
            let name = if what == "`faults`" { "id" } else { "name" };
            format!("write a list, and in each item its name: `[{{{name}: {key}, …}}]`")
        }
        _ => "write a list: `- ` in front of each item".to_owned(),
    }
}

/// The hint for an alternative of another tool, such as an effect. The keys of its value are first looked up together.
pub(super) fn foreign_hint(
    sink: &Sink<'_>,
    what: &str,
    name: &str,
    payload: Option<&Node>,
) -> Option<String> {
    let values = payload.map_or_else(Vec::new, |node| scalars(sink, node));
    let inner = payload.and_then(|node| match &node.kind {
        Kind::Map(entries) if entries.len() > 1 => foreign::hint(what, &joined(entries), &values),
        _ => None,
    });
    inner.or_else(|| foreign::hint(what, name, &values))
}

/// The names of a mapping's keys, joined by `+` as in the table foreign.txt: `latency+jitter`.
pub(super) fn joined(entries: &[Entry]) -> String {
    let keys = entries.iter().map(|entry| entry.key.as_str());
    keys.collect::<Vec<_>>().join("+")
}

/// The hint for a selection that is only a number, such as `1%`, `0.1` or `3`; `None` for other values.
pub(crate) fn bare_selection(sink: &Sink<'_>, node: &Node) -> Option<String> {
    let is_scalar = matches!(node.kind, Kind::Text { .. } | Kind::Number { .. });
    if !is_scalar || node.tag.is_some() {
        return None;
    }
    let text = scalars(sink, node).into_iter().next()?;
    match text.parse::<u64>() {
        Ok(count) if count > 0 => Some(format!(
            "write `{{nth: {count}}}` for packet {count} alone, `{{every: {count}}}` for one packet of {count}, `{{first: {count}}}` for the first {count} packets"
        )),
        Ok(_) => None,
        Err(_) => Some(format!(
            "write `{{probability: {}}}`",
            foreign::share(&text)?
        )),
    }
}

/// A hint with an example of a mapping, `{limit: 10Mbit/s, queue: 64kB}`. The user's values replace the example's where they
/// fit; a question follows if one is ambiguous. The three texts: before the example, the example, behind it.
pub(super) fn with_values(
    object: &Object,
    [before, example, behind]: [&str; 3],
    values: &[String],
) -> String {
    let mut left: Vec<&String> = values.iter().collect();
    let mut asked = None;
    let mut is_example = false;
    let pairs = example.trim_matches(['{', '}']).split(", ");
    let pairs = pairs.map(|pair| {
        let Some((name, example)) = pair.split_once(": ") else {
            return pair.to_owned();
        };
        let key = object.keys.iter().find(|key| key.name == name);
        let taken = key.and_then(|key| {
            let mut all = left.iter().enumerate();
            all.find_map(|(at, value)| Some((at, takes(&key.shape, value)?)))
        });
        match taken {
            Some((at, (value, ask))) => {
                left.remove(at);
                asked = asked.take().or(ask);
                format!("{name}: {value}")
            }
            None => {
                is_example |= example.contains(|c: char| c.is_ascii_digit());
                pair.to_owned()
            }
        }
    });
    let pairs: Vec<String> = pairs.collect();
    let write = if is_example {
        "write for example"
    } else {
        "write"
    };
    let hint = format!("{write} `{before}{{{}}}{behind}`", pairs.join(", "));
    match asked {
        Some(asked) => format!("{hint}; {asked}"),
        None => hint,
    }
}

/// Converts a user's value to the notation that a key of this shape accepts; `None` if the key accepts no such value. The
/// second text is a question for the user if the value is ambiguous.
fn takes(shape: &Shape, value: &str) -> Option<(String, Option<String>)> {
    let certain = || (value.to_owned(), None);
    match shape {
        Shape::Quantity(dimension, ..) => units::mended(value, *dimension),
        Shape::Integer(low, high) => {
            let number = value.parse::<u64>().ok()?;
            (*low..=*high).contains(&number).then(certain)
        }
        Shape::Probability => Some((foreign::share(value)?, None)),
        // A value that begins with a digit is a quantity.
        Shape::Text => value
            .starts_with(|c: char| c.is_ascii_alphabetic())
            .then(certain),
        Shape::Name(_) => is_name(value).then(certain),
        Shape::At(shape) => takes(shape, value),
        Shape::Either(shapes) => shapes.iter().find_map(|shape| takes(shape, value)),
        _ => None,
    }
}
