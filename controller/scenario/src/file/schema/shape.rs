//! The schema as tables: each key of the file is declared once, with name, shape and range, default and description.
//! [`super::reader::fields`] refuses all other keys, [`super::reader::Fields`] reads values as they are declared, and the JSON
//! Schema and the reference page are generated from the same tables.

use crate::units::Dimension;

/// A kind of mapping in the file, with the keys that it may have.
pub(crate) struct Object {
    /// Name of the mapping in messages, with its article: `a step`.
    pub what: &'static str,
    /// The declared keys in the order of messages, required keys first.
    pub keys: &'static [Key],
}

/// A declared key of a mapping.
pub(crate) struct Key {
    pub name: &'static str,
    pub is_needed: bool,
    pub shape: Shape,
    /// The value of the key if the file does not have it; `None`: the key has no default.
    pub default: Option<Literal>,
    /// The hint for a number outside the declared range; empty if the message suffices.
    pub beyond: &'static str,
    /// A few words on the key, for the reference page and the JSON Schema.
    pub about: &'static str,
}

/// The default value of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Literal {
    /// A whole number, or a quantity in nanoseconds, bits per second or bytes.
    Number(u64),
    Probability(f64),
    Flag(bool),
    /// The default is a word, name, text or alternative.
    Word(&'static str),
}

/// The shape of a value: its type and range.
pub(crate) enum Shape {
    Text,
    /// The name of something that the file declares. The text is the kind of thing, with its article: `a host`.
    Name(&'static str),
    /// One name or a list of names. The text is the kind of thing that they name, with its article: `a host`.
    Names(&'static str),
    Bool,
    /// A whole number from the first to the second, inclusive.
    Integer(u64, u64),
    /// A quantity from the first to the second number, inclusive, in nanoseconds, bits per second or bytes.
    Quantity(Dimension, u64, u64),
    /// A probability: `0.01` or `1%`.
    Probability,
    /// A number, possibly with a fraction, from the first to the second, inclusive.
    Number(f64, f64),
    /// A value that is a number, or text such as an address.
    Value,
    /// One word of this list.
    Word(&'static [&'static str]),
    Object(&'static Object),
    /// A shape that is declared elsewhere, because several keys share it.
    At(&'static Shape),
    List(&'static Shape),
    /// A mapping whose keys are names that the user chooses, and whose values have this shape.
    Map(&'static Shape),
    /// A value that has any one of these shapes.
    Either(&'static [Shape]),
    /// One of several alternatives, a word alone or with a value: `drop`, `{delay: 20ms}`.
    Variant(fn() -> Vec<Alternative>),
}

/// An alternative that a key accepts: a word, with or without a value.
pub(crate) struct Alternative {
    pub word: &'static str,
    /// The shape of the alternative's value; `None` if it takes no value.
    pub payload: Option<Shape>,
    /// Whether the file may write the word without a value.
    pub may_be_alone: bool,
    pub about: &'static str,
}

pub(crate) const DURATION: Shape = duration(0, u64::MAX);
pub(crate) const RATE: Shape = rate(0, u64::MAX);
pub(crate) const SIZE: Shape = size(0, u64::MAX);

/// The shape of a duration from `low` to `high` nanoseconds, inclusive.
pub(crate) const fn duration(low: u64, high: u64) -> Shape {
    Shape::Quantity(Dimension::Duration, low, high)
}

/// The shape of a rate from `low` to `high` bits per second, inclusive.
pub(crate) const fn rate(low: u64, high: u64) -> Shape {
    Shape::Quantity(Dimension::Rate, low, high)
}

/// The shape of a size from `low` to `high` bytes, inclusive.
pub(crate) const fn size(low: u64, high: u64) -> Shape {
    Shape::Quantity(Dimension::Size, low, high)
}

/// Declares a required key.
pub(crate) const fn needed(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        is_needed: true,
        ..may(name, shape, about)
    }
}

/// Declares an optional key without a default.
pub(crate) const fn may(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        is_needed: false,
        shape,
        default: None,
        beyond: "",
        about,
    }
}

impl Key {
    /// This key with a default number, which must be in the key's range.
    pub const fn or(self, number: u64) -> Key {
        match self.shape.first() {
            Shape::Integer(low, high) | Shape::Quantity(_, low, high) => {
                assert!(*low <= number && number <= *high, "a default in the range");
            }
            _ => panic!("a number as the default of a number"),
        }
        self.with_default(Literal::Number(number))
    }

    pub const fn or_probability(self, probability: f64) -> Key {
        assert!(matches!(self.shape, Shape::Probability));
        self.with_default(Literal::Probability(probability))
    }

    pub const fn or_flag(self, flag: bool) -> Key {
        assert!(matches!(self.shape, Shape::Bool));
        self.with_default(Literal::Flag(flag))
    }

    /// This key with a default name, text or alternative.
    pub const fn or_word(self, word: &'static str) -> Key {
        let shape = self.shape.first();
        assert!(matches!(
            shape,
            Shape::Name(_) | Shape::Text | Shape::Variant(_)
        ));
        self.with_default(Literal::Word(word))
    }

    /// This key with the first of its words as the default.
    pub const fn or_first(self) -> Key {
        match self.shape.first() {
            Shape::Word([first, ..]) => self.with_default(Literal::Word(first)),
            _ => panic!("a word as the default of a word"),
        }
    }

    /// This key with a hint for numbers outside its range.
    pub const fn beyond(mut self, hint: &'static str) -> Key {
        self.beyond = hint;
        self
    }

    const fn with_default(mut self, default: Literal) -> Key {
        self.default = Some(default);
        self
    }

    /// The key's default as files write it; `None` if the key has no default.
    pub fn written_default(&self) -> Option<String> {
        Some(match (self.default?, self.shape.first()) {
            (Literal::Number(number), Shape::Quantity(dimension, ..)) => dimension.show(number),
            (Literal::Number(number), _) => number.to_string(),
            (Literal::Probability(probability), _) => probability.to_string(),
            (Literal::Flag(flag), _) => flag.to_string(),
            (Literal::Word(word), _) => word.to_owned(),
        })
    }
}

impl Shape {
    /// The shape itself. If it consists of alternative shapes, the first of them, which is not a mapping.
    pub const fn first(&self) -> &Shape {
        match self {
            Shape::Either([first, ..]) => first.first(),
            Shape::At(shape) => shape.first(),
            shape => shape,
        }
    }
}

impl Alternative {
    /// An alternative that is a word without a value.
    pub fn alone(word: &'static str, about: &'static str) -> Alternative {
        Alternative {
            word,
            payload: None,
            may_be_alone: true,
            about,
        }
    }

    /// An alternative that is a word with a required value.
    pub fn with(word: &'static str, payload: Shape, about: &'static str) -> Alternative {
        Alternative {
            word,
            payload: Some(payload),
            may_be_alone: false,
            about,
        }
    }
}
