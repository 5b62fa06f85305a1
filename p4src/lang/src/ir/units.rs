//! Parsers, controls, actions, tables, functions.

use super::*;

/// A variable of a unit: parameter, local, temporary, or an action's parameter. P4 has no recursion, so each variable has one
/// storage cell per unit. Locals without initializer are undefined at block entry; here headers are invalid, all else is 0.
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
    /// Name in the source and in P4Info (its variable's name may have a suffix).
    pub name: String,
    /// The variable that holds its value.
    pub var: VarId,
    /// Direction; `None` for extern objects (`packet_in`) and for an action's control-plane parameters.
    pub direction: Direction,
    /// Type as declared.
    pub declared: Declared,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// An instance of a parser.
#[derive(Debug, Clone)]
pub struct Parser {
    /// Fully qualified name of the instance (at the top, the type's name).
    pub name: String,
    /// Run-time parameters.
    pub params: Vec<Param>,
    /// Variables.
    pub vars: Vec<Var>,
    /// Initialization of locals, run at each start of the parser.
    pub init: Vec<Stmt>,
    /// States; 0 is `start`.
    pub states: Vec<State>,
    /// Value sets.
    pub value_sets: Vec<ValueSet>,
    /// Source span.
    pub span: Span,
}

/// A value set.
#[derive(Debug, Clone)]
pub struct ValueSet {
    /// Fully qualified name.
    pub name: String,
    /// Fields of the element (one scalar, or the fields of its struct or tuple): (name, type, match kind).
    pub fields: Vec<(String, Type, String)>,
    /// The fields' types as declared.
    pub declared: Vec<Declared>,
    /// Maximum number of members.
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
    /// Transition to the next state.
    pub transition: Transition,
    /// Source span.
    pub span: Span,
}

/// The target of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `accept`
    Accept,
    /// `reject`
    Reject,
    /// A state.
    State(StateId),
}

/// How a state chooses the next state.
#[derive(Debug, Clone)]
pub enum Transition {
    /// Unconditional transition.
    Direct(Target),
    /// Takes the first case that matches; if none matches, the parser rejects with error `NoMatch`.
    Select {
        /// Expressions that are matched.
        keys: Vec<Expr>,
        /// Cases in order: one keyset per key, and the target.
        cases: Vec<(Vec<Keyset>, Target)>,
    },
}

/// A set of values of one key.
#[derive(Debug, Clone)]
pub enum Keyset {
    /// Every value.
    Any,
    /// One value.
    Value(Expr),
    /// `value &&& mask`
    Mask(Expr, Expr),
    /// Both bounds inclusive.
    Range(Expr, Expr),
    /// The members of a value set: the only keyset of its case, for all keys.
    ValueSet(ValueSetId),
}

/// An instance of a control.
#[derive(Debug, Clone)]
pub struct Control {
    /// Fully qualified name of the instance (at the top, the type's name).
    pub name: String,
    /// The type's name.
    pub type_name: String,
    /// Run-time parameters.
    pub params: Vec<Param>,
    /// Variables: parameters, locals, and the variables of its actions.
    pub vars: Vec<Var>,
    /// Actions, with copies of the top-level actions that the control uses.
    pub actions: Vec<Action>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Initialization of locals, then the apply block.
    pub body: Block,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Span of the type's declaration.
    pub span: Span,
    /// Span of the instantiation.
    pub instantiated: Span,
}

/// An action.
#[derive(Debug, Clone)]
pub struct Action {
    /// Fully qualified name (`Ingress.set_port`; for a top-level action its plain name, `NoAction`).
    pub name: String,
    /// Parameters in source order: data-plane parameters first.
    pub params: Vec<Param>,
    /// Body; `return` ends the action, `exit` ends the whole block.
    pub body: Block,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Source span.
    pub span: Span,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Fully qualified name.
    pub name: String,
    /// Key.
    pub key: Vec<Key>,
    /// Actions offered.
    pub actions: Vec<TableAction>,
    /// Action that runs on a miss (`NoAction` if the source gives none).
    pub default_action: BoundAction,
    /// Whether `const default_action` is written.
    pub const_default: bool,
    /// `psa_empty_group_action`: runs if the matched entry's group has no member (PSA, section 7.2.2).
    pub empty_group_action: Option<BoundAction>,
    /// Entries written in the source, in order.
    pub entries: Vec<Entry>,
    /// Whether `const entries` is written: the control plane cannot write to the table.
    pub const_entries: bool,
    /// `size`, if written.
    pub size: Option<u64>,
    /// Other properties (`psa_direct_counter`, `psa_implementation`, `counters`, `idle_timeout_with_auto_delete` …).
    pub properties: Vec<(String, Const)>,
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Source span.
    pub span: Span,
}

/// A key field. `expr` has no side effects and may be evaluated just before the lookup.
#[derive(Debug, Clone)]
pub struct Key {
    /// Value.
    pub expr: Expr,
    /// `exact`, `lpm`, `ternary`, `range`, `optional`, `selector`, …
    pub match_kind: String,
    /// Name in P4Info: from `@name`, else the expression's text.
    pub name: String,
    /// The expression's type as declared.
    pub declared: Declared,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// An action that a table offers.
#[derive(Debug, Clone)]
pub struct TableAction {
    /// The action, in this control.
    pub action: ActionId,
    /// Arguments bound in `actions = { a(x); }`, for the directional parameters.
    pub args: Args,
    /// Hoisted calls in those arguments: run just before the action runs (P4_16 14.2.1.2).
    pub calls: Block,
    /// `@defaultonly`, `@tableonly`, …
    pub annotations: Vec<Annotation>,
}

/// An action with the values of its control-plane parameters, in order.
#[derive(Debug, Clone)]
pub struct BoundAction {
    /// Index into the table's `actions`; `None` = a `NoAction` that the table does not list.
    pub action: Option<usize>,
    /// Arguments, one per directionless parameter.
    pub args: Vec<Const>,
}

/// An entry written in the source.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Keysets, one per key field; only constants.
    pub keys: Vec<Keyset>,
    /// Action that runs on a match.
    pub action: BoundAction,
    /// Priority as in P4Runtime (the largest wins), computed from the order of entries or from `priority =`.
    pub priority: i32,
    /// Whether `const` is written.
    pub is_const: bool,
    /// Source span.
    pub span: Span,
}

/// A function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Name, for a generic function with its type arguments.
    pub name: String,
    /// Parameters; a return value is an extra last `out` parameter.
    pub params: Vec<Param>,
    /// Variables.
    pub vars: Vec<Var>,
    /// Body.
    pub body: Block,
}
