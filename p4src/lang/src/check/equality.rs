//! Lowers `==` and `!=` on every type (P4_16 1.2.5, section 8.5, 8.17, 8.18): aggregates become a conjunction over their fields.

use super::Checker;
use super::fold::{self, and, or};
use super::types::Ty;
use super::value::Val;
use crate::ast::{BinOp, StructKind};
use crate::diagnostics::Code;
use crate::ir::{self, Access, Expr, ExprKind};
use crate::limits::LIMITS;
use crate::source::Span;

impl<'a> Checker<'a, '_> {
    pub(crate) fn equality(
        &mut self,
        negate: bool,
        left: Val<'a>,
        right: Val<'a>,
        at: (Span, Span, Span),
    ) -> Val<'a> {
        if let (Val::Integer(a), Val::Integer(b)) = (&left, &right) {
            return Val::Expr(Ty::Bool, fold::boolean((a == b) != negate));
        }
        // `h == {#}`
        if matches!(left, Val::Invalid) || matches!(right, Val::Invalid) {
            let (other, span) = if matches!(left, Val::Invalid) {
                (right, at.1)
            } else {
                (left, at.0)
            };
            let Some((ty, e)) = self.rvalue(other, span) else {
                return Val::Poison;
            };
            if !self.types.is_header(&ty) && !self.types.is_union(&ty) {
                let shown = self.types.show(&ty);
                self.err(
                    Code::Type,
                    span,
                    format!("{{#}} is an invalid header and cannot be compared with {shown}"),
                );
                return Val::Poison;
            }
            let valid = match &e.kind {
                ExprKind::Tuple(_) | ExprKind::InvalidHeader => self.validity(&ty, &e, span),
                _ => is_valid(self.place_of(ty, e, span).lv),
            };
            let e = if negate {
                valid
            } else {
                fold::unary(ir::UnOp::Not, valid)
            };
            return Val::Expr(Ty::Bool, e);
        }
        let operands = match (&left, &right) {
            // A list takes the type of the other operand.
            (Val::List(_), Val::List(_)) => self.same_type(left, right, at),
            (Val::List(_), _) => self.against(right, left, (at.1, at.0)),
            (_, Val::List(_)) => self.against(left, right, (at.0, at.1)),
            _ => self.same_type(left, right, at),
        };
        let Some((ty, a, b)) = operands else {
            return Val::Poison;
        };
        let mut terms = 0;
        let Some(e) = self.equal(&ty, a, b, at.2, &mut terms) else {
            return Val::Poison;
        };
        let e = if negate { negated(e) } else { e };
        Val::Expr(Ty::Bool, e)
    }

    fn against(
        &mut self,
        typed: Val<'a>,
        list: Val<'a>,
        at: (Span, Span),
    ) -> Option<(Ty, Expr, Expr)> {
        let (ty, a) = self.rvalue(typed, at.0)?;
        let b = self.coerce(list, &ty, at.1)?;
        Some((ty, a, b))
    }

    fn equal(&mut self, ty: &Ty, a: Expr, b: Expr, span: Span, terms: &mut usize) -> Option<Expr> {
        *terms += 1;
        if *terms > LIMITS.compared_fields {
            let most = LIMITS.compared_fields;
            let message = format!("too many fields to compare: more than {most}");
            self.err(Code::Limit, span, message);
            return None;
        }
        if !self.write_out(steps(&a) + steps(&b), span) {
            return None;
        }
        let bare = self.types.strip_new(ty).clone();
        match &bare {
            Ty::Bit(_)
            | Ty::Int(_)
            | Ty::Bool
            | Ty::Error
            | Ty::Enum(_)
            | Ty::SerEnum(_)
            | Ty::Varbit(_)
            | Ty::MatchKind => match fold::binary(BinOp::Eq, a, b, ir::Type::Bool) {
                Ok(e) => Some(e),
                Err(fault) => {
                    self.err(Code::Constant, span, fault);
                    None
                }
            },
            Ty::Struct(i) => {
                let info = &self.types.structs[*i as usize];
                let kind = info.kind;
                let fields: Vec<Ty> = info.fields.iter().map(|(_, t)| t.clone()).collect();
                let header = kind == StructKind::Header;
                // A header given as a list is valid; its parts need no variable.
                let (va, vb) = if header {
                    (self.validity(ty, &a, span), self.validity(ty, &b, span))
                } else {
                    (fold::boolean(true), fold::boolean(true))
                };
                let (a, b) = (self.fieldwise(ty, a, span), self.fieldwise(ty, b, span));
                let mut all = fold::boolean(true);
                for (n, field) in fields.iter().enumerate() {
                    let x = self.part(&a, n, field);
                    let y = self.part(&b, n, field);
                    let e = self.equal(field, x, y, span, terms)?;
                    all = and(all, e);
                }
                if !header {
                    return Some(all);
                }
                let neither = and(
                    fold::unary(ir::UnOp::Not, va.clone()),
                    fold::unary(ir::UnOp::Not, vb.clone()),
                );
                Some(or(neither, and(and(va, vb), all)))
            }
            Ty::Tuple(items) => {
                let items = items.clone();
                let (a, b) = (self.fieldwise(ty, a, span), self.fieldwise(ty, b, span));
                let mut all = fold::boolean(true);
                for (n, item) in items.iter().enumerate() {
                    let x = self.part(&a, n, item);
                    let y = self.part(&b, n, item);
                    let e = self.equal(item, x, y, span, terms)?;
                    all = and(all, e);
                }
                Some(all)
            }
            Ty::Stack(elem, n) => {
                let (elem, n) = ((**elem).clone(), *n);
                let (a, b) = (self.fieldwise(ty, a, span), self.fieldwise(ty, b, span));
                let mut all = fold::boolean(true);
                for i in 0..n {
                    let x = self.element_of(ty, &a, i, &elem, span);
                    let y = self.element_of(ty, &b, i, &elem, span);
                    let e = self.equal(&elem, x, y, span, terms)?;
                    all = and(all, e);
                }
                Some(all)
            }
            Ty::Poison => None,
            _ => {
                let shown = self.types.show(ty);
                self.err(
                    Code::Type,
                    span,
                    format!("values of type {shown} cannot be compared"),
                );
                None
            }
        }
    }

    fn validity(&mut self, _ty: &Ty, e: &Expr, _span: Span) -> Expr {
        match &e.kind {
            ExprKind::Tuple(_) => fold::boolean(true),
            ExprKind::InvalidHeader => fold::boolean(false),
            ExprKind::Read(lv) => is_valid(lv.clone()),
            _ => fold::boolean(true),
        }
    }

    /// Makes the fields of a value accessible: returns a tuple or lvalue as it is, and stores any other value in a temporary.
    fn fieldwise(&mut self, ty: &Ty, e: Expr, span: Span) -> Expr {
        match e.kind {
            ExprKind::Tuple(_) | ExprKind::Read(_) => e,
            _ => self.place_of(ty.clone(), e, span).read().1,
        }
    }

    /// Element `i` of an array that [`Self::fieldwise`] returned.
    fn element_of(&mut self, ty: &Ty, array: &Expr, i: u32, elem: &Ty, span: Span) -> Expr {
        match self.written_element(array, i as usize, elem) {
            Some(e) => e,
            None => {
                let place = self.place_of(ty.clone(), array.clone(), span);
                let at = fold::bits(&i.into(), &ir::Type::Bit(32));
                self.element(place, at, elem).read().1
            }
        }
    }

    fn part(&self, e: &Expr, n: usize, ty: &Ty) -> Expr {
        match &e.kind {
            ExprKind::Tuple(parts) => parts.get(n).cloned().unwrap_or_else(|| e.clone()),
            ExprKind::Read(lv) => {
                let mut lv = lv.clone();
                lv.path.push(Access::Field(n as u32));
                lv.ty = self.types.ir(ty);
                let ty = lv.ty.clone();
                Expr {
                    kind: ExprKind::Read(lv),
                    ty,
                }
            }
            _ => e.clone(),
        }
    }
}

/// Cost of comparing this value, as `Limits::parts` counts it: one, and one more per step of an lvalue's path.
fn steps(e: &Expr) -> usize {
    match &e.kind {
        ExprKind::Read(lv) => 1 + lv.path.len(),
        _ => 1,
    }
}

fn is_valid(lv: ir::LValue) -> Expr {
    Expr {
        kind: ExprKind::IsValid(lv),
        ty: ir::Type::Bool,
    }
}

fn negated(e: Expr) -> Expr {
    match e.kind {
        ExprKind::Binary(BinOp::Eq, a, b) => Expr {
            kind: ExprKind::Binary(BinOp::Ne, a, b),
            ty: e.ty,
        },
        kind => fold::unary(ir::UnOp::Not, Expr { kind, ty: e.ty }),
    }
}
