//! Checks and lowers binary operators (P4_16 1.2.5, sections 8.5 to 8.9).

use super::Checker;
use super::fold;
use super::types::Ty;
use super::value::Val;
use crate::ast::{self, BinOp};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;
use num_bigint::BigInt;
use num_traits::Signed;

/// Maximum nesting of a lowered chain of operators; at this depth a temporary takes the value so far.
const HEIGHT: u32 = 96;

impl<'a> Checker<'a, '_> {
    /// Checks the chain `first op rhs op rhs …`, from left to right.
    pub(crate) fn binary(&mut self, first: &'a ast::Expr, rest: &'a [ast::Operation]) -> Val<'a> {
        let logical = |op| matches!(op, BinOp::LogAnd | BinOp::LogOr);
        let tested = rest.first().is_some_and(|next| logical(next.op));
        let mut left = self.expr(first, tested.then_some(&Ty::Bool));
        let mut at = first.span;
        for ast::Operation { op, rhs } in rest {
            let span = first.span.to(rhs.span);
            let height = std::mem::take(&mut self.height);
            left = if logical(*op) {
                self.short_circuit(*op, (left, at), rhs, span)
            } else {
                let mark = self.unit.block.len();
                let right = self.expr(rhs, None);
                if self.unit.block.len() > mark {
                    left = self.keep(left, mark, at);
                }
                self.binary_values(*op, left, right, (at, rhs.span, span))
            };
            at = span;
            self.height = self.height.max(height) + 1;
            if self.height >= HEIGHT {
                left = self.flat(left, span);
                self.height = 0;
            }
        }
        left
    }

    /// Stores a value in a temporary. The lowering does so at every [`HEIGHT`] levels of a chain of operators, which would
    /// otherwise nest as deep as it is long; every walk over expressions recurses.
    fn flat(&mut self, val: Val<'a>, span: Span) -> Val<'a> {
        match val {
            Val::Expr(ty, e) if fold::as_const(&e).is_none() => {
                let temp = self.temp(&ty);
                self.emit(ir::StmtKind::Assign(temp.lv.clone(), e), span);
                Val::Expr(ty, temp.read().1)
            }
            other => other,
        }
    }

    /// Applies a binary operator to two values; `at` holds the spans of the left operand, the right operand, and both.
    pub(crate) fn binary_values(
        &mut self,
        op: BinOp,
        left: Val<'a>,
        right: Val<'a>,
        at: (Span, Span, Span),
    ) -> Val<'a> {
        if matches!((&left, &right), (Val::Poison, _) | (_, Val::Poison)) {
            return Val::Poison;
        }
        match op {
            BinOp::Eq | BinOp::Ne => self.equality(op == BinOp::Ne, left, right, at),
            BinOp::Shl | BinOp::Shr => self.shift(op, left, right, at),
            BinOp::Concat => self.concat(left, right, at),
            _ => self.arithmetic(op, left, right, at),
        }
    }

    fn short_circuit(
        &mut self,
        op: BinOp,
        (left, left_span): (Val<'a>, Span),
        rhs: &'a ast::Expr,
        span: Span,
    ) -> Val<'a> {
        let sides = [
            (matches!(left, Val::Ellipsis), left_span),
            (matches!(rhs.kind, ast::ExprKind::Ellipsis), rhs.span),
        ];
        for (missing, span) in sides {
            if missing {
                self.err(Code::Type, span, "`...` cannot be an operand");
                return Val::Poison;
            }
        }
        let left = self.coerce(left, &Ty::Bool, left_span);
        let mut right = None;
        let block = self.block_of(|c| right = c.condition(rhs));
        let (Some(left), Some(right)) = (left, right) else {
            return Val::Poison;
        };
        if block.is_empty() {
            return self.folded(op, left, right, &Ty::Bool, span);
        }
        match fold::as_const(&left) {
            Some(ir::Const::Bool(b)) if *b == (op == BinOp::LogOr) => {
                return Val::Expr(Ty::Bool, left);
            }
            Some(_) => {
                self.unit.block.extend(block);
                return Val::Expr(Ty::Bool, right);
            }
            None => {}
        }
        // The right operand contains a call: it may only run if the left operand leaves the result open.
        let temp = self.temp(&Ty::Bool);
        self.emit(ir::StmtKind::Assign(temp.lv.clone(), left), left_span);
        let mut test = temp.clone().read().1;
        if op == BinOp::LogOr {
            test = fold::unary(ir::UnOp::Not, test);
        }
        let mut then = block;
        then.push(ir::Stmt {
            kind: ir::StmtKind::Assign(temp.lv.clone(), right),
            span: rhs.span,
        });
        self.emit(ir::StmtKind::branch(test, then, Vec::new(), span), span);
        Val::Place(temp)
    }

    fn folded(&mut self, op: BinOp, a: ir::Expr, b: ir::Expr, ty: &Ty, span: Span) -> Val<'a> {
        let lowered = self.types.ir(ty);
        match fold::binary(op, a, b, lowered) {
            Ok(e) => Val::Expr(ty.clone(), e),
            Err(fault) => {
                self.err(Code::Constant, span, fault);
                Val::Poison
            }
        }
    }

    fn arithmetic(
        &mut self,
        op: BinOp,
        left: Val<'a>,
        right: Val<'a>,
        at: (Span, Span, Span),
    ) -> Val<'a> {
        if let (Val::Integer(a), Val::Integer(b)) = (&left, &right) {
            return self.integers(op, a, b, at.2);
        }
        let negative =
            |v: &Val<'a>| matches!(v, Val::Integer(n) if n.sign() == num_bigint::Sign::Minus);
        if matches!(op, BinOp::Div | BinOp::Mod) && (negative(&left) || negative(&right)) {
            self.err(
                Code::Type,
                at.2,
                "division and modulo are not defined for negative numbers",
            );
            return Val::Poison;
        }
        let Some((ty, a, b)) = self.same_type(left, right, at) else {
            return Val::Poison;
        };
        if !matches!(ty, Ty::Bit(_) | Ty::Int(_)) {
            return self.no_arithmetic(&ty, at.2);
        }
        if matches!(op, BinOp::Div | BinOp::Mod) && matches!(ty, Ty::Int(_)) {
            self.err(
                Code::Type,
                at.2,
                "division and modulo are not defined for int<>",
            );
            return Val::Poison;
        }
        let result = match op {
            BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => Ty::Bool,
            _ => ty,
        };
        self.folded(op, a, b, &result, at.2)
    }

    fn no_arithmetic(&mut self, ty: &Ty, span: Span) -> Val<'a> {
        let message = format!(
            "this operator takes bit<> or int<>, not {}",
            self.types.show(ty)
        );
        let mut d = Diagnostic::error(Code::Type, span, message);
        if let Ty::New(i) = ty {
            let under = self.types.show(&self.types.newtypes[*i as usize].1);
            d = d.hint(format!(
                "a type declared by `type` has no arithmetic; cast it: `({under}) …`"
            ));
        } else if *ty == Ty::Bool {
            d = d.hint("bool has `&&`, `||`, `==` and `!=`");
        }
        self.push(d);
        Val::Poison
    }

    fn integers(&mut self, op: BinOp, a: &BigInt, b: &BigInt, span: Span) -> Val<'a> {
        if let Some(v) = fold::compare(op, a, b) {
            return Val::Expr(Ty::Bool, fold::boolean(v));
        }
        match fold::integer(op, a, b) {
            Ok(n) => Val::Integer(n),
            Err(fault) => {
                self.err(Code::Constant, span, fault);
                Val::Poison
            }
        }
    }

    /// Converts both operands to one type: an `int` takes the other operand's type, an enum becomes its representation.
    pub(crate) fn same_type(
        &mut self,
        left: Val<'a>,
        right: Val<'a>,
        at: (Span, Span, Span),
    ) -> Option<(Ty, ir::Expr, ir::Expr)> {
        match (left, right) {
            (Val::Integer(n), other) => {
                let (ty, b) = self.rvalue(other, at.1)?;
                let ty = self.decay(ty);
                let a = self.coerce(Val::Integer(n), &ty, at.0)?;
                Some((ty, a, b))
            }
            (other, Val::Integer(n)) => {
                let (ty, a) = self.rvalue(other, at.0)?;
                let ty = self.decay(ty);
                let b = self.coerce(Val::Integer(n), &ty, at.1)?;
                Some((ty, a, b))
            }
            (left, right) => {
                let (lt, a) = self.rvalue(left, at.0)?;
                let (rt, b) = self.rvalue(right, at.1)?;
                if lt == rt {
                    return Some((self.decay(lt), a, b));
                }
                let (lt, rt) = (self.decay(lt), self.decay(rt));
                if lt != rt {
                    if lt.is_poison() || rt.is_poison() {
                        return None;
                    }
                    let message = format!(
                        "operands of different types: {} and {}",
                        self.types.show(&lt),
                        self.types.show(&rt)
                    );
                    let mut d = Diagnostic::error(Code::Type, at.2, message);
                    if super::cast::castable(&self.types, &rt, &lt) {
                        d = d.hint(format!("cast one of them: `({}) …`", self.types.show(&lt)));
                    }
                    self.push(d);
                    return None;
                }
                Some((lt, a, b))
            }
        }
    }

    fn shift(
        &mut self,
        op: BinOp,
        left: Val<'a>,
        right: Val<'a>,
        at: (Span, Span, Span),
    ) -> Val<'a> {
        let by = match right {
            Val::Integer(n) => {
                if n.is_negative() {
                    self.err(Code::Constant, at.1, "shift by a negative number");
                    return Val::Poison;
                }
                if let Val::Integer(a) = &left {
                    return self.integers(op, a, &n, at.2);
                }
                let far = BigInt::from(u32::MAX);
                fold::bits(&n.min(far), &ir::Type::Bit(32))
            }
            other => {
                let Some((ty, e)) = self.rvalue(other, at.1) else {
                    return Val::Poison;
                };
                let ty = self.decay(ty);
                let unsigned = matches!(ty, Ty::Bit(_) | Ty::Var(_));
                let constant = fold::as_const(&e).and_then(fold::number);
                if !unsigned && constant.as_ref().is_none_or(|n| n.is_negative()) {
                    let shown = self.types.show(&ty);
                    self.err(
                        Code::Type,
                        at.1,
                        format!("the right operand of a shift must be a bit<>, not {shown}"),
                    );
                    return Val::Poison;
                }
                if let (Val::Integer(a), Some(n)) = (&left, &constant) {
                    return self.integers(op, a, n, at.2);
                }
                e
            }
        };
        if let Val::Integer(n) = &left {
            self.push(
                Diagnostic::error(
                    Code::Type,
                    at.0,
                    "the result needs a width, but the left operand is an `int`",
                )
                .hint(format!("give it a width: `32w{n}`")),
            );
            return Val::Poison;
        }
        let Some((ty, value)) = self.rvalue(left, at.0) else {
            return Val::Poison;
        };
        let ty = self.decay(ty);
        if !matches!(ty, Ty::Bit(_) | Ty::Int(_)) {
            return self.no_arithmetic(&ty, at.0);
        }
        self.folded(op, value, by, &ty, at.2)
    }

    fn concat(&mut self, mut left: Val<'a>, mut right: Val<'a>, at: (Span, Span, Span)) -> Val<'a> {
        if let (Some(text), Some(more)) = (string_mut(&mut left), string_mut(&mut right)) {
            text.push_str(more);
            return left;
        }
        for (val, span) in [(&left, at.0), (&right, at.1)] {
            if let Val::Integer(n) = val {
                self.push(
                    Diagnostic::error(Code::Type, span, "`++` needs operands with a width")
                        .hint(format!("write `8w{n}`, `16w{n}` …")),
                );
                return Val::Poison;
            }
        }
        let (Some((lt, a)), Some((rt, b))) = (self.rvalue(left, at.0), self.rvalue(right, at.1))
        else {
            return Val::Poison;
        };
        let (lt, rt) = (self.decay(lt), self.decay(rt));
        let (Some(lw), Some(rw)) = (lt.width(), rt.width()) else {
            if !lt.is_poison() && !rt.is_poison() {
                let message = format!(
                    "`++` takes bit<> or int<>, not {} and {}",
                    self.types.show(&lt),
                    self.types.show(&rt)
                );
                self.err(Code::Type, at.2, message);
            }
            return Val::Poison;
        };
        if lw + rw > crate::limits::LIMITS.width {
            self.err(
                Code::Limit,
                at.2,
                format!(
                    "the result has {} bits; at most {} are supported",
                    lw + rw,
                    crate::limits::LIMITS.width
                ),
            );
            return Val::Poison;
        }
        let ty = match lt {
            Ty::Int(_) => Ty::Int(lw + rw),
            _ => Ty::Bit(lw + rw),
        };
        let lowered = self.types.ir(&ty);
        Val::Expr(ty, fold::concat(a, b, lowered))
    }
}

/// The text of a constant string, for changing: the concatenation of many strings appends to the first string.
fn string_mut<'v>(val: &'v mut Val<'_>) -> Option<&'v mut String> {
    match val {
        Val::Expr(Ty::Str, e) => match &mut e.kind {
            ir::ExprKind::Const(ir::Const::Str(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
