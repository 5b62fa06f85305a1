//! Reading typed values out of the YAML tree, reporting all that is wrong and going on.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::shape::Object;
use crate::diagnostic::{Code, Sink, Span, Spanned, enumerate_names, nearest};
use crate::units::{self, Dimension};
use crate::yaml::{Entry, Kind, Node, Style};

/// A mapping whose keys are known.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'n> {
    entries: &'n [Entry],
    /// Where the mapping stands.
    pub span: Span,
    object: &'static Object,
}

impl<'n> Fields<'n> {
    /// The value at a key of the schema.
    pub fn get(&self, key: &str) -> Option<&'n Node> {
        // What is read has to stand in the schema.
        debug_assert!(
            self.object.keys.iter().any(|known| known.name == key),
            "{} has no key {key}",
            self.object.what
        );
        let mut entries = self.entries.iter();
        entries
            .find(|entry| entry.key == key)
            .map(|entry| &entry.value)
    }
}

/// Reads a mapping: refuses keys that it does not have, reports missing ones.
pub(crate) fn fields<'n>(
    sink: &mut Sink<'_>,
    node: &'n Node,
    object: &'static Object,
) -> Option<Fields<'n>> {
    let what = object.what;
    let entries = map(sink, node, what)?;
    let known = || object.keys.iter().map(|key| key.name);
    for entry in entries {
        if !known().any(|key| key == entry.key) {
            let message = format!("{what} has no key `{}`", entry.key);
            let hint = match nearest(&entry.key, known()) {
                Some(key) => format!("did you mean `{key}`?"),
                None => format!("keys are {}", enumerate_names(known())),
            };
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
            sink.error(Code::MissingKey, start, message);
        }
    }
    Some(Fields {
        entries,
        span: node.span,
        object,
    })
}

/// Reads a mapping whose keys are names that the user chose.
pub(crate) fn map<'n>(sink: &mut Sink<'_>, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
    no_tag(sink, node);
    match &node.kind {
        Kind::Map(entries) => Some(entries),
        _ => wrong_type(sink, node, &format!("{what} is a mapping")),
    }
}

/// Reads a list.
pub(crate) fn list<'n>(sink: &mut Sink<'_>, node: &'n Node, what: &str) -> Option<&'n [Node]> {
    no_tag(sink, node);
    match &node.kind {
        Kind::List(items) => Some(items),
        _ => wrong_type(sink, node, &format!("{what} is a list")),
    }
}

/// Reads one name or a list of names.
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

/// Reads one text or a list of texts.
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

/// Reads a text.
pub(crate) fn text(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<Spanned<String>> {
    no_tag(sink, node);
    match &node.kind {
        Kind::Text { value, .. } => Some(Spanned::new(value.clone(), node.span)),
        _ => {
            wrong_type::<()>(sink, node, &format!("{what} is text"));
            None
        }
    }
}

/// Reads a name: letters, digits, `-` and `_`, so that it can stand in a metric.
pub(crate) fn name(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<Spanned<String>> {
    let name = text(sink, node, &format!("the name of {what}"))?;
    check_name(sink, &name.value, name.span, what).then_some(name)
}

/// Whether a word can be a name.
pub(crate) fn check_name(sink: &mut Sink<'_>, name: &str, span: Span, what: &str) -> bool {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let good = starts_well
        && name.len() <= 40
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !good {
        sink.error(
            Code::OutOfRange,
            span,
            format!("`{name}` cannot be the name of {what}"),
        )
        .hint("names start with a letter and go on with letters, digits, `-` and `_`, 40 at most");
    }
    good
}

/// Reads an integer.
pub(crate) fn integer(
    sink: &mut Sink<'_>,
    node: &Node,
    what: &str,
    range: RangeInclusive<u64>,
) -> Option<u64> {
    no_tag(sink, node);
    let Some((value, integer)) = number(node) else {
        return wrong_type(sink, node, &format!("{what} is a whole number"));
    };
    match integer.map(u64::try_from) {
        Some(Ok(integer)) if range.contains(&integer) => return Some(integer),
        // What YAML's integers cannot hold is read as a float, and is a whole number all the same.
        None if value.fract() != 0.0 || value.abs() < u64::MAX as f64 => {
            let found = written(sink, node);
            let message = format!("{what} is a whole number; found {found}");
            let diagnostic = sink.error(Code::WrongType, node.span, message);
            if value.fract() == 0.0 && value >= 0.0 {
                diagnostic.hint(format!("written as {value}"));
            }
        }
        _ => {
            let (low, high) = (range.start(), range.end());
            let found = written(sink, node);
            let message = format!("{what} lies between {low} and {high}; found {found}");
            sink.error(Code::OutOfRange, node.span, message);
        }
    }
    None
}

/// Reads a number of any kind.
pub(crate) fn float(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<f64> {
    no_tag(sink, node);
    match number(node) {
        Some((value, _)) => Some(value),
        None => wrong_type(sink, node, &format!("{what} is a number")),
    }
}

/// A number or a boolean as it stands in the file; or, where a parameter stands, as that is.
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

/// A number, and the same where it is an integer; what parameters were put into may be one.
fn number(node: &Node) -> Option<(f64, Option<i128>)> {
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

/// Reads a quantity with its unit.
pub(crate) fn quantity(
    sink: &mut Sink<'_>,
    node: &Node,
    what: &str,
    dimension: Dimension,
) -> Option<Spanned<u64>> {
    no_tag(sink, node);
    let text = match &node.kind {
        Kind::Text { value, .. } => Cow::Borrowed(value.as_str()),
        Kind::Number { .. } => Cow::Owned(written(sink, node)),
        _ => return wrong_type(sink, node, &format!("{what} is a {dimension}")),
    };
    match units::parse(&text, dimension) {
        Ok(value) => Some(Spanned::new(value, node.span)),
        Err(error) => {
            let diagnostic = sink.error(Code::Unit, node.span, format!("{what}: {error}"));
            if let Some(hint) = error.hint() {
                diagnostic.hint(hint);
            }
            None
        }
    }
}

/// Reads `true` or `false`.
pub(crate) fn truth(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<bool> {
    match node.kind {
        Kind::Bool(value) if node.tag.is_none() => Some(value),
        _ => wrong_type(sink, node, &format!("{what} is true or false")),
    }
}

/// Reads one of several words.
pub(crate) fn word(
    sink: &mut Sink<'_>,
    node: &Node,
    what: &str,
    words: &[&'static str],
) -> Option<&'static str> {
    let text = text(sink, node, what)?;
    let found = words.iter().find(|word| **word == text.value);
    if found.is_none() {
        let message = format!("{what} is no `{}`", text.value);
        let known = format!("words are {}", enumerate_names(words.iter().copied()));
        sink.error(Code::UnknownVariant, text.span, message)
            .hint(known);
    }
    found.copied()
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
                    return wrong_type(sink, node, &format!("{what} is a number between 0 and 1"));
                }
            }
        }
        _ => return wrong_type(sink, node, &format!("{what} is a number between 0 and 1")),
    };
    if (0.0..=1.0).contains(&value) {
        return Some(Spanned::new(value, node.span));
    }
    let diagnostic = sink.error(
        Code::OutOfRange,
        node.span,
        format!("{what} lies between 0 and 1; found {value}"),
    );
    if value > 1.0 && value <= 100.0 && matches!(node.kind, Kind::Number { .. }) {
        diagnostic.hint(format!("for {value} percent write `{value}%`"));
    }
    None
}

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
            let message = format!(
                "{what} is one of {}; found {} keys",
                enumerate_names(alternatives.iter().copied()),
                entries.len()
            );
            sink.error(Code::WrongType, node.span, message);
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
        let hint = match nearest(found.name, alternatives.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!(
                "{what} is one of {}",
                enumerate_names(alternatives.iter().copied())
            ),
        };
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
            .hint(format!("for example `{{{}: {example}}}`", self.name));
        }
        self.payload.as_deref()
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
                format!("`{}` takes no value", self.name),
            );
        }
    }
}

/// Reports a value of another type than wanted.
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
            format!("a tag (`!{tag}`) has no meaning here"),
        );
    }
}
