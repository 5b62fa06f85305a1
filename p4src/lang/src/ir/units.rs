//! Parsers, controls, actions, tables, functions.

use super::*;

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
    /// `psa_empty_group_action`: runs where an entry's group has no member to pick (PSA, section 7.2.2).
    pub empty_group_action: Option<BoundAction>,
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
    pub args: Args,
    /// Hoisted calls of those arguments: run when the action is about to (P4_16 14.2.1.2).
    pub calls: Block,
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
