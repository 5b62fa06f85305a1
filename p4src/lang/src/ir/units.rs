//! Parsers, controls, actions, tables and functions of the checked program (IR).

use super::*;

/// A variable of a parser, control or function: parameter, local, temporary, or an action's parameter. P4 has no recursion, so
/// each variable has one storage cell. Locals without initializer are undefined in P4; here headers are invalid, all else is 0.
#[derive(Debug, Clone)]
pub struct Var {
    /// Name, unique in the parser, control or function (a suffix is added where source names collide).
    pub name: String,
    /// Type of the variable.
    pub ty: Type,
}

/// A run-time parameter of a parser, control, action or function.
#[derive(Debug, Clone)]
pub struct Param {
    /// Name of the parameter in the source and in P4Info (its variable's name may have a suffix).
    pub name: String,
    /// The variable that holds the parameter's value.
    pub var: VarId,
    /// Direction; `None` for extern objects (`packet_in`) and for an action's control-plane parameters.
    pub direction: Direction,
    /// Type of the parameter under the name that the source gives it.
    pub declared: Declared,
    /// Annotations of the parameter.
    pub annotations: Vec<Annotation>,
}

/// An instance of a parser.
#[derive(Debug, Clone)]
pub struct Parser {
    /// Fully qualified name of the instance; for an argument of the package `main`, the type's name.
    pub name: String,
    /// Run-time parameters of the parser.
    pub params: Vec<Param>,
    /// Variables of the parser.
    pub vars: Vec<Var>,
    /// Statements that initialize the locals; run at each start of the parser.
    pub init: Vec<Stmt>,
    /// States of the parser; the state with index 0 is `start`.
    pub states: Vec<State>,
    /// Value sets of the parser.
    pub value_sets: Vec<ValueSet>,
    /// Source span of the parser.
    pub span: Span,
}

/// A parser value set, whose members the control plane writes.
#[derive(Debug, Clone)]
pub struct ValueSet {
    /// Fully qualified name of the value set.
    pub name: String,
    /// Fields of a member (one scalar, or the fields of its struct or tuple): (name, type, match kind).
    pub fields: Vec<(String, Type, String)>,
    /// Types of the fields, under the names that the source gives them.
    pub declared: Vec<Declared>,
    /// Maximum number of members of the value set.
    pub size: u64,
    /// Annotations of the value set.
    pub annotations: Vec<Annotation>,
}

/// A state of a parser.
#[derive(Debug, Clone)]
pub struct State {
    /// Name of the parser state.
    pub name: String,
    /// Statements of the parser state, run before its transition.
    pub body: Vec<Stmt>,
    /// Transition to the next parser state.
    pub transition: Transition,
    /// Source span of the parser state.
    pub span: Span,
}

/// The target of a parser transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `accept`: ends the parser; the packet is accepted.
    Accept,
    /// `reject`: ends the parser; the packet is rejected.
    Reject,
    /// Another state of the parser.
    State(StateId),
}

/// How a parser state chooses the next state.
#[derive(Debug, Clone)]
pub enum Transition {
    /// Unconditional transition to the target.
    Direct(Target),
    /// `select`: takes the first case that matches; if none matches, the parser rejects with error `NoMatch`.
    Select {
        /// Expressions whose values the cases match.
        keys: Vec<Expr>,
        /// Cases in order: (one keyset per key, target).
        cases: Vec<(Vec<Keyset>, Target)>,
    },
}

/// A set of values of one `select` or table key.
#[derive(Debug, Clone)]
pub enum Keyset {
    /// Every value of the key.
    Any,
    /// One value of the key.
    Value(Expr),
    /// A mask, `value &&& mask`: the bits set in the mask are equal.
    Mask(Expr, Expr),
    /// A range from the first to the second value; both bounds are inclusive.
    Range(Expr, Expr),
    /// The members of a parser value set: the only keyset of its case, for all keys.
    ValueSet(ValueSetId),
}

/// An instance of a control.
#[derive(Debug, Clone)]
pub struct Control {
    /// Fully qualified name of the instance; for an argument of the package `main`, the type's name.
    pub name: String,
    /// Name of the control type.
    pub type_name: String,
    /// Run-time parameters of the control.
    pub params: Vec<Param>,
    /// Variables of the control: parameters, locals, and the variables of its actions.
    pub vars: Vec<Var>,
    /// Actions of the control, with copies of the top-level actions that it uses.
    pub actions: Vec<Action>,
    /// Tables of the control.
    pub tables: Vec<Table>,
    /// Statements of the control: initialization of locals, then the apply block.
    pub body: Block,
    /// Annotations of the control type.
    pub annotations: Vec<Annotation>,
    /// Source span of the control type's declaration.
    pub span: Span,
    /// Source span of the instantiation.
    pub instantiated: Span,
}

/// An action of a control.
#[derive(Debug, Clone)]
pub struct Action {
    /// Fully qualified name of the action (`Ingress.set_port`; for a top-level action its plain name, `NoAction`).
    pub name: String,
    /// Parameters in source order: data-plane parameters before control-plane parameters.
    pub params: Vec<Param>,
    /// Body of the action; `return` ends the action, `exit` ends the whole pipeline.
    pub body: Block,
    /// Annotations of the action.
    pub annotations: Vec<Annotation>,
    /// Source span of the action.
    pub span: Span,
}

/// A match-action table of a control.
#[derive(Debug, Clone)]
pub struct Table {
    /// Fully qualified name of the table.
    pub name: String,
    /// Key fields, in order.
    pub key: Vec<Key>,
    /// Actions that the table offers.
    pub actions: Vec<TableAction>,
    /// Action that runs on a miss (`NoAction` if the source gives none).
    pub default_action: BoundAction,
    /// Whether the source writes `const default_action`: the control plane cannot change it.
    pub const_default: bool,
    /// `psa_empty_group_action`: runs if the matched entry's group has no member (PSA, section 7.2.2).
    pub empty_group_action: Option<BoundAction>,
    /// Entries written in the source, in source order.
    pub entries: Vec<Entry>,
    /// Whether the source writes `const entries`: the control plane cannot write to the table.
    pub const_entries: bool,
    /// Number of entries in the `size` property; `None` without the property.
    pub size: Option<u64>,
    /// Other properties of the table: (name, value), such as `psa_direct_counter`, `psa_implementation`, `counters`.
    pub properties: Vec<(String, Const)>,
    /// Annotations of the table.
    pub annotations: Vec<Annotation>,
    /// Source span of the table.
    pub span: Span,
}

/// A key field of a table. `expr` has no side effects and may be evaluated just before the lookup.
#[derive(Debug, Clone)]
pub struct Key {
    /// Expression whose value is looked up.
    pub expr: Expr,
    /// Match kind: `exact`, `lpm`, `ternary`, `range`, `optional`, `selector`, …
    pub match_kind: String,
    /// Name of the key field in P4Info: from `@name`, else the expression's text.
    pub name: String,
    /// Type of the expression, under the name that the source gives it.
    pub declared: Declared,
    /// Annotations of the key field.
    pub annotations: Vec<Annotation>,
}

/// An action that a table offers.
#[derive(Debug, Clone)]
pub struct TableAction {
    /// The action, by its index in the table's control.
    pub action: ActionId,
    /// Arguments for the action's directional parameters, as bound in `actions = { a(x); }`.
    pub args: Args,
    /// Statements with the calls in the bound arguments; they run just before the action (P4_16 14.2.1.2).
    pub calls: Block,
    /// Annotations of the action in the table's list: `@defaultonly`, `@tableonly`, …
    pub annotations: Vec<Annotation>,
}

/// An action of a table with the values of its control-plane parameters: a default action or an entry's action.
#[derive(Debug, Clone)]
pub struct BoundAction {
    /// Index into the table's `actions`; `None` = a `NoAction` that the table does not list.
    pub action: Option<usize>,
    /// Values of the control-plane (directionless) parameters, in order.
    pub args: Vec<Const>,
}

/// A table entry written in the source.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Constant keysets, one per key field.
    pub keys: Vec<Keyset>,
    /// Action that runs for a packet that matches the entry.
    pub action: BoundAction,
    /// Priority as in P4Runtime (the largest wins), computed from the order of the entries or from `priority =`.
    pub priority: i32,
    /// Whether the source marks the entry `const`.
    pub is_const: bool,
    /// Source span of the entry.
    pub span: Span,
}

/// A function with a body.
#[derive(Debug, Clone)]
pub struct Function {
    /// Name of the function; for an instance of a generic function, with its type arguments.
    pub name: String,
    /// Parameters of the function; a return value is an extra last `out` parameter.
    pub params: Vec<Param>,
    /// Variables of the function.
    pub vars: Vec<Var>,
    /// Statements of the function.
    pub body: Block,
}
