//! The keys of the file and the shapes of their values, as data. [`super::reader::fields`] refuses all other keys; the JSON
//! Schema and the reference page are generated from the same tables.

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
    /// Description of a few words, for users.
    pub about: &'static str,
}

/// The shape of a value.
pub(crate) enum Shape {
    Text,
    /// The name of a host, a flow and so on.
    Name,
    /// One name, or a list of names.
    Names,
    Bool,
    /// An integer between the two, inclusive.
    Integer(u64, u64),
    Quantity(Dimension),
    /// `0.01` or `1%`.
    Probability,
    /// A number of any kind.
    Number,
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

pub(crate) const DURATION: Shape = Shape::Quantity(Dimension::Duration);
pub(crate) const RATE: Shape = Shape::Quantity(Dimension::Rate);
pub(crate) const SIZE: Shape = Shape::Quantity(Dimension::Size);

/// A required key.
pub(crate) const fn needed(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        is_needed: true,
        shape,
        about,
    }
}

/// An optional key.
pub(crate) const fn may(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        is_needed: false,
        shape,
        about,
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
