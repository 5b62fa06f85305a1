//! Types under the names that the source gives them. A target does not need them: in the IR, new types and enums with a
//! representation are plain bits. A control plane does learn their names (P4Runtime specification 1.4, section 8.4).

use super::{Annotation, Type};
use crate::ast::Literal;
use num_bigint::BigUint;

/// A type under the name that the source gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared {
    /// A type that its run-time type describes fully. Each field of a struct has a declared type of its own.
    Plain(Type),
    /// A new type (`type T x;`): index into [`super::Program::new_types`].
    New(u32),
    /// An enum with a representation (`enum bit<8> E { … }`): index into [`super::Program::ser_enums`].
    SerEnum(u32),
    /// A tuple, `tuple<…>`, with the types of its elements.
    Tuple(Vec<Declared>),
}

/// A new type, declared by `type under name;`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewType {
    /// Name of the new type.
    pub name: String,
    /// The underlying type of the new type.
    pub under: Declared,
    /// Annotations of the declaration.
    pub annotations: Vec<Annotation>,
}

/// An enum with a representation, such as `enum bit<8> E { … }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerEnum {
    /// Name of the enum.
    pub name: String,
    /// Type that represents the enum's values: `bit<W>` or `int<W>`.
    pub repr: Type,
    /// Members of the enum: (name, value).
    pub members: Vec<(String, BigUint)>,
}

/// The body of a structured annotation, with its expressions evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Structured {
    /// A list of values: `@name[a, b]`
    List(Vec<Literal>),
    /// Pairs of key and value: `@name[k=a, l=b]`
    Map(Vec<(String, Literal)>),
}
