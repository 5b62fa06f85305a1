//! What the file may say, as data: each reader names its mapping's keys here, [`super::reader::fields`] refuses all others by
//! them, and the JSON Schema and the reference are written from them. So no key is read that does not stand there.

use crate::units::Dimension;

/// A mapping with known keys.
pub(crate) struct Object {
    /// As messages call it: `a step`.
    pub what: &'static str,
    /// In the order in which they are listed, needed ones first.
    pub keys: &'static [Key],
}

/// A key of a mapping.
pub(crate) struct Key {
    pub name: &'static str,
    pub is_needed: bool,
    pub shape: Shape,
    /// For people, in a few words.
    pub about: &'static str,
}

/// What stands behind a key.
pub(crate) enum Shape {
    Text,
    /// Of a host, a flow and the like.
    Name,
    /// One, or a list.
    Names,
    Bool,
    /// From the first to the second.
    Integer(u64, u64),
    Quantity(Dimension),
    /// `0.01` or `1%`.
    Probability,
    /// A number of any kind.
    Number,
    /// A number, or text such as an address.
    Value,
    /// One of these.
    Word(&'static [&'static str]),
    Object(&'static Object),
    /// What stands elsewhere.
    At(&'static Shape),
    List(&'static Shape),
    /// By names that the user chose.
    Map(&'static Shape),
    /// Any of these.
    Either(&'static [Shape]),
    /// One of several words, alone or with what belongs to it: `drop`, `{delay: 20ms}`.
    Variant(fn() -> Vec<Alternative>),
}

/// One of several alternatives.
pub(crate) struct Alternative {
    pub word: &'static str,
    /// What it needs; nothing if it is a word alone.
    pub payload: Option<Shape>,
    /// Whether what it takes may be left out.
    pub may_be_alone: bool,
    pub about: &'static str,
}

pub(crate) const DURATION: Shape = Shape::Quantity(Dimension::Duration);
pub(crate) const RATE: Shape = Shape::Quantity(Dimension::Rate);
pub(crate) const SIZE: Shape = Shape::Quantity(Dimension::Size);

/// A key that has to be there.
pub(crate) const fn needed(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        is_needed: true,
        shape,
        about,
    }
}

/// A key that may be there.
pub(crate) const fn may(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        is_needed: false,
        shape,
        about,
    }
}

impl Alternative {
    /// A word that takes nothing.
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
