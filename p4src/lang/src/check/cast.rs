//! Checks and lowers explicit casts (P4_16 1.2.5, section 8.11.1).

use super::Checker;
use super::fold;
use super::types::{Ty, Types};
use super::value::Val;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use num_traits::{One, Zero};

/// Whether a cast of type `from` to type `to` is legal.
pub(crate) fn castable(types: &Types, from: &Ty, to: &Ty) -> bool {
    if from == to {
        return true;
    }
    match (from, to) {
        // Between a new type and its underlying type, and no further: more levels need further casts.
        (Ty::New(i), _) if types.newtypes[*i as usize].1 == *to => true,
        (Ty::Integer, Ty::New(i)) => castable(types, from, &types.newtypes[*i as usize].1),
        (_, Ty::New(i)) if types.newtypes[*i as usize].1 == *from => true,
        (Ty::New(_), _) | (_, Ty::New(_)) => false,
        (Ty::SerEnum(i), _) => castable(types, &types.ser_enums[*i as usize].repr, to),
        (_, Ty::SerEnum(i)) => castable(types, from, &types.ser_enums[*i as usize].repr),
        (Ty::Bit(_), Ty::Bit(_)) | (Ty::Int(_), Ty::Int(_)) => true,
        (Ty::Bit(a), Ty::Int(b)) | (Ty::Int(a), Ty::Bit(b)) => a == b,
        (Ty::Bit(1), Ty::Bool) | (Ty::Bool, Ty::Bit(1)) => true,
        (Ty::Integer, Ty::Bit(_) | Ty::Int(_) | Ty::Bool) => true,
        _ => false,
    }
}

impl<'a> Checker<'a, '_> {
    /// Lowers the cast `(ty) e`.
    pub(crate) fn cast(&mut self, written: &'a ast::Type, e: &'a ast::Expr) -> Val<'a> {
        let ty = self.resolve(written);
        let val = self.expr(e, Some(&ty));
        if ty.is_poison() {
            return Val::Poison;
        }
        let bare = self.types.strip_new(&ty).clone();
        match val {
            Val::Poison => Val::Poison,
            Val::List(_) | Val::Invalid | Val::Ellipsis => match self.coerce(val, &ty, e.span) {
                Some(e) => Val::Expr(ty, e),
                None => Val::Poison,
            },
            Val::Integer(n) => {
                let bare = match &bare {
                    Ty::SerEnum(i) => self.types.ser_enums[*i as usize].repr.clone(),
                    other => other.clone(),
                };
                match bare {
                    Ty::Integer => Val::Integer(n),
                    // An explicit cast may truncate, so there is no warning.
                    Ty::Bit(_) | Ty::Int(_) => {
                        let lowered = self.types.ir(&bare);
                        Val::Expr(ty, fold::bits(&n, &lowered))
                    }
                    Ty::Bool if n.is_zero() || n.is_one() => {
                        Val::Expr(ty, fold::boolean(n.is_one()))
                    }
                    Ty::Var(_) => Val::Expr(ty, fold::bits(&n, &ir::Type::Bit(1))),
                    _ => self.no_cast(&Ty::Integer, &ty, e),
                }
            }
            Val::Expr(from, value) => self.cast_value(from, value, ty, e),
            Val::Place(p) => {
                let (from, value) = p.read();
                self.cast_value(from, value, ty, e)
            }
            other => {
                let what = other.what();
                self.err(Code::Type, e.span, format!("{what} cannot be cast"));
                Val::Poison
            }
        }
    }

    fn cast_value(&mut self, from: Ty, value: ir::Expr, ty: Ty, e: &ast::Expr) -> Val<'a> {
        if from.is_poison() {
            return Val::Poison;
        }
        if self.types.strip_new(&ty) == &Ty::Integer
            && let Some(n) = fold::as_const(&value).and_then(fold::number)
        {
            return Val::Integer(n);
        }
        let generic = matches!(from, Ty::Var(_)) || matches!(ty, Ty::Var(_));
        if !generic && !castable(&self.types, &from, &ty) {
            return self.no_cast(&from, &ty, e);
        }
        let lowered = self.types.ir(&ty);
        Val::Expr(ty, fold::cast(value, lowered))
    }

    fn no_cast(&mut self, from: &Ty, to: &Ty, e: &ast::Expr) -> Val<'a> {
        let message = format!(
            "{} cannot be cast to {}",
            self.types.show(from),
            self.types.show(to)
        );
        let mut d = Diagnostic::error(Code::Type, e.span, message);
        if let (Some(a), Some(b)) = (from.width(), to.width())
            && a != b
        {
            d = d.hint("use two casts: one changes the width, one the sign");
        } else if matches!((from, to), (Ty::Bit(_) | Ty::Int(_), Ty::Bool)) {
            d = d.hint("compare with 0 instead");
        }
        self.push(d);
        Val::Poison
    }
}
