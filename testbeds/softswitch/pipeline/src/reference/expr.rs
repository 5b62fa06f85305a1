//! Evaluates expressions, which have no side effects (p4lang hoists calls), so the order of evaluation is visible only in
//! parsers, where `next` and `last` may raise an error.

use super::arith;
use super::bits::Bits;
use super::value::{Value, field_types, width};
use super::{EnvUnit, Interpreter, Result};
use num_bigint::BigUint;
use p4lang::ir::{BinOp, Expr, ExprKind, Type};

impl Interpreter<'_, '_> {
    /// Evaluates an expression to a value.
    pub(crate) fn expr(&mut self, e: &Expr) -> Result<Value> {
        Ok(match &e.kind {
            ExprKind::Const(value) => Value::constant(self.program, &e.ty, value),
            ExprKind::Read(lvalue) => {
                let place = self.resolve(lvalue)?;
                self.read(&place)
            }
            ExprKind::IsValid(lvalue) => {
                let place = self.resolve(lvalue)?;
                Value::Bits(Bits::bool(self.read(&place).is_valid()))
            }
            ExprKind::LastIndex(lvalue) => {
                let (next, one) = (self.next_index(lvalue)?, Bits::new(32, 1u8));
                Value::Bits(arith::binary(BinOp::Sub, &next, &one, false))
            }
            ExprKind::Unary(op, a) => Value::Bits(arith::unary(*op, &self.expr(a)?.bits())),
            ExprKind::Binary(op @ (BinOp::LogAnd | BinOp::LogOr), a, b) => {
                Value::Bits(self.logical(*op, a, b)?)
            }
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                Value::Bits(match op {
                    BinOp::Eq => x.equal(&y),
                    BinOp::Ne => arith::not(&x.equal(&y)),
                    _ => arith::binary(*op, &x.bits(), &y.bits(), is_signed(&a.ty)),
                })
            }
            ExprKind::Cast(a) => {
                let value = self.expr(a)?;
                self.cast(value, &a.ty, &e.ty)
            }
            ExprKind::Slice(a, hi, lo) => Value::Bits(self.expr(a)?.bits().slice(*hi, *lo)),
            ExprKind::Concat(a, b) => {
                let (high, low) = (self.expr(a)?.bits(), self.expr(b)?.bits());
                Value::Bits(high.concat(&low))
            }
            ExprKind::Mux(c, a, b) => {
                let chosen = if self.truth(c, "a condition")? { a } else { b };
                self.expr(chosen)?
            }
            ExprKind::Tuple(fields) => {
                let values = fields.iter().map(|f| self.expr(f));
                let values = values.collect::<Result<Vec<_>>>()?;
                Value::composed(self.program, &e.ty, values)
            }
            ExprKind::InvalidHeader => self.undefined(&e.ty),
        })
    }

    /// Evaluates `&&` or `||`. The right side is evaluated only if the left is undefined or does not determine the result
    /// (8.5). If the right side alone determines the result, the result is defined.
    fn logical(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<Bits> {
        let left = self.expr(a)?.bits();
        let decides = left.is_true() == (op == BinOp::LogOr);
        // In a parser the right side may raise an error, which must not happen if the left side determines the result.
        if decides && matches!(self.env().scope, EnvUnit::Parser(_)) {
            self.influences(&left, || "a condition".into());
            return Ok(Bits::bool(left.is_true()));
        }
        if decides && left.undefined == BigUint::ZERO {
            return Ok(left);
        }
        let right = self.expr(b)?.bits();
        Ok(arith::binary(op, &left, &right, false))
    }

    /// Evaluates a condition; reports an undefined result as a decision that `what` describes.
    pub(crate) fn truth(&mut self, e: &Expr, what: &str) -> Result<bool> {
        let bits = self.expr(e)?.bits();
        self.influences(&bits, || what.into());
        Ok(bits.is_true())
    }

    fn next_index(&mut self, lvalue: &p4lang::ir::LValue) -> Result<Bits> {
        let place = self.resolve(lvalue)?;
        Ok(match self.read(&place) {
            Value::Stack { next, .. } => Bits::new(32, next),
            _ => Bits::new(32, 0u8),
        })
    }

    /// Casts a value: scalars according to P4_16 8.11, lists and structs field by field.
    fn cast(&mut self, value: Value, from: &Type, to: &Type) -> Value {
        match value {
            Value::Bits(bits) => Value::Bits(arith::cast(&bits, width(to), is_signed(from))),
            Value::Struct(fields) => {
                let program = self.program;
                let (from, to_fields) = (field_types(program, from), field_types(program, to));
                let each = fields.into_iter().zip(from.iter().zip(&to_fields));
                let each = each.map(|(value, (from, to))| self.cast(value, from, to));
                Value::composed(program, to, each.collect())
            }
            other => other,
        }
    }

    /// Reports a decision, described by `what`, if any of these bits is undefined.
    pub(crate) fn influences(&mut self, bits: &Bits, what: impl FnOnce() -> String) {
        if bits.undefined != BigUint::ZERO {
            self.watch.undefined(what(), self.program, self.span);
        }
    }

    /// Reports a decision, described by `what`, if any bit of the value is undefined.
    pub(crate) fn influences_all(&mut self, value: &Value, what: impl FnOnce() -> String) {
        if self.watch.fill.marks() && value.has_undefined() {
            self.watch.undefined(what(), self.program, self.span);
        }
    }
}

pub(crate) fn is_signed(ty: &Type) -> bool {
    matches!(ty, Type::Int(_))
}
