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
    /// Index of a struct, header or union in [`Program::types`].
    TypeId,
    /// Index of an enum in [`Program::enums`].
    EnumId,
    /// Index of an extern instance in [`Program::externs`].
    ExternId,
    /// Index of a parser instance in [`Program::parsers`].
    ParserId,
    /// Index of a control instance in [`Program::controls`].
    ControlId,
    /// Index of a function in [`Program::functions`].
    FunctionId,
    /// Index of a variable in the `vars` of its parser, control or function.
    VarId,
    /// Index of an action in its control's [`Control::actions`].
    ActionId,
    /// Index of a table in its control's [`Control::tables`].
    TableId,
    /// Index of a state in its parser's [`Parser::states`].
    StateId,
    /// Index of a value set in its parser's [`Parser::value_sets`].
    ValueSetId,
}

/// A whole checked P4 program.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program's architecture, recognized by the package type of `main`.
    pub arch: Arch,
    /// Struct, header and header union types.
    pub types: Vec<StructType>,
    /// Enums without a representation, in declaration order (an enum with a representation is its `bit<W>` in the IR).
    pub enums: Vec<EnumType>,
    /// New types (`type T x;`), in declaration order.
    pub new_types: Vec<NewType>,
    /// Enums with a representation, in declaration order.
    pub ser_enums: Vec<SerEnum>,
    /// Error members in order of declaration; the index is the run-time value. `NoError` is 0 (core.p4).
    pub errors: Vec<String>,
    /// Extern instances, in order of instantiation.
    pub externs: Vec<ExternInstance>,
    /// Parser instances, in order of instantiation.
    pub parsers: Vec<Parser>,
    /// Control instances in order of instantiation, with the deparsers.
    pub controls: Vec<Control>,
    /// Functions that the program calls; a generic function once per list of type arguments.
    pub functions: Vec<Function>,
    /// The package instance `main`: the root of the program.
    pub main: Package,
    /// Maps spans to file, line and column.
    pub source: Arc<SourceMap>,
}

/// The architecture for which a program is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arch {
    /// PSA, whose package type is `PSA_Switch`.
    Psa,
    /// v1model, whose package type is `V1Switch`.
    V1model,
    /// TNA (Tofino), whose package types are `Switch` and `Pipeline`.
    Tna,
    /// T2NA (Tofino 2), whose package types have the same names as TNA's.
    T2na,
    /// An architecture with another package type: the program is checked, but cannot run.
    Other(String),
}

/// The type of a value at run time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// `void`: the result type of a call without a result.
    Void,
    /// The type `bool`.
    Bool,
    /// `bit<W>`, with its width; also enums with a representation, new types and type aliases.
    Bit(u32),
    /// `int<W>`, in two's complement, with its width in bits.
    Int(u32),
    /// `varbit<W>`: at most W bits.
    Varbit(u32),
    /// `error`; a value is the index into [`Program::errors`].
    Error,
    /// Enum without a representation; a value is the member's index.
    Enum(EnumId),
    /// Struct, header or header union.
    Struct(TypeId),
    /// Header stack, or stack of unions: the element type and the number of elements.
    Stack(TypeId, u32),
    /// Tuple type `tuple<…>`, also the type of a list passed to an extern.
    Tuple(Vec<Type>),
    /// `string`, known at compile time.
    String,
    /// An extern object passed as a parameter: `packet_in`, `packet_out`.
    Extern(String),
}

/// A struct, header or header union type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructType {
    /// Name of the type; for an instance of a generic type, with its type arguments.
    pub name: String,
    /// Whether the type is a struct, header or header union.
    pub kind: crate::ast::StructKind,
    /// Fields of the type, in order.
    pub fields: Vec<FieldType>,
    /// Annotations of the type as written, such as `controller_header("packet_in")`.
    pub annotations: Vec<Annotation>,
}

/// A field of a struct, header or header union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldType {
    /// Name of the field.
    pub name: String,
    /// Run-time type of the field.
    pub ty: Type,
    /// Type of the field under the name that the source gives it.
    pub declared: Declared,
    /// Annotations of the field.
    pub annotations: Vec<Annotation>,
}

/// An enum without a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumType {
    /// Name of the enum.
    pub name: String,
    /// Names of the enum's members; a member's index is its run-time value.
    pub members: Vec<String>,
}

/// An annotation: its name, its body's text (`""` without a body), and the literals in its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Name of the annotation, without `@`.
    pub name: String,
    /// Text between the annotation's brackets as written, with white space folded; `""` without a body.
    pub text: String,
    /// Literals of an unstructured body that consists only of literals and commas; else empty.
    pub literals: Vec<crate::ast::Literal>,
    /// The evaluated body of a structured annotation, `@name[…]`; `None` for other annotations.
    pub structured: Option<Structured>,
}

/// An extern object created by an instantiation.
#[derive(Debug, Clone)]
pub struct ExternInstance {
    /// Fully qualified name of the instance.
    pub name: String,
    /// Kind of extern object, such as register or counter.
    pub kind: ExternKind,
    /// Name of the extern type in the program: `Register`, `RegisterAction2`, `counter`, …
    pub type_name: String,
    /// Type arguments of the instance, as written or inferred.
    pub type_args: Vec<Type>,
    /// Type arguments of the instance, under the names that the source gives them.
    pub declared_args: Vec<Declared>,
    /// Constructor arguments: (parameter name, value).
    pub args: Vec<(String, Const)>,
    /// Implementations of its abstract methods. A top-level object has them in each control that calls it, others in `owner`.
    pub methods: Vec<MethodBody>,
    /// The control that contains the instance; `None` outside a control.
    pub owner: Option<ControlId>,
    /// Annotations of the instantiation.
    pub annotations: Vec<Annotation>,
    /// Span of the instantiation.
    pub span: Span,
}

/// The implementation of an extern object's abstract method, lowered to an action.
#[derive(Debug, Clone)]
pub struct MethodBody {
    /// The abstract method that is implemented.
    pub method: Method,
    /// The control that contains `action`: the implementation runs when this control calls the object.
    pub control: ControlId,
    /// The action, among those of `control`, that contains the method's body. All its parameters have a direction; a return
    /// value becomes a last `out` parameter.
    pub action: ActionId,
}

/// A compile-time value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Const {
    /// A `bit<W>` or `int<W>` value: two's complement, cut to the width. For `int` without a width see `Integer`.
    Bits {
        /// Bit pattern of the value.
        value: BigUint,
        /// Type of the value: `Bit` or `Int`.
        ty: Type,
    },
    /// Arbitrary-precision integer (table sizes and the like).
    Integer(num_bigint::BigInt),
    /// A `bool` constant.
    Bool(bool),
    /// A member of an enum: (the enum, index of the member).
    Enum(EnumId, u32),
    /// A member of `error`: index into `Program::errors`.
    Error(u32),
    /// A `string` constant.
    Str(String),
    /// Reference to an extern instance.
    Extern(ExternId),
    /// List or tuple, with its elements in order.
    Tuple(Vec<Const>),
}

/// An instance of a package: `main`, or a package passed to it as an argument.
#[derive(Debug, Clone)]
pub struct Package {
    /// Name of the package type: `PSA_Switch`, `V1Switch`, `Pipeline`…
    pub type_name: String,
    /// Name of the package instance (`main`, `ip`).
    pub name: String,
    /// Arguments of the package: (parameter name, argument).
    pub args: Vec<(String, PackageArg)>,
    /// Annotations of the package instance.
    pub annotations: Vec<Annotation>,
}

/// An argument of a package instance.
#[derive(Debug, Clone)]
pub enum PackageArg {
    /// A parser instance.
    Parser(ParserId),
    /// A control instance, which may be a deparser.
    Control(ControlId),
    /// A package instance, such as a TNA pipeline.
    Package(Box<Package>),
    /// An extern object instance.
    Extern(ExternId),
    /// A compile-time value.
    Const(Const),
}
