//! Filter language: selects the packets of a flow, written like a display filter.
//!
//! `ip.src == 10.0.0.1 && tcp.dport == 6379 && redis.command == "GET"`. docs/filters.md describes it for users. Text becomes
//! tokens (`lex`, with nom), a syntax tree (`syntax`) and, with the protocol library, a typed [`Filter`] (`typing`).
//! [`Filter::matches`] defines the meaning of a filter; tests compare generated tables with it.

mod error;
mod foreign;
mod lex;
mod syntax;
pub(crate) mod typing;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

pub use error::{FilterError, FilterErrorKind};
pub use typing::UNCARRIED;

use crate::library::Library;

/// Suggestion for `name`, which is not a field of the library, where one field (to be compared with `value`, if given) is
/// expected: the field that another tool calls so, or the field with the nearest name; only fields that `fits` accepts.
#[must_use]
pub fn hint_for_field(
    library: &Library,
    name: &str,
    value: Option<u128>,
    fits: &dyn Fn(&str) -> bool,
) -> Option<String> {
    foreign::for_field(library, name, value, fits)
}

/// Maximum length of a filter in bytes. It bounds the parser's work on text from outside.
const MAX_LENGTH: usize = 4096;

/// A filter that names only known fields and compares them with values of their types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    text: String,
    root: Node,
}

/// Expression of a filter, and its position in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Typed expression of the node.
    pub expr: Expr,
    /// Byte range of the expression in the filter's text.
    pub span: Range<usize>,
}

/// Typed expression of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// `||`: at least one operand holds.
    Or(Vec<Node>),
    /// `&&`: all operands hold.
    And(Vec<Node>),
    /// `!`: the operand does not hold.
    Not(Box<Node>),
    /// The packet has this protocol.
    Present {
        /// Name of the protocol in filters.
        protocol: String,
    },
    /// The packet has this field, and its value is in the set.
    Test(Test),
}

/// Comparison of a field with a set of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Name of the field in filters.
    pub field: String,
    /// Whether upper and lower case of ASCII letters are equal.
    pub ignore_case: bool,
    /// `!=`: the packet has the field, and its value is not in the set.
    pub negated: bool,
    /// Values with which the field is compared.
    pub set: ValueSet,
}

/// Set of values with which a field is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSet {
    /// Numbers, as sorted, disjoint ranges.
    Numbers(Vec<RangeInclusive<u128>>),
    /// Texts that match any of these patterns.
    Texts(Vec<TextPattern>),
}

/// Pattern for texts: one text, or all texts that begin with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPattern {
    /// Bytes of the text, or of its beginning.
    pub bytes: Vec<u8>,
    /// Whether a text only has to begin with `bytes`.
    pub prefix: bool,
}

/// Parses a filter's text, with the embedded protocol library.
pub fn parse(text: &str) -> Result<Filter, FilterError> {
    Filter::parse(&Library::builtin(), text)
}

impl Filter {
    /// Parses a filter's text, with the protocol library `library`.
    pub fn parse(library: &Library, text: &str) -> Result<Filter, FilterError> {
        if text.len() > MAX_LENGTH {
            return Err(FilterError::new(
                FilterErrorKind::TooLong { limit: MAX_LENGTH },
                0..text.len(),
            ));
        }
        Filter::read(library, text).map_err(|error| {
            match foreign::whole::rewritten(library, text) {
                Some(filter) => error.hint(Some(&format!("write `{filter}`"))),
                None => error,
            }
        })
    }

    fn read(library: &Library, text: &str) -> Result<Filter, FilterError> {
        let tokens = lex::tokens(text)?;
        let root = typing::node(library, &syntax::parse(&tokens)?)?;
        Ok(Filter {
            text: text.to_owned(),
            root,
        })
    }

    /// The filter's text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The filter's expression.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether a packet with these field values matches the filter. This function defines the language's meaning.
    pub fn matches(&self, values: &FieldValues) -> bool {
        self.root.expr.matches(values)
    }

    /// Names of the fields that the filter compares, sorted.
    pub fn fields(&self) -> BTreeSet<&str> {
        let mut fields = BTreeSet::new();
        self.root.expr.visit(&mut |expr| {
            if let Expr::Test(test) = expr {
                fields.insert(test.field.as_str());
            }
        });
        fields
    }
}

impl Expr {
    fn visit<'a>(&'a self, see: &mut impl FnMut(&'a Expr)) {
        see(self);
        match self {
            Expr::Or(parts) | Expr::And(parts) => {
                parts.iter().for_each(|part| part.expr.visit(see))
            }
            Expr::Not(inner) => inner.expr.visit(see),
            Expr::Present { .. } | Expr::Test(_) => {}
        }
    }

    fn matches(&self, values: &FieldValues) -> bool {
        match self {
            Expr::Or(parts) => parts.iter().any(|part| part.expr.matches(values)),
            Expr::And(parts) => parts.iter().all(|part| part.expr.matches(values)),
            Expr::Not(inner) => !inner.expr.matches(values),
            Expr::Present { protocol } => values.protocols.contains(protocol),
            Expr::Test(test) => test.matches(values),
        }
    }
}

impl Test {
    fn matches(&self, values: &FieldValues) -> bool {
        // An absent field passes no comparison, `!=` included.
        let within = match (values.values.get(&self.field), &self.set) {
            (Some(Value::Number(value)), ValueSet::Numbers(ranges)) => {
                ranges.iter().any(|range| range.contains(value))
            }
            (Some(Value::Text { bytes, length }), ValueSet::Texts(patterns)) => patterns
                .iter()
                .any(|pattern| pattern.matches(bytes, *length, self.ignore_case)),
            _ => return false,
        };
        within != self.negated
    }
}

impl TextPattern {
    fn matches(&self, bytes: &[u8], length: usize, ignore_case: bool) -> bool {
        let Some(head) = bytes.get(..self.bytes.len()) else {
            return false;
        };
        let equal = if ignore_case {
            head.eq_ignore_ascii_case(&self.bytes)
        } else {
            head == self.bytes
        };
        equal && (self.prefix || length == self.bytes.len())
    }
}

/// Protocols and field values of one packet, by their names in filters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldValues {
    pub(crate) protocols: BTreeSet<String>,
    pub(crate) values: BTreeMap<String, Value>,
}

/// Value of a field in a packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// Value of any type except text.
    Number(u128),
    /// A text; the packet may contain only its beginning.
    Text {
        /// Bytes of the text that the packet contains.
        bytes: Vec<u8>,
        /// Length of the text in bytes, as the packet declares it.
        length: usize,
    },
}

impl FieldValues {
    /// Values of a packet that has no protocols and no fields.
    pub fn new() -> FieldValues {
        FieldValues::default()
    }

    /// Adds a protocol, by its name in filters, to the packet.
    pub fn add_protocol(&mut self, filter_name: &str) {
        if !self.has_protocol(filter_name) {
            self.protocols.insert(filter_name.to_owned());
        }
    }

    /// Sets a field, and adds the field's protocol: the part of its name before the first dot.
    pub fn set(&mut self, field: &str, value: Value) {
        self.add_protocol(field.split('.').next().unwrap_or(field));
        self.add_value(field, value);
    }

    /// Sets a field of a protocol that the packet already has.
    pub(crate) fn add_value(&mut self, field: &str, value: Value) {
        match self.values.get_mut(field) {
            Some(before) => *before = value,
            None => {
                self.values.insert(field.to_owned(), value);
            }
        }
    }

    /// Sets a field to a number, as [`set`](Self::set) does.
    pub fn set_number(&mut self, field: &str, value: u128) {
        self.set(field, Value::Number(value));
    }

    /// Sets a field to a complete text, as [`set`](Self::set) does.
    pub fn set_text(&mut self, field: &str, text: &[u8]) {
        self.set(
            field,
            Value::Text {
                bytes: text.to_vec(),
                length: text.len(),
            },
        );
    }

    /// Value of a field; `None` if the packet lacks the field.
    pub fn value(&self, field: &str) -> Option<&Value> {
        self.values.get(field)
    }

    /// Whether the packet has the protocol.
    pub fn has_protocol(&self, filter_name: &str) -> bool {
        self.protocols.contains(filter_name)
    }
}
