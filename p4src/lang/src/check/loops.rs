//! `for` (P4_16 1.2.5, section 12.8).

use super::Checker;
use super::fold;
use super::types::Ty;
use super::value::{Place, Val};
use crate::ast::{self, BinOp, DeclKind, ForCollection};
use crate::diagnostics::Code;
use crate::ir;
use crate::source::Span;
use num_bigint::BigInt;

impl<'a> Checker<'a, '_> {
    /// `for (init; cond; update) body`
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

    /// `for (T x in …) body`
    pub(crate) fn for_in(
        &mut self,
        var: &'a ast::Decl,
        collection: &'a ForCollection,
        body: &'a ast::Stmt,
        span: Span,
    ) {
        let DeclKind::Var { ty, name, .. } = &var.kind else {
            self.err(Code::Placement, var.span, "a loop runs over a variable");
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

    fn loop_variable(&mut self, ty: &Ty, name: &'a ast::Ident) -> Place {
        let place = self.variable(&name.name, ty);
        let mut seen = place.clone();
        seen.read_only = Some("it is a loop's variable");
        self.declare(name, Val::Place(seen));
        place
    }

    /// Both ends are evaluated once; the last value may be the type's largest.
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
                    format!("a range runs over bit<> or int<>, not {shown}"),
                );
            }
            return;
        }
        let (a, b) = self.operands(low, high);
        let (Some(a), Some(b)) = (self.coerce(a, ty, low.span), self.coerce(b, ty, high.span))
        else {
            return;
        };
        let counter = self.counter("$next", ty);
        let last = self.counter("$last", ty);
        let more = self.counter("$more", &Ty::Bool);
        self.emit(ir::StmtKind::Assign(counter.lv.clone(), a), low.span);
        self.emit(ir::StmtKind::Assign(last.lv.clone(), b), high.span);
        let (c, l) = (counter.clone().read().1, last.read().1);
        let begin = compare(BinOp::Le, c.clone(), l.clone());
        self.emit(ir::StmtKind::Assign(more.lv.clone(), begin), span);
        let x = self.loop_variable(ty, name);
        let mut inner = vec![assign(x.lv, c.clone(), span)];
        inner.extend(self.loop_body(body));
        let lowered = self.types.ir(ty);
        let one = fold::bits(&BigInt::from(1), &lowered);
        let next = ir::Expr {
            kind: ir::ExprKind::Binary(BinOp::Add, Box::new(c.clone()), Box::new(one)),
            ty: lowered,
        };
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

    fn counter(&mut self, name: &str, ty: &Ty) -> Place {
        let lowered = self.types.ir(ty);
        let var = self.unit.var(name, lowered.clone(), false);
        Place {
            ty: ty.clone(),
            lv: ir::LValue {
                var,
                path: Vec::new(),
                ty: lowered,
            },
            read_only: None,
        }
    }

    fn for_each(
        &mut self,
        ty: &Ty,
        name: &'a ast::Ident,
        e: &'a ast::Expr,
        body: &'a ast::Stmt,
        span: Span,
    ) {
        let count;
        let mut fetch: Vec<ir::Block> = Vec::new();
        let mut stack = None;
        match self.expr(e, None) {
            Val::Place(p) => {
                let Ty::Stack(elem, n) = self.types.strip_new(&p.ty).clone() else {
                    let shown = self.types.show(&p.ty);
                    self.err(
                        Code::Type,
                        e.span,
                        format!("a loop runs over a stack, a list or a range, not {shown}"),
                    );
                    return;
                };
                if *elem != *ty {
                    self.mismatch(name.span, &elem, ty);
                    return;
                }
                count = n;
                stack = Some(p);
            }
            Val::List(list) => {
                count = list.items.len() as u32;
                for item in &list.items {
                    let mut value = None;
                    let mut block =
                        self.block_of(|c| value = c.coerce(item.val.clone(), ty, item.span));
                    let Some(value) = value else { return };
                    block.push(ir::Stmt {
                        kind: ir::StmtKind::Assign(placeholder(value.ty.clone()), value),
                        span: item.span,
                    });
                    fetch.push(block);
                }
            }
            Val::Expr(Ty::List(elem), value) => {
                if *elem != *ty {
                    self.mismatch(name.span, &elem, ty);
                    return;
                }
                let lowered = self.types.ir(ty);
                let parts = list_parts(value.kind, &lowered);
                count = parts.len() as u32;
                let fetched = |value| vec![assign(placeholder(lowered.clone()), value, e.span)];
                fetch.extend(parts.into_iter().map(fetched));
            }
            Val::Poison => return,
            other => {
                let what = other.what();
                self.err(
                    Code::Type,
                    e.span,
                    format!("a loop runs over a stack, a list or a range, not {what}"),
                );
                return;
            }
        }
        let index = self.counter("$index", &Ty::Bit(32));
        let i = index.clone().read().1;
        let zero = fold::bits(&BigInt::from(0), &ir::Type::Bit(32));
        self.emit(ir::StmtKind::Assign(index.lv.clone(), zero), span);
        let x = self.loop_variable(ty, name);
        let mut inner = match stack {
            Some(p) => {
                let element = self.element(p, i.clone(), ty);
                vec![assign(x.lv, element.read().1, span)]
            }
            None => {
                let cases = fetch
                    .into_iter()
                    .enumerate()
                    .map(|(n, mut block)| {
                        if let Some(ir::Stmt {
                            kind: ir::StmtKind::Assign(lv, _),
                            ..
                        }) = block.last_mut()
                        {
                            *lv = x.lv.clone();
                        }
                        let label = Const32(n as u32).into();
                        (vec![label], block)
                    })
                    .collect();
                vec![ir::Stmt {
                    kind: ir::StmtKind::Switch {
                        value: i.clone(),
                        cases,
                        default: Vec::new(),
                    },
                    span,
                }]
            }
        };
        inner.extend(self.loop_body(body));
        let end = fold::bits(&BigInt::from(count), &ir::Type::Bit(32));
        let one = fold::bits(&BigInt::from(1), &ir::Type::Bit(32));
        let next = ir::Expr {
            kind: ir::ExprKind::Binary(BinOp::Add, Box::new(i.clone()), Box::new(one)),
            ty: ir::Type::Bit(32),
        };
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
}

/// A 32-bit label.
struct Const32(u32);

impl From<Const32> for ir::Const {
    fn from(n: Const32) -> ir::Const {
        ir::Const::Bits {
            value: n.0.into(),
            ty: ir::Type::Bit(32),
        }
    }
}

/// The elements of a value of a `list` type.
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

/// Replaced by the loop's variable once that exists.
fn placeholder(ty: ir::Type) -> ir::LValue {
    ir::LValue {
        var: ir::VarId(0),
        path: Vec::new(),
        ty,
    }
}

fn assign(lv: ir::LValue, e: ir::Expr, span: Span) -> ir::Stmt {
    ir::Stmt {
        kind: ir::StmtKind::Assign(lv, e),
        span,
    }
}

fn compare(op: BinOp, a: ir::Expr, b: ir::Expr) -> ir::Expr {
    ir::Expr {
        kind: ir::ExprKind::Binary(op, Box::new(a), Box::new(b)),
        ty: ir::Type::Bool,
    }
}
