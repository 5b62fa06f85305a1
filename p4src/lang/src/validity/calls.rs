//! Follows calls in the validity analysis: of actions, parsers, controls, functions, and methods of the architecture.

use super::state::{State, VarPart};
use super::{Frame, Unit, Walk};
use crate::ast::Direction;
use crate::ir::{Access, ActionId, Arg, Args, Const, ExprKind, LValue, Param, Type};
use num_bigint::BigUint;
use std::collections::BTreeMap;

impl<'p> Walk<'p> {
    /// Analyzes the run of an action. `data`: the arguments from the table entry; `None` if they are not known.
    pub(super) fn action(
        &mut self,
        frame: Frame<'p>,
        id: ActionId,
        args: &'p Args,
        data: Option<&[Const]>,
        mut state: State,
    ) -> State {
        let Some(action) = frame.unit.control.and_then(|c| c.actions.get(id.index())) else {
            return state;
        };
        let mut given = args.iter();
        let mut data = data.into_iter().flatten();
        for param in &action.params {
            // The table's entry supplies directionless parameters, unless a body calls the action.
            if param.direction == Direction::None && args.len() < action.params.len() {
                self.frames[frame.number].remove(&param.var.0);
                let place = self.var(frame, param.var);
                let ty = &frame.unit.vars[param.var.index()].ty;
                self.give(&place, ty, &mut state);
                if let Some(constant) = data.next().and_then(value) {
                    self.set_value(&place, &constant, &mut state);
                }
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

    /// Passes an argument. If the parameter can stand for a variable or part of the caller, returns that; else `None`.
    pub(super) fn pass(
        &mut self,
        frame: Frame<'p>,
        arg: &'p Arg,
        (own, ty): (VarPart, &Type),
        state: &mut State,
    ) -> Option<VarPart> {
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
        (own, ty): (VarPart, &Type),
        state: &mut State,
    ) -> Option<VarPart> {
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

/// The number that represents a scalar constant in facts; `None` if the constant is no scalar.
pub(super) fn value(constant: &Const) -> Option<BigUint> {
    match constant {
        Const::Bits { value, .. } => Some(value.clone()),
        Const::Bool(is) => Some(BigUint::from(u8::from(*is))),
        Const::Enum(_, member) | Const::Error(member) => Some(BigUint::from(*member)),
        _ => None,
    }
}
