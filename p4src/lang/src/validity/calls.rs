//! Calls: tables, actions, units, what the architecture brings along.

use super::state::{Place, State};
use super::{Frame, Unit, Walk};
use crate::ast::Direction;
use crate::ir::{
    Access, ActionId, Arch, Arg, Args, Const, Expr, ExprKind, LValue, Param, Table, Type, VarId,
};
use num_bigint::BigUint;
use std::collections::BTreeMap;

/// Match kinds of which an entry may take any value.
const LEFT_OUT: [&str; 4] = ["ternary", "range", "lpm", "optional"];

impl<'p> Walk<'p> {
    /// Whether an expression is `isValid()` of the header whose field another one reads.
    fn is_validity_of(&self, frame: Frame<'p>, e: &Expr, field: &Expr) -> bool {
        match (&e.kind, &field.kind) {
            (ExprKind::IsValid(header), ExprKind::Read(field)) => {
                let header = self.name(frame, header);
                let field = self.name(frame, field);
                field.rsplit_once('.').is_some_and(|(of, _)| of == header)
            }
            (_, ExprKind::Cast(inner) | ExprKind::Slice(inner, ..)) => {
                self.is_validity_of(frame, e, inner)
            }
            _ => false,
        }
    }

    pub(super) fn table(
        &mut self,
        frame: Frame<'p>,
        table: usize,
        (hit, action_run): (Option<VarId>, Option<VarId>),
        mut state: State,
    ) -> State {
        let Some(table) = frame.unit.control.and_then(|c| c.tables.get(table)) else {
            return state;
        };
        for key in &table.key {
            // v1model looks up 0 for the field of an invalid header. Elsewhere an entry may ask beside the field whether the
            // header is there, or leave the field out.
            let asks = |other: &Expr| self.is_validity_of(frame, other, &key.expr);
            let is_guarded = table.key.iter().any(|other| asks(&other.expr));
            let may_be_left_out = LEFT_OUT.contains(&key.match_kind.as_str());
            if self.program.arch != Arch::V1model && !is_guarded && !may_be_left_out {
                self.read(frame, &key.expr, &mut state);
            }
        }
        let span = self.span;
        let mut ran = Vec::new();
        for offered in &table.actions {
            let state = self.block(frame, &offered.calls, state.clone());
            ran.push(self.action(frame, offered.action, &offered.args, state));
            self.span = span;
        }
        // `NoAction` that the table does not list.
        if table.default_action.action.is_none() {
            ran.push(state);
        }
        let mut after = State::default();
        for (n, mut state) in ran.into_iter().enumerate() {
            if let Some(var) = action_run {
                self.let_var(frame, var, n, &mut state);
            }
            let Some(var) = hit else {
                after = self.join(after, state);
                continue;
            };
            for (may_be, is_hit) in [(may_hit(table, n), 1), (may_miss(table, n), 0)] {
                if may_be {
                    let mut state = state.clone();
                    self.let_var(frame, var, is_hit, &mut state);
                    after = self.join(after, state);
                }
            }
        }
        after
    }

    /// Sets a variable to a number.
    fn let_var(&mut self, frame: Frame<'p>, var: VarId, number: usize, state: &mut State) {
        let place = self.var(frame, var);
        self.set_value(&place, &BigUint::from(number), state);
        let number = self.places.number(&place);
        state.set.insert(number);
    }

    pub(super) fn action(
        &mut self,
        frame: Frame<'p>,
        id: ActionId,
        args: &'p Args,
        mut state: State,
    ) -> State {
        let Some(action) = frame.unit.control.and_then(|c| c.actions.get(id.index())) else {
            return state;
        };
        let mut given = args.iter();
        for param in &action.params {
            // Those without a direction come from an entry, unless a body calls.
            if param.direction == Direction::None && args.len() < action.params.len() {
                self.frames[frame.number].remove(&param.var.0);
                let place = self.var(frame, param.var);
                let ty = &frame.unit.vars[param.var.index()].ty;
                self.give(&place, ty, &mut state);
            } else if let Some(arg) = given.next() {
                self.frames[frame.number].remove(&param.var.0);
                let own = self.var(frame, param.var);
                let ty = &frame.unit.vars[param.var.index()].ty;
                if let Some(place) = self.pass(frame, arg, (own, ty), &mut state) {
                    self.frames[frame.number].insert(param.var.0, place);
                }
            }
        }
        self.body(frame, &action.body, state)
    }

    pub(super) fn call(
        &mut self,
        frame: Frame<'p>,
        unit: Unit<'p>,
        (params, args): (&'p [Param], &'p Args),
        state: &mut State,
    ) -> Frame<'p> {
        let mut bound = BTreeMap::new();
        for (param, arg) in params.iter().zip(args) {
            let ty = &unit.vars[param.var.index()].ty;
            let own = self.places.root((unit.number, param.var.0));
            if let Some(place) = self.pass(frame, arg, (own, ty), state) {
                bound.insert(param.var.0, place);
            }
        }
        self.frame(unit, bound)
    }

    /// Evaluates an argument for a parameter; gives the caller's place if the parameter stands for that.
    pub(super) fn pass(
        &mut self,
        frame: Frame<'p>,
        arg: &'p Arg,
        (own, ty): (Place, &Type),
        state: &mut State,
    ) -> Option<Place> {
        match arg {
            Arg::In(e) => {
                self.read(frame, e, state);
                if let ExprKind::Read(from) = &e.kind
                    && let Some((place, _)) = self.locate(frame, from)
                    && from.path.iter().all(|a| matches!(a, Access::Field(_)))
                {
                    return Some(place);
                }
                self.assign_to(frame, &own, ty, Some(e), state);
                let number = self.places.number(&own);
                state.set.insert(number);
                None
            }
            Arg::Out(to) => {
                self.reset(frame, to, state);
                self.alias(frame, to, (own, ty), state)
            }
            Arg::InOut(to) => self.alias(frame, to, (own, ty), state),
            Arg::InOutSaved { value, to } => {
                self.read(frame, value, state);
                self.alias(frame, to, (own, ty), state)
            }
            Arg::Ignore | Arg::Object(_) | Arg::Extern(_) => None,
        }
    }

    pub(super) fn alias(
        &mut self,
        frame: Frame<'p>,
        to: &LValue,
        (own, ty): (Place, &Type),
        state: &mut State,
    ) -> Option<Place> {
        let whole = to.path.iter().all(|a| matches!(a, Access::Field(_)));
        if whole && let Some((place, _)) = self.locate(frame, to) {
            return Some(place);
        }
        self.give(&own, ty, state);
        None
    }

    pub(super) fn external(
        &mut self,
        frame: Frame<'p>,
        args: &'p [Arg],
        result: Option<&LValue>,
        state: &mut State,
    ) {
        for arg in args {
            if let Arg::In(e) = arg {
                self.read(frame, e, state);
            }
        }
        let written = args.iter().filter_map(|arg| match arg {
            Arg::Out(to) | Arg::InOut(to) | Arg::InOutSaved { to, .. } => Some(to),
            _ => None,
        });
        for to in written.chain(result) {
            self.assign(frame, to, None, state);
        }
    }
}

/// Whether a hit may run the table's n-th action.
fn may_hit(table: &Table, n: usize) -> bool {
    n < table.actions.len() && !is_annotated(table, n, "defaultonly")
}

/// Whether a miss may run it; behind the last action stands that of a table without a default action.
fn may_miss(table: &Table, n: usize) -> bool {
    match table.default_action.action {
        Some(default) if table.const_default => n == default,
        None if table.const_default => n == table.actions.len(),
        _ => !is_annotated(table, n, "tableonly"),
    }
}

fn is_annotated(table: &Table, n: usize, name: &str) -> bool {
    let offered = table.actions.get(n);
    offered.is_some_and(|a| a.annotations.iter().any(|a| a.name == name))
}

/// The number that stands for a scalar constant in the facts.
pub(super) fn value(constant: &Const) -> Option<BigUint> {
    match constant {
        Const::Bits { value, .. } => Some(value.clone()),
        Const::Bool(is) => Some(BigUint::from(u8::from(*is))),
        Const::Enum(_, member) | Const::Error(member) => Some(BigUint::from(*member)),
        _ => None,
    }
}
