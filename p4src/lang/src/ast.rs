//! The syntax tree as written: no name is resolved and no constant folded. Grammar: P4_16 1.2.5, appendix H.

mod code;
mod units;

pub use code::*;
pub use units::*;

use crate::source::Span;
use num_bigint::BigInt;

/// A name with its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ident {
    /// Text.
    pub name: String,
    /// Source span.
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
    /// The body after the name.
    pub body: AnnotationBody,
    /// From `@` to the closing bracket.
    pub span: Span,
}

/// An annotation's body.
#[derive(Debug, Clone)]
pub enum AnnotationBody {
    /// No body.
    None,
    /// `( … )`: unstructured; the source text between the parentheses, and its literals if the body is one string literal,
    /// one integer literal or a comma-separated list of them.
    Unstructured {
        /// Text between the parentheses, white space folded.
        text: String,
        /// The literals, if the body consists only of literals and commas.
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

/// A declaration: at top level, in a parser or control, or local to a statement block.
#[derive(Debug, Clone)]
pub struct Decl {
    /// Annotations before it.
    pub annotations: Vec<Annotation>,
    /// The declared item.
    pub kind: DeclKind,
    /// The whole declaration.
    pub span: Span,
}

impl Decl {
    /// The name that this declaration introduces; `None` for `error` and `match_kind`.
    pub(crate) fn name(&self) -> Option<&Ident> {
        match &self.kind {
            DeclKind::Const { name, .. }
            | DeclKind::Var { name, .. }
            | DeclKind::Instance { name, .. }
            | DeclKind::Extern { name, .. }
            | DeclKind::Action { name, .. }
            | DeclKind::Package { name, .. }
            | DeclKind::Typedef { name, .. }
            | DeclKind::NewType { name, .. }
            | DeclKind::Struct { name, .. }
            | DeclKind::Enum { name, .. }
            | DeclKind::ValueSet { name, .. } => Some(name),
            DeclKind::ExternFunction(proto) | DeclKind::Function { proto, .. } => Some(&proto.name),
            DeclKind::Parser(p) => Some(&p.name),
            DeclKind::Control(c) => Some(&c.name),
            DeclKind::Table(t) => Some(&t.name),
            DeclKind::Error(_) | DeclKind::MatchKind(_) => None,
        }
    }
}

/// The declared item.
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

/// The type in a `typedef`: a type, or a derived type declared in place.
#[derive(Debug, Clone)]
pub enum TypeOrDecl {
    /// A type.
    Type(Type),
    /// A declaration in place (`typedef struct {…} x` is not P4, but `typedef enum …` is in the grammar).
    Decl(Box<Decl>),
}

/// The kind of a derived type.
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
    /// Source span.
    pub span: Span,
}

/// Direction of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// No direction written.
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
    /// Source span.
    pub span: Span,
}
