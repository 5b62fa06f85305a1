//! Types under the names that the source gives them. A target does not need them: in the IR, new types and enums with a
//! representation are plain bits. A control plane does learn their names (P4Runtime specification 1.4, section 8.4).

use super::{Annotation, Type};
use crate::ast::Literal;
use num_bigint::BigUint;

/// A type as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared {
    /// A type that its run-time type describes fully; a struct's fields have their own declared types.
    Plain(Type),
    /// `type T x;`: index into [`super::Program::new_types`].
    New(u32),
    /// `enum bit<8> E { … }`: index into [`super::Program::ser_enums`].
    SerEnum(u32),
    /// `tuple<…>`
    Tuple(Vec<Declared>),
}

/// `type under name;`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewType {
    /// Name.
    pub name: String,
    /// The underlying type.
    pub under: Declared,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// An enum with a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerEnum {
    /// Name.
    pub name: String,
    /// `bit<W>` or `int<W>`.
    pub repr: Type,
    /// Members and their values.
    pub members: Vec<(String, BigUint)>,
}

/// The body of a structured annotation, with its expressions evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Structured {
    /// `@name[a, b]`
    List(Vec<Literal>),
    /// `@name[k=a, l=b]`
    Map(Vec<(String, Literal)>),
}
