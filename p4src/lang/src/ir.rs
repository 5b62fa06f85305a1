//! The checked program: names resolved, types known, constants folded, generics and instances expanded.
//!
//! Every instantiation of a parser or control is a [`Parser`] or [`Control`] of its own, with the fully qualified names of its tables,
//! actions and externs. Expressions have no side effects: the lowering hoists calls into temporaries, in
//! P4's order of evaluation (P4_16 1.2.5, section 8.1), and turns `&&`, `||` and `?:` whose right sides call something into `if`.
//! A target needs nothing but this module to run a program.

mod declared;

pub use declared::{Declared, NewType, SerEnum, Structured};

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
    /// `Register`, `Counter`, …
    pub type_name: String,
    /// Type arguments, given or inferred.
    pub type_args: Vec<Type>,
    /// The same as declared.
    pub declared_args: Vec<Declared>,
    /// Constructor arguments with their parameter names.
    pub args: Vec<(String, Const)>,
    /// Implementations of abstract methods: in its owner, or in each control that calls an object of the top level.
    pub methods: Vec<Method>,
    /// The control that holds it, if one does.
    pub owner: Option<ControlId>,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Place of the instantiation.
    pub span: Span,
}

/// The implementation of an abstract method.
#[derive(Debug, Clone)]
pub struct Method {
    /// Name.
    pub name: String,
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

/// A variable of a unit: parameter, local, temporary, or an action's parameter. P4 has no recursion, so each has one
/// place per unit. Locals without initialiser are undefined at block entry: headers invalid, the rest 0 here.
#[derive(Debug, Clone)]
pub struct Var {
    /// Name, unique in the unit (a suffix is added where source names collide).
    pub name: String,
    /// Type.
    pub ty: Type,
}

/// A run-time parameter.
#[derive(Debug, Clone)]
pub struct Param {
    /// As the source names it, and so P4Info (its variable may have a suffix).
    pub name: String,
    /// Where its value lives.
    pub var: VarId,
    /// `None` for extern objects (`packet_in`), and for an action's control-plane parameters.
    pub direction: Direction,
    /// Type as declared.
    pub declared: Declared,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// An instance of a parser.
#[derive(Debug, Clone)]
pub struct Parser {
    /// Fully qualified name of the instance (the type's name at the top).
    pub name: String,
    /// Run-time parameters.
    pub params: Vec<Param>,
    /// Variables.
    pub vars: Vec<Var>,
    /// Initialisation of locals, run at each start.
    pub init: Vec<Stmt>,
    /// States; 0 is `start`.
    pub states: Vec<State>,
    /// Value sets.
    pub value_sets: Vec<ValueSet>,
    /// Place.
    pub span: Span,
}

/// A value set.
#[derive(Debug, Clone)]
pub struct ValueSet {
    /// Fully qualified.
    pub name: String,
    /// Element: one scalar, or the fields of its struct or tuple: (name, type, match kind).
    pub fields: Vec<(String, Type, String)>,
    /// The fields' types as declared.
    pub declared: Vec<Declared>,
    /// Size.
    pub size: u64,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// A state.
#[derive(Debug, Clone)]
pub struct State {
    /// Name.
    pub name: String,
    /// Statements.
    pub body: Vec<Stmt>,
    /// Where next.
    pub transition: Transition,
    /// Place.
    pub span: Span,
}

/// A target of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `accept`
    Accept,
    /// `reject`
    Reject,
    /// A state.
    State(StateId),
}

/// Where a state goes.
#[derive(Debug, Clone)]
pub enum Transition {
    /// Always there.
    Direct(Target),
    /// The first case that matches; none: error `NoMatch`, reject.
    Select {
        /// Selected on.
        keys: Vec<Expr>,
        /// In order.
        cases: Vec<(Vec<Keyset>, Target)>,
    },
}

/// A set of values of one key.
#[derive(Debug, Clone)]
pub enum Keyset {
    /// Everything.
    Any,
    /// One value.
    Value(Expr),
    /// `value &&& mask`
    Mask(Expr, Expr),
    /// Inclusive.
    Range(Expr, Expr),
    /// Member of the value set (stands alone and covers all keys).
    ValueSet(ValueSetId),
}

/// An instance of a control.
#[derive(Debug, Clone)]
pub struct Control {
    /// Fully qualified name of the instance (the type's name at the top).
    pub name: String,
    /// The type's name.
    pub type_name: String,
    /// Run-time parameters.
    pub params: Vec<Param>,
    /// Variables: parameters, locals, those of its actions.
    pub vars: Vec<Var>,
    /// Actions, with copies of the top-level actions that it uses.
    pub actions: Vec<Action>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Initialisation of locals, then the apply block.
    pub body: Block,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Place of the type's declaration.
    pub span: Span,
    /// Place of the instantiation.
    pub instantiated: Span,
}

/// An action.
#[derive(Debug, Clone)]
pub struct Action {
    /// Fully qualified (`Ingress.set_port`; a top-level action's own name, `NoAction`).
    pub name: String,
    /// Data-plane parameters first, as in the source.
    pub params: Vec<Param>,
    /// Body; `return` ends the action, `exit` the whole block.
    pub body: Block,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Place.
    pub span: Span,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Fully qualified.
    pub name: String,
    /// Key.
    pub key: Vec<Key>,
    /// Actions offered.
    pub actions: Vec<TableAction>,
    /// Runs on a miss (`NoAction` if none is written).
    pub default_action: BoundAction,
    /// `const default_action`.
    pub const_default: bool,
    /// Written in the source, in order.
    pub entries: Vec<Entry>,
    /// `const entries`: not writable.
    pub const_entries: bool,
    /// `size`, if written.
    pub size: Option<u64>,
    /// Other properties (`psa_direct_counter`, `psa_implementation`, `counters`, `idle_timeout_with_auto_delete` …).
    pub properties: Vec<(String, Const)>,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Place.
    pub span: Span,
}

/// A key field. `expr` may be evaluated just before the lookup; it has no side effects.
#[derive(Debug, Clone)]
pub struct Key {
    /// Value.
    pub expr: Expr,
    /// `exact`, `lpm`, `ternary`, `range`, `optional`, `selector`, …
    pub match_kind: String,
    /// As P4Info names it: `@name`, else the expression's text.
    pub name: String,
    /// The expression's type as declared.
    pub declared: Declared,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// An action that a table offers.
#[derive(Debug, Clone)]
pub struct TableAction {
    /// Which.
    pub action: ActionId,
    /// Arguments of the directional parameters, bound in `actions = { a(x); }`.
    pub args: Vec<Arg>,
    /// `@defaultonly`, `@tableonly`, …
    pub annotations: Vec<Annotation>,
}

/// An action with the values of its control-plane parameters, in order.
#[derive(Debug, Clone)]
pub struct BoundAction {
    /// Index into the table's `actions`; `None` = `NoAction` that the table doesn't list.
    pub action: Option<usize>,
    /// One per directionless parameter.
    pub args: Vec<Const>,
}

/// An entry written in the source.
#[derive(Debug, Clone)]
pub struct Entry {
    /// One per key field; constants only.
    pub keys: Vec<Keyset>,
    /// What it does.
    pub action: BoundAction,
    /// P4Runtime's sense (largest wins), computed from the order or from `priority =`.
    pub priority: i32,
    /// `const`
    pub is_const: bool,
    /// Place.
    pub span: Span,
}

/// A function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Name, specialised.
    pub name: String,
    /// Parameters; a return value is an extra last `out` parameter.
    pub params: Vec<Param>,
    /// Variables.
    pub vars: Vec<Var>,
    /// Body.
    pub body: Block,
}

/// Statements in order.
pub type Block = Vec<Stmt>;

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
pub enum StmtKind {
    /// Copies a value; a header's validity with it. Both sides have one type.
    Assign(LValue, Expr),
    /// Makes the value undefined: headers invalid, the rest 0 (a local's declaration without initialiser, an `out` parameter).
    Reset(LValue),
    /// `if`
    If(Expr, Block, Block),
    /// Runs the block of the first label equal to the value, else the default.
    Switch {
        /// `bit`, `int`, enum, error; for `switch (t.apply().action_run)` a temporary with the index into the table's actions
        /// (as `Type::Bit(32)`).
        value: Expr,
        /// Labels (constants) and their block; fall-through is expanded.
        cases: Vec<(Vec<Const>, Block)>,
        /// `default`, empty if none.
        default: Block,
    },
    /// Runs while the condition holds; `cond_stmts` before each test; `update` after each body, also after `continue`.
    Loop {
        /// Hoisted calls of the condition.
        cond_stmts: Block,
        /// Condition.
        cond: Expr,
        /// Body.
        body: Block,
        /// Update.
        update: Block,
    },
    /// `@atomic { … }` and plain blocks with annotations.
    Atomic(Block),
    /// Leaves the innermost loop.
    Break,
    /// Next round of the innermost loop.
    Continue,
    /// Leaves the action, function, or control.
    Return,
    /// Leaves everything up to the pipeline's end (P4_16 12.5).
    Exit,
    /// Applies a table.
    ApplyTable {
        /// Which, of this control.
        table: TableId,
        /// Set to whether an entry matched.
        hit: Option<VarId>,
        /// Set to the index (into the table's actions) of the action that ran.
        action_run: Option<VarId>,
    },
    /// Calls an action of this control.
    CallAction(ActionId, Vec<Arg>),
    /// Applies a control.
    ApplyControl(ControlId, Vec<Arg>),
    /// Applies a parser.
    ApplyParser(ParserId, Vec<Arg>),
    /// Calls a function.
    CallFunction(FunctionId, Vec<Arg>),
    /// Calls a method of an extern object.
    CallMethod {
        /// On which.
        object: ExternId,
        /// Method name; overloads differ in the number of arguments.
        method: String,
        /// Type arguments, given or inferred.
        type_args: Vec<Type>,
        /// Arguments.
        args: Vec<Arg>,
        /// Where the result goes.
        result: Option<LValue>,
    },
    /// Calls an extern function (`mark_to_drop`, `hash`, …).
    CallExtern {
        /// Name.
        name: String,
        /// Type arguments, given or inferred.
        type_args: Vec<Type>,
        /// Arguments.
        args: Vec<Arg>,
        /// Where the result goes.
        result: Option<LValue>,
    },
    /// `pkt.extract(h)`; with the varbit field's length in bits if two arguments. Extracting to a stack's `next` is a
    /// path that ends in [`Access::Next`].
    Extract {
        /// The `packet_in`.
        packet: VarId,
        /// Header (or union member).
        header: LValue,
        /// Length of the varbit field, bits.
        varbit_bits: Option<Expr>,
    },
    /// `pkt.advance(bits)`, and `extract<T>(_)`.
    Advance {
        /// The `packet_in`.
        packet: VarId,
        /// Bits.
        bits: Expr,
    },
    /// `dst = pkt.lookahead<T>()`
    Lookahead {
        /// The `packet_in`.
        packet: VarId,
        /// Destination; its type is T.
        dst: LValue,
    },
    /// `dst = pkt.length()`, bytes, `bit<32>`.
    PacketLength {
        /// The `packet_in`.
        packet: VarId,
        /// Destination.
        dst: LValue,
    },
    /// `pkt.emit(x)`: header, stack, union, or struct of those.
    Emit {
        /// The `packet_out`.
        packet: VarId,
        /// What.
        value: LValue,
    },
    /// `verify(cond, error)`
    Verify(Expr, Expr),
    /// `h.setValid()`
    SetValid(LValue),
    /// `h.setInvalid()`
    SetInvalid(LValue),
    /// `stack.push_front(n)`
    Push(LValue, u32),
    /// `stack.pop_front(n)`
    Pop(LValue, u32),
}

/// An argument.
#[derive(Debug, Clone)]
pub enum Arg {
    /// By value.
    In(Expr),
    /// Copied out at the end; undefined at the start.
    Out(LValue),
    /// Copied in and out.
    InOut(LValue),
    /// An extern object: a `packet_in`/`packet_out` parameter of the calling unit.
    Object(VarId),
    /// An extern instance.
    Extern(ExternId),
    /// `out` argument that nobody wants (`_`).
    Ignore,
}

/// A place: a variable and a path into it.
#[derive(Debug, Clone, PartialEq)]
pub struct LValue {
    /// Variable.
    pub var: VarId,
    /// Path.
    pub path: Vec<Access>,
    /// Type at its end.
    pub ty: Type,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// Field by index.
    Field(u32),
    /// Element of a stack; out of range: reads are undefined (0), writes do nothing.
    Index(Box<Expr>),
    /// `stack.next`: the element at `nextIndex`; in an extract it advances the index; past the end: error `StackOutOfBounds`.
    Next,
    /// `stack.last`
    Last,
    /// Bits `hi ..= lo`; last step only.
    Slice(u32, u32),
}

/// A pure expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Which.
    pub kind: ExprKind,
    /// Type.
    pub ty: Type,
}

/// Which expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// Constant.
    Const(Const),
    /// Reads a place. Fields of an invalid header are 0.
    Read(LValue),
    /// `h.isValid()`
    IsValid(LValue),
    /// `stack.lastIndex` (`bit<32>`)
    LastIndex(LValue),
    /// `stack.nextIndex` as far as the checker needs it (`bit<32>`)
    NextIndex(LValue),
    /// `op e`
    Unary(UnOp, Box<Expr>),
    /// Both sides have the type of the result, except comparisons (bool) and shifts (right side any width).
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// Between `bit`, `int`, `bool`; widths change as P4_16 8.11 says.
    Cast(Box<Expr>),
    /// Bits `hi ..= lo` of a value.
    Slice(Box<Expr>, u32, u32),
    /// `a ++ b`
    Concat(Box<Expr>, Box<Expr>),
    /// `c ? a : b`, both sides pure.
    Mux(Box<Expr>, Box<Expr>, Box<Expr>),
    /// List or tuple or struct value, by field in order. Type: `Tuple` or `Struct` (a header's is valid).
    Tuple(Vec<Expr>),
    /// The invalid header `{#}`.
    InvalidHeader,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnOp {
    /// `!` on bool
    Not,
    /// `~`
    BitNot,
    /// `-`, modulo 2^W
    Neg,
}

pub use crate::ast::BinOp;
