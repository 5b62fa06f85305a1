//! The checked program: names are resolved, types known, constants folded, generics and instances expanded.
//!
//! Every instantiation of a parser or control is a separate [`Parser`] or [`Control`] with the fully qualified names of its
//! tables, actions and externs. Expressions have no side effects: the lowering hoists calls into temporaries, in P4's order of
//! evaluation (P4_16 1.2.5, section 8.1), and turns `&&`, `||` and `?:` whose right operands contain a call into `if`.
//! A target needs only this module to run a program.

mod code;
mod declared;
mod externs;
mod units;

pub use code::*;
pub use declared::{Declared, NewType, SerEnum, Structured};
pub use externs::{ExternFunction, ExternKind, Method};
pub use units::*;

use crate::ast::Direction;
use crate::source::{SourceMap, Span};
use num_bigint::BigUint;
use std::sync::Arc;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// The index as `usize`.
            pub fn index(self) -> usize { self.0 as usize }
        }
    )*};
}

ids! {
    /// Index into [`Program::types`].
    TypeId,
    /// Index into [`Program::enums`].
    EnumId,
    /// Index into [`Program::externs`].
    ExternId,
    /// Index into [`Program::parsers`].
    ParserId,
    /// Index into [`Program::controls`].
    ControlId,
    /// Index into [`Program::functions`].
    FunctionId,
    /// Index into a unit's `vars`.
    VarId,
    /// Index into a [`Control::actions`].
    ActionId,
    /// Index into a [`Control::tables`].
    TableId,
    /// Index into a [`Parser::states`].
    StateId,
    /// Index into a [`Parser::value_sets`].
    ValueSetId,
}

/// A whole program.
#[derive(Debug, Clone)]
pub struct Program {
    /// The architecture, recognized by the package type of `main`.
    pub arch: Arch,
    /// Headers, structs, unions.
    pub types: Vec<StructType>,
    /// Enums without a representation, in declaration order (an enum with a representation is its `bit<W>` in the IR).
    pub enums: Vec<EnumType>,
    /// The `type T x;` declarations, in declaration order.
    pub new_types: Vec<NewType>,
    /// Enums with a representation, in declaration order.
    pub ser_enums: Vec<SerEnum>,
    /// Error members in order of declaration; the index is the run-time value. `NoError` is 0 (core.p4).
    pub errors: Vec<String>,
    /// Extern instances, in order of instantiation.
    pub externs: Vec<ExternInstance>,
    /// Parser instances.
    pub parsers: Vec<Parser>,
    /// Control instances (deparsers too).
    pub controls: Vec<Control>,
    /// Functions in use.
    pub functions: Vec<Function>,
    /// The package instance `main`.
    pub main: Package,
    /// Maps spans to file, line and column.
    pub source: Arc<SourceMap>,
}

/// The architecture for which a program is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arch {
    /// `PSA_Switch`
    Psa,
    /// `V1Switch`
    V1model,
    /// `Switch`, `Pipeline` of TNA
    Tna,
    /// `Switch`, `Pipeline` of T2NA, for Tofino 2
    T2na,
    /// Another package type: the program is checked, but cannot run.
    Other(String),
}

/// A run-time type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// `void`
    Void,
    /// `bool`
    Bool,
    /// `bit<W>`; also enums with a representation, new types and type aliases.
    Bit(u32),
    /// `int<W>`, two's complement.
    Int(u32),
    /// `varbit<W>`: at most W bits.
    Varbit(u32),
    /// `error`
    Error,
    /// Enum without a representation; a value is the member's index.
    Enum(EnumId),
    /// Struct, header or union.
    Struct(TypeId),
    /// Header stack (or stack of unions).
    Stack(TypeId, u32),
    /// `tuple<…>`, and lists passed to externs.
    Tuple(Vec<Type>),
    /// `string`, known at compile time.
    String,
    /// An extern object passed as a parameter: `packet_in`, `packet_out`.
    Extern(String),
}

/// Header, struct, union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructType {
    /// Name; for a specialization of a generic type, with its type arguments.
    pub name: String,
    /// Header, struct or union.
    pub kind: crate::ast::StructKind,
    /// Fields in order.
    pub fields: Vec<FieldType>,
    /// Annotations as written (`controller_header("packet_in")`).
    pub annotations: Vec<Annotation>,
}

/// A field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldType {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: Type,
    /// The type as declared.
    pub declared: Declared,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// An enum without a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumType {
    /// Name.
    pub name: String,
    /// Members.
    pub members: Vec<String>,
}

/// An annotation: its name, its body's text (`""` without a body), and the literals in its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Name without `@`.
    pub name: String,
    /// The text between the brackets as written, white space folded.
    pub text: String,
    /// Literals of the body.
    pub literals: Vec<crate::ast::Literal>,
    /// The body between brackets `[ ]`, evaluated.
    pub structured: Option<Structured>,
}

/// An extern object created by an instantiation.
#[derive(Debug, Clone)]
pub struct ExternInstance {
    /// Fully qualified name.
    pub name: String,
    /// Kind of extern object.
    pub kind: ExternKind,
    /// Its type's name in the program: `Register`, `RegisterAction2`, `counter`, …
    pub type_name: String,
    /// Type arguments, given or inferred.
    pub type_args: Vec<Type>,
    /// The type arguments as declared.
    pub declared_args: Vec<Declared>,
    /// Constructor arguments with their parameter names.
    pub args: Vec<(String, Const)>,
    /// Implementations of abstract methods: in its owner, or in each control that calls a top-level object.
    pub methods: Vec<MethodBody>,
    /// The control that contains the instance; `None` outside a control.
    pub owner: Option<ControlId>,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Span of the instantiation.
    pub span: Span,
}

/// The implementation of an abstract method.
#[derive(Debug, Clone)]
pub struct MethodBody {
    /// The implemented method.
    pub method: Method,
    /// The control that holds the body: the one whose calls reach it.
    pub control: ControlId,
    /// The action of `control` that holds the body. It has the method's parameters, all directional; a return value is an
    /// extra last `out` parameter.
    pub action: ActionId,
}

/// A compile-time value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Const {
    /// A `bit<W>` or `int<W>` value: two's complement, cut to the width. For `int` without a width see `Integer`.
    Bits {
        /// Bit pattern.
        value: BigUint,
        /// `Bit` or `Int`.
        ty: Type,
    },
    /// Arbitrary-precision integer (table sizes and the like).
    Integer(num_bigint::BigInt),
    /// `true`, `false`
    Bool(bool),
    /// Enum member: the enum and the member's index.
    Enum(EnumId, u32),
    /// Error member: its index into `Program::errors`.
    Error(u32),
    /// String.
    Str(String),
    /// Another extern instance.
    Extern(ExternId),
    /// List or tuple.
    Tuple(Vec<Const>),
}

/// `main`, or a package passed to it as an argument.
#[derive(Debug, Clone)]
pub struct Package {
    /// `PSA_Switch`, `V1Switch`, `Pipeline`…
    pub type_name: String,
    /// Instance name (`main`, `ip`).
    pub name: String,
    /// Arguments with their parameter names.
    pub args: Vec<(String, PackageArg)>,
    /// Annotations of the instance.
    pub annotations: Vec<Annotation>,
}

/// An argument of a package.
#[derive(Debug, Clone)]
pub enum PackageArg {
    /// A parser.
    Parser(ParserId),
    /// A control or deparser.
    Control(ControlId),
    /// A package.
    Package(Box<Package>),
    /// An extern object.
    Extern(ExternId),
    /// A value.
    Const(Const),
}
