//! The predicate of a stateful ALU: a number formed from the results of its comparators, compiled.

use crate::compile::layout::width;
use crate::compile::{Compiler, Result, Unit};
use crate::op::{Op, Slot, T3};
use p4lang::ir::{
    self, Action, Arg, BinOp, Block, Expr, ExprKind, LValue, Method, Stmt, StmtKind, VarId,
};

/// Number of comparators of a stateful ALU.
const COMPARATORS: usize = 4;
/// The different comparisons in the conditions of a register action, in order. Each takes one comparator of the ALU.
pub fn comparisons(action: &Action) -> Vec<&Expr> {
    let mut found = Vec::new();
    in_conditions(&action.body, &mut found);
    found.truncate(COMPARATORS);
    found
}

fn in_conditions<'p>(block: &'p Block, found: &mut Vec<&'p Expr>) {
    for stmt in block {
        match &stmt.kind {
            StmtKind::If(arms, otherwise) => {
                for arm in arms {
                    in_conditions(&arm.before, found);
                    leaves(&arm.cond, found);
                    in_conditions(&arm.then, found);
                }
                in_conditions(otherwise, found);
            }
            StmtKind::Atomic(body, _) => in_conditions(body, found),
            _ => {}
        }
    }
}

fn leaves<'p>(e: &'p Expr, found: &mut Vec<&'p Expr>) {
    match &e.kind {
        ExprKind::Unary(ir::UnOp::Not, inner) => leaves(inner, found),
        ExprKind::Binary(BinOp::LogAnd | BinOp::LogOr, a, b) => {
            leaves(a, found);
            leaves(b, found);
        }
        _ if !found.contains(&e) => found.push(e),
        _ => {}
    }
}

/// Whether an expression reads the variable.
pub fn mentions(e: &Expr, var: VarId) -> bool {
    match &e.kind {
        ExprKind::Read(lvalue) => lvalue.var == var,
        ExprKind::Unary(_, a) | ExprKind::Cast(a) | ExprKind::Slice(a, ..) => mentions(a, var),
        ExprKind::Binary(_, a, b) | ExprKind::Concat(a, b) => mentions(a, var) || mentions(b, var),
        ExprKind::Mux(a, b, c) => [a, b, c].iter().any(|e| mentions(e, var)),
        ExprKind::Tuple(parts) => parts.iter().any(|e| mentions(e, var)),
        _ => false,
    }
}

/// Whether a register action's body uses a predicate, whose comparisons see the cell's original value.
fn asks_predicate(block: &Block) -> bool {
    block.iter().any(|stmt: &Stmt| match &stmt.kind {
        StmtKind::CallMethod { method, .. } => *method == Method::Predicate,
        StmtKind::If(arms, otherwise) => {
            let asks = |arm: &ir::Arm| asks_predicate(&arm.before) || asks_predicate(&arm.then);
            arms.iter().any(asks) || asks_predicate(otherwise)
        }
        StmtKind::Switch { cases, default, .. } => {
            cases.iter().any(|(_, block)| asks_predicate(block)) || asks_predicate(default)
        }
        StmtKind::Loop { body, .. } | StmtKind::Atomic(body, _) => asks_predicate(body),
        _ => false,
    })
}

impl Compiler<'_> {
    /// Saves the original value of a cell in slots, if the body uses a predicate; returns the first slot.
    pub(crate) fn original(
        &mut self,
        action: &Action,
        value: Slot,
        n: u32,
    ) -> Result<Option<Slot>> {
        if !asks_predicate(&action.body) {
            return Ok(None);
        }
        let d = self.alloc(n)?;
        self.op(Op::Copy { d, s: value, n })?;
        Ok(Some(d))
    }

    /// Compiles a predicate: the comparison results form a number n, the first result in the lowest bit, and only bit n of the
    /// predicate is set. Uses the comparisons in the arguments; without arguments, all of the method.
    pub(crate) fn predicate(&mut self, args: &[Arg], result: Option<&LValue>) -> Result<()> {
        let (Some(lvalue), Some(method)) = (result, self.tofino.method) else {
            return Ok(());
        };
        let Unit::Control(_, control) = self.scope.unit else {
            return Ok(());
        };
        let action = &control.actions[method.action.index()];
        let written = args.iter().filter_map(|arg| match arg {
            Arg::In(e) => Some(e),
            _ => None,
        });
        let mut compared: Vec<&Expr> = written.collect();
        if compared.is_empty() {
            compared = comparisons(action);
        }
        let n = self.alloc(1)?;
        self.op(Op::Zero { d: n, n: 1 })?;
        let cell = action.params.first().map(|p| p.var.index());
        for (i, e) in (0..).zip(compared) {
            let now = cell.map(|var| (var, self.scope.slots[var]));
            if let (Some(var), Some(original)) = (cell, method.original) {
                self.scope.slots[var] = original;
            }
            let bit = self.expr(e);
            if let Some((var, slot)) = now {
                self.scope.slots[var] = slot;
            }
            let (bit, shift, moved) = (bit?, self.constant(i)?, self.alloc(1)?);
            self.op(Op::Shl(T3 {
                w: 8,
                d: moved,
                a: bit,
                b: shift,
            }))?;
            self.op(Op::Or(T3 {
                w: 8,
                d: n,
                a: n,
                b: moved,
            }))?;
        }
        let w = width(&lvalue.ty).min(64) as u8;
        let one = self.constant(1)?;
        self.write_result(result, |c, d| c.op(Op::Shl(T3 { w, d, a: one, b: n })))
    }
}
