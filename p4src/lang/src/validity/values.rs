//! Places, what is written there, and what expressions read.

use super::state::{Place, State};
use super::{Frame, Walk};
use crate::ast::StructKind;
use crate::ir::{Access, BinOp, Const, Expr, ExprKind, LValue, Type, UnOp, VarId};

impl<'p> Walk<'p> {
    pub(super) fn var(&mut self, frame: Frame<'p>, var: VarId) -> Place {
        let bound = self.frames[frame.number].get(&var.0).cloned();
        bound.unwrap_or_else(|| {
            let own = (self.chain, frame.number as u32, var.0);
            self.places.root(own)
        })
    }

    /// Where a path leads, and the innermost header on it; `None` into stacks and unions.
    pub(super) fn locate(
        &mut self,
        frame: Frame<'p>,
        lvalue: &LValue,
    ) -> Option<(Place, Option<Place>)> {
        let mut ty = frame.vars[lvalue.var.index()].ty.clone();
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

    /// The headers in a value that are followed.
    pub(super) fn headers(&self, place: &Place, ty: &Type, found: &mut Vec<Place>) {
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
            let bit = self.bit(&place);
            state.set_valid(bit, valid);
        }
    }

    pub(super) fn reset(&mut self, frame: Frame<'p>, to: &LValue, state: &mut State) {
        if let Some((place, _)) = self.locate(frame, to) {
            let mut headers = Vec::new();
            self.headers(&place, &to.ty, &mut headers);
            for header in headers {
                let bit = self.bit(&header);
                state.set_valid(bit, false);
            }
            let places = &self.places;
            state.set.retain(|n| !place.holds(places.named(*n)));
        }
    }

    /// Writes a value; `None`: one that is valid and set.
    pub(super) fn assign(
        &mut self,
        frame: Frame<'p>,
        to: &LValue,
        value: Option<&Expr>,
        state: &mut State,
    ) {
        let Some((place, _)) = self.locate(frame, to) else {
            return;
        };
        self.assign_to(frame, &place, &to.ty, value, state);
        let number = self.places.number(&place);
        state.set.insert(number);
    }

    pub(super) fn assign_to(
        &mut self,
        frame: Frame<'p>,
        place: &Place,
        ty: &Type,
        value: Option<&Expr>,
        state: &mut State,
    ) {
        let Type::Struct(id) = ty else { return };
        let owner = &self.program.types[id.index()];
        if let (StructKind::Struct, Some(ExprKind::Tuple(parts))) =
            (owner.kind, value.map(|v| &v.kind))
        {
            for ((i, field), part) in owner.fields.iter().enumerate().zip(parts) {
                self.assign_to(frame, &place.field(i as u32), &field.ty, Some(part), state);
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
            let bit = self.bit(&header);
            match (&from, value.map(|v| &v.kind)) {
                (Some(from), _) => {
                    let from = self.bit(&from.follow(&header.path[place.path.len()..]));
                    state.copy_valid(bit, from);
                }
                (None, Some(ExprKind::InvalidHeader)) => state.set_valid(bit, false),
                (None, _) => state.set_valid(bit, true),
            }
        }
    }

    /// Reads what an expression reads.
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
            let bit = self.bit(&header);
            let (some, all) = state.validity(bit);
            if !all {
                let field = self.name(frame, lvalue);
                let header = field.rsplit_once('.').map_or(&*field, |(header, _)| header);
                let (message, hint) = match some {
                    true => (
                        format!("`{field}` is read where `{header}` may be invalid"),
                        format!("read it under `if ({header}.isValid())`"),
                    ),
                    false => (
                        format!("`{field}` is read where `{header}` is always invalid"),
                        "make the header valid first".to_owned(),
                    ),
                };
                self.found.insert((self.span, message), hint);
            }
        } else if matches!(lvalue.ty, Type::Bool | Type::Bit(_) | Type::Int(_)) {
            let places = &self.places;
            let known = state.set.iter().map(|n| places.named(*n));
            if !known.into_iter().any(|set| set.holds(&place)) {
                let value = self.name(frame, lvalue);
                let message = format!("`{value}` is read, and no path to here sets it");
                let hint = "set it first, or leave it out".to_owned();
                self.found.insert((self.span, message), hint);
            }
        }
    }

    pub(super) fn name(&self, frame: Frame<'p>, lvalue: &LValue) -> String {
        let var = &frame.vars[lvalue.var.index()];
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

    /// What holds where a condition is true, and where it is false.
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
                    let bit = self.bit(&place);
                    state.split(bit)
                }
                _ => (state.clone(), state),
            },
            ExprKind::Unary(UnOp::Not, a) => {
                let (yes, no) = self.condition(frame, a, state);
                (no, yes)
            }
            ExprKind::Binary(BinOp::LogAnd, a, b) => {
                let (yes, no) = self.condition(frame, a, state);
                let (both, not) = self.condition(frame, b, yes);
                (both, no.joined(not))
            }
            ExprKind::Binary(BinOp::LogOr, a, b) => {
                let (yes, no) = self.condition(frame, a, state);
                let (other, neither) = self.condition(frame, b, no);
                (yes.joined(other), neither)
            }
            _ => {
                self.read(frame, e, &mut state);
                (state.clone(), state)
            }
        }
    }

    /// Whether a value written there sends the packet somewhere.
    pub(super) fn sends(&self, frame: Frame<'p>, to: &LValue) -> bool {
        let Type::Struct(id) = &frame.vars[to.var.index()].ty else {
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
