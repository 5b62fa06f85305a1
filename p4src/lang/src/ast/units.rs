//! Syntax tree of parsers, controls and tables.

use super::{Annotation, Block, Decl, Expr, Ident, Param, Stmt};
use crate::source::Span;

/// A parser as declared: a parser type, or a parser with a body.
#[derive(Debug, Clone)]
pub struct ParserDecl {
    /// Name of the parser.
    pub name: Ident,
    /// Names of the type parameters (only in the declaration of a parser type).
    pub type_params: Vec<Ident>,
    /// Run-time parameters, which receive arguments at each call.
    pub params: Vec<Param>,
    /// Constructor parameters, which receive arguments at instantiation.
    pub ctor_params: Vec<Param>,
    /// Body of the parser; `None` for the declaration of a parser type.
    pub body: Option<ParserBody>,
}

/// The body of a parser.
#[derive(Debug, Clone)]
pub struct ParserBody {
    /// Local declarations: constants, variables, instances, value sets.
    pub locals: Vec<Decl>,
    /// States of the parser, in source order.
    pub states: Vec<State>,
}

/// A state of a parser.
#[derive(Debug, Clone)]
pub struct State {
    /// Annotations before the parser state.
    pub annotations: Vec<Annotation>,
    /// Name of the parser state.
    pub name: Ident,
    /// Statements of the parser state (declarations inside are `StmtKind::Decl`).
    pub body: Vec<Stmt>,
    /// Transition to the next state; `None` if none is written, which means `reject`.
    pub transition: Option<Transition>,
    /// Source span of the parser state.
    pub span: Span,
}

/// How a parser state chooses the next state.
#[derive(Debug, Clone)]
pub enum Transition {
    /// Unconditional transition, `transition s;`, to the state with this name.
    Direct(Ident),
    /// Transition by cases, `transition select(…) { … }`.
    Select {
        /// Expressions whose values the cases match.
        keys: Vec<Expr>,
        /// Cases, in order; the first that matches is taken.
        cases: Vec<SelectCase>,
        /// Source span of the `select` expression.
        span: Span,
    },
}

/// A case of a `select`: `keyset: state;`
#[derive(Debug, Clone)]
pub struct SelectCase {
    /// One keyset per `select` key, or a single `Default`.
    pub keys: Vec<Keyset>,
    /// Name of the next state.
    pub state: Ident,
    /// Source span of the case.
    pub span: Span,
}

/// A set of values of one `select` or table key.
#[derive(Debug, Clone)]
pub enum Keyset {
    /// `default` or `_`: every value.
    Default(Span),
    /// A single value, or the name of a value set. The parser flattens a tuple `(…)` of keysets.
    Expr(Expr),
    /// A mask, `v &&& m`: the bits set in `m` are equal.
    Mask(Expr, Expr),
    /// A range, `lo .. hi`, with both bounds inclusive.
    Range(Expr, Expr),
}

/// A control as declared: a control type, or a control with a body.
#[derive(Debug, Clone)]
pub struct ControlDecl {
    /// Name of the control.
    pub name: Ident,
    /// Names of the type parameters (only in the declaration of a control type).
    pub type_params: Vec<Ident>,
    /// Run-time parameters, which receive arguments at each `apply`.
    pub params: Vec<Param>,
    /// Constructor parameters, which receive arguments at instantiation.
    pub ctor_params: Vec<Param>,
    /// Body of the control; `None` for the declaration of a control type.
    pub body: Option<ControlBody>,
}

/// The body of a control.
#[derive(Debug, Clone)]
pub struct ControlBody {
    /// Local declarations: constants, variables, instances, actions, tables.
    pub locals: Vec<Decl>,
    /// Statements of the control: `apply { … }`
    pub apply: Block,
}

/// A table as declared.
#[derive(Debug, Clone)]
pub struct TableDecl {
    /// Name of the table.
    pub name: Ident,
    /// Properties of the table, in source order.
    pub properties: Vec<TableProperty>,
}

/// A property of a table, such as its key or size.
#[derive(Debug, Clone)]
pub struct TableProperty {
    /// Annotations before the property.
    pub annotations: Vec<Annotation>,
    /// Whether the property is marked `const`.
    pub is_const: bool,
    /// Kind of the property, with its value.
    pub kind: TablePropertyKind,
    /// Source span of the property.
    pub span: Span,
}

/// The kind of a table property.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The grammar above each variant names its fields.
pub enum TablePropertyKind {
    /// The key fields, `key = { … }`.
    Key(Vec<KeyElement>),
    /// The offered actions, `actions = { … }`.
    Actions(Vec<TableAction>),
    /// The entries written in the source, `entries = { … }`.
    Entries(Vec<Entry>),
    /// Another property: `default_action`, `size`, `implementation`, `psa_direct_counter` …
    Other { name: Ident, value: Expr },
}

/// A key field of a table: `expr : kind @annotations;`
#[derive(Debug, Clone)]
pub struct KeyElement {
    /// Expression whose value is looked up.
    pub expr: Expr,
    /// Name of the match kind.
    pub kind: Ident,
    /// Annotations of the key field, after the match kind.
    pub annotations: Vec<Annotation>,
}

/// An action that a table offers: `@annotations a(args);`
#[derive(Debug, Clone)]
pub struct TableAction {
    /// Annotations before the action.
    pub annotations: Vec<Annotation>,
    /// The action's name, or a call that binds the directional parameters.
    pub expr: Expr,
}

/// A table entry in the source: `const? priority = e : keyset : action @annotations;`
#[derive(Debug, Clone)]
pub struct Entry {
    /// Annotations after the entry's action.
    pub annotations: Vec<Annotation>,
    /// Whether the entry is marked `const`.
    pub is_const: bool,
    /// Priority of the entry (`priority = e :`); `None` if none is written.
    pub priority: Option<Expr>,
    /// Keysets, one per key field.
    pub keys: Vec<Keyset>,
    /// The entry's action: a name, or a call with arguments.
    pub action: Expr,
    /// Source span of the entry.
    pub span: Span,
}
