//! The syntax tree, as written: nothing resolved, nothing folded. Grammar: P4_16 1.2.5, appendix H.

use crate::source::Span;
use num_bigint::BigInt;

/// A name with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ident {
    /// Text.
    pub name: String,
    /// Place.
    pub span: Span,
}

/// A whole source, in order.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Top-level declarations.
    pub decls: Vec<Decl>,
}

/// `@name`, `@name(tokens)` or `@name[structured]`.
#[derive(Debug, Clone)]
pub struct Annotation {
    /// Name.
    pub name: Ident,
    /// What stands behind it.
    pub body: AnnotationBody,
    /// From `@` to the closing bracket.
    pub span: Span,
}

/// An annotation's body.
#[derive(Debug, Clone)]
pub enum AnnotationBody {
    /// Nothing.
    None,
    /// `( … )`: unstructured; the source text between the parentheses, and its value if it is one string literal,
    /// integer literal or comma list of those.
    Unstructured {
        /// Text between the parentheses, white space folded.
        text: String,
        /// The literals, if the body is nothing but literals and commas.
        literals: Vec<Literal>,
    },
    /// `[ e, e ]`.
    List(Vec<Expr>),
    /// `[ k = e, k = e ]`.
    Map(Vec<(Ident, Expr)>),
}

/// A literal inside an annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// Number.
    Int(BigInt),
    /// String, escapes resolved.
    Str(String),
    /// `true`, `false`.
    Bool(bool),
}

/// A declaration, at top level, in a parser or control, or a statement's local.
#[derive(Debug, Clone)]
pub struct Decl {
    /// Annotations before it.
    pub annotations: Vec<Annotation>,
    /// What it declares.
    pub kind: DeclKind,
    /// The whole declaration.
    pub span: Span,
}

/// What a declaration declares.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The grammar above each variant names its fields.
pub enum DeclKind {
    /// `const T x = e;`
    Const { ty: Type, name: Ident, init: Expr },
    /// `T x;` or `T x = e;`
    Var {
        ty: Type,
        name: Ident,
        init: Option<Expr>,
    },
    /// `T(args) x;`, with an optional block of abstract method implementations and declarations.
    Instance {
        ty: Type,
        args: Vec<Arg>,
        name: Ident,
        init: Option<Vec<Decl>>,
    },
    /// `extern X<T> { … }`.
    Extern {
        name: Ident,
        type_params: Vec<Ident>,
        methods: Vec<Method>,
    },
    /// `extern R f<T>(…);`
    ExternFunction(FunctionProto),
    /// `R f<T>(…) { … }`
    Function { proto: FunctionProto, body: Block },
    /// `action a(…) { … }`
    Action {
        name: Ident,
        params: Vec<Param>,
        body: Block,
    },
    /// `parser` type declaration (body `None`) or definition.
    Parser(ParserDecl),
    /// `control` type declaration (body `None`) or definition.
    Control(ControlDecl),
    /// `package P<T>(…);`
    Package {
        name: Ident,
        type_params: Vec<Ident>,
        params: Vec<Param>,
    },
    /// `typedef T x;`
    Typedef { ty: TypeOrDecl, name: Ident },
    /// `type T x;`
    NewType { ty: Type, name: Ident },
    /// `header`, `struct`, `header_union`.
    Struct {
        kind: StructKind,
        name: Ident,
        type_params: Vec<Ident>,
        fields: Vec<Field>,
    },
    /// `enum E { … }` or `enum bit<8> E { A = 1 }`.
    Enum {
        repr: Option<Type>,
        name: Ident,
        members: Vec<EnumMember>,
    },
    /// `error { … }`
    Error(Vec<Ident>),
    /// `match_kind { … }`
    MatchKind(Vec<Ident>),
    /// `table t { … }`
    Table(TableDecl),
    /// `value_set<T>(n) x;`
    ValueSet { ty: Type, size: Expr, name: Ident },
}

/// `typedef` takes a type, or a derived type declared in place.
#[derive(Debug, Clone)]
pub enum TypeOrDecl {
    /// A type.
    Type(Type),
    /// A declaration in place (`typedef struct {…} x` is not P4, but `typedef enum …` is in the grammar).
    Decl(Box<Decl>),
}

/// Which derived type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructKind {
    /// `struct`
    Struct,
    /// `header`
    Header,
    /// `header_union`
    Union,
}

/// A field.
#[derive(Debug, Clone)]
pub struct Field {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Type.
    pub ty: Type,
    /// Name.
    pub name: Ident,
}

/// A member of an enum.
#[derive(Debug, Clone)]
pub struct EnumMember {
    /// Name.
    pub name: Ident,
    /// Value, for an enum with a representation.
    pub value: Option<Expr>,
}

/// `R f<T>(…)`.
#[derive(Debug, Clone)]
pub struct FunctionProto {
    /// Return type; `None` for a constructor in an extern.
    pub ret: Option<Type>,
    /// Name.
    pub name: Ident,
    /// Type parameters.
    pub type_params: Vec<Ident>,
    /// Parameters.
    pub params: Vec<Param>,
}

/// A method or constructor of an extern.
#[derive(Debug, Clone)]
pub struct Method {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// `abstract`.
    pub is_abstract: bool,
    /// Prototype; a constructor has no return type and the extern's name.
    pub proto: FunctionProto,
    /// Place.
    pub span: Span,
}

/// Direction of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// None written.
    #[default]
    None,
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
}

/// A parameter.
#[derive(Debug, Clone)]
pub struct Param {
    /// Annotations (`@optional`).
    pub annotations: Vec<Annotation>,
    /// Direction.
    pub direction: Direction,
    /// Type.
    pub ty: Type,
    /// Name.
    pub name: Ident,
    /// Default value.
    pub default: Option<Expr>,
    /// Place.
    pub span: Span,
}

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
    /// `None`: a type declaration.
    pub body: Option<ParserBody>,
}

/// A parser's inside.
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
    /// `None`: no transition written = reject.
    pub transition: Option<Transition>,
    /// Place.
    pub span: Span,
}

/// Where a state goes.
#[derive(Debug, Clone)]
pub enum Transition {
    /// `transition s;`
    Direct(Ident),
    /// `transition select(…) { … }`
    Select {
        /// Expressions selected on.
        keys: Vec<Expr>,
        /// In order.
        cases: Vec<SelectCase>,
        /// Place.
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
    /// Place.
    pub span: Span,
}

/// A set of values.
#[derive(Debug, Clone)]
pub enum Keyset {
    /// `default` or `_`.
    Default(Span),
    /// A value, a tuple `(…)` of keysets is flattened by the parser; may name a value set.
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
    /// `None`: a type declaration.
    pub body: Option<ControlBody>,
}

/// A control's inside.
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
    /// In order as written.
    pub properties: Vec<TableProperty>,
}

/// A table's property.
#[derive(Debug, Clone)]
pub struct TableProperty {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// `const` before it.
    pub is_const: bool,
    /// Which.
    pub kind: TablePropertyKind,
    /// Place.
    pub span: Span,
}

/// Which property.
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
    /// Annotations behind it.
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
    /// `const` before it.
    pub is_const: bool,
    /// `priority = e :`
    pub priority: Option<Expr>,
    /// One per key.
    pub keys: Vec<Keyset>,
    /// A name or call.
    pub action: Expr,
    /// Place.
    pub span: Span,
}

/// A type as written.
#[derive(Debug, Clone)]
pub struct Type {
    /// Which.
    pub kind: TypeKind,
    /// Place.
    pub span: Span,
}

/// Which type.
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
    /// In order.
    pub stmts: Vec<Stmt>,
    /// With the braces.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Stmt {
    /// Which.
    pub kind: StmtKind,
    /// Place.
    pub span: Span,
}

/// Which statement.
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
    /// `if`
    If {
        cond: Expr,
        then: Box<Stmt>,
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

/// What `for … in` runs over.
#[derive(Debug, Clone)]
pub enum ForCollection {
    /// A stack or list.
    Expr(Expr),
    /// `lo .. hi`
    Range(Expr, Expr),
}

/// A case of a switch; no block = falls through to the next.
#[derive(Debug, Clone)]
pub struct SwitchCase {
    /// `default` or an expression (an action's name or a constant).
    pub label: SwitchLabel,
    /// Block, or falls through.
    pub block: Option<Block>,
    /// Place of the label.
    pub span: Span,
}

/// A label.
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
    /// Which.
    pub kind: ExprKind,
    /// Place.
    pub span: Span,
}

/// Which expression.
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
    /// `...` (default initialiser)
    Ellipsis,
    /// `_` as an argument or in a keyset
    DontCare,
    /// `this`
    This,
    /// A name, `.name` if `absolute`.
    Name { absolute: bool, name: Ident },
    /// A type's name where an expression stands (`E.A`, `error.X`, `T.minSizeInBits()`).
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
    /// `e[from +: width]`, `e[from -: width]`: `width` bits from `from` up or down. From later drafts of P4.
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
    /// `a op b`
    Binary {
        op: BinOp,
        lhs: Box<Expr>,
        rhs: Box<Expr>,
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

/// An argument, perhaps named.
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
