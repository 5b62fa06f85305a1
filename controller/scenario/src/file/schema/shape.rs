//! The keys of the file, each declared once: name, shape with its range, default, description. [`super::reader::fields`]
//! refuses all other keys, [`super::reader::Fields`] reads values as they are declared, and the JSON Schema and the
//! reference page are generated from the same tables.

use crate::units::Dimension;

/// A mapping with known keys.
pub(crate) struct Object {
    /// Name in messages: `a step`.
    pub what: &'static str,
    /// Keys in the order of messages, required ones first.
    pub keys: &'static [Key],
}

/// A key of a mapping.
pub(crate) struct Key {
    pub name: &'static str,
    pub is_needed: bool,
    pub shape: Shape,
    /// The value of an absent key.
    pub default: Option<Literal>,
    /// Hint for a number outside the range of the shape; empty if the message suffices.
    pub beyond: &'static str,
    /// Description of a few words, for users.
    pub about: &'static str,
}

/// The default of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Literal {
    /// A whole number, or a quantity in its base unit: nanoseconds, bits per second or bytes.
    Number(u64),
    Probability(f64),
    Flag(bool),
    /// A word, name, text or alternative.
    Word(&'static str),
}

/// The shape of a value.
pub(crate) enum Shape {
    Text,
    /// The name of a thing, which is named with its article: `a host`.
    Name(&'static str),
    /// One name, or a list of names.
    Names(&'static str),
    Bool,
    /// An integer between the two, inclusive.
    Integer(u64, u64),
    /// A quantity between the two in its base unit, inclusive.
    Quantity(Dimension, u64, u64),
    /// `0.01` or `1%`.
    Probability,
    /// A number of any kind between the two, inclusive.
    Number(f64, f64),
    /// A number, or text such as an address.
    Value,
    /// One of these words.
    Word(&'static [&'static str]),
    Object(&'static Object),
    /// A shape that is declared elsewhere.
    At(&'static Shape),
    List(&'static Shape),
    /// A mapping whose keys are names that the user chooses.
    Map(&'static Shape),
    /// Any of these shapes.
    Either(&'static [Shape]),
    /// One of several words, alone or with its value: `drop`, `{delay: 20ms}`.
    Variant(fn() -> Vec<Alternative>),
}

/// One of several alternatives.
pub(crate) struct Alternative {
    pub word: &'static str,
    /// The shape of its value; `None` if it takes none.
    pub payload: Option<Shape>,
    /// Whether the value is optional.
    pub may_be_alone: bool,
    pub about: &'static str,
}

pub(crate) const DURATION: Shape = duration(0, u64::MAX);
pub(crate) const RATE: Shape = rate(0, u64::MAX);
pub(crate) const SIZE: Shape = size(0, u64::MAX);

/// A duration between two numbers of nanoseconds, inclusive.
pub(crate) const fn duration(low: u64, high: u64) -> Shape {
    Shape::Quantity(Dimension::Duration, low, high)
}

/// A rate between two numbers of bits per second, inclusive.
pub(crate) const fn rate(low: u64, high: u64) -> Shape {
    Shape::Quantity(Dimension::Rate, low, high)
}

/// A size between two numbers of bytes, inclusive.
pub(crate) const fn size(low: u64, high: u64) -> Shape {
    Shape::Quantity(Dimension::Size, low, high)
}

/// A required key.
pub(crate) const fn needed(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        is_needed: true,
        ..may(name, shape, about)
    }
}

/// An optional key.
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
    /// The key with a default number, which must be in its range.
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

    /// The key with a default name, text or alternative.
    pub const fn or_word(self, word: &'static str) -> Key {
        let shape = self.shape.first();
        assert!(matches!(
            shape,
            Shape::Name(_) | Shape::Text | Shape::Variant(_)
        ));
        self.with_default(Literal::Word(word))
    }

    /// The key with the first of its words as the default.
    pub const fn or_first(self) -> Key {
        match self.shape.first() {
            Shape::Word([first, ..]) => self.with_default(Literal::Word(first)),
            _ => panic!("a word as the default of a word"),
        }
    }

    /// The key with a hint for numbers outside its range.
    pub const fn beyond(mut self, hint: &'static str) -> Key {
        self.beyond = hint;
        self
    }

    const fn with_default(mut self, default: Literal) -> Key {
        self.default = Some(default);
        self
    }

    /// The default as files write it.
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
    /// The first of several shapes: that of a value which is no mapping.
    pub const fn first(&self) -> &Shape {
        match self {
            Shape::Either([first, ..]) => first.first(),
            Shape::At(shape) => shape.first(),
            shape => shape,
        }
    }
}

impl Alternative {
    /// A word without a value.
    pub fn alone(word: &'static str, about: &'static str) -> Alternative {
        Alternative {
            word,
            payload: None,
            may_be_alone: true,
            about,
        }
    }

    /// A word that needs a value.
    pub fn with(word: &'static str, payload: Shape, about: &'static str) -> Alternative {
        Alternative {
            word,
            payload: Some(payload),
            may_be_alone: false,
            about,
        }
    }
}
