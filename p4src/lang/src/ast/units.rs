//! Parsers, controls and tables.

use super::{Annotation, Block, Decl, Expr, Ident, Param, Stmt};
use crate::source::Span;

/// A parser's declaration.
#[derive(Debug, Clone)]
pub struct ParserDecl {
    /// Name.
    pub name: Ident,
    /// Type parameters (only on type declarations).
    pub type_params: Vec<Ident>,
    /// Run-time parameters.
    pub params: Vec<Param>,
    /// Constructor parameters.
    pub ctor_params: Vec<Param>,
    /// Body; `None` for a type declaration.
    pub body: Option<ParserBody>,
}

/// The body of a parser.
#[derive(Debug, Clone)]
pub struct ParserBody {
    /// Constants, variables, instances, value sets.
    pub locals: Vec<Decl>,
    /// States.
    pub states: Vec<State>,
}

/// A state.
#[derive(Debug, Clone)]
pub struct State {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Name.
    pub name: Ident,
    /// Statements (declarations inside are `StmtKind::Decl`).
    pub body: Vec<Stmt>,
    /// Transition; `None` if none is written, which means `reject`.
    pub transition: Option<Transition>,
    /// Source span.
    pub span: Span,
}

/// How a state chooses the next state.
#[derive(Debug, Clone)]
pub enum Transition {
    /// `transition s;`
    Direct(Ident),
    /// `transition select(…) { … }`
    Select {
        /// Expressions that are matched.
        keys: Vec<Expr>,
        /// Cases in order.
        cases: Vec<SelectCase>,
        /// Source span.
        span: Span,
    },
}

/// `keyset: state;`
#[derive(Debug, Clone)]
pub struct SelectCase {
    /// One keyset per key, or one `Default`.
    pub keys: Vec<Keyset>,
    /// Target.
    pub state: Ident,
    /// Source span.
    pub span: Span,
}

/// A set of values of one key.
#[derive(Debug, Clone)]
pub enum Keyset {
    /// `default` or `_`.
    Default(Span),
    /// A value; may name a value set. The parser flattens a tuple `(…)` of keysets.
    Expr(Expr),
    /// `v &&& m`
    Mask(Expr, Expr),
    /// `lo .. hi`
    Range(Expr, Expr),
}

/// A control's declaration.
#[derive(Debug, Clone)]
pub struct ControlDecl {
    /// Name.
    pub name: Ident,
    /// Type parameters (only on type declarations).
    pub type_params: Vec<Ident>,
    /// Run-time parameters.
    pub params: Vec<Param>,
    /// Constructor parameters.
    pub ctor_params: Vec<Param>,
    /// Body; `None` for a type declaration.
    pub body: Option<ControlBody>,
}

/// The body of a control.
#[derive(Debug, Clone)]
pub struct ControlBody {
    /// Constants, variables, instances, actions, tables.
    pub locals: Vec<Decl>,
    /// `apply { … }`
    pub apply: Block,
}

/// A table.
#[derive(Debug, Clone)]
pub struct TableDecl {
    /// Name.
    pub name: Ident,
    /// Properties in source order.
    pub properties: Vec<TableProperty>,
}

/// A table's property.
#[derive(Debug, Clone)]
pub struct TableProperty {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Whether it is marked `const`.
    pub is_const: bool,
    /// Kind of property.
    pub kind: TablePropertyKind,
    /// Source span.
    pub span: Span,
}

/// The kind of a table property.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The grammar above each variant names its fields.
pub enum TablePropertyKind {
    /// `key = { … }`
    Key(Vec<KeyElement>),
    /// `actions = { … }`
    Actions(Vec<TableAction>),
    /// `entries = { … }`
    Entries(Vec<Entry>),
    /// `default_action`, `size`, `implementation`, `psa_direct_counter` …
    Other { name: Ident, value: Expr },
}

/// `expr : kind @annotations;`
#[derive(Debug, Clone)]
pub struct KeyElement {
    /// Expression.
    pub expr: Expr,
    /// Match kind.
    pub kind: Ident,
    /// Annotations after the match kind.
    pub annotations: Vec<Annotation>,
}

/// `@annotations a(args);`
#[derive(Debug, Clone)]
pub struct TableAction {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// A name or a call that binds the directional parameters.
    pub expr: Expr,
}

/// `const? priority = e : keyset : action @annotations;`
#[derive(Debug, Clone)]
pub struct Entry {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Whether it is marked `const`.
    pub is_const: bool,
    /// `priority = e :`
    pub priority: Option<Expr>,
    /// Keysets, one per key field.
    pub keys: Vec<Keyset>,
    /// The action: a name or a call.
    pub action: Expr,
    /// Source span.
    pub span: Span,
}
