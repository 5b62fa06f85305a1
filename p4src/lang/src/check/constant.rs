//! Evaluates compile-time-known values (P4_16 1.2.5, section 18.1).

use super::Checker;
use super::fold;
use super::types::Ty;
use super::value::Val;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;
use num_bigint::BigInt;
use num_traits::ToPrimitive;

impl<'a> Checker<'a, '_> {
    /// Evaluates the constant declaration `const T x = e;`.
    pub(crate) fn constant_decl(&mut self, ty: &'a ast::Type, init: &'a ast::Expr) -> Val<'a> {
        let ty = self.resolve(ty);
        let mut lowered = None;
        let hoisted = {
            let mut val = Val::Poison;
            let block = self.block_of(|c| val = c.expr(init, Some(&ty)));
            if ty == Ty::Integer {
                if matches!(val, Val::Ellipsis) {
                    return Val::Integer(BigInt::from(0));
                }
                return match self.as_integer(val, init.span) {
                    Some(n) => Val::Integer(n),
                    None => Val::Poison,
                };
            }
            if let Ty::List(_) = ty {
                // Kept as a list: `for` and extern arguments take it apart.
                return match val {
                    Val::List(_) | Val::Poison => val,
                    _ => Val::Poison,
                };
            }
            if !matches!(val, Val::Poison) && !ty.is_poison() {
                lowered = self.coerce(val, &ty, init.span);
            }
            !block.is_empty()
        };
        match lowered {
            Some(e) if !hoisted && fold::is_constant(&e) => Val::Expr(ty, e),
            Some(_) => {
                self.not_constant(init.span);
                Val::Poison
            }
            None => Val::Poison,
        }
    }

    fn not_constant(&mut self, span: Span) {
        self.push(
            Diagnostic::error(Code::Constant, span, "this must be a compile-time known value").hint(
                "use literals, constants and constructor parameters, not variables or run-time parameters",
            ),
        );
    }

    /// Evaluates an expression to a constant of type `ty`; `None` after an error.
    pub(crate) fn constant(&mut self, e: &'a ast::Expr, ty: &Ty) -> Option<ir::Const> {
        let val = self.constant_value(e, ty)?;
        self.constant_of(val, ty, e.span)
    }

    /// Evaluates the value of an enum member: unlike in an assignment, it must fit the type (P4_16 1.2.5, section 7.2.1).
    pub(crate) fn member_value(&mut self, e: &'a ast::Expr, ty: &Ty) -> Option<ir::Const> {
        let val = self.constant_value(e, ty)?;
        if let (Val::Integer(n), Ty::Bit(_) | Ty::Int(_)) = (&val, ty)
            && !fold::fits(n, &self.types.ir(ty))
        {
            let shown = self.types.show(ty);
            let message = format!("{n} does not fit into {shown}, the enum's underlying type");
            self.err(Code::Constant, e.span, message);
            return None;
        }
        self.constant_of(val, ty, e.span)
    }

    fn constant_value(&mut self, e: &'a ast::Expr, ty: &Ty) -> Option<Val<'a>> {
        let mut val = Val::Poison;
        let block = self.block_of(|c| val = c.expr(e, Some(ty)));
        if !block.is_empty() {
            self.not_constant(e.span);
            return None;
        }
        Some(val)
    }

    /// Converts a value to a constant of type `ty`; `None`, with an error, if it is no constant.
    pub(crate) fn constant_of(&mut self, val: Val<'a>, ty: &Ty, span: Span) -> Option<ir::Const> {
        match val {
            Val::Integer(n) if *ty == Ty::Integer => return Some(ir::Const::Integer(n)),
            Val::Extern(id, _) => return Some(ir::Const::Extern(id)),
            Val::Poison => return None,
            _ => {}
        }
        let e = self.coerce(val, ty, span)?;
        match fold::into_const(e) {
            Some(c) => Some(c),
            None => {
                self.not_constant(span);
                None
            }
        }
    }

    /// Evaluates a compile-time number of any type; `None` after an error.
    pub(crate) fn integer_constant(&mut self, e: &'a ast::Expr) -> Option<BigInt> {
        let mut val = Val::Poison;
        let block = self.block_of(|c| val = c.expr(e, None));
        if !block.is_empty() {
            self.not_constant(e.span);
            return None;
        }
        self.as_integer(val, e.span)
    }

    /// The number that a value represents; `None`, with an error, if it is no compile-time number.
    pub(crate) fn as_integer(&mut self, val: Val<'a>, span: Span) -> Option<BigInt> {
        match val {
            Val::Integer(n) => Some(n),
            Val::Expr(ty, e) if self.is_number(&ty) => {
                match fold::as_const(&e).and_then(fold::number) {
                    Some(n) => Some(n),
                    None => {
                        self.not_constant(span);
                        None
                    }
                }
            }
            Val::Place(p) if self.is_number(&p.ty) => {
                self.not_constant(span);
                None
            }
            Val::Poison => None,
            other => {
                let what = self.describe(&other);
                self.err(Code::Type, span, format!("expected a number, found {what}"));
                None
            }
        }
    }

    /// Evaluates a compile-time number that fits the Rust type `T`; `None` after an error.
    pub(crate) fn small_constant<T: TryFrom<u64>>(&mut self, e: &'a ast::Expr) -> Option<T> {
        let n = self.integer_constant(e)?;
        match n.to_u64().and_then(|n| T::try_from(n).ok()) {
            Some(n) => Some(n),
            None => {
                self.err(Code::Constant, e.span, format!("{n} is out of range"));
                None
            }
        }
    }

    fn is_number(&self, ty: &Ty) -> bool {
        matches!(
            self.types.strip_new(ty),
            Ty::Bit(_) | Ty::Int(_) | Ty::SerEnum(_) | Ty::Integer
        )
    }

    /// Describes a value for a message: by its type, or else by its kind.
    pub(crate) fn describe(&self, val: &Val<'a>) -> String {
        match val {
            Val::Integer(_) => "int".to_owned(),
            Val::Expr(ty, _) => self.types.show(ty),
            Val::Place(p) => self.types.show(&p.ty),
            Val::Extern(_, ty) | Val::Object(_, ty) => self.types.show(ty),
            other => other.what().to_owned(),
        }
    }
}
