//! Lowers `for` loops (P4_16 1.2.5, section 12.8).

use super::Checker;
use super::fold;
use super::types::Ty;
use super::value::{LVal, Val};
use crate::ast::{self, BinOp, DeclKind, ForCollection};
use crate::diagnostics::Code;
use crate::ir;
use crate::source::Span;
use num_bigint::BigInt;

impl<'a> Checker<'a, '_> {
    /// Lowers a loop `for (init; cond; update) body`.
    pub(crate) fn for_loop(
        &mut self,
        init: &'a [ast::Stmt],
        cond: &'a ast::Expr,
        update: &'a [ast::Stmt],
        body: &'a ast::Stmt,
        span: Span,
    ) {
        self.push_scope();
        for stmt in init {
            self.statement(stmt);
        }
        let mut test = None;
        let cond_stmts = self.block_of(|c| test = c.condition(cond));
        let body = self.loop_body(body);
        let update = self.block_of(|c| {
            for stmt in update {
                c.statement(stmt);
            }
        });
        if let Some(cond) = test {
            self.emit(
                ir::StmtKind::Loop {
                    cond_stmts,
                    cond,
                    body,
                    update,
                },
                span,
            );
        }
        self.pop_scope();
    }

    fn loop_body(&mut self, body: &'a ast::Stmt) -> ir::Block {
        self.unit.loops += 1;
        let block = self.body_of(body);
        self.unit.loops -= 1;
        block
    }

    /// Lowers a loop `for (T x in …) body` over a range, stack or list.
    pub(crate) fn for_in(
        &mut self,
        var: &'a ast::Decl,
        collection: &'a ForCollection,
        body: &'a ast::Stmt,
        span: Span,
    ) {
        let DeclKind::Var { ty, name, .. } = &var.kind else {
            self.err(Code::Placement, var.span, "a loop must declare a variable");
            return;
        };
        let ty = self.resolve(ty);
        self.push_scope();
        match collection {
            ForCollection::Range(low, high) => self.for_range(&ty, name, low, high, body, span),
            ForCollection::Expr(e) => self.for_each(&ty, name, e, body, span),
        }
        self.pop_scope();
    }

    fn loop_variable(&mut self, ty: &Ty, name: &'a ast::Ident) -> LVal {
        let place = self.variable(&name.name, ty);
        let mut seen = place.clone();
        seen.read_only = Some("it is the variable of a `for … in` loop");
        self.declare(name, Val::Place(seen));
        place
    }

    /// Lowers a loop over a range. Both bounds are evaluated once; the upper bound may be the type's maximum.
    fn for_range(
        &mut self,
        ty: &Ty,
        name: &'a ast::Ident,
        low: &'a ast::Expr,
        high: &'a ast::Expr,
        body: &'a ast::Stmt,
        span: Span,
    ) {
        if !matches!(ty, Ty::Bit(_) | Ty::Int(_) | Ty::Var(_)) {
            if !ty.is_poison() {
                let shown = self.types.show(ty);
                self.err(
                    Code::Type,
                    name.span,
                    format!("a loop over a range needs a variable of bit<> or int<>, not {shown}"),
                );
            }
            return;
        }
        let (a, b) = self.operands(low, high);
        let (Some(a), Some(b)) = (self.coerce(a, ty, low.span), self.coerce(b, ty, high.span))
        else {
            return;
        };
        let counter = self.variable("$next", ty);
        let last = self.variable("$last", ty);
        let more = self.variable("$more", &Ty::Bool);
        self.emit(ir::StmtKind::Assign(counter.lv.clone(), a), low.span);
        self.emit(ir::StmtKind::Assign(last.lv.clone(), b), high.span);
        let (c, l) = (counter.clone().read().1, last.read().1);
        let begin = compare(BinOp::Le, c.clone(), l.clone());
        self.emit(ir::StmtKind::Assign(more.lv.clone(), begin), span);
        let x = self.loop_variable(ty, name);
        let mut inner = vec![assign(x.lv, c.clone(), span)];
        inner.extend(self.loop_body(body));
        let next = increment(c.clone());
        let update = vec![
            assign(more.lv.clone(), compare(BinOp::Lt, c, l), span),
            assign(counter.lv, next, span),
        ];
        self.emit(
            ir::StmtKind::Loop {
                cond_stmts: Vec::new(),
                cond: more.read().1,
                body: inner,
                update,
            },
            span,
        );
    }

    fn for_each(
        &mut self,
        ty: &Ty,
        name: &'a ast::Ident,
        e: &'a ast::Expr,
        body: &'a ast::Stmt,
        span: Span,
    ) {
        let Some(over) = self.collection(ty, name, e) else {
            return;
        };
        let count = match &over {
            Collection::List(values) => values.len() as u32,
            Collection::Stack(_, n) => *n,
        };
        let begin = self.unit.block.len();
        let index = self.variable("$index", &Ty::Bit(32));
        let i = index.clone().read().1;
        let zero = fold::bits(&BigInt::from(0), &ir::Type::Bit(32));
        self.emit(ir::StmtKind::Assign(index.lv.clone(), zero), span);
        let x = self.loop_variable(ty, name);
        let body = self.loop_body(body);
        let Some(over) = self.collection_before(over, begin, &body, ty, e.span) else {
            return;
        };
        let mut inner = match over {
            Collection::Stack(stack, _) => {
                let element = self.element(stack, i.clone(), ty);
                vec![assign(x.lv, element.read().1, span)]
            }
            Collection::List(values) => {
                let case = |(n, (value, span))| {
                    let block = vec![assign(x.lv.clone(), value, span)];
                    (vec![Const32(n).into()], block)
                };
                vec![ir::Stmt {
                    kind: ir::StmtKind::Switch {
                        value: i.clone(),
                        cases: (0u32..).zip(values).map(case).collect(),
                        default: Vec::new(),
                    },
                    span,
                }]
            }
        };
        inner.extend(body);
        let end = fold::bits(&BigInt::from(count), &ir::Type::Bit(32));
        let next = increment(i.clone());
        self.emit(
            ir::StmtKind::Loop {
                cond_stmts: Vec::new(),
                cond: compare(BinOp::Lt, i, end),
                body: inner,
                update: vec![assign(index.lv, next, span)],
            },
            span,
        );
    }

    /// Evaluates the stack or list of a loop whose variable has type `ty`; `None` after an error.
    fn collection(
        &mut self,
        ty: &Ty,
        name: &'a ast::Ident,
        e: &'a ast::Expr,
    ) -> Option<Collection> {
        match self.expr(e, None) {
            Val::List(list) => {
                let mut values = Vec::new();
                for item in &list.items {
                    let value = self.coerce(item.val.clone(), ty, item.span)?;
                    values.push((value, item.span));
                }
                Some(Collection::List(values))
            }
            Val::Expr(Ty::List(elem), value) => {
                if *elem != *ty {
                    self.mismatch(name.span, &elem, ty);
                    return None;
                }
                let parts = list_parts(value.kind, &self.types.ir(ty));
                let values = parts.into_iter().map(|part| (part, e.span)).collect();
                Some(Collection::List(values))
            }
            Val::Poison => None,
            other => {
                let place = match other {
                    Val::Place(p) => p,
                    Val::Expr(ty, value) => self.place_of(ty, value, e.span),
                    other => {
                        self.no_collection(other.what(), e.span);
                        return None;
                    }
                };
                let Ty::Stack(elem, n) = self.types.strip_new(&place.ty).clone() else {
                    let shown = self.types.show(&place.ty);
                    self.no_collection(&shown, e.span);
                    return None;
                };
                if *elem != *ty {
                    self.mismatch(name.span, &elem, ty);
                    return None;
                }
                Some(Collection::Stack(place, n))
            }
        }
    }

    /// Saves those parts of a loop's stack or list that the body changes, in statements inserted at position `at`: the
    /// collection is evaluated before the first iteration.
    fn collection_before(
        &mut self,
        over: Collection,
        mut at: usize,
        body: &ir::Block,
        ty: &Ty,
        span: Span,
    ) -> Option<Collection> {
        let writes = self.writes_of(body);
        let mut kept = |val: Val<'a>, span| {
            let before = self.unit.block.len();
            let val = self.keep_changed(val, at, &writes, span);
            at += self.unit.block.len() - before;
            val
        };
        Some(match over {
            Collection::Stack(p, n) => match kept(Val::Place(p.clone()), span) {
                Val::Place(kept) => Collection::Stack(kept, n),
                _ => Collection::Stack(p, n),
            },
            Collection::List(values) => {
                let kept = |(value, span)| match kept(Val::Expr(ty.clone(), value), span) {
                    Val::Place(kept) => Some((kept.read().1, span)),
                    Val::Expr(_, value) => Some((value, span)),
                    _ => None,
                };
                let values: Option<_> = values.into_iter().map(kept).collect();
                Collection::List(values?)
            }
        })
    }

    fn no_collection(&mut self, what: &str, span: Span) {
        let message = format!("a `for … in` loop takes a stack, a list or a range, not {what}");
        self.err(Code::Type, span, message);
    }
}

/// The values that a `for … in` loop iterates over.
enum Collection {
    List(Vec<(ir::Expr, Span)>),
    /// A header stack or array, and its number of elements.
    Stack(LVal, u32),
}

/// A number that becomes an IR constant of type `bit<32>`.
struct Const32(u32);

impl From<Const32> for ir::Const {
    fn from(n: Const32) -> ir::Const {
        ir::Const::Bits {
            value: n.0.into(),
            ty: ir::Type::Bit(32),
        }
    }
}

/// The elements of a value of type `list`, as expressions of type `ty`.
fn list_parts(list: ir::ExprKind, ty: &ir::Type) -> Vec<ir::Expr> {
    let constant = |value| ir::Expr {
        kind: ir::ExprKind::Const(value),
        ty: ty.clone(),
    };
    match list {
        ir::ExprKind::Tuple(parts) => parts,
        ir::ExprKind::Const(ir::Const::Tuple(values)) => values.into_iter().map(constant).collect(),
        _ => Vec::new(),
    }
}

fn assign(lv: ir::LValue, e: ir::Expr, span: Span) -> ir::Stmt {
    ir::Stmt {
        kind: ir::StmtKind::Assign(lv, e),
        span,
    }
}

fn increment(e: ir::Expr) -> ir::Expr {
    let ty = e.ty.clone();
    let one = fold::bits(&BigInt::from(1), &ty);
    ir::Expr {
        kind: ir::ExprKind::Binary(BinOp::Add, Box::new(e), Box::new(one)),
        ty,
    }
}

fn compare(op: BinOp, a: ir::Expr, b: ir::Expr) -> ir::Expr {
    ir::Expr {
        kind: ir::ExprKind::Binary(op, Box::new(a), Box::new(b)),
        ty: ir::Type::Bool,
    }
}
