//! Syntax tree of types as written, statements and expressions.

use super::{Annotation, Decl, Ident};
use crate::source::Span;
use num_bigint::BigInt;

/// A type as written in the source.
#[derive(Debug, Clone)]
pub struct Type {
    /// Kind of the type.
    pub kind: TypeKind,
    /// Source span of the type.
    pub span: Span,
}

/// The kind of a type.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The grammar above each variant names its fields.
pub enum TypeKind {
    /// The type `void`.
    Void,
    /// The type `bool`.
    Bool,
    /// The type `error`.
    Error,
    /// The type `match_kind`.
    MatchKind,
    /// The type `string`.
    String,
    /// The type `int`: arbitrary precision, only at compile time.
    Integer,
    /// The type `bit<w>`, with its width; `None` for plain `bit`, which is `bit<1>`.
    Bit(Option<Box<Expr>>),
    /// The type `int<w>`, with its width.
    Int(Box<Expr>),
    /// The type `varbit<w>`, with its maximum width.
    Varbit(Box<Expr>),
    /// `_` as a type argument: any type.
    DontCare,
    /// A type's name; `absolute` if it is written `.name`.
    Name { absolute: bool, name: Ident },
    /// A generic type with type arguments, `N<args>`.
    Specialized { base: Box<Type>, args: Vec<Type> },
    /// A header stack or array, `T[n]`.
    Stack { elem: Box<Type>, size: Box<Expr> },
    /// A tuple, `tuple<…>`, with its element types.
    Tuple(Vec<Type>),
    /// A list, `list<T>`, with its element type.
    List(Box<Type>),
}

/// A block of statements, `{ … }`.
#[derive(Debug, Clone)]
pub struct Block {
    /// Annotations before the block, such as `@atomic`.
    pub annotations: Vec<Annotation>,
    /// Statements of the block, in order.
    pub stmts: Vec<Stmt>,
    /// Source span of the block, including the braces.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Stmt {
    /// Kind of the statement, with its parts.
    pub kind: StmtKind,
    /// Source span of the statement.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The grammar above each variant names its fields.
pub enum StmtKind {
    /// The empty statement, `;`.
    Empty,
    /// An assignment, `lhs = rhs;`, or `lhs op= rhs;` with `op`.
    Assign {
        lhs: Expr,
        op: Option<BinOp>,
        rhs: Expr,
    },
    /// A call of a function, method or action, or of a table's or control's `.apply(…)`. The expression is a `Call`.
    Call(Expr),
    /// A local constant, variable or instance.
    Decl(Box<Decl>),
    /// A nested block, `{ … }`.
    Block(Block),
    /// `if`: each `else if` is a further arm, not a nested statement; then the statement of `else`.
    If {
        arms: Vec<IfArm>,
        otherwise: Option<Box<Stmt>>,
    },
    /// `switch (e) { label: block … }`, with the cases in order.
    Switch { expr: Expr, cases: Vec<SwitchCase> },
    /// A loop, `for (init; cond; update) body`.
    For {
        init: Vec<Stmt>,
        cond: Expr,
        update: Vec<Stmt>,
        body: Box<Stmt>,
        annotations: Vec<Annotation>,
    },
    /// A loop over a collection, `for (T x in collection) body`.
    ForIn {
        var: Box<Decl>,
        collection: ForCollection,
        body: Box<Stmt>,
        annotations: Vec<Annotation>,
    },
    /// `break;`, which leaves the innermost loop.
    Break,
    /// `continue;`, which starts the next iteration of the innermost loop.
    Continue,
    /// `return e?;`, with the returned value if there is one.
    Return(Option<Expr>),
    /// `exit;`, which ends the processing of the pipeline.
    Exit,
}

/// `if (cond) then`, possibly after an `else`. An `if` keeps its chain as a flat list: nested arms could be as deep as the text.
#[derive(Debug, Clone)]
pub struct IfArm {
    /// Condition under which the arm is taken.
    pub cond: Expr,
    /// Statement that runs if this arm is the first whose condition holds.
    pub then: Stmt,
    /// Source span from `if` to the end of the chain of `else if`s.
    pub span: Span,
}

/// The values over which `for … in` iterates.
#[derive(Debug, Clone)]
pub enum ForCollection {
    /// An expression whose value is a stack or list.
    Expr(Expr),
    /// A range, `lo .. hi`, with both bounds inclusive.
    Range(Expr, Expr),
}

/// A case of a `switch` statement.
#[derive(Debug, Clone)]
pub struct SwitchCase {
    /// Label of the case: `default` or an expression (an action's name or a constant).
    pub label: SwitchLabel,
    /// Block of the case; `None` falls through to the next case.
    pub block: Option<Block>,
    /// Source span of the label.
    pub span: Span,
}

/// The label of a `switch` case.
#[derive(Debug, Clone)]
pub enum SwitchLabel {
    /// The label `default`.
    Default,
    /// An action's name or a constant.
    Expr(Expr),
}

/// An expression as written in the source.
#[derive(Debug, Clone)]
pub struct Expr {
    /// Kind of the expression, with its operands.
    pub kind: ExprKind,
    /// Source span of the expression.
    pub span: Span,
}

/// The kind of an expression.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The grammar above each variant names its fields.
pub enum ExprKind {
    /// An integer literal: `5`, `8w5`, `4s7`, `0xFF`.
    Int {
        value: BigInt,
        width: Option<u32>,
        signed: bool,
    },
    /// A literal `true` or `false`.
    Bool(bool),
    /// A string literal, `"…"`.
    Str(String),
    /// `...`, which stands for default values in an initializer.
    Ellipsis,
    /// `_` as an argument or in a keyset: any value.
    DontCare,
    /// `this`: the extern object whose abstract method is implemented.
    This,
    /// A name; `absolute` if it is written `.name`.
    Name { absolute: bool, name: Ident },
    /// A type's name in the position of an expression (`E.A`, `error.X`, `T.minSizeInBits()`).
    Type(Type),
    /// A member or field, `e.m`.
    Member { base: Box<Expr>, member: Ident },
    /// An element of a stack or array, `e[i]`.
    Index { base: Box<Expr>, index: Box<Expr> },
    /// A slice of bits, `e[hi:lo]`.
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
    /// A list, `{ e, e }`, or with names, `{ k = e }`.
    List(Vec<Arg>),
    /// The invalid header, `{#}`.
    Invalid,
    /// A unary operation, `op e`.
    Unary { op: UnOp, expr: Box<Expr> },
    /// `a op b op c …`, evaluated left to right; a right operand that binds tighter or is in parentheses is a nested `Binary`.
    Binary {
        first: Box<Expr>,
        rest: Vec<Operation>,
    },
    /// A cast, `(T) e`.
    Cast { ty: Type, expr: Box<Expr> },
    /// A conditional expression, `c ? a : b`.
    Mux {
        cond: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    /// A call, `f<T>(args)`; it is a constructor call if `callee` is a `Type` or a type's name.
    Call {
        callee: Box<Expr>,
        type_args: Vec<Type>,
        args: Vec<Arg>,
    },
}

/// One step of a chain of operators: `op rhs`, applied to everything on its left. A chain is a flat list: nested operations
/// could be as deep as the source.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Binary operator.
    pub op: BinOp,
    /// Right operand of the operator.
    pub rhs: Expr,
}

/// An argument of a call or an item of a list, optionally named.
#[derive(Debug, Clone)]
pub struct Arg {
    /// Name in `name = value`; `None` for an unnamed argument.
    pub name: Option<Ident>,
    /// Value of the argument.
    pub value: Expr,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnOp {
    /// Logical negation, `!`.
    Not,
    /// Bitwise complement, `~`.
    BitNot,
    /// Negation, `-`.
    Neg,
    /// Unary plus, `+`.
    Plus,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// Multiplication, `*`.
    Mul,
    /// Division, `/`.
    Div,
    /// Remainder, `%`.
    Mod,
    /// Addition, `+`.
    Add,
    /// Subtraction, `-`.
    Sub,
    /// Saturating addition, `|+|`.
    AddSat,
    /// Saturating subtraction, `|-|`.
    SubSat,
    /// Shift left, `<<`.
    Shl,
    /// Shift right, `>>`.
    Shr,
    /// Comparison, `<=`.
    Le,
    /// Comparison, `>=`.
    Ge,
    /// Comparison, `<`.
    Lt,
    /// Comparison, `>`.
    Gt,
    /// Inequality, `!=`.
    Ne,
    /// Equality, `==`.
    Eq,
    /// Bitwise and, `&`.
    And,
    /// Bitwise exclusive or, `^`.
    Xor,
    /// Bitwise or, `|`.
    Or,
    /// Concatenation of bit strings, `++`.
    Concat,
    /// Logical and, `&&`.
    LogAnd,
    /// Logical or, `||`.
    LogOr,
}
