//! The syntax tree of a P4 program as written: no name is resolved and no constant folded. Grammar: P4_16 1.2.5, appendix H.

mod code;
mod units;

pub use code::*;
pub use units::*;

use crate::source::Span;
use num_bigint::BigInt;

/// A name in the source, with its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ident {
    /// Text of the name.
    pub name: String,
    /// Source span of the name.
    pub span: Span,
}

/// The syntax tree of a whole P4 source.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Top-level declarations, in source order.
    pub decls: Vec<Decl>,
}

/// An annotation: `@name`, `@name(tokens)` or `@name[structured]`.
#[derive(Debug, Clone)]
pub struct Annotation {
    /// Name of the annotation, without `@`.
    pub name: Ident,
    /// The body in brackets after the annotation's name, if there is one.
    pub body: AnnotationBody,
    /// Source span of the annotation, from `@` to the closing bracket.
    pub span: Span,
}

/// The body of an annotation, which follows its name.
#[derive(Debug, Clone)]
pub enum AnnotationBody {
    /// No body: `@name` alone.
    None,
    /// `( … )`: an unstructured body, with the source text between the parentheses. If the text is a string literal, an integer
    /// literal or a comma-separated list of them, also the values of these literals.
    Unstructured {
        /// Text between the annotation's parentheses, with white space folded.
        text: String,
        /// The literals, if the annotation's body consists only of literals and commas; else empty.
        literals: Vec<Literal>,
    },
    /// `[ e, e ]`: a list of expressions.
    List(Vec<Expr>),
    /// `[ k = e, k = e ]`: pairs of key and expression.
    Map(Vec<(Ident, Expr)>),
}

/// A literal inside an annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// An integer literal.
    Int(BigInt),
    /// A string literal, with its escapes resolved.
    Str(String),
    /// The literal `true` or `false`.
    Bool(bool),
}

/// A declaration: at top level, in a parser or control, or local to a statement block.
#[derive(Debug, Clone)]
pub struct Decl {
    /// Annotations before the declaration.
    pub annotations: Vec<Annotation>,
    /// The declared item: its kind and contents.
    pub kind: DeclKind,
    /// Source span of the whole declaration.
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

/// A declared item, by kind of declaration.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // The grammar above each variant names its fields.
pub enum DeclKind {
    /// A constant: `const T x = e;`
    Const { ty: Type, name: Ident, init: Expr },
    /// A variable: `T x;` or `T x = e;`
    Var {
        ty: Type,
        name: Ident,
        init: Option<Expr>,
    },
    /// An instance: `T(args) x;`, with an optional block of abstract method implementations and declarations.
    Instance {
        ty: Type,
        args: Vec<Arg>,
        name: Ident,
        init: Option<Vec<Decl>>,
    },
    /// An extern object type: `extern X<T> { … }`
    Extern {
        name: Ident,
        type_params: Vec<Ident>,
        methods: Vec<Method>,
    },
    /// An extern function: `extern R f<T>(…);`
    ExternFunction(FunctionProto),
    /// A function with a body: `R f<T>(…) { … }`
    Function { proto: FunctionProto, body: Block },
    /// An action: `action a(…) { … }`
    Action {
        name: Ident,
        params: Vec<Param>,
        body: Block,
    },
    /// A `parser` type declaration (then its body is `None`) or definition.
    Parser(ParserDecl),
    /// A `control` type declaration (then its body is `None`) or definition.
    Control(ControlDecl),
    /// A package type: `package P<T>(…);`
    Package {
        name: Ident,
        type_params: Vec<Ident>,
        params: Vec<Param>,
    },
    /// A type alias: `typedef T x;`
    Typedef { ty: TypeOrDecl, name: Ident },
    /// A new type: `type T x;`
    NewType { ty: Type, name: Ident },
    /// A `header`, `struct` or `header_union` type.
    Struct {
        kind: StructKind,
        name: Ident,
        type_params: Vec<Ident>,
        fields: Vec<Field>,
    },
    /// An enum type: `enum E { … }` or `enum bit<8> E { A = 1 }`
    Enum {
        repr: Option<Type>,
        name: Ident,
        members: Vec<EnumMember>,
    },
    /// Error constants: `error { … }`
    Error(Vec<Ident>),
    /// Match kinds: `match_kind { … }`
    MatchKind(Vec<Ident>),
    /// A table: `table t { … }`
    Table(TableDecl),
    /// A parser value set: `value_set<T>(n) x;`
    ValueSet { ty: Type, size: Expr, name: Ident },
}

/// The aliased type in a `typedef`: a type, or a derived type declared in place.
#[derive(Debug, Clone)]
pub enum TypeOrDecl {
    /// A type that is declared elsewhere or built in.
    Type(Type),
    /// A derived type declared in the `typedef` (`typedef struct {…} x` is not P4, but `typedef enum …` is in the grammar).
    Decl(Box<Decl>),
}

/// Kind of a derived type with fields: struct, header or header union.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructKind {
    /// A `struct` type.
    Struct,
    /// A `header` type.
    Header,
    /// A `header_union` type.
    Union,
}

/// A field of a struct, header or header union.
#[derive(Debug, Clone)]
pub struct Field {
    /// Annotations before the field.
    pub annotations: Vec<Annotation>,
    /// Type of the field.
    pub ty: Type,
    /// Name of the field.
    pub name: Ident,
}

/// A member of an enum.
#[derive(Debug, Clone)]
pub struct EnumMember {
    /// Name of the enum member.
    pub name: Ident,
    /// Value of the enum member, written in an enum with a representation (`enum bit<8> E`); else `None`.
    pub value: Option<Expr>,
}

/// Prototype of a function or method: `R f<T>(…)`
#[derive(Debug, Clone)]
pub struct FunctionProto {
    /// Return type; `None` for a constructor in an extern.
    pub ret: Option<Type>,
    /// Name of the function or method.
    pub name: Ident,
    /// Names of the type parameters.
    pub type_params: Vec<Ident>,
    /// Run-time parameters, in order.
    pub params: Vec<Param>,
}

/// A method or constructor of an extern.
#[derive(Debug, Clone)]
pub struct Method {
    /// Annotations before the method.
    pub annotations: Vec<Annotation>,
    /// Whether the method is declared `abstract`.
    pub is_abstract: bool,
    /// Prototype of the method; a constructor has no return type and the extern's name.
    pub proto: FunctionProto,
    /// Source span of the method's declaration.
    pub span: Span,
}

/// Direction of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// No direction is written before the parameter.
    #[default]
    None,
    /// `in`: read by the callee.
    In,
    /// `out`: written by the callee.
    Out,
    /// `inout`: read and written by the callee.
    InOut,
}

/// A parameter of a function, method, action, parser, control or package.
#[derive(Debug, Clone)]
pub struct Param {
    /// Annotations before the parameter, such as `@optional`.
    pub annotations: Vec<Annotation>,
    /// Direction of the parameter.
    pub direction: Direction,
    /// Type of the parameter.
    pub ty: Type,
    /// Name of the parameter.
    pub name: Ident,
    /// Default value of the parameter; `None` if none is written.
    pub default: Option<Expr>,
    /// Source span of the parameter.
    pub span: Span,
}
