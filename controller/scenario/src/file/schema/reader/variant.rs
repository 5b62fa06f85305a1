//! Reads an alternative, such as an effect, alone or with a payload: `drop`, `{delay: 20ms}`.

use std::borrow::Cow;

use super::{Fields, fields, foreign, foreign_hint, joined, scalars, with_values};
use crate::diagnostic::{Code, Sink, Span, enumerate_names, nearest};
use crate::file::schema::shape::{Object, Shape};
use crate::file::yaml::{Entry, Kind, Node};

/// An alternative that the file chose, with its payload.
pub(crate) struct Variant<'n> {
    pub name: &'n str,
    pub name_span: Span,
    /// The payload; `None` if the file gives only the alternative's name.
    pub payload: Option<Cow<'n, Node>>,
}

/// Reads one of several alternatives: `drop`, `{delay: 20ms}` or `!delay 20ms`.
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
            // The tag has been evaluated.
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
                "{what} must be one of {}; found {}",
                enumerate_names(alternatives.iter().copied()),
                node.describe()
            );
            let hint = match node.kind {
                Kind::List(_) => "write one of them, not a list".to_owned(),
                _ => format!("write its name, such as `{}`", alternatives[0]),
            };
            sink.error(Code::WrongType, node.span, message).hint(hint);
            return None;
        }
    };
    if !alternatives.contains(&found.name) {
        let payload = found.payload.as_deref();
        let hint = foreign_hint(sink, what, found.name, payload).unwrap_or_else(|| {
            match nearest(found.name, alternatives.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!(
                    "write one of {}",
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

/// Refuses a mapping with several keys where its only key must be the alternative's name.
fn several(sink: &mut Sink<'_>, node: &Node, what: &str, alternatives: &[&str], entries: &[Entry]) {
    let (known, others): (Vec<&Entry>, Vec<&Entry>) = entries
        .iter()
        .partition(|entry| alternatives.contains(&entry.key.as_str()));
    let message = match entries {
        [] => format!("{what} must have one key; found none"),
        _ => {
            let keys = entries.iter().map(|entry| entry.key.as_str());
            format!("{what} must have one key; found {}", enumerate_names(keys))
        }
    };
    let together = || {
        let all = entries.iter().flat_map(|entry| scalars(sink, &entry.value));
        foreign::hint(what, &joined(entries), &all.collect::<Vec<_>>())
    };
    let foreign = together().or_else(|| {
        let mut others = others.iter();
        others.find_map(|entry| foreign_hint(sink, what, &entry.key, Some(&entry.value)))
    });
    let hint = match (foreign, known.as_slice()) {
        (Some(hint), _) => hint,
        (None, [one, _, ..]) => format!("keep one of them, such as `{}`", one.key),
        _ => format!(
            "write one of {}",
            enumerate_names(alternatives.iter().copied())
        ),
    };
    sink.error(Code::WrongType, node.span, message).hint(hint);
}

/// The span of a YAML tag in front of its value.
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
    /// Returns the alternative's payload; reports an error with an example if the payload is absent.
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

    /// Reads the payload as a mapping. Reports a payload of another type, with an example that contains the user's value.
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
        let message = format!(
            "{} must be a mapping; found {}",
            object.what,
            node.describe()
        );
        let before = format!("{{{}: ", self.name);
        let hint = with_values(object, [&before, example, "}"], &scalars(sink, node));
        sink.error(Code::WrongType, node.span, message).hint(hint);
        None
    }

    /// The share of packets that a file gives as the payload, such as `5%` in `{corrupt: 5%}`, and its position. A fraction
    /// (`0.1`) counts as a share only if the alternative takes no quantity. `None` if the payload is no share.
    pub fn share(&self, sink: &Sink<'_>, shape: Option<&Shape>) -> Option<(Span, String)> {
        let node = self.payload.as_deref()?;
        if matches!(node.kind, Kind::Map(_)) {
            return None;
        }
        let text = scalars(sink, node).into_iter().next()?;
        let first = text.split_whitespace().next()?;
        let is_quantity = shape.is_some_and(begins_with_quantity);
        let is_fraction = |value: f64| value > 0.0 && value < 1.0 && !is_quantity;
        let is_share = first.ends_with('%') || first.parse().is_ok_and(is_fraction);
        Some((node.span, foreign::share(&text).filter(|_| is_share)?))
    }

    /// Reports a payload of an alternative that takes none.
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

/// Whether a value of this shape may be a quantity alone, or a mapping whose first key is a required quantity.
fn begins_with_quantity(shape: &Shape) -> bool {
    match shape {
        Shape::Quantity(..) => true,
        Shape::At(shape) => begins_with_quantity(shape),
        Shape::Either(shapes) => shapes.iter().any(begins_with_quantity),
        Shape::Object(object) => {
            let first = object.keys.first();
            first.is_some_and(|key| key.is_needed && begins_with_quantity(&key.shape))
        }
        _ => false,
    }
}
