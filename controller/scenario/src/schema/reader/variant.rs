//! One of several alternatives, alone or with what belongs to it: `drop`, `{delay: 20ms}`.

use std::borrow::Cow;

use super::{Fields, fields, foreign, scalars, wrong_type};
use crate::diagnostic::{Code, Sink, Span, enumerate_names, nearest};
use crate::schema::shape::{Object, Shape};
use crate::units;
use crate::yaml::{Entry, Kind, Node};

/// One of several alternatives, with what belongs to it.
pub(crate) struct Variant<'n> {
    pub name: &'n str,
    pub name_span: Span,
    /// Absent when only the name was written.
    pub payload: Option<Cow<'n, Node>>,
}

/// Reads an alternative: `drop`, `{delay: 20ms}` or `!delay 20ms`.
pub(crate) fn variant<'n>(
    sink: &mut Sink<'_>,
    node: &'n Node,
    what: &str,
    alternatives: &[&str],
) -> Option<Variant<'n>> {
    let found = match (&node.tag, &node.kind) {
        (Some(tag), kind) => Variant {
            name: tag,
            name_span: tag_span(sink, node, tag),
            // The tag has done its work.
            payload: (!matches!(kind, Kind::Null)).then(|| {
                Cow::Owned(Node {
                    tag: None,
                    ..node.clone()
                })
            }),
        },
        (None, Kind::Text { value, .. }) => Variant {
            name: value,
            name_span: node.span,
            payload: None,
        },
        (None, Kind::Map(entries)) if entries.len() == 1 => {
            let Entry {
                key,
                key_span,
                value,
            } = &entries[0];
            Variant {
                name: key,
                name_span: *key_span,
                payload: Some(Cow::Borrowed(value)),
            }
        }
        (None, Kind::Map(entries)) => {
            several(sink, node, what, alternatives, entries);
            return None;
        }
        _ => {
            let message = format!(
                "{what} is one of {}",
                enumerate_names(alternatives.iter().copied())
            );
            return wrong_type(sink, node, &message);
        }
    };
    if !alternatives.contains(&found.name) {
        let payload = found.payload.as_deref();
        let values = payload.map_or_else(Vec::new, |node| scalars(sink, node));
        let hint = foreign::hint(what, found.name, &values).unwrap_or_else(|| {
            match nearest(found.name, alternatives.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!(
                    "{what} is one of {}",
                    enumerate_names(alternatives.iter().copied())
                ),
            }
        });
        sink.error(
            Code::UnknownVariant,
            found.name_span,
            format!("{what} cannot be `{}`", found.name),
        )
        .hint(hint);
        return None;
    }
    Some(found)
}

/// Refuses several keys where one says which alternative it is.
fn several(sink: &mut Sink<'_>, node: &Node, what: &str, alternatives: &[&str], entries: &[Entry]) {
    let (known, others): (Vec<&Entry>, Vec<&Entry>) = entries
        .iter()
        .partition(|entry| alternatives.contains(&entry.key.as_str()));
    let message = match entries {
        [] => format!("{what} has one key; found none"),
        _ => {
            let keys = entries.iter().map(|entry| entry.key.as_str());
            format!("{what} has one key; found {}", enumerate_names(keys))
        }
    };
    let foreign = others.iter().find_map(|entry| {
        let values = scalars(sink, &entry.value);
        foreign::hint(what, &entry.key, &values)
    });
    let hint = match (foreign, known.as_slice()) {
        (Some(hint), _) => hint,
        (None, [one, _, ..]) => format!("keep one of them, such as `{}`", one.key),
        _ => format!(
            "{what} is one of {}",
            enumerate_names(alternatives.iter().copied())
        ),
    };
    sink.error(Code::WrongType, node.span, message).hint(hint);
}

/// The tag stands in front of its value.
fn tag_span(sink: &Sink<'_>, node: &Node, tag: &str) -> Span {
    let before = sink
        .source()
        .text
        .get(..node.span.start)
        .unwrap_or("")
        .trim_end();
    if before.ends_with(tag) {
        Span {
            start: before.len() - tag.len(),
            end: before.len(),
        }
    } else {
        node.span
    }
}

impl Variant<'_> {
    /// What belongs to the alternative, which it needs.
    pub fn needed(&self, sink: &mut Sink<'_>, example: &str) -> Option<&Node> {
        if self.payload.is_none() {
            sink.error(
                Code::MissingKey,
                self.name_span,
                format!("`{}` needs a value", self.name),
            )
            .hint(format!("write for example `{{{}: {example}}}`", self.name));
        }
        self.payload.as_deref()
    }

    /// Reads the mapping that belongs to the alternative, and reports any other value with an example that has it at its key.
    pub fn mapping(
        &self,
        sink: &mut Sink<'_>,
        object: &'static Object,
        example: &str,
    ) -> Option<(&Node, Fields<'_>)> {
        let node = self.needed(sink, example)?;
        if matches!(node.kind, Kind::Map(_)) || node.tag.is_some() {
            return Some((node, fields(sink, node, object)?));
        }
        let message = format!("{} is a mapping; found {}", object.what, node.describe());
        let example = with_value(object, example, &scalars(sink, node));
        sink.error(Code::WrongType, node.span, message)
            .hint(format!("write `{{{}: {example}}}`", self.name));
        None
    }

    /// The share of packets that is written as if it belonged to the alternative: `5%` of `{corrupt: 5%}`.
    pub fn share(&self, sink: &Sink<'_>) -> Option<(Span, String)> {
        let node = self.payload.as_deref()?;
        let text = scalars(sink, node).into_iter().next();
        let is_scalar = !matches!(node.kind, Kind::Map(_));
        let text = text.filter(|text| is_scalar && text.ends_with('%'))?;
        Some((node.span, foreign::share(&text)?))
    }

    /// Reports a value behind an alternative that takes none.
    pub fn nothing(&self, sink: &mut Sink<'_>) {
        if let Some(payload) = self
            .payload
            .as_deref()
            .filter(|payload| !matches!(payload.kind, Kind::Null))
        {
            sink.error(
                Code::WrongType,
                payload.span,
                format!(
                    "`{}` takes no value; found {}",
                    self.name,
                    payload.describe()
                ),
            )
            .hint(format!("write `{}` alone", self.name));
        }
    }
}

/// An example of a mapping, `{limit: 10Mbit/s, queue: 64kB}`, with a user's value at the first of its keys that takes it.
fn with_value(object: &Object, example: &str, values: &[String]) -> String {
    let Some(value) = values.first() else {
        return example.to_owned();
    };
    let pairs = example.trim_matches(['{', '}']).split(", ");
    let mut taken = pairs.filter_map(|pair| {
        let (name, _) = pair.split_once(": ")?;
        let key = object.keys.iter().find(|key| key.name == name)?;
        Some((pair, format!("{name}: {}", takes(&key.shape, value)?)))
    });
    match taken.next() {
        Some((pair, with)) => example.replacen(pair, &with, 1),
        None => example.to_owned(),
    }
}

/// A value as a key of this shape takes it; `None` if it does not.
fn takes(shape: &Shape, value: &str) -> Option<String> {
    match shape {
        Shape::Quantity(dimension) => units::mended(value, *dimension),
        Shape::Integer(low, high) => {
            let number = value.parse::<u64>().ok()?;
            (*low..=*high).contains(&number).then(|| value.to_owned())
        }
        Shape::Probability => foreign::share(value),
        Shape::At(shape) => takes(shape, value),
        Shape::Either(shapes) => shapes.iter().find_map(|shape| takes(shape, value)),
        _ => None,
    }
}
