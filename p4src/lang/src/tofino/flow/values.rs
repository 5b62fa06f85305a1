//! Computes when values are known, and the operations that produce them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::expr::{is_comparison, is_const, width};
use super::super::field_path::{FieldPath, Step, Unit};
use super::{Cx, Node, Op, Reader, Val, Walk};
use crate::ast::StructKind;
use crate::ir::{Arm, BinOp, Const, Expr, ExprKind, ExternId, LValue, Stmt, Type};
use crate::source::Span;

/// Alternative branches from one point (the fork), and their effects.
struct Ways {
    /// Length of `Walk::log`, the list of writes so far, at the fork.
    mark: usize,
    count: usize,
    changed: BTreeMap<FieldPath, Vec<Val>>,
    /// The maximum number of executions of each register in one branch, with the span of an execution.
    runs: BTreeMap<ExternId, (u32, Span)>,
}

impl<'p> Walk<'p> {
    pub(super) fn place(&self, unit: Unit, lv: &LValue) -> FieldPath {
        let root = self.alias.get(&(unit, lv.var)).cloned();
        root.unwrap_or_else(|| FieldPath::new(unit, lv.var))
            .follow(&lv.path)
    }

    /// The timing of a field: that of its latest part. A part that was never written has the timing of the value around it.
    pub(super) fn read(&self, place: &FieldPath) -> Val {
        let mut own = None;
        let mut whole = place.clone();
        while own.is_none() {
            own = self.vals.get(&whole).copied();
            if whole.path.pop().is_none() {
                break;
            }
        }
        let parts = self
            .vals
            .range(place..)
            .take_while(|(p, _)| place.holds(p))
            .map(|(_, v)| *v);
        parts.fold(own.unwrap_or_default(), Val::max)
    }

    pub(super) fn write(&mut self, place: FieldPath, val: Val) {
        let parts: Vec<FieldPath> = self
            .vals
            .range(&place..)
            .map(|(p, _)| p)
            .take_while(|p| place.holds(p))
            .cloned()
            .collect();
        for part in parts {
            if part != place {
                let old = self.vals.insert(part.clone(), val);
                self.log.push((part, old));
            }
        }
        let old = self.vals.insert(place.clone(), val);
        self.log.push((place, old));
    }

    /// Runs alternative branches and joins their effects: each value is known as late as in its latest branch.
    pub(super) fn branches(&mut self, count: usize, mut run: impl FnMut(&mut Self, usize)) {
        let mut ways = self.fork();
        for branch in 0..count {
            self.way(&mut ways, |w| run(w, branch));
        }
        self.meet(ways);
    }

    /// Walks through the arms of an `if`: each arm sees the effects of calls in earlier conditions.
    pub(super) fn arms(&mut self, mut cx: Cx, arms: &'p [Arm], otherwise: &'p [Stmt]) {
        let mut ways = self.fork();
        let mut last = otherwise;
        for arm in arms {
            self.block(cx, &arm.before);
            self.span = arm.span;
            match arm.cond.kind {
                ExprKind::Const(Const::Bool(false)) => continue,
                ExprKind::Const(Const::Bool(true)) => {
                    last = &arm.then;
                    break;
                }
                _ => {}
            }
            cx.ctl = self.cond(cx, &arm.cond);
            self.way(&mut ways, |w| w.block(cx, &arm.then));
        }
        self.way(&mut ways, |w| w.block(cx, last));
        self.meet(ways);
    }

    fn fork(&self) -> Ways {
        Ways {
            mark: self.log.len(),
            count: 0,
            changed: BTreeMap::new(),
            runs: self.runs.clone(),
        }
    }

    /// Runs one branch from the fork, records its writes, and restores the state.
    fn way(&mut self, ways: &mut Ways, run: impl FnOnce(&mut Self)) {
        let here = self.log.len();
        let runs = self.runs.clone();
        run(self);
        ways.count += 1;
        let mut seen = BTreeSet::new();
        for (place, _) in &self.log[ways.mark..] {
            if seen.insert(place) {
                let val = self.vals.get(place).copied().unwrap_or_default();
                ways.changed.entry(place.clone()).or_default().push(val);
            }
        }
        self.undo(here);
        for (register, run) in std::mem::replace(&mut self.runs, runs) {
            let most = ways.runs.entry(register).or_insert(run);
            if run.0 > most.0 {
                *most = run;
            }
        }
    }

    fn meet(&mut self, ways: Ways) {
        self.undo(ways.mark);
        self.runs = ways.runs;
        for (place, vals) in ways.changed {
            let all = vals.len() == ways.count;
            let mut joined = vals.into_iter().reduce(Val::max).unwrap_or_default();
            if !all {
                joined = joined.max(self.read(&place));
            }
            let old = self.vals.insert(place.clone(), joined);
            self.log.push((place, old));
        }
    }

    /// Undoes all writes since the log had length `mark`.
    fn undo(&mut self, mark: usize) {
        while self.log.len() > mark {
            let Some((place, old)) = self.log.pop() else {
                break;
            };
            match old {
                Some(old) => self.vals.insert(place, old),
                None => self.vals.remove(&place),
            };
        }
    }

    pub(super) fn op(&mut self, node: Node, inputs: Val, least: u32) -> Val {
        let floor = self.floors.get(&node).copied().unwrap_or(0);
        let stage = (inputs.at + 1).max(least).max(floor);
        let span = self.span;
        self.flow.ops.push(Op {
            node,
            stage,
            after: inputs.by,
            span,
        });
        if node != Node::Alu {
            let entry = self.flow.nodes.entry(node).or_insert((stage, span));
            entry.0 = entry.0.max(stage);
        }
        Val {
            at: stage,
            by: Some(self.flow.ops.len() - 1),
            hash: false,
            data: false,
        }
    }

    pub(super) fn eval(&mut self, cx: Cx, e: &Expr, reader: Reader) -> Val {
        match &e.kind {
            ExprKind::Const(_) | ExprKind::InvalidHeader | ExprKind::LastIndex(_) => Val::default(),
            ExprKind::Read(lv) => {
                let place = self.place(cx.unit, lv);
                let val = self.read(&place);
                if reader != Reader::Alu {
                    self.flow.uses.push((None, place));
                }
                match reader {
                    Reader::Match if val.hash => Val {
                        at: val.at + 1,
                        hash: false,
                        ..val
                    },
                    _ => val,
                }
            }
            ExprKind::IsValid(lv) => self.read(&self.place(cx.unit, lv).valid()),
            ExprKind::Unary(_, a) | ExprKind::Cast(a) | ExprKind::Slice(a, ..) => {
                self.eval(cx, a, reader)
            }
            ExprKind::Concat(a, b) => self.eval(cx, a, reader).max(self.eval(cx, b, reader)),
            ExprKind::Tuple(all) => all
                .iter()
                .fold(Val::default(), |v, e| v.max(self.eval(cx, e, reader))),
            ExprKind::Mux(c, a, b) => {
                let chosen = self.eval(cx, a, reader).max(self.eval(cx, b, reader));
                self.eval(cx, c, Reader::Match).max(chosen)
            }
            ExprKind::Binary(op, a, b) => self.binary(cx, *op, a, b, reader),
        }
    }

    pub(super) fn binary(&mut self, cx: Cx, op: BinOp, a: &Expr, b: &Expr, reader: Reader) -> Val {
        let constant = is_const(a) || is_const(b);
        let inner = if is_comparison(op) || matches!(op, BinOp::LogAnd | BinOp::LogOr) {
            Reader::Match
        } else {
            reader
        };
        // A shifted operand is free in an OR or XOR: the instruction deposits a field.
        let strip = |e: &Expr| match &e.kind {
            ExprKind::Binary(BinOp::Shl | BinOp::Shr, x, by)
                if is_const(by) && matches!(op, BinOp::Or | BinOp::Xor) =>
            {
                Some((**x).clone())
            }
            _ => None,
        };
        let (a, b) = (
            strip(a).unwrap_or_else(|| a.clone()),
            strip(b).unwrap_or_else(|| b.clone()),
        );
        let inputs = self.eval(cx, &a, inner).max(self.eval(cx, &b, inner));
        let free = match op {
            BinOp::LogAnd | BinOp::LogOr | BinOp::Eq | BinOp::Ne => true,
            BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => constant,
            BinOp::And => constant && reader == Reader::Match,
            BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr => reader == Reader::Index && constant,
            BinOp::Concat => true,
            _ => false,
        } || cx.in_hash
            || (is_const(&a) && is_const(&b));
        if free {
            return inputs;
        }
        self.op(
            Node::Alu,
            Val {
                data: false,
                ..inputs
            },
            0,
        )
    }

    pub(super) fn cond(&mut self, cx: Cx, e: &Expr) -> Val {
        let val = self.eval(cx, e, Reader::Match);
        Val {
            data: false,
            ..val.max(cx.ctl)
        }
    }

    /// Whether a write to the field is visible outside the pipe: the field is in a header or in intrinsic metadata.
    pub(super) fn is_seen(&self, place: &FieldPath) -> bool {
        let Some(control) = self.program.controls.get(place.root.0 as usize) else {
            return false;
        };
        let Some(mut ty) = control.vars.get(place.root.1.index()).map(|v| v.ty.clone()) else {
            return false;
        };
        for step in &place.path {
            match (&ty, step) {
                (Type::Struct(id), Step::Field(n)) => {
                    let Some(of) = self.program.types.get(id.index()) else {
                        return false;
                    };
                    if of.kind == StructKind::Header
                        || of
                            .annotations
                            .iter()
                            .any(|a| a.name == "__intrinsic_metadata")
                    {
                        return true;
                    }
                    let Some(field) = of.fields.get(*n as usize) else {
                        return false;
                    };
                    ty = field.ty.clone();
                }
                (Type::Stack(..), _) => return true,
                _ => break,
            }
        }
        false
    }

    /// Records a header field that an ALU writes: it can neither be split over PHV containers nor share its container.
    pub(super) fn word(&mut self, lv: &LValue, place: &FieldPath) {
        if width(&lv.ty) > 16 && self.is_seen(place) {
            self.flow.words.entry(place.clone()).or_insert(self.span);
        }
    }

    pub(super) fn assign(&mut self, cx: Cx, lv: &LValue, e: &Expr) {
        let place = self.place(cx.unit, lv);
        let computed = is_alu(e) && !cx.in_hash;
        self.goes_to(
            cx,
            e,
            if self.is_seen(&place) {
                None
            } else {
                Some(&place)
            },
        );
        let mut val = self.eval(cx, e, Reader::Alu);
        if computed {
            self.word(lv, &place);
            let least = cx.table.unwrap_or(cx.ctl.at + 1);
            if val.at < least {
                val = Val {
                    at: least,
                    by: cx.ctl.by.or(val.by),
                    ..val
                };
            }
        } else {
            if val.data {
                val = Val {
                    at: val.at + 1,
                    data: false,
                    ..val
                };
            }
            val = Val {
                hash: val.hash,
                data: false,
                ..val.max(cx.ctl)
            };
            if val
                .by
                .and_then(|by| self.flow.ops.get(by))
                .is_some_and(|op| matches!(op.node, Node::Register(_)))
            {
                self.word(lv, &place);
            }
            if self.is_seen(&place) {
                self.op(
                    Node::Alu,
                    Val {
                        at: val.at.saturating_sub(1).max(cx.ctl.at),
                        ..val
                    },
                    cx.table.unwrap_or(0),
                );
            }
        }
        self.write(place, val);
    }
}

/// Whether an ALU instruction computes the expression's value.
fn is_alu(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Binary(op, ..) => {
            !is_comparison(*op) && !matches!(op, BinOp::LogAnd | BinOp::LogOr | BinOp::Concat)
        }
        ExprKind::Cast(a) | ExprKind::Slice(a, ..) | ExprKind::Unary(_, a) => is_alu(a),
        _ => false,
    }
}
