//! The checked program: names resolved, types known, constants folded, generics and instances expanded.
//!
//! Every instantiation of a parser or control is a [`Parser`] or [`Control`] of its own, with the fully qualified names of its tables,
//! actions and externs. Expressions have no side effects: the lowering hoists calls into temporaries, in
//! P4's order of evaluation (P4_16 1.2.5, section 8.1), and turns `&&`, `||` and `?:` whose right sides call something into `if`.
//! A target needs nothing but this module to run a program.

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
            /// As an index.
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
    /// Known by the package type of `main`.
    pub arch: Arch,
    /// Headers, structs, unions.
    pub types: Vec<StructType>,
    /// Enums without a representation (those with one are their `bit<W>` here), in declaration order.
    pub enums: Vec<EnumType>,
    /// `type T x;`, in declaration order.
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
    /// `main`.
    pub main: Package,
    /// Leads spans back to files.
    pub source: Arc<SourceMap>,
}

/// Which architecture a program is written for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arch {
    /// `PSA_Switch`
    Psa,
    /// `V1Switch`
    V1model,
    /// `Switch`, `Pipeline` of TNA
    Tna,
    /// As TNA, for Tofino 2
    T2na,
    /// Another package type: checked, not run.
    Other(String),
}

/// A run-time type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// Nothing.
    Void,
    /// `bool`
    Bool,
    /// `bit<W>`, also enums with a representation, newtypes, aliases.
    Bit(u32),
    /// `int<W>`, two's complement.
    Int(u32),
    /// `varbit<W>`: at most W bits.
    Varbit(u32),
    /// `error`
    Error,
    /// Enum without a representation: the member's index.
    Enum(EnumId),
    /// Struct, header or union.
    Struct(TypeId),
    /// Header stack (or stack of unions).
    Stack(TypeId, u32),
    /// `tuple<…>`, and lists handed to externs.
    Tuple(Vec<Type>),
    /// `string`, compile time.
    String,
    /// An extern object handed as a parameter: `packet_in`, `packet_out`.
    Extern(String),
}

/// Header, struct, union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructType {
    /// Name; a generic's has its arguments in it.
    pub name: String,
    /// Which.
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

/// An annotation: its name and its body's text (`""` without a body), and its string or integer value where it is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Without `@`.
    pub name: String,
    /// As written between the brackets, white space folded.
    pub text: String,
    /// Literals of the body.
    pub literals: Vec<crate::ast::Literal>,
    /// The body between brackets `[ ]`, evaluated.
    pub structured: Option<Structured>,
}

/// An extern object made by an instantiation.
#[derive(Debug, Clone)]
pub struct ExternInstance {
    /// Fully qualified.
    pub name: String,
    /// What it is.
    pub kind: ExternKind,
    /// Its type as the program names it: `Register`, `RegisterAction2`, `counter`, …
    pub type_name: String,
    /// Type arguments, given or inferred.
    pub type_args: Vec<Type>,
    /// The same as declared.
    pub declared_args: Vec<Declared>,
    /// Constructor arguments with their parameter names.
    pub args: Vec<(String, Const)>,
    /// Implementations of abstract methods: in its owner, or in each control that calls an object of the top level.
    pub methods: Vec<MethodBody>,
    /// The control that holds it, if one does.
    pub owner: Option<ControlId>,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Place of the instantiation.
    pub span: Span,
}

/// The implementation of an abstract method.
#[derive(Debug, Clone)]
pub struct MethodBody {
    /// Which.
    pub method: Method,
    /// Where the body is: the control whose calls lead to it.
    pub control: ControlId,
    /// The action of `control` that holds the body (parameters as the method's, all directional; a return value is an
    /// extra last `out` parameter).
    pub action: ActionId,
}

/// A compile-time value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Const {
    /// Of `bit<W>`/`int<W>`: two's complement, cut to the width. Of `int` without width: see `IntegerConst`.
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
    /// Enum member.
    Enum(EnumId, u32),
    /// Error member.
    Error(u32),
    /// String.
    Str(String),
    /// Another extern instance.
    Extern(ExternId),
    /// List or tuple.
    Tuple(Vec<Const>),
}

/// `main` and the packages inside.
#[derive(Debug, Clone)]
pub struct Package {
    /// `PSA_Switch`, `V1Switch`, `Pipeline`…
    pub type_name: String,
    /// Instance name (`main`, `ip`).
    pub name: String,
    /// Parameter name and what was given.
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
