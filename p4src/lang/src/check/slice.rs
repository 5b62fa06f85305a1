//! `e[hi:lo]`, also as a place.

use super::Checker;
use super::fold;
use super::types::Ty;
use super::value::{Place, Val};
use crate::ast;
use crate::diagnostics::Code;
use crate::ir::{self, Access};
use crate::source::Span;

impl<'a> Checker<'a, '_> {
    pub(crate) fn slice(
        &mut self,
        base: &'a ast::Expr,
        hi: &'a ast::Expr,
        lo: &'a ast::Expr,
        span: Span,
    ) -> Val<'a> {
        let val = self.expr(base, None);
        let (Some(hi), Some(lo)) = (
            self.small_constant::<u32>(hi),
            self.small_constant::<u32>(lo),
        ) else {
            return Val::Poison;
        };
        if hi < lo {
            self.err(
                Code::Constant,
                span,
                format!("slice [{hi}:{lo}]: the high bit comes first"),
            );
            return Val::Poison;
        }
        if hi - lo >= super::types::MAX_WIDTH {
            self.err(Code::Limit, span, "slice too wide");
            return Val::Poison;
        }
        if let Val::Integer(n) = &val {
            let shifted: num_bigint::BigInt = n >> lo;
            let ty = Ty::Bit(hi - lo + 1);
            return Val::Expr(ty, fold::bits(&shifted, &ir::Type::Bit(hi - lo + 1)));
        }
        let ty = match self.type_of(&val) {
            Some(ty) => self.decay(self.types.strip_new(&ty).clone()),
            None => {
                if !matches!(val, Val::Poison) {
                    let what = val.what();
                    self.err(
                        Code::Type,
                        base.span,
                        format!("{what} has no bits to slice"),
                    );
                }
                return Val::Poison;
            }
        };
        let Some(width) = ty.width() else {
            if !ty.is_poison() && !matches!(ty, Ty::Var(_)) {
                let shown = self.types.show(&ty);
                self.err(
                    Code::Type,
                    base.span,
                    format!("only bit<> and int<> can be sliced, not {shown}"),
                );
            }
            return Val::Poison;
        };
        if hi >= width {
            let shown = self.types.show(&ty);
            self.err(
                Code::Constant,
                span,
                format!("slice [{hi}:{lo}] reaches beyond {shown}"),
            );
            return Val::Poison;
        }
        let result = Ty::Bit(hi - lo + 1);
        match val {
            Val::Place(mut p) => {
                // A slice of a slice is one slice.
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
                Val::Place(Place {
                    ty: result,
                    lv: p.lv,
                    read_only: p.read_only,
                })
            }
            other => match self.rvalue(other, base.span) {
                Some((_, e)) => Val::Expr(result, fold::slice(e, hi, lo)),
                None => Val::Poison,
            },
        }
    }
}
