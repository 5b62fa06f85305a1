//! Checks expressions: literals, names, operands in order, lists, `?:`.

use super::Checker;
use super::fold;
use super::types::Ty;
use super::value::{Item, LVal, ListVal, Val};
use crate::ast::{self, ExprKind, UnOp};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;
use num_bigint::BigInt;
use std::rc::Rc;

impl<'a> Checker<'a, '_> {
    /// Determines an expression's type and lowers it. Calls in it are appended to the current block. `expected` only helps a
    /// generic call to infer its result; [`Self::coerce`] converts the value to that type.
    pub(crate) fn expr(&mut self, e: &'a ast::Expr, expected: Option<&Ty>) -> Val<'a> {
        if !self.enter(e.span) {
            return Val::Poison;
        }
        let outer = std::mem::take(&mut self.height);
        let val = self.expr_inner(e, expected);
        self.height = outer.max(self.height + 1);
        self.leave();
        val
    }

    fn expr_inner(&mut self, e: &'a ast::Expr, expected: Option<&Ty>) -> Val<'a> {
        match &e.kind {
            ExprKind::Int {
                value,
                width,
                signed,
            } => self.literal(value, *width, *signed, e.span),
            ExprKind::Bool(b) => Val::Expr(Ty::Bool, fold::boolean(*b)),
            ExprKind::Str(s) => Val::Expr(
                Ty::Str,
                fold::constant(ir::Const::Str(s.clone()), ir::Type::String),
            ),
            ExprKind::Ellipsis => Val::Ellipsis,
            ExprKind::DontCare => Val::DontCare,
            ExprKind::This => match self.unit.this {
                Some(_) => Val::This,
                None => {
                    self.err(
                        Code::Placement,
                        e.span,
                        "`this` is allowed only in the implementation of an abstract method",
                    );
                    Val::Poison
                }
            },
            ExprKind::Name { absolute, name } => self.lookup(name, *absolute),
            ExprKind::Type(ty) => self.type_name(ty),
            ExprKind::Member { base, member } => self.member(base, member, e.span),
            ExprKind::Index { base, index } => self.index(base, index, e.span),
            ExprKind::Slice { base, hi, lo } => self.slice(base, hi, lo, e.span),
            ExprKind::PartSelect {
                base,
                from,
                width,
                upwards,
            } => self.part_select(base, from, (width, *upwards), e.span),
            ExprKind::List(items) => self.list(items),
            ExprKind::Invalid => Val::Invalid,
            ExprKind::Unary { op, expr } => self.unary(*op, expr),
            ExprKind::Binary { first, rest } => self.binary(first, rest),
            ExprKind::Cast { ty, expr } => self.cast(ty, expr),
            ExprKind::Mux {
                cond,
                then,
                otherwise,
            } => self.mux(cond, then, otherwise, expected, e.span),
            ExprKind::Call {
                callee,
                type_args,
                args,
            } => self.call_value(callee, type_args, args, expected, e.span),
        }
    }

    fn literal(&mut self, n: &BigInt, width: Option<u32>, signed: bool, span: Span) -> Val<'a> {
        let ty = match width {
            None => return Val::Integer(n.clone()),
            Some(w) if w > crate::limits::LIMITS.width => {
                self.err(Code::Constant, span, format!("a width of {w} is too large"));
                return Val::Poison;
            }
            Some(w) if signed => Ty::Int(w),
            Some(w) => Ty::Bit(w),
        };
        let lowered = self.types.ir(&ty);
        if !fold::fits(n, &lowered) {
            let shown = self.types.show(&ty);
            self.warn(
                Code::Constant,
                span,
                format!("{n} does not fit into {shown}"),
            );
        }
        Val::Expr(ty, fold::bits(n, &lowered))
    }

    fn list(&mut self, items: &'a [ast::Arg]) -> Val<'a> {
        let mut list = ListVal {
            items: Vec::with_capacity(items.len()),
            rest: false,
        };
        let mut marks = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            if i + 1 == items.len()
                && item.name.is_none()
                && matches!(item.value.kind, ExprKind::Ellipsis)
            {
                list.rest = true;
                break;
            }
            let val = self.expr(&item.value, None);
            list.items.push(Item {
                name: item.name.as_ref(),
                val,
                span: item.value.span,
            });
            marks.push(self.unit.block.len());
        }
        // An item that is read before a later item's call keeps its value.
        let end = self.unit.block.len();
        for i in (0..list.items.len()).rev() {
            if marks[i] < end {
                let val = std::mem::replace(&mut list.items[i].val, Val::Poison);
                list.items[i].val = self.keep(val, marks[i], list.items[i].span);
            }
        }
        Val::List(Rc::new(list))
    }

    /// Evaluates the two operands of an operator, the left one first.
    pub(crate) fn operands(
        &mut self,
        lhs: &'a ast::Expr,
        rhs: &'a ast::Expr,
    ) -> (Val<'a>, Val<'a>) {
        let mut left = self.expr(lhs, None);
        let mark = self.unit.block.len();
        let right = self.expr(rhs, None);
        if self.unit.block.len() > mark {
            left = self.keep(left, mark, lhs.span);
        }
        (left, right)
    }

    /// Copies a value to a temporary at position `at` of the current block, unless nothing can change the value.
    pub(crate) fn keep(&mut self, val: Val<'a>, at: usize, span: Span) -> Val<'a> {
        let (ty, e) = match val {
            Val::Expr(ty, e) => (ty, e),
            Val::Place(p) => p.read(),
            Val::List(list) => {
                let items = list
                    .items
                    .iter()
                    .map(|i| Item {
                        name: i.name,
                        val: self.keep(i.val.clone(), at, i.span),
                        span: i.span,
                    })
                    .collect();
                return Val::List(Rc::new(ListVal {
                    items,
                    rest: list.rest,
                }));
            }
            other => return other,
        };
        if self.is_stable(&e) {
            return Val::Expr(ty, e);
        }
        let temp = self.temp(&ty);
        let stmt = ir::Stmt {
            kind: ir::StmtKind::Assign(temp.lv.clone(), e),
            span,
        };
        self.unit.block.insert(at, stmt);
        Val::Place(temp)
    }

    /// Whether later statements cannot change an expression's value: it is a constant or a temporary.
    fn is_stable(&self, e: &ir::Expr) -> bool {
        use ir::ExprKind as K;
        match &e.kind {
            K::Const(_) | K::InvalidHeader => true,
            K::Read(lv) | K::IsValid(lv) | K::LastIndex(lv) => {
                self.unit.is_temp[lv.var.index()]
                    && lv
                        .path
                        .iter()
                        .all(|a| matches!(a, ir::Access::Field(_) | ir::Access::Slice(..)))
            }
            K::Unary(_, a) | K::Cast(a) | K::Slice(a, _, _) => self.is_stable(a),
            K::Binary(_, a, b) | K::Concat(a, b) => self.is_stable(a) && self.is_stable(b),
            K::Mux(a, b, c) => self.is_stable(a) && self.is_stable(b) && self.is_stable(c),
            K::Tuple(items) => items.iter().all(|i| self.is_stable(i)),
        }
    }

    fn unary(&mut self, op: UnOp, operand: &'a ast::Expr) -> Val<'a> {
        let val = self.expr(operand, None);
        if let Val::Integer(n) = &val {
            return match op {
                UnOp::Neg => Val::Integer(-n.clone()),
                UnOp::Plus => val,
                UnOp::BitNot => {
                    self.push(
                        Diagnostic::error(
                            Code::Type,
                            operand.span,
                            "`~` needs an operand with a width",
                        )
                        .hint(format!("write `8w{n}`, `16w{n}` …")),
                    );
                    Val::Poison
                }
                UnOp::Not => {
                    self.mismatch(operand.span, &Ty::Bool, &Ty::Integer);
                    Val::Poison
                }
            };
        }
        let Some((ty, e)) = self.rvalue(val, operand.span) else {
            return Val::Poison;
        };
        let ty = self.decay(ty);
        let e = ir::Expr {
            ty: self.types.ir(&ty),
            ..e
        };
        match (op, &ty) {
            (_, Ty::Poison) => Val::Poison,
            (UnOp::Not, Ty::Bool) => Val::Expr(ty, fold::unary(ir::UnOp::Not, e)),
            (UnOp::Not, _) => {
                self.mismatch(operand.span, &Ty::Bool, &ty);
                Val::Poison
            }
            (UnOp::Plus, Ty::Bit(_) | Ty::Int(_)) => Val::Expr(ty, e),
            (UnOp::Neg, Ty::Bit(_) | Ty::Int(_)) => Val::Expr(ty, fold::unary(ir::UnOp::Neg, e)),
            (UnOp::BitNot, Ty::Bit(_) | Ty::Int(_)) => {
                Val::Expr(ty, fold::unary(ir::UnOp::BitNot, e))
            }
            _ => {
                let shown = self.types.show(&ty);
                self.err(
                    Code::Type,
                    operand.span,
                    format!("expected bit<> or int<>, found {shown}"),
                );
                Val::Poison
            }
        }
    }

    /// Lowers the conditional expression `c ? a : b`.
    fn mux(
        &mut self,
        cond: &'a ast::Expr,
        then: &'a ast::Expr,
        otherwise: &'a ast::Expr,
        expected: Option<&Ty>,
        span: Span,
    ) -> Val<'a> {
        let c = self.condition(cond);
        let mut a = Val::Poison;
        let mut b = Val::Poison;
        let then_block = self.block_of(|x| a = x.expr(then, None));
        let else_block = self.block_of(|x| b = x.expr(otherwise, None));
        let Some(c) = c else { return Val::Poison };
        if let Some(ir::Const::Bool(decided)) = fold::as_const(&c) {
            let (val, block) = if *decided {
                (a, then_block)
            } else {
                (b, else_block)
            };
            self.unit.block.extend(block);
            return val;
        }
        let untyped = |v: &Val<'a>| matches!(v, Val::List(_) | Val::Invalid | Val::Ellipsis);
        let ty = match (self.type_of(&a), self.type_of(&b)) {
            // Two initializers: only the destination knows their type.
            _ if untyped(&a) && untyped(&b) && expected.is_some() => {
                expected.cloned().unwrap_or(Ty::Poison)
            }
            (Some(ty), _) if untyped(&b) && !untyped(&a) => ty,
            (_, Some(ty)) if untyped(&a) && !untyped(&b) => ty,
            (Some(Ty::Integer), Some(Ty::Integer)) => {
                self.push(
                    Diagnostic::error(
                        Code::Type,
                        span,
                        "this value needs a width: both operands are `int`",
                    )
                    .hint("give one of them a width: `8w1`"),
                );
                return Val::Poison;
            }
            (Some(Ty::Integer) | None, Some(ty)) => ty,
            (Some(ty), _) => ty,
            _ => {
                if !matches!((&a, &b), (Val::Poison, _) | (_, Val::Poison)) {
                    self.err(Code::Type, span, "the type of this value is unknown");
                }
                return Val::Poison;
            }
        };
        let (Some(a), Some(b)) = (
            self.coerce(a, &ty, then.span),
            self.coerce(b, &ty, otherwise.span),
        ) else {
            return Val::Poison;
        };
        if then_block.is_empty() && else_block.is_empty() {
            return Val::Expr(ty, fold::mux(c, a, b));
        }
        // A branch contains a call, which may only run if that branch is chosen.
        let temp = self.temp(&ty);
        let assign = |mut block: ir::Block, value: ir::Expr, at: Span| {
            block.push(ir::Stmt {
                kind: ir::StmtKind::Assign(temp.lv.clone(), value),
                span: at,
            });
            block
        };
        let then_block = assign(then_block, a, then.span);
        let else_block = assign(else_block, b, otherwise.span);
        self.emit(ir::StmtKind::branch(c, then_block, else_block, span), span);
        Val::Place(temp)
    }

    /// Lowers an expression of type `bool`; `None` after an error.
    pub(crate) fn condition(&mut self, e: &'a ast::Expr) -> Option<ir::Expr> {
        let val = self.expr(e, Some(&Ty::Bool));
        self.coerce(val, &Ty::Bool, e.span)
    }

    /// The type and run-time expression of `val`; `None` after an error, as for a value without a width.
    pub(crate) fn rvalue(&mut self, val: Val<'a>, span: Span) -> Option<(Ty, ir::Expr)> {
        match val {
            Val::Expr(ty, e) => Some((ty, e)),
            Val::Place(p) => Some(p.read()),
            Val::Poison => None,
            Val::Integer(n) => {
                self.push(
                    Diagnostic::error(Code::Type, span, "this number needs a width")
                        .hint(format!("write `8w{n}`, `16w{n}` …")),
                );
                None
            }
            other => {
                let ty = match &other {
                    Val::List(_) => self.type_of(&other),
                    _ => None,
                };
                match ty {
                    Some(ty) => {
                        let e = self.coerce(other, &ty, span)?;
                        Some((ty, e))
                    }
                    None => {
                        let what = other.what();
                        self.err(Code::Type, span, format!("expected a value, found {what}"));
                        None
                    }
                }
            }
        }
    }

    /// Replaces an enum with a representation by its representation (P4_16 1.2.5, section 8.3).
    pub(crate) fn decay(&self, ty: Ty) -> Ty {
        match &ty {
            Ty::SerEnum(i) => self.types.ser_enums[*i as usize].repr.clone(),
            _ => ty,
        }
    }

    /// An lvalue for a value; if the expression is no lvalue, its value is saved in a temporary.
    pub(crate) fn place_of(&mut self, ty: Ty, e: ir::Expr, span: Span) -> LVal {
        if let ir::ExprKind::Read(lv) = e.kind {
            return LVal {
                ty,
                lv,
                read_only: Some("it is the result of an expression"),
            };
        }
        let temp = self.temp(&ty);
        self.emit(ir::StmtKind::Assign(temp.lv.clone(), e), span);
        temp
    }

    /// Checks an expression that is written to, such as the left side of an assignment; `None` after an error.
    pub(crate) fn lvalue(&mut self, e: &'a ast::Expr) -> Option<LVal> {
        match self.expr(e, None) {
            Val::Place(p) => {
                if let Some(why) = p.read_only {
                    self.err(
                        Code::Placement,
                        e.span,
                        format!("this cannot be assigned to: {why}"),
                    );
                    return None;
                }
                Some(p)
            }
            Val::Poison => None,
            other => {
                let what = match &other {
                    Val::Expr(..) | Val::Integer(_) => "the result of an expression",
                    _ => other.what(),
                };
                self.err(
                    Code::Placement,
                    e.span,
                    format!("this cannot be assigned to: it is {what}"),
                );
                None
            }
        }
    }
}
