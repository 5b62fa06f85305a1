//! Reads typed values from the YAML tree; reports every error and continues with the next value.

mod declared;
mod hints;
mod variant;

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::foreign;
use super::shape::{Key, Object, Shape};
use crate::diagnostic::{Code, Sink, Span, Spanned, enumerate_names, nearest};
use crate::file::yaml::{Entry, Kind, Node, Style};
use crate::units::{self, Dimension};

pub(crate) use hints::bare_selection;
use hints::{as_list, as_mapping, foreign_hint, is_example, joined, pair, with_values};
pub(crate) use variant::{Variant, variant};

/// The entries of a mapping in the file, with the schema object that declares its keys.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'n> {
    entries: &'n [Entry],
    /// Position of the mapping in the file.
    pub span: Span,
    object: &'static Object,
}

impl<'n> Fields<'n> {
    /// The node at a declared key; `None` if the mapping does not have the key.
    pub fn get(&self, name: &str) -> Option<&'n Node> {
        self.declared(name)?.1
    }

    /// The declaration of a key in the schema, and the key's node if the mapping has the key.
    fn declared(&self, name: &str) -> Option<(&'static Key, Option<&'n Node>)> {
        let key = self.object.keys.iter().find(|key| key.name == name);
        // A key must be in the schema before it can be read.
        debug_assert!(key.is_some(), "{} has no key {name}", self.object.what);
        let entry = self.entries.iter().find(|entry| entry.key == name);
        Some((key?, entry.map(|entry| &entry.value)))
    }

    /// Reads the value at a key with `read`; `None` if the mapping does not have the key or `read` refused the value.
    pub fn read<T>(&self, key: &str, read: impl FnOnce(&'n Node) -> Option<T>) -> Option<T> {
        self.get(key).and_then(read)
    }

    /// Reads the value at an optional key with `read`: `Some(None)` if the key is absent, `None` if the value was refused.
    pub fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'n Node) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.get(key) {
            Some(node) => read(node).map(Some),
            None => Some(None),
        }
    }

    /// Reads the value at a key with `read`; an empty value if the mapping does not have the key.
    pub fn read_or_default<T: Default>(&self, key: &str, read: impl FnOnce(&'n Node) -> T) -> T {
        self.get(key).map(read).unwrap_or_default()
    }
}

/// Reads a mapping whose keys `object` declares: refuses unknown keys, and reports missing ones.
pub(crate) fn fields<'n>(
    sink: &mut Sink<'_>,
    node: &'n Node,
    object: &'static Object,
) -> Option<Fields<'n>> {
    let what = object.what;
    no_tag(sink, node);
    let Kind::Map(entries) = &node.kind else {
        let message = format!("{what} must be a mapping; found {}", node.describe());
        let hint = as_mapping(object, &scalars(sink, node));
        sink.error(Code::WrongType, node.span, message).hint(hint);
        return None;
    };
    let known = || object.keys.iter().map(|key| key.name);
    for entry in entries {
        if !known().any(|key| key == entry.key) {
            let message = format!("{what} has no key `{}`", entry.key);
            let values = scalars(sink, &entry.value);
            let hint = foreign::hint(what, &entry.key, &values);
            let hint = hint.unwrap_or_else(|| match nearest(&entry.key, known()) {
                Some(key) => format!("did you mean `{key}`?"),
                None => format!("keys are {}", enumerate_names(known())),
            });
            sink.error(Code::UnknownKey, entry.key_span, message)
                .hint(hint);
        }
    }
    for key in object.keys.iter().filter(|key| key.is_needed) {
        if !entries.iter().any(|entry| entry.key == key.name) {
            let start = Span {
                start: node.span.start,
                end: node.span.start,
            };
            let message = format!("{what} needs the key `{}`", key.name);
            let pair = pair(key);
            let is_example = is_example(&key.shape);
            let write = if is_example {
                "write for example"
            } else {
                "write"
            };
            let hint = format!("{write} `{pair}`: {}", key.about);
            sink.error(Code::MissingKey, start, message).hint(hint);
        }
    }
    Some(Fields {
        entries,
        span: node.span,
        object,
    })
}

/// Reads a mapping whose keys are names that the user chose; `what` is its description in messages.
pub(crate) fn map<'n>(sink: &mut Sink<'_>, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
    no_tag(sink, node);
    match &node.kind {
        Kind::Map(entries) => Some(entries),
        _ => {
            let message = format!("{what} must be a mapping; found {}", node.describe());
            sink.error(Code::WrongType, node.span, message)
                .hint("write `{NAME: …}`");
            None
        }
    }
}

/// Reads a list; `what` is its description in messages.
pub(crate) fn list<'n>(sink: &mut Sink<'_>, node: &'n Node, what: &str) -> Option<&'n [Node]> {
    no_tag(sink, node);
    match &node.kind {
        Kind::List(items) => Some(items),
        _ => {
            let message = format!("{what} must be a list; found {}", node.describe());
            let item = scalars(sink, node).into_iter().next();
            let diagnostic = sink.error(Code::WrongType, node.span, message);
            match item.filter(|_| matches!(node.kind, Kind::Text { .. })) {
                Some(item) => {
                    let all = [Dimension::Duration, Dimension::Rate];
                    let ends = all.into_iter().find_map(|of| units::ends(&item, of));
                    let items = ends.map_or(item, |ends| ends.join(", "));
                    diagnostic.hint(format!("write `[{items}]`"));
                }
                None => {
                    if let Kind::Map(entries) = &node.kind {
                        diagnostic.hint(as_list(what, entries));
                    } else if let Kind::Number { .. } = node.kind {
                        diagnostic.hint("write each item of the list, in brackets and with commas");
                    }
                }
            }
            None
        }
    }
}

/// Reads one name or a list of names; `what` describes a name in messages.
pub(crate) fn names(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<Vec<Spanned<String>>> {
    match &node.kind {
        Kind::List(items) => Some(
            items
                .iter()
                .filter_map(|item| name(sink, item, what))
                .collect(),
        ),
        _ => name(sink, node, what).map(|name| vec![name]),
    }
}

/// Reads one text or a list of texts; `what` describes a text in messages.
pub(crate) fn texts(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<Vec<Spanned<String>>> {
    match &node.kind {
        Kind::List(items) => Some(
            items
                .iter()
                .filter_map(|item| text(sink, item, what))
                .collect(),
        ),
        _ => text(sink, node, what).map(|text| vec![text]),
    }
}

/// Reads a text; `what` is its description in messages.
pub(crate) fn text(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<Spanned<String>> {
    no_tag(sink, node);
    match &node.kind {
        Kind::Text { value, .. } => Some(Spanned::new(value.clone(), node.span)),
        _ => {
            let message = format!("{what} must be text; found {}", node.describe());
            let value = scalars(sink, node).into_iter().next();
            let diagnostic = sink.error(Code::WrongType, node.span, message);
            if let (Some(value), false) = (value, matches!(node.kind, Kind::Map(_))) {
                diagnostic.hint(format!("write it in quotes: `\"{value}\"`"));
            }
            None
        }
    }
}

/// Reads a name: letters, digits, `-` and `_`, so that it can be part of a metric's name.
pub(crate) fn name(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<Spanned<String>> {
    if let Kind::Number { .. } = node.kind {
        let written = written(sink, node);
        check_name(sink, &written, node.span, what);
        return None;
    }
    let name = text(sink, node, &format!("the name of {what}"))?;
    check_name(sink, &name.value, name.span, what).then_some(name)
}

fn is_name(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    word.len() <= 40
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(is_part)
}

/// Whether a word can be a name in the file; reports a word that cannot.
pub(crate) fn check_name(sink: &mut Sink<'_>, name: &str, span: Span, what: &str) -> bool {
    let good = is_name(name);
    if !good {
        sink.error(
            Code::OutOfRange,
            span,
            format!("`{name}` cannot be the name of {what}"),
        )
        .hint("a name has at most 40 letters, digits, `-` and `_`, and starts with a letter");
    }
    good
}

/// Reads a whole number or a quantity that must lie in the range of `shape`.
pub(crate) fn number(
    sink: &mut Sink<'_>,
    node: &Node,
    what: &str,
    shape: &Shape,
) -> Option<Spanned<u64>> {
    number_hinted(sink, node, what, shape, "")
}

/// Reads a whole number or quantity; `beyond` is the hint for a number outside the range of `shape`, if it is not empty.
fn number_hinted(
    sink: &mut Sink<'_>,
    node: &Node,
    what: &str,
    shape: &Shape,
    beyond: &str,
) -> Option<Spanned<u64>> {
    let read = match *shape {
        Shape::Integer(low, high) => whole(sink, node, what, low..=high),
        Shape::Quantity(dimension, low, high) => quantity(sink, node, what, dimension, low..=high),
        _ => {
            debug_assert!(false, "{what} is no number");
            return None;
        }
    };
    let error = match read {
        Ok(number) => return Some(Spanned::new(number, node.span)),
        Err(error) => error,
    };
    let diagnostic = sink.error(Code::OutOfRange, node.span, error?);
    if !beyond.is_empty() {
        diagnostic.hint(beyond);
    }
    None
}

/// Reads a whole number. `Err(Some(…))`: message for a number outside the range; `Err(None)`: another error was reported.
fn whole(
    sink: &mut Sink<'_>,
    node: &Node,
    what: &str,
    range: RangeInclusive<u64>,
) -> Result<u64, Option<String>> {
    no_tag(sink, node);
    let Some((value, integer)) = numeric(node) else {
        wrong_type::<()>(sink, node, &format!("{what} must be a whole number"));
        return Err(None);
    };
    match integer.map(u64::try_from) {
        Some(Ok(integer)) if range.contains(&integer) => Ok(integer),
        // An integer beyond YAML's integer types is read as a float and is still whole.
        None if value.fract() != 0.0 || value.abs() < u64::MAX as f64 => {
            let found = written(sink, node);
            let message = format!("{what} must be a whole number; found {found}");
            let diagnostic = sink.error(Code::WrongType, node.span, message);
            if value.fract() == 0.0 && value >= 0.0 {
                diagnostic.hint(format!("write {value}"));
            }
            Err(None)
        }
        _ => {
            let (low, high) = (*range.start(), *range.end());
            let found = written(sink, node);
            // A limit near the type's maximum is omitted from the message.
            Err(Some(
                match high >= u64::from(u32::MAX) && value < low as f64 {
                    true => format!("{what} must be {low} or more; found {found}"),
                    false => format!("{what} must lie between {low} and {high}; found {found}"),
                },
            ))
        }
    }
}

/// The text of a scalar, without quotes. For a mapping, which other tools write in its place: the texts of all its scalars.
fn scalars(sink: &Sink<'_>, node: &Node) -> Vec<String> {
    match &node.kind {
        Kind::Text { value, .. } => vec![value.clone()],
        Kind::Number { .. } | Kind::Bool(_) => vec![written(sink, node)],
        Kind::Map(entries) => {
            let inner = entries.iter().map(|entry| &entry.value);
            let inner = inner.filter(|node| !matches!(node.kind, Kind::Map(_)));
            inner.flat_map(|node| scalars(sink, node)).collect()
        }
        Kind::Null | Kind::List(_) => Vec::new(),
    }
}

/// The text of a number or boolean in the file; if it came from a parameter, the text of the parameter's value.
pub(crate) fn written(sink: &Sink<'_>, node: &Node) -> String {
    match &node.kind {
        Kind::Text {
            value,
            style: Style::Made,
        } => value.clone(),
        _ => {
            let text = sink.source().text.get(node.span.start..node.span.end);
            text.unwrap_or_default().to_owned()
        }
    }
}

/// A number, with its integer value if it is whole; `None` if the node is no number. Texts from parameters may be numbers.
fn numeric(node: &Node) -> Option<(f64, Option<i128>)> {
    match &node.kind {
        Kind::Number { value, integer } => Some((*value, *integer)),
        Kind::Text {
            value,
            style: Style::Made,
        } => {
            let integer = value.parse::<i128>().ok();
            let number = value
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite());
            Some((number?, integer))
        }
        _ => None,
    }
}

/// Reads a quantity; errors as in [`whole`]. For a number without a unit, the hint suggests units that put it in the range.
fn quantity(
    sink: &mut Sink<'_>,
    node: &Node,
    what: &str,
    dimension: Dimension,
    range: RangeInclusive<u64>,
) -> Result<u64, Option<String>> {
    no_tag(sink, node);
    let text = match &node.kind {
        Kind::Text { value, .. } => Cow::Borrowed(value.as_str()),
        Kind::Number { .. } => Cow::Owned(written(sink, node)),
        _ => {
            wrong_type::<()>(sink, node, &format!("{what} must be a {dimension}"));
            return Err(None);
        }
    };
    let value = match units::parse(&text, dimension) {
        Ok(value) if range.contains(&value) => return Ok(value),
        Ok(value) => value,
        Err(error) => {
            let diagnostic = sink.error(Code::Unit, node.span, format!("{what}: {error}"));
            if let Some(hint) = error.hint_within(&range) {
                diagnostic.hint(hint);
            }
            return Err(None);
        }
    };
    let (least, most) = (*range.start(), *range.end());
    let [from, to, found] = [least, most, value].map(|value| dimension.show(value));
    let bounds = match (least, most) {
        (0, _) => format!("must be at most {to}"),
        (1, u64::MAX) => format!("must be more than {}", dimension.show(0)),
        (_, u64::MAX) => format!("must be at least {from}"),
        _ => format!("must lie between {from} and {to}"),
    };
    Err(Some(format!("{what} {bounds}; found {found}")))
}

/// Reads a word that must be one of several words.
pub(crate) fn choice(
    sink: &mut Sink<'_>,
    node: &Node,
    what: &str,
    words: &[&'static str],
) -> Option<&'static str> {
    let written = variant(sink, node, what, words)?;
    written.nothing(sink);
    words.iter().copied().find(|word| *word == written.name)
}

/// Reads a probability: `0.01` or `1%`.
pub(crate) fn probability(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<Spanned<f64>> {
    no_tag(sink, node);
    let value = match &node.kind {
        Kind::Number { value, .. } => *value,
        Kind::Text { value, .. } => {
            match value
                .strip_suffix('%')
                .and_then(|number| number.trim().parse::<f64>().ok())
            {
                Some(percent) => percent / 100.0,
                None => {
                    return wrong_type(sink, node, &format!("{what} must be a number from 0 to 1"));
                }
            }
        }
        _ => return wrong_type(sink, node, &format!("{what} must be a number from 0 to 1")),
    };
    if (0.0..=1.0).contains(&value) {
        return Some(Spanned::new(value, node.span));
    }
    let is_number = matches!(node.kind, Kind::Number { .. });
    let found = match &node.kind {
        Kind::Text { value, .. } => value.clone(),
        _ => value.to_string(),
    };
    let message = format!("{what} must lie between 0 and 1, which is 100%; found {found}");
    let diagnostic = sink.error(Code::OutOfRange, node.span, message);
    if value > 1.0 && value <= 100.0 && is_number {
        diagnostic.hint(format!("for {value} percent write `{value}%`"));
    } else if value > 1.0 {
        diagnostic.hint("write `100%` for all");
    }
    None
}

/// Reports that a value has the wrong type; `wanted` is the message. Returns `None`.
pub(crate) fn wrong_type<T>(sink: &mut Sink<'_>, node: &Node, wanted: &str) -> Option<T> {
    sink.error(
        Code::WrongType,
        node.span,
        format!("{wanted}; found {}", node.describe()),
    );
    None
}

fn no_tag(sink: &mut Sink<'_>, node: &Node) {
    if let Some(tag) = &node.tag {
        sink.error(
            Code::WrongType,
            node.span,
            format!("a YAML tag (`!{tag}`) has no meaning here"),
        );
    }
}
