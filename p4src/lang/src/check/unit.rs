//! The unit that is being checked and lowered: a parser, control or function instance, its variables and its current block.

use super::Checker;
use super::scope::Scope;
use super::types::Ty;
use super::value::LVal;
use crate::source::Span;
use crate::{ast, ir};
use hashbrown::{HashMap, HashSet};
use std::rc::Rc;

/// The kind of program part that is being checked and lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// The top level of the program, where no statements run.
    Top,
    Parser,
    Control(ir::ControlId),
    Function,
}

/// The part of a parser, control or function to which the current statements belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// Local declarations: only constants and initializers.
    Locals,
    Apply,
    Action,
    State,
    /// The body of a function, or the implementation of an abstract method.
    Function,
}

/// The parser, control or function that is being checked and lowered, with its contents so far.
pub(crate) struct Unit<'a> {
    pub(crate) kind: UnitKind,
    /// Fully qualified name of the instance.
    pub(crate) name: String,
    pub(crate) vars: Vec<ir::Var>,
    /// For each variable, whether it is a temporary: assigned only once, at its creation, so that it can be read later.
    pub(crate) is_temp: Vec<bool>,
    taken: HashMap<String, u32>,
    pub(crate) scopes: Vec<Scope<'a>>,
    /// Local declarations of the parser or control, including those after the current position.
    pub(crate) locals: &'a [ast::Decl],
    /// The block to which lowered statements are appended.
    pub(crate) block: ir::Block,
    pub(crate) actions: Vec<ir::Action>,
    /// For each action, the types of its parameters.
    pub(crate) action_types: Vec<Rc<[Ty]>>,
    pub(crate) tables: Vec<ir::Table>,
    /// For each table, the statements for the calls in its key; they run before each `apply` of the table.
    pub(crate) key_blocks: Vec<ir::Block>,
    pub(crate) value_sets: Vec<ir::ValueSet>,
    /// Actions that are copies of top-level actions, by the index of the top-level action.
    pub(crate) shared_actions: HashMap<u32, ir::ActionId>,
    /// Names of the instances that `C.apply(…)` on a type `C` created.
    pub(crate) direct_instances: HashSet<String>,
    pub(crate) body: Body,
    /// Type of the value that `return` gives, and the variable that receives it; `None` where `return` gives no value.
    pub(crate) ret: Option<(Ty, Option<ir::VarId>)>,
    pub(crate) loops: u32,
    /// Targets of parser transitions, by state name.
    pub(crate) states: HashMap<&'a str, ir::Target>,
    /// Number of parser states that the source declares.
    pub(crate) written_states: u32,
    /// Parser states that the lowering made, numbered after the declared states.
    pub(crate) more_states: Vec<ir::State>,
    /// For each action of the table being checked, the source text of the arguments bound in `actions`.
    pub(crate) bound_texts: Vec<Vec<String>>,
    /// Top-level extern objects whose abstract methods have been copied to the control's actions.
    pub(crate) copied_methods: HashSet<ir::ExternId>,
    /// The extern object that `this` denotes; `None` outside of abstract methods.
    pub(crate) this: Option<This<'a>>,
}

/// The extern object whose abstract method is being implemented.
#[derive(Clone)]
pub(crate) struct This<'a> {
    pub(crate) object: ir::ExternId,
    pub(crate) ty: Ty,
    pub(crate) method: &'a ast::Ident,
}

impl<'a> Unit<'a> {
    pub(crate) fn top() -> Unit<'a> {
        let mut unit = Unit::new(UnitKind::Top, String::new());
        unit.scopes.clear();
        unit
    }

    pub(crate) fn new(kind: UnitKind, name: String) -> Unit<'a> {
        Unit {
            kind,
            name,
            vars: Vec::new(),
            is_temp: Vec::new(),
            taken: HashMap::new(),
            scopes: vec![Scope::new()],
            block: Vec::new(),
            actions: Vec::new(),
            action_types: Vec::new(),
            tables: Vec::new(),
            key_blocks: Vec::new(),
            value_sets: Vec::new(),
            shared_actions: HashMap::new(),
            direct_instances: HashSet::new(),
            body: Body::Locals,
            ret: None,
            loops: 0,
            states: HashMap::new(),
            written_states: 0,
            more_states: Vec::new(),
            bound_texts: Vec::new(),
            copied_methods: HashSet::new(),
            this: None,
            locals: &[],
        }
    }

    /// Creates a variable of the unit; if the name is taken, it gets a suffix after `$`, which source names cannot contain.
    pub(crate) fn var(&mut self, name: &str, ty: ir::Type, is_temp: bool) -> ir::VarId {
        let name = match self.taken.get_mut(name) {
            None => {
                self.taken.insert(name.to_owned(), 0);
                name.to_owned()
            }
            Some(count) => {
                *count += 1;
                format!("{name}${count}")
            }
        };
        self.vars.push(ir::Var { name, ty });
        self.is_temp.push(is_temp);
        ir::VarId(self.vars.len() as u32 - 1)
    }
}

impl<'a> Checker<'a, '_> {
    /// Runs `run` with a new unit as the current one, and returns that unit; then the previous unit is current again.
    pub(crate) fn in_unit(&mut self, unit: Unit<'a>, run: impl FnOnce(&mut Self)) -> Unit<'a> {
        let outer = std::mem::replace(&mut self.unit, unit);
        run(self);
        std::mem::replace(&mut self.unit, outer)
    }

    pub(crate) fn emit(&mut self, kind: ir::StmtKind, span: Span) {
        self.unit.block.push(ir::Stmt { kind, span });
    }

    /// Runs `run`, and returns the statements that it appends as a separate block.
    pub(crate) fn block_of(&mut self, run: impl FnOnce(&mut Self)) -> ir::Block {
        let outer = std::mem::take(&mut self.unit.block);
        run(self);
        std::mem::replace(&mut self.unit.block, outer)
    }

    /// Runs `run` for a new body (of kind `kind`) with a scope of its own, outside any loop, and with its own return value.
    pub(crate) fn with_body<R>(&mut self, kind: Body, run: impl FnOnce(&mut Self) -> R) -> R {
        let unit = &mut self.unit;
        let body = std::mem::replace(&mut unit.body, kind);
        let (ret, loops) = (unit.ret.take(), std::mem::take(&mut unit.loops));
        self.push_scope();
        let done = run(self);
        self.pop_scope();
        let unit = &mut self.unit;
        (unit.body, unit.ret, unit.loops) = (body, ret, loops);
        done
    }

    /// Adds an action, with its parameters' types, to the unit and returns its id.
    pub(crate) fn add_action(&mut self, action: ir::Action, types: Vec<Ty>) -> ir::ActionId {
        let id = ir::ActionId(self.unit.actions.len() as u32);
        self.unit.actions.push(action);
        self.unit.action_types.push(types.into());
        id
    }

    /// Creates a variable with a name, from the source or for a loop.
    pub(crate) fn variable(&mut self, name: &str, ty: &Ty) -> LVal {
        self.new_place(name, ty, None)
    }

    /// Creates a temporary variable of the unit.
    pub(crate) fn temp(&mut self, ty: &Ty) -> LVal {
        self.new_place("$tmp", ty, Some("it is a temporary value"))
    }

    /// Creates a variable of the unit; if it is read-only (`read_only`: the reason), it is a temporary.
    fn new_place(&mut self, name: &str, ty: &Ty, read_only: Option<&'static str>) -> LVal {
        let lowered = self.types.ir(ty);
        let var = self.unit.var(name, lowered.clone(), read_only.is_some());
        LVal {
            ty: ty.clone(),
            lv: ir::LValue {
                var,
                path: Vec::new(),
                ty: lowered,
            },
            read_only,
        }
    }

    /// The fully qualified name of a declaration in this parser, control or function, with `@name` applied.
    pub(crate) fn full_name(&self, name: &str, annotations: &[crate::ast::Annotation]) -> String {
        join(&self.unit.name, &given_name(name, annotations))
    }
}

/// The string of the `@name("…")` annotation, or `name` if there is no such annotation.
pub(crate) fn given_name(name: &str, annotations: &[crate::ast::Annotation]) -> String {
    let mut named = annotations.iter().filter(|a| a.name.name == "name");
    named.find_map(name_in).unwrap_or(name).to_owned()
}

/// The string in a `@name("…")` or `@name["…"]` annotation; `None` if its body is no string.
pub(crate) fn name_in(annotation: &crate::ast::Annotation) -> Option<&str> {
    use crate::ast::{AnnotationBody, Expr, ExprKind, Literal};
    match &annotation.body {
        AnnotationBody::Unstructured { literals, .. } => match literals.as_slice() {
            [Literal::Str(name)] => Some(name),
            _ => None,
        },
        AnnotationBody::List(items) => match items.as_slice() {
            [
                Expr {
                    kind: ExprKind::Str(name),
                    ..
                },
            ] => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Qualifies a name with the name of the enclosing object; a name that starts with a dot is absolute.
pub(crate) fn join(prefix: &str, name: &str) -> String {
    match name.strip_prefix('.') {
        Some(absolute) => absolute.to_owned(),
        None if prefix.is_empty() => name.to_owned(),
        None => format!("{prefix}.{name}"),
    }
}
