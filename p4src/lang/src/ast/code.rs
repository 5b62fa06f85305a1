//! Types as written, statements, expressions.

use super::{Annotation, Decl, Ident};
use crate::source::Span;
use num_bigint::BigInt;

/// A type as written.
#[derive(Debug, Clone)]
pub struct Type {
    /// Kind of type.
    pub kind: TypeKind,
    /// Source span.
    pub span: Span,
}

/// The kind of a type.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The grammar above each variant names its fields.
pub enum TypeKind {
    /// `void`
    Void,
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `string`
    String,
    /// `int` (arbitrary precision, compile time)
    Integer,
    /// `bit<w>`; plain `bit` is `bit<1>` with `None`.
    Bit(Option<Box<Expr>>),
    /// `int<w>`
    Int(Box<Expr>),
    /// `varbit<w>`
    Varbit(Box<Expr>),
    /// `_` (don't care, type argument)
    DontCare,
    /// A name, `.name` if `absolute`.
    Name { absolute: bool, name: Ident },
    /// `N<args>`
    Specialized { base: Box<Type>, args: Vec<Type> },
    /// `T[n]`
    Stack { elem: Box<Type>, size: Box<Expr> },
    /// `tuple<…>`
    Tuple(Vec<Type>),
    /// `list<T>`
    List(Box<Type>),
}

/// `{ … }`
#[derive(Debug, Clone)]
pub struct Block {
    /// Annotations (`@atomic`).
    pub annotations: Vec<Annotation>,
    /// Statements in order.
    pub stmts: Vec<Stmt>,
    /// Span, including the braces.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Stmt {
    /// Kind of statement.
    pub kind: StmtKind,
    /// Source span.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The grammar above each variant names its fields.
pub enum StmtKind {
    /// `;`
    Empty,
    /// `lhs = rhs;`, or `lhs op= rhs;` with `op`.
    Assign {
        lhs: Expr,
        op: Option<BinOp>,
        rhs: Expr,
    },
    /// A call: function, method, table or control `.apply(…)`, action. The expression is a `Call`.
    Call(Expr),
    /// A local constant, variable or instance.
    Decl(Box<Decl>),
    /// `{ … }`
    Block(Block),
    /// `if`: each `else if` is a further arm, not a nested statement; then `else`
    If {
        arms: Vec<IfArm>,
        otherwise: Option<Box<Stmt>>,
    },
    /// `switch (e) { label: block … }`
    Switch { expr: Expr, cases: Vec<SwitchCase> },
    /// `for (init; cond; update) body`
    For {
        init: Vec<Stmt>,
        cond: Expr,
        update: Vec<Stmt>,
        body: Box<Stmt>,
        annotations: Vec<Annotation>,
    },
    /// `for (T x in collection) body`
    ForIn {
        var: Box<Decl>,
        collection: ForCollection,
        body: Box<Stmt>,
        annotations: Vec<Annotation>,
    },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return e?;`
    Return(Option<Expr>),
    /// `exit;`
    Exit,
}

/// `if (cond) then`, possibly after an `else`. An `if` keeps its chain as a flat list: nested arms could be as deep as the text.
#[derive(Debug, Clone)]
pub struct IfArm {
    /// Condition.
    pub cond: Expr,
    /// Statement that runs if this is the first arm whose condition holds.
    pub then: Stmt,
    /// From `if` to the end of the chain.
    pub span: Span,
}

/// The values over which `for … in` iterates.
#[derive(Debug, Clone)]
pub enum ForCollection {
    /// A stack or list.
    Expr(Expr),
    /// `lo .. hi`
    Range(Expr, Expr),
}

/// A case of a switch.
#[derive(Debug, Clone)]
pub struct SwitchCase {
    /// `default` or an expression (an action's name or a constant).
    pub label: SwitchLabel,
    /// Block; `None` falls through to the next case.
    pub block: Option<Block>,
    /// Span of the label.
    pub span: Span,
}

/// The label of a case.
#[derive(Debug, Clone)]
pub enum SwitchLabel {
    /// `default`
    Default,
    /// An expression.
    Expr(Expr),
}

/// An expression.
#[derive(Debug, Clone)]
pub struct Expr {
    /// Kind of expression.
    pub kind: ExprKind,
    /// Source span.
    pub span: Span,
}

/// The kind of an expression.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The grammar above each variant names its fields.
pub enum ExprKind {
    /// `5`, `8w5`, `4s7`, `0xFF`.
    Int {
        value: BigInt,
        width: Option<u32>,
        signed: bool,
    },
    /// `true`, `false`
    Bool(bool),
    /// `"…"`
    Str(String),
    /// `...` (default initializer)
    Ellipsis,
    /// `_` as an argument or in a keyset
    DontCare,
    /// `this`
    This,
    /// A name, `.name` if `absolute`.
    Name { absolute: bool, name: Ident },
    /// A type's name in the position of an expression (`E.A`, `error.X`, `T.minSizeInBits()`).
    Type(Type),
    /// `e.m`
    Member { base: Box<Expr>, member: Ident },
    /// `e[i]`
    Index { base: Box<Expr>, index: Box<Expr> },
    /// `e[hi:lo]`
    Slice {
        base: Box<Expr>,
        hi: Box<Expr>,
        lo: Box<Expr>,
    },
    /// `e[from +: width]`, `e[from -: width]`: `width` bits upward or downward from `from`. Defined in later drafts of P4.
    PartSelect {
        base: Box<Expr>,
        from: Box<Expr>,
        width: Box<Expr>,
        upwards: bool,
    },
    /// `{ e, e }`, `{ k = e }` (names given), `{#}` is `Invalid`.
    List(Vec<Arg>),
    /// `{#}`
    Invalid,
    /// `op e`
    Unary { op: UnOp, expr: Box<Expr> },
    /// `a op b op c …`, evaluated left to right; a right operand that binds tighter or is in parentheses is a nested `Binary`.
    Binary {
        first: Box<Expr>,
        rest: Vec<Operation>,
    },
    /// `(T) e`
    Cast { ty: Type, expr: Box<Expr> },
    /// `c ? a : b`
    Mux {
        cond: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    /// `f<T>(args)`; a constructor call if `callee` is a `Type` or a type's name.
    Call {
        callee: Box<Expr>,
        type_args: Vec<Type>,
        args: Vec<Arg>,
    },
}

/// `op rhs`, applied to everything on its left. A chain is a flat list: nested operations could be as deep as the source.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Operator.
    pub op: BinOp,
    /// Right operand.
    pub rhs: Expr,
}

/// An argument, optionally named.
#[derive(Debug, Clone)]
pub struct Arg {
    /// `name =`
    pub name: Option<Ident>,
    /// Value.
    pub value: Expr,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnOp {
    /// `!`
    Not,
    /// `~`
    BitNot,
    /// `-`
    Neg,
    /// `+`
    Plus,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `|+|`
    AddSat,
    /// `|-|`
    SubSat,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `<=`
    Le,
    /// `>=`
    Ge,
    /// `<`
    Lt,
    /// `>`
    Gt,
    /// `!=`
    Ne,
    /// `==`
    Eq,
    /// `&`
    And,
    /// `^`
    Xor,
    /// `|`
    Or,
    /// `++`
    Concat,
    /// `&&`
    LogAnd,
    /// `||`
    LogOr,
}
