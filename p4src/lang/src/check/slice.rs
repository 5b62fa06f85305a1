//! Checks and lowers slices `e[hi:lo]`, which may be read and written.

use super::Checker;
use super::fold;
use super::types::Ty;
use super::value::{LVal, Val};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{self, Access};
use crate::source::Span;
use num_bigint::BigInt;
use num_traits::ToPrimitive;

impl<'a> Checker<'a, '_> {
    /// Checks the slice `base[hi:lo]`.
    pub(crate) fn slice(
        &mut self,
        base: &'a ast::Expr,
        hi: &'a ast::Expr,
        lo: &'a ast::Expr,
        span: Span,
    ) -> Val<'a> {
        let val = self.expr(base, None);
        match (self.small_constant(hi), self.small_constant(lo)) {
            (Some(hi), Some(lo)) => self.bits_of(val, (hi, lo), (base.span, span)),
            _ => Val::Poison,
        }
    }

    /// Checks the slice `base[from +: width]` or `base[from -: width]`.
    pub(crate) fn part_select(
        &mut self,
        base: &'a ast::Expr,
        from: &'a ast::Expr,
        (width, upwards): (&'a ast::Expr, bool),
        span: Span,
    ) -> Val<'a> {
        let (val, from_val) = self.operands(base, from);
        let Some(width) = self.small_constant::<u32>(width) else {
            return Val::Poison;
        };
        if width == 0 {
            self.err(Code::Constant, span, "a slice must have at least one bit");
            return Val::Poison;
        }
        if matches!((&val, &from_val), (Val::Poison, _) | (_, Val::Poison)) {
            return Val::Poison;
        }
        let fixed = match &from_val {
            Val::Integer(n) => Some(n.clone()),
            Val::Expr(_, e) => fold::as_const(e).and_then(fold::number),
            _ => None,
        };
        let at = (base.span, span);
        let Some(from_bit) = fixed else {
            return self.moving_slice(val, (from_val, from.span), (width, upwards), at);
        };
        let reach = BigInt::from(width - 1);
        let (hi, lo) = if upwards {
            (&from_bit + reach, from_bit)
        } else {
            (from_bit.clone(), from_bit - reach)
        };
        match (hi.to_u32(), lo.to_u32()) {
            (Some(hi), Some(lo)) => self.bits_of(val, (hi, lo), at),
            _ => {
                self.err(
                    Code::Constant,
                    span,
                    format!("bits {hi} to {lo} do not exist"),
                );
                Val::Poison
            }
        }
    }

    /// A slice at a position known only at run time; not writable. Bits beyond the value read as the bits that `>>` shifts in.
    fn moving_slice(
        &mut self,
        val: Val<'a>,
        (from, from_span): (Val<'a>, Span),
        (width, upwards): (u32, bool),
        at: (Span, Span),
    ) -> Val<'a> {
        let Some((ty, e)) = self.rvalue(val, at.0) else {
            return Val::Poison;
        };
        let bare = self.decay(ty.clone());
        if bare.width().is_none_or(|whole| width > whole) {
            let shown = self.types.show(&ty);
            let message = format!("{shown} has fewer than {width} bits");
            self.err(Code::Type, at.1, message);
            return Val::Poison;
        }
        let Some((from_ty, from)) = self.rvalue(from, from_span) else {
            return Val::Poison;
        };
        let Ty::Bit(from_width) = self.decay(self.types.strip_new(&from_ty).clone()) else {
            let shown = self.types.show(&from_ty);
            let message = format!("expected bit<>, found {shown}");
            self.err(Code::Type, from_span, message);
            return Val::Poison;
        };
        let lowest = if upwards {
            Ok(from)
        } else {
            let ty = ir::Type::Bit(from_width);
            let reach = fold::bits(&BigInt::from(width - 1), &ty);
            fold::binary(ast::BinOp::Sub, from, reach, ty)
        };
        let lowered = self.types.ir(&bare);
        match lowest.and_then(|lowest| fold::binary(ast::BinOp::Shr, e, lowest, lowered)) {
            Ok(shifted) => Val::Expr(Ty::Bit(width), fold::slice(shifted, width - 1, 0)),
            Err(fault) => {
                self.err(Code::Constant, at.1, fault);
                Val::Poison
            }
        }
    }

    /// Bits `hi ..= lo` of a value; the slice of an lvalue is an lvalue.
    fn bits_of(&mut self, val: Val<'a>, (hi, lo): (u32, u32), at: (Span, Span)) -> Val<'a> {
        let (base, span) = at;
        if hi < lo {
            self.err(
                Code::Constant,
                span,
                format!("slice [{hi}:{lo}]: the higher bit must come first"),
            );
            return Val::Poison;
        }
        if hi - lo >= crate::limits::LIMITS.width {
            self.err(Code::Limit, span, "the slice is too wide");
            return Val::Poison;
        }
        if let Val::Integer(n) = &val {
            let shifted: BigInt = n >> lo;
            let ty = Ty::Bit(hi - lo + 1);
            return Val::Expr(ty, fold::bits(&shifted, &ir::Type::Bit(hi - lo + 1)));
        }
        let ty = match self.type_of(&val) {
            Some(ty) => self.decay(ty),
            None => {
                if !matches!(val, Val::Poison) {
                    let what = val.what();
                    self.err(Code::Type, base, format!("{what} cannot be sliced"));
                }
                return Val::Poison;
            }
        };
        let Some(width) = ty.width() else {
            if !ty.is_poison() {
                let message = format!(
                    "only bit<> and int<> can be sliced, not {}",
                    self.types.show(&ty)
                );
                let mut d = Diagnostic::error(Code::Type, base, message);
                if let Ty::New(i) = &ty {
                    let under = self.types.show(&self.types.newtypes[*i as usize].1);
                    d = d.hint(format!("cast it: `(({under}) …)[{hi}:{lo}]`"));
                }
                self.push(d);
            }
            return Val::Poison;
        };
        if hi >= width {
            let shown = self.types.show(&ty);
            self.err(
                Code::Constant,
                span,
                format!("slice [{hi}:{lo}] exceeds {shown}"),
            );
            return Val::Poison;
        }
        let result = Ty::Bit(hi - lo + 1);
        match val {
            Val::Place(mut p) => {
                // A slice of a slice is lowered to one slice.
                let below = match p.lv.path.last() {
                    Some(Access::Slice(_, below)) => {
                        let below = *below;
                        p.lv.path.pop();
                        below
                    }
                    _ => 0,
                };
                p.lv.path.push(Access::Slice(hi + below, lo + below));
                p.lv.ty = self.types.ir(&result);
                Val::Place(LVal {
                    ty: result,
                    lv: p.lv,
                    read_only: p.read_only,
                })
            }
            other => match self.rvalue(other, base) {
                Some((_, e)) => Val::Expr(result, fold::slice(e, hi, lo)),
                None => Val::Poison,
            },
        }
    }
}
