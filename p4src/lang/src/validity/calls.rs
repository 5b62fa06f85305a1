//! Calls: tables, actions, units, what the architecture brings along.

use super::state::{Place, State};
use super::{Frame, Outcome, Walk};
use crate::ast::Direction;
use crate::ir::{
    Access, ActionId, Arch, Arg, Args, Const, Control, Expr, ExprKind, LValue, Param, Type, UnOp,
    Var, VarId,
};
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
        let Some(table) = frame.control.and_then(|c| c.tables.get(table)) else {
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
        for var in [hit, action_run].into_iter().flatten() {
            let place = self.var(frame, var);
            let number = self.places.number(&place);
            state.set.insert(number);
        }
        let span = self.span;
        let mut after = Vec::new();
        for offered in &table.actions {
            let state = self.block(frame, &offered.calls, state.clone());
            after.push(self.action(frame, offered.action, &offered.args, state));
            self.span = span;
        }
        // `NoAction` that the table does not list.
        after.push(match table.default_action.action {
            None => state,
            Some(_) => State::default(),
        });
        let joined = after.iter().cloned().fold(State::default(), State::joined);
        self.outcome = Some(Outcome {
            table,
            hit,
            action_run,
            after,
        });
        joined
    }

    pub(super) fn action(
        &mut self,
        frame: Frame<'p>,
        id: ActionId,
        args: &'p Args,
        mut state: State,
    ) -> State {
        let Some(action) = frame.control.and_then(|c| c.actions.get(id.index())) else {
            return state;
        };
        let mut given = args.iter();
        for param in &action.params {
            // Those without a direction come from an entry, unless a body calls.
            if param.direction == Direction::None && args.len() < action.params.len() {
                self.frames[frame.number].remove(&param.var.0);
                let place = self.var(frame, param.var);
                let number = self.places.number(&place);
                state.set.insert(number);
            } else if let Some(arg) = given.next() {
                self.frames[frame.number].remove(&param.var.0);
                let own = self.var(frame, param.var);
                let ty = &frame.vars[param.var.index()].ty;
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
        (vars, control): (&'p [Var], Option<&'p Control>),
        (chain, unit): (u32, u32),
        (params, args): (&'p [Param], &'p Args),
        state: &mut State,
    ) -> Frame<'p> {
        let mut bound = BTreeMap::new();
        for (n, var) in vars.iter().enumerate() {
            if matches!(var.ty, Type::Extern(_)) {
                continue;
            }
            bound.insert(n as u32, self.places.root((chain, unit, n as u32)));
        }
        for (param, arg) in params.iter().zip(args) {
            let ty = &vars[param.var.index()].ty;
            let Some(own) = bound.get(&param.var.0).cloned() else {
                continue;
            };
            if let Some(place) = self.pass(frame, arg, (own, ty), state) {
                bound.insert(param.var.0, place);
            }
        }
        self.frame(vars, control, bound)
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
                self.give(&own, ty, state);
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

impl Outcome<'_> {
    /// What holds on a hit and on a miss, if the condition asks that.
    pub(super) fn by_hit(&self, condition: &Expr) -> Option<(State, State)> {
        let (asked, swapped) = match &condition.kind {
            ExprKind::Unary(UnOp::Not, inner) => (&inner.kind, true),
            kind => (kind, false),
        };
        let ExprKind::Read(lvalue) = asked else {
            return None;
        };
        if Some(lvalue.var) != self.hit || !lvalue.path.is_empty() {
            return None;
        }
        let (mut hit, mut miss) = (State::default(), State::default());
        for (n, state) in self.after.iter().enumerate() {
            let annotated = |name: &str| {
                let offered = self.table.actions.get(n);
                offered.is_some_and(|a| a.annotations.iter().any(|a| a.name == name))
            };
            let default = match self.table.default_action.action {
                Some(default) if self.table.const_default => n == default,
                None if self.table.const_default => n == self.table.actions.len(),
                _ => !annotated("tableonly"),
            };
            if n < self.table.actions.len() && !annotated("defaultonly") {
                hit.join(state.clone());
            }
            if default {
                miss.join(state.clone());
            }
        }
        Some(if swapped { (miss, hit) } else { (hit, miss) })
    }

    pub(super) fn is_action_run(&self, value: &Expr) -> bool {
        matches!(&value.kind, ExprKind::Read(lvalue)
            if Some(lvalue.var) == self.action_run && lvalue.path.is_empty())
    }
}

pub(super) fn number(label: &Const) -> Option<usize> {
    match label {
        Const::Bits { value, .. } => usize::try_from(value).ok(),
        _ => None,
    }
}
