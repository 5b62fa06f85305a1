//! Reads values as the schema declares their keys: of the declared type, in the declared range, or the declared default.

use super::{
    Fields, choice, name, names, no_tag, number_hinted, numeric, probability, text, wrong_type,
};
use crate::diagnostic::{Code, Sink, Spanned};
use crate::file::schema::shape::{Key, Literal, Shape};
use crate::file::yaml::{Kind, Node};

/// Methods that read the value at a key. `None` from any of them: the key is absent and has no default, or its value was
/// refused, which is reported. A default has the position of the mapping.
impl Fields<'_> {
    /// Reads the whole number or quantity at a key. `T` must be able to hold all numbers of the declared range.
    pub fn number<T: TryFrom<u64>>(&self, sink: &mut Sink<'_>, key: &str) -> Option<Spanned<T>> {
        let (key, node) = self.declared(key)?;
        let number = match (node, key.default) {
            (Some(node), _) => {
                number_hinted(sink, node, &quoted(key), key.shape.first(), key.beyond)?
            }
            (None, Some(Literal::Number(number))) => Spanned::new(number, self.span),
            (None, _) => return None,
        };
        let value = T::try_from(number.value).ok();
        debug_assert!(value.is_some(), "{} goes beyond its type", key.name);
        Some(Spanned::new(value?, number.span))
    }

    /// Reads the number at a key without a default: `Some(None)` if the key is absent, `None` if the value was refused.
    pub fn optional_number<T: TryFrom<u64>>(
        &self,
        sink: &mut Sink<'_>,
        key: &str,
    ) -> Option<Option<Spanned<T>>> {
        self.optional(key, |_| self.number(sink, key))
    }

    /// Reads the number at a key, which may have a fraction.
    pub fn float(&self, sink: &mut Sink<'_>, key: &str) -> Option<f64> {
        let (key, node) = self.declared(key)?;
        let (Some(node), Shape::Number(low, high)) = (node, &key.shape) else {
            return absent(key, node);
        };
        let what = quoted(key);
        no_tag(sink, node);
        let Some((value, _)) = numeric(node) else {
            return wrong_type(sink, node, &format!("{what} must be a number"));
        };
        if (*low..=*high).contains(&value) {
            return Some(value);
        }
        let bounds = match (*low, *high) {
            (f64::MIN_POSITIVE, f64::MAX) => "must be more than 0".to_owned(),
            (_, f64::MAX) => format!("must be {low} or more"),
            _ => format!("must lie between {low} and {high}"),
        };
        let message = format!("{what} {bounds}; found {value}");
        sink.error(Code::OutOfRange, node.span, message);
        None
    }

    pub fn probability(&self, sink: &mut Sink<'_>, key: &str) -> Option<Spanned<f64>> {
        let (key, node) = self.declared(key)?;
        match (node, &key.shape, key.default) {
            (Some(node), Shape::Probability, _) => probability(sink, node, &quoted(key)),
            (None, _, Some(Literal::Probability(value))) => Some(Spanned::new(value, self.span)),
            _ => absent(key, node),
        }
    }

    pub fn flag(&self, sink: &mut Sink<'_>, key: &str) -> Option<bool> {
        let (key, node) = self.declared(key)?;
        match (node, &key.shape, key.default) {
            (Some(node), Shape::Bool, _) => match node.kind {
                Kind::Bool(value) if node.tag.is_none() => Some(value),
                _ => wrong_type(
                    sink,
                    node,
                    &format!("{} must be true or false", quoted(key)),
                ),
            },
            (None, _, Some(Literal::Flag(value))) => Some(value),
            _ => absent(key, node),
        }
    }

    /// Reads the word at a key, which must be one of the declared words.
    pub fn word(&self, sink: &mut Sink<'_>, key: &str) -> Option<&'static str> {
        let (key, node) = self.declared(key)?;
        match (node, &key.shape, key.default) {
            (Some(node), Shape::Word(words), _) => choice(sink, node, &quoted(key), words),
            (None, _, Some(Literal::Word(word))) => Some(word),
            _ => absent(key, node),
        }
    }

    pub fn name(&self, sink: &mut Sink<'_>, key: &str) -> Option<Spanned<String>> {
        let (key, node) = self.declared(key)?;
        match (node, &key.shape, key.default) {
            (Some(node), Shape::Name(what), _) => name(sink, node, what),
            (None, _, Some(Literal::Word(word))) => Some(Spanned::new(word.to_owned(), self.span)),
            _ => absent(key, node),
        }
    }

    /// Reads the name or list of names at a key; empty if an optional key is absent.
    pub fn names(&self, sink: &mut Sink<'_>, key: &str) -> Option<Vec<Spanned<String>>> {
        let (key, node) = self.declared(key)?;
        match (node, &key.shape) {
            (Some(node), Shape::Names(what)) => names(sink, node, what),
            (None, _) if !key.is_needed => Some(Vec::new()),
            _ => absent(key, node),
        }
    }

    pub fn text(&self, sink: &mut Sink<'_>, key: &str) -> Option<Spanned<String>> {
        let (key, node) = self.declared(key)?;
        match (node, &key.shape) {
            (Some(node), Shape::Text) => text(sink, node, &quoted(key)),
            _ => absent(key, node),
        }
    }
}

/// The key's name in backquotes, for messages.
fn quoted(key: &Key) -> String {
    format!("`{}`", key.name)
}

/// `None`, as the value of an absent key without a default; asserts that the key is absent.
fn absent<T>(key: &Key, node: Option<&Node>) -> Option<T> {
    debug_assert!(node.is_none(), "{} is read by another method", key.name);
    None
}
