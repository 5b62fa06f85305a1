//! Resolves lvalues to variables and their parts, and assigns values to them.

use super::calls::value as number;
use super::state::{Kind, State, VarPart};
use super::{Frame, Walk};
use crate::ast::StructKind;
use crate::ir::{Access, Expr, ExprKind, LValue, Type, VarId};
use num_bigint::BigUint;

impl<'p> Walk<'p> {
    pub(super) fn var(&mut self, frame: Frame<'p>, var: VarId) -> VarPart {
        let bound = self.frames[frame.number].get(&var.0).cloned();
        bound.unwrap_or_else(|| self.places.root((frame.unit.number, var.0)))
    }

    /// The variable or part that an lvalue denotes, and the innermost header around it; `None` inside stacks and unions.
    pub(super) fn locate(
        &mut self,
        frame: Frame<'p>,
        lvalue: &LValue,
    ) -> Option<(VarPart, Option<VarPart>)> {
        let mut ty = frame.unit.vars[lvalue.var.index()].ty.clone();
        let mut place = self.var(frame, lvalue.var);
        let mut header = None;
        for access in &lvalue.path {
            match (access, &ty) {
                (Access::Field(i), Type::Struct(id)) => {
                    let owner = &self.program.types[id.index()];
                    match owner.kind {
                        StructKind::Header => header = Some(place.clone()),
                        StructKind::Union => return None,
                        StructKind::Struct => {}
                    }
                    place = place.field(*i);
                    ty = owner.fields.get(*i as usize)?.ty.clone();
                }
                (Access::Slice(..), _) => {}
                _ => return None,
            }
        }
        Some((place, header))
    }

    /// Collects the headers in a value whose validity the analysis follows.
    pub(super) fn headers(&self, place: &VarPart, ty: &Type, found: &mut Vec<VarPart>) {
        let Type::Struct(id) = ty else { return };
        let owner = &self.program.types[id.index()];
        match owner.kind {
            StructKind::Header => found.push(place.clone()),
            StructKind::Union => {}
            StructKind::Struct => {
                for (i, field) in owner.fields.iter().enumerate() {
                    self.headers(&place.field(i as u32), &field.ty, found);
                }
            }
        }
    }

    pub(super) fn set_valid(
        &mut self,
        frame: Frame<'p>,
        header: &LValue,
        valid: bool,
        state: &mut State,
    ) {
        if let Some((place, _)) = self.locate(frame, header) {
            let fact = self.fact(&place);
            self.hold(state, fact, valid);
            self.forget_in(&place, state);
        }
    }

    /// Sets the initial state of a variable without initializer or of an `out` parameter: headers invalid, values not set.
    pub(super) fn reset(&mut self, frame: Frame<'p>, to: &LValue, state: &mut State) {
        if let Some((place, _)) = self.locate(frame, to) {
            let mut headers = Vec::new();
            self.headers(&place, &to.ty, &mut headers);
            for header in headers {
                let fact = self.fact(&header);
                self.hold(state, fact, false);
            }
            let parts = self.facts.values_in(&place);
            let parts = parts.map(|(part, value)| (part.clone(), value.kind));
            for (part, kind) in parts.collect::<Vec<_>>() {
                match kind {
                    Kind::Variable => self.set_value(&part, &BigUint::ZERO, state),
                    Kind::Header | Kind::Field => self.forget_in(&part, state),
                }
            }
            let places = &self.places;
            state.set.retain(|n| !place.holds(places.named(*n)));
        }
    }

    /// Assigns a value to an lvalue; `None` stands for an unknown value that is valid and set.
    pub(super) fn assign(
        &mut self,
        frame: Frame<'p>,
        to: &LValue,
        value: Option<&Expr>,
        state: &mut State,
    ) {
        let Some((place, header)) = self.locate(frame, to) else {
            return;
        };
        if self.is_first && is_scalar(&to.ty) {
            self.facts.meet(&place, kind(header.as_ref()));
        }
        if let Some(Access::Slice(..)) = to.path.last() {
            self.forget_in(&place, state);
        } else {
            self.assign_to(frame, &place, &to.ty, value, state);
        }
        let number = self.places.number(&place);
        state.set.insert(number);
    }

    pub(super) fn assign_to(
        &mut self,
        frame: Frame<'p>,
        place: &VarPart,
        ty: &Type,
        value: Option<&Expr>,
        state: &mut State,
    ) {
        let Type::Struct(id) = ty else {
            return self.assign_scalar(frame, place, value, state);
        };
        let owner = &self.program.types[id.index()];
        if let Some(ExprKind::Tuple(parts)) = value.map(|v| &v.kind) {
            if owner.kind == StructKind::Header {
                let fact = self.fact(place);
                self.hold(state, fact, true);
            }
            for ((i, field), part) in (0..).zip(&owner.fields).zip(parts) {
                self.assign_to(frame, &place.field(i), &field.ty, Some(part), state);
            }
            return;
        }
        let from = match value.map(|v| &v.kind) {
            Some(ExprKind::Read(from)) => self.locate(frame, from).map(|(from, _)| from),
            _ => None,
        };
        let mut headers = Vec::new();
        self.headers(place, ty, &mut headers);
        for header in headers {
            let fact = self.fact(&header);
            match (&from, value.map(|v| &v.kind)) {
                (Some(from), _) => {
                    let from = self.fact(&header.moved(place, from));
                    self.hold_as(state, fact, from);
                }
                (None, Some(ExprKind::InvalidHeader)) => self.hold(state, fact, false),
                (None, _) => self.hold(state, fact, true),
            }
        }
        match from {
            Some(from) => self.copy_values(place, &from, state),
            None => self.forget_in(place, state),
        }
    }

    fn assign_scalar(
        &mut self,
        frame: Frame<'p>,
        place: &VarPart,
        value: Option<&Expr>,
        state: &mut State,
    ) {
        let Some(value) = value else {
            return self.forget_in(place, state);
        };
        let constant = match &value.kind {
            ExprKind::Const(constant) => number(constant),
            _ => None,
        };
        if let Some(constant) = constant {
            self.set_value(place, &constant, state);
        } else if let Some(from) = self.comparable(frame, value) {
            self.copy_values(place, &from, state);
        } else if let ExprKind::Mux(condition, yes, no) = &value.kind {
            let sides = self.condition(frame, condition, state.clone());
            let (mut on_yes, mut on_no) = sides;
            self.assign_scalar(frame, place, Some(yes), &mut on_yes);
            self.assign_scalar(frame, place, Some(no), &mut on_no);
            *state = self.join(on_yes, on_no);
        } else if value.ty == Type::Bool || is_cast_of_bool(value) {
            let (mut yes, mut no) = self.condition(frame, value, state.clone());
            self.set_value(place, &BigUint::from(1u8), &mut yes);
            self.set_value(place, &BigUint::ZERO, &mut no);
            *state = self.join(yes, no);
        } else {
            self.forget_in(place, state);
        }
    }

    /// The variable or part that a scalar expression reads as a whole; `None` if the analysis does not follow it.
    pub(super) fn comparable(&mut self, frame: Frame<'p>, e: &Expr) -> Option<VarPart> {
        match &e.kind {
            ExprKind::Read(from) if is_scalar(&e.ty) => {
                let (place, header) = self.locate(frame, from)?;
                if matches!(from.path.last(), Some(Access::Slice(..))) {
                    return None;
                }
                if self.is_first {
                    self.facts.meet(&place, kind(header.as_ref()));
                }
                Some(place)
            }
            // A cast between `bool` and `bit<1>`.
            ExprKind::Cast(inner) if is_bit(&e.ty) && is_bit(&inner.ty) => {
                self.comparable(frame, inner)
            }
            _ => None,
        }
    }

    /// Whether a write to this lvalue sends the packet, as v1model's `egress_spec` does: it cancels an earlier drop.
    pub(super) fn sends(&self, frame: Frame<'p>, to: &LValue) -> bool {
        let Type::Struct(id) = &frame.unit.vars[to.var.index()].ty else {
            return false;
        };
        let owner = &self.program.types[id.index()];
        let [Access::Field(i), ..] = to.path[..] else {
            return false;
        };
        let field = owner.fields.get(i as usize).map(|f| f.name.as_str());
        owner.name == "standard_metadata_t" && matches!(field, Some("egress_spec" | "mcast_grp"))
    }

    pub(super) fn is_header(&self, ty: &Type) -> bool {
        matches!(ty, Type::Struct(id) if self.program.types[id.index()].kind == StructKind::Header)
    }
}

/// Whether the analysis follows values of this type through comparisons.
fn is_scalar(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Bool | Type::Bit(_) | Type::Int(_) | Type::Enum(_) | Type::Error
    )
}

fn is_bit(ty: &Type) -> bool {
    matches!(ty, Type::Bool | Type::Bit(1))
}

/// Whether an expression casts between `bool` and `bit<1>`.
pub(super) fn is_cast_of_bool(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Cast(inner) if is_bit(&e.ty) && is_bit(&inner.ty))
}

fn kind(header: Option<&VarPart>) -> Kind {
    match header {
        Some(_) => Kind::Field,
        None => Kind::Variable,
    }
}
