//! Analyzes the reads in expressions, and the facts that follow from conditions.

use super::calls::value;
use super::state::State;
use super::values::is_cast_of_bool;
use super::{Frame, Walk};
use crate::ir::{Access, BinOp, Const, Expr, ExprKind, LValue, Type, UnOp};
use num_bigint::BigUint;

impl<'p> Walk<'p> {
    /// Records the reads of header fields and variables in an expression.
    pub(super) fn read(&mut self, frame: Frame<'p>, e: &Expr, state: &mut State) {
        match &e.kind {
            ExprKind::Read(lvalue) => self.read_place(frame, lvalue, state),
            ExprKind::Unary(_, a) | ExprKind::Cast(a) | ExprKind::Slice(a, ..) => {
                self.read(frame, a, state);
            }
            ExprKind::Binary(BinOp::LogAnd | BinOp::LogOr, ..) => {
                self.condition(frame, e, state.clone());
            }
            ExprKind::Binary(_, a, b) | ExprKind::Concat(a, b) => {
                self.read(frame, a, state);
                self.read(frame, b, state);
            }
            ExprKind::Mux(c, a, b) => {
                let (mut yes, mut no) = self.condition(frame, c, state.clone());
                self.read(frame, a, &mut yes);
                self.read(frame, b, &mut no);
            }
            ExprKind::Tuple(parts) => {
                for part in parts {
                    self.read(frame, part, state);
                }
            }
            ExprKind::Const(_)
            | ExprKind::IsValid(_)
            | ExprKind::LastIndex(_)
            | ExprKind::InvalidHeader => {}
        }
    }

    pub(super) fn read_place(&mut self, frame: Frame<'p>, lvalue: &LValue, state: &mut State) {
        for access in &lvalue.path {
            if let Access::Index(e) = access {
                self.read(frame, e, state);
            }
        }
        if state.is_unreachable() {
            return;
        }
        let Some((place, header)) = self.locate(frame, lvalue) else {
            return;
        };
        if let Some(header) = header {
            let fact = self.fact(&header);
            let (some, all) = self.known(state, fact);
            let field = self.name(frame, lvalue);
            let header = field.rsplit_once('.').map_or(&*field, |(header, _)| header);
            let new = (header.to_owned(), false, true);
            let read = self.reads.entry((self.span, field)).or_insert(new);
            read.1 |= some;
            read.2 &= all;
        } else if matches!(lvalue.ty, Type::Bool | Type::Bit(_) | Type::Int(_)) {
            let places = &self.places;
            let known = state.set.iter().map(|n| places.named(*n));
            if !known.into_iter().any(|set| set.holds(&place)) {
                let value = self.name(frame, lvalue);
                let message = format!("`{value}` is read, but no path to here sets it");
                let hint = "assign to it before this, or remove the read".to_owned();
                self.found.insert((self.span, message), hint);
            }
        }
    }

    pub(super) fn name(&self, frame: Frame<'p>, lvalue: &LValue) -> String {
        let var = &frame.unit.vars[lvalue.var.index()];
        let (mut name, mut ty) = (var.name.clone(), var.ty.clone());
        for access in &lvalue.path {
            if let (Access::Field(i), Type::Struct(id)) = (access, &ty)
                && let Some(field) = self.program.types[id.index()].fields.get(*i as usize)
            {
                name = format!("{name}.{}", field.name);
                ty = field.ty.clone();
            }
        }
        name
    }

    /// Splits the paths by a condition: (paths where it is true, where it is false). A bit is a condition too: true if it is 1.
    pub(super) fn condition(
        &mut self,
        frame: Frame<'p>,
        e: &Expr,
        mut state: State,
    ) -> (State, State) {
        match &e.kind {
            ExprKind::Const(Const::Bool(true)) => (state, State::default()),
            ExprKind::Const(Const::Bool(false)) => (State::default(), state),
            ExprKind::IsValid(header) => match self.locate(frame, header) {
                Some((place, _)) if self.is_header(&header.ty) => {
                    let fact = self.fact(&place);
                    self.split(state, fact)
                }
                _ => (state.clone(), state),
            },
            ExprKind::Cast(inner) if is_cast_of_bool(e) => self.condition(frame, inner, state),
            ExprKind::Unary(UnOp::Not, a) => {
                let (yes, no) = self.condition(frame, a, state);
                (no, yes)
            }
            ExprKind::Binary(BinOp::LogAnd, a, b) => {
                let (yes, no) = self.condition(frame, a, state);
                let (both, not) = self.condition(frame, b, yes);
                (both, self.join(no, not))
            }
            ExprKind::Binary(BinOp::LogOr, a, b) => {
                let (yes, no) = self.condition(frame, a, state);
                let (other, neither) = self.condition(frame, b, no);
                (self.join(yes, other), neither)
            }
            ExprKind::Mux(c, a, b) => {
                let (yes, no) = self.condition(frame, c, state);
                let (a_yes, a_no) = self.condition(frame, a, yes);
                let (b_yes, b_no) = self.condition(frame, b, no);
                (self.join(a_yes, b_yes), self.join(a_no, b_no))
            }
            ExprKind::Binary(op @ (BinOp::Eq | BinOp::Ne), a, b) => {
                let (side, constant) = match (&a.kind, &b.kind) {
                    (_, ExprKind::Const(constant)) => (a, value(constant)),
                    (ExprKind::Const(constant), _) => (b, value(constant)),
                    _ => (a, None),
                };
                let (yes, no) = match &constant {
                    // `h.isValid() == true`
                    Some(constant) if side.ty == Type::Bool || is_cast_of_bool(side) => {
                        let (yes, no) = self.condition(frame, side, state);
                        match *constant == BigUint::ZERO {
                            true => (no, yes),
                            false => (yes, no),
                        }
                    }
                    _ => {
                        self.read(frame, a, &mut state);
                        self.read(frame, b, &mut state);
                        self.equal(frame, side, constant.as_ref(), state)
                    }
                };
                match op {
                    BinOp::Eq => (yes, no),
                    _ => (no, yes),
                }
            }
            _ => {
                self.read(frame, e, &mut state);
                self.equal(frame, e, Some(&BigUint::from(1u8)), state)
            }
        }
    }

    /// Splits the paths by a comparison: (paths where `e` equals the constant, others). `None`: the constant is not known.
    pub(super) fn equal(
        &mut self,
        frame: Frame<'p>,
        e: &Expr,
        constant: Option<&BigUint>,
        state: State,
    ) -> (State, State) {
        if let (Some(constant), ExprKind::IsValid(_)) = (constant, &e.kind) {
            let (yes, no) = self.condition(frame, e, state);
            return match *constant == BigUint::ZERO {
                true => (no, yes),
                false => (yes, no),
            };
        }
        let (Some(constant), Some(place)) = (constant, self.comparable(frame, e)) else {
            return (state.clone(), state);
        };
        // A bit that is not 0 is 1.
        let is_negated = matches!(e.ty, Type::Bool | Type::Bit(1)) && *constant == BigUint::ZERO;
        let constant = match is_negated {
            true => BigUint::from(1u8),
            false => constant.clone(),
        };
        if self.is_first {
            self.facts.compare(&place, constant);
            return (state.clone(), state);
        }
        let (yes, no) = self.split_value(&place, &constant, state);
        match is_negated {
            true => (no, yes),
            false => (yes, no),
        }
    }
}
