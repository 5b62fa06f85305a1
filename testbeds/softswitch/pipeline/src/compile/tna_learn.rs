//! What a stateful ALU's comparators say, and `LearnAction`: a table with `dleft_hash` fields finds, or learns, a digest of
//! them in one of several ways, each an ALU with a part of the register.
//!
//! As Tofino 2's compiler builds it: the digest is a RANDOM hash of 51 bits whose lowest bit is set, 8 bits up; every way
//! looks at the same index of its part; its `learn` is true if another way matches or an earlier one has learned; what the
//! ways put out is ored.

use super::layout::width;
use super::v1model_functions::written;
use super::{Compiler, Result, Unit};
use crate::externs::hash::Algorithm;
use crate::op::{HashPlan, Op, Slot, T3};
use p4lang::ast::Literal;
use p4lang::ir::{
    self, Action, ActionId, Arg, BinOp, Block, Expr, ExprKind, ExternId, LValue, Stmt, StmtKind,
    Type, VarId,
};

/// Bits of a digest's hash.
pub const DIGEST_BITS: u32 = 51;
/// Where the digest begins in the value that it is compared with.
pub const DIGEST_SHIFT: u32 = 8;
/// Where an address says which way it is in.
pub const WAY_SHIFT: u32 = 23;
/// Comparators of a stateful ALU.
const COMPARATORS: usize = 4;
/// Stateful ALUs of a stage.
const ALUS: u64 = 4;
/// Bits of a block of memory, and of one of its rows.
const MEMORY_BITS: u64 = 1024 * ROW_BITS;
const ROW_BITS: u64 = 128;

/// A method of a register action that is being compiled.
#[derive(Debug, Clone, Copy)]
pub(super) struct InMethod {
    pub(super) action: ActionId,
    /// Index of its cell.
    pub(super) index: Slot,
    /// Logarithm of a cell's bits.
    pub(super) shift: u32,
    /// What an address has beside that.
    pub(super) base: u64,
    /// The cell as it was read, if the body asks for a predicate.
    pub(super) original: Option<Slot>,
}

/// The digest of the table whose actions are being compiled, and its number of ways, if it says one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digest {
    slot: Slot,
    ways: Option<u64>,
}

/// Whether entries say nothing of a key field: a digest has it.
pub fn is_learned(key: &ir::Key) -> bool {
    key.match_kind == "dleft_hash"
}

/// `@ways(n)`
pub fn ways_of(table: &ir::Table) -> Option<u64> {
    let mut annotations = table.annotations.iter();
    let ways = annotations.find(|a| a.name == "ways")?;
    match ways.literals.first() {
        Some(Literal::Int(n)) => u64::try_from(n).ok().filter(|n| (1..=ALUS).contains(n)),
        _ => None,
    }
}

/// The ways that a register of so many cells is divided into: one for each block of memory, as far as there are ALUs.
pub fn ways(cells: u64, cell_bits: u64, said: Option<u64>) -> u64 {
    let bits = cells.saturating_mul(cell_bits.next_power_of_two());
    let ways = said.unwrap_or_else(|| bits.div_ceil(MEMORY_BITS).min(ALUS));
    ways.clamp(1, cells.max(1))
}

/// The comparisons of a method's conditions in order, each once: those of the ALU's comparators. One that is joined with
/// `learn` is one with it.
pub fn comparisons(action: &Action) -> Vec<&Expr> {
    let mut found = Vec::new();
    in_conditions(&action.body, learn_of(action), &mut found);
    found.truncate(COMPARATORS);
    found
}

/// The `learn` parameter of a LearnAction's method.
fn learn_of(action: &Action) -> Option<VarId> {
    let learn = action.params.get(2)?;
    (learn.direction == p4lang::ast::Direction::In).then_some(learn.var)
}

fn in_conditions<'p>(block: &'p Block, learn: Option<VarId>, found: &mut Vec<&'p Expr>) {
    for stmt in block {
        match &stmt.kind {
            StmtKind::If(arms, otherwise) => {
                for arm in arms {
                    in_conditions(&arm.before, learn, found);
                    leaves(&arm.cond, learn, found);
                    in_conditions(&arm.then, learn, found);
                }
                in_conditions(otherwise, learn, found);
            }
            StmtKind::Atomic(body) => in_conditions(body, learn, found),
            _ => {}
        }
    }
}

fn leaves<'p>(e: &'p Expr, learn: Option<VarId>, found: &mut Vec<&'p Expr>) {
    let is_learn = |e: &Expr| learn.is_some_and(|learn| only_reads(e, learn));
    match &e.kind {
        ExprKind::Unary(ir::UnOp::Not, inner) => leaves(inner, learn, found),
        ExprKind::Binary(BinOp::LogAnd | BinOp::LogOr, a, b) if !is_learn(a) && !is_learn(b) => {
            leaves(a, learn, found);
            leaves(b, learn, found);
        }
        _ if !found.contains(&e) => found.push(e),
        _ => {}
    }
}

/// The variable, or its negation.
fn only_reads(e: &Expr, var: VarId) -> bool {
    match &e.kind {
        ExprKind::Read(lvalue) => lvalue.var == var,
        ExprKind::Unary(_, inner) => only_reads(inner, var),
        _ => false,
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

/// Whether a body asks for a predicate, whose comparisons see the cell as it was.
fn asks_predicate(block: &Block) -> bool {
    block.iter().any(|stmt: &Stmt| match &stmt.kind {
        StmtKind::CallMethod { method, .. } => method == "predicate",
        StmtKind::If(arms, otherwise) => {
            let asks = |arm: &ir::Arm| asks_predicate(&arm.before) || asks_predicate(&arm.then);
            arms.iter().any(asks) || asks_predicate(otherwise)
        }
        StmtKind::Switch { cases, default, .. } => {
            cases.iter().any(|(_, block)| asks_predicate(block)) || asks_predicate(default)
        }
        StmtKind::Loop { body, .. } | StmtKind::Atomic(body) => asks_predicate(body),
        _ => false,
    })
}

impl<'p> Compiler<'p> {
    /// Keeps a cell as it was read, for a body that asks for a predicate.
    pub(super) fn original(
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

    /// Bit n of the result is set where n is what the comparisons say, the first in the lowest place: those written, or all
    /// of the method's.
    pub(super) fn predicate(&mut self, args: &[Arg], result: Option<&LValue>) -> Result<()> {
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
        let mut asked: Vec<&Expr> = written.collect();
        if asked.is_empty() {
            asked = comparisons(action);
        }
        let n = self.alloc(1)?;
        self.op(Op::Zero { d: n, n: 1 })?;
        let cell = action.params.first().map(|p| p.var.index());
        for (i, e) in (0..).zip(asked) {
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

    /// The digest that a table's actions learn, if it has one.
    pub(super) fn digest_of(&mut self, table: &ir::Table) -> Result<Option<Digest>> {
        let hashed: Vec<&Expr> = table
            .key
            .iter()
            .filter(|k| is_learned(k))
            .map(|k| &k.expr)
            .collect();
        let Some(algorithm) = Algorithm::of_tofino("RANDOM").filter(|_| !hashed.is_empty()) else {
            return Ok(None);
        };
        let ty = Type::Tuple(hashed.iter().map(|e| e.ty.clone()).collect());
        let (layout, size) = (self.layout(&ty)?, self.size(&ty)?);
        let data = self.alloc(size)?;
        let mut at = data;
        for e in hashed {
            self.expr_into(e, at)?;
            at += self.size(&e.ty)?;
        }
        let d = self.alloc(1)?;
        self.code.hashes.push(HashPlan {
            algorithm,
            layout,
            data,
            d,
            w: DIGEST_BITS as u8,
            bounds: None,
            pad_left: false,
            payload: false,
            is_sum: false,
        });
        self.op(Op::Hash((self.code.hashes.len() - 1) as u32))?;
        let (one, by) = (self.constant(1)?, self.constant(DIGEST_SHIFT.into())?);
        let slot = self.alloc(1)?;
        self.op(Op::Or(T3 {
            w: 64,
            d,
            a: d,
            b: one,
        }))?;
        self.op(Op::Shl(T3 {
            w: 64,
            d: slot,
            a: d,
            b: by,
        }))?;
        let ways = ways_of(table);
        Ok(Some(Digest { slot, ways }))
    }

    /// `LearnAction.execute`
    pub(super) fn learn(
        &mut self,
        object: ExternId,
        index: Slot,
        (outs, result): (&[Arg], Option<&LValue>),
    ) -> Result<()> {
        let Some(digest) = self.tofino.digest else {
            return self.unsupported("a LearnAction outside of a table with dleft_hash fields");
        };
        let (Some(register), Some(r)) = (self.target(object), self.register_of(object)) else {
            return self.unsupported("a LearnAction of something that is not a register");
        };
        self.once(register)?;
        let (control, id) = self.body_of(object, "apply")?;
        let action = &control.actions[id.index()];
        let ty = |i: usize| &control.vars[action.params[i].var.index()].ty;
        let (value_ty, digest_ty) = (ty(0), ty(1));
        let (words, bits) = (self.size(value_ty)?, width(digest_ty));
        if words != self.code.registers[r as usize].words || self.size(digest_ty)? != 1 {
            return self.unsupported("a LearnAction of these types");
        }
        let seen = self.alloc(1)?;
        self.slice(seen, digest.slot, 64, bits.min(64) - 1, 0)?;
        let layout = self.layout(value_ty)?;
        let cell_bits = u64::from(self.code.layouts[layout as usize].bits);
        let cells = self.registers[r as usize].size;
        let ways = ways(cells, cell_bits, digest.ways);
        let part = self.constant(cells / ways)?;
        let inside = self.alloc(1)?;
        self.op(Op::Mod(T3 {
            w: 64,
            d: inside,
            a: index,
            b: part,
        }))?;
        let no = self.constant(0)?;
        // Every way's cell, and whether it matches.
        let mut read = Vec::new();
        for way in 0..ways {
            let (at, value, matches) = (self.alloc(1)?, self.alloc(words)?, self.alloc(1)?);
            let first = self.constant(way * (cells / ways))?;
            self.op(Op::Add(T3 {
                w: 64,
                d: at,
                a: inside,
                b: first,
            }))?;
            self.op(Op::RegisterRead {
                r,
                d: value,
                index: at,
            })?;
            if ways > 1 {
                self.any(matches, action, &[value, seen, no], false)?;
            }
            read.push((at, value, matches));
        }
        let mut given = Vec::new();
        for param in &action.params[3..] {
            let n = self.size(&control.vars[param.var.index()].ty)?;
            let slot = self.alloc(n)?;
            self.op(Op::Zero { d: slot, n })?;
            given.push((slot, n));
        }
        let learned = self.alloc(1)?;
        self.op(Op::Zero { d: learned, n: 1 })?;
        let shift = cell_bits.next_power_of_two().trailing_zeros();
        for (way, (at, value, _)) in (0..).zip(read.iter().copied()) {
            let learn = self.alloc(1)?;
            self.op(Op::Mov {
                d: learn,
                s: learned,
            })?;
            for (other, (.., matches)) in read.iter().enumerate() {
                if other != way as usize {
                    self.op(Op::Or(T3 {
                        w: 1,
                        d: learn,
                        a: learn,
                        b: *matches,
                    }))?;
                }
            }
            if ways > 1 {
                let new = self.alloc(1)?;
                self.any(new, action, &[value, seen, learn], true)?;
                self.op(Op::Or(T3 {
                    w: 1,
                    d: learned,
                    a: learned,
                    b: new,
                }))?;
            }
            let original = self.original(action, value, words)?;
            let mut slots = vec![value, seen, learn];
            for (_, n) in &given {
                let slot = self.alloc(*n)?;
                self.op(Op::Zero { d: slot, n: *n })?;
                slots.push(slot);
            }
            let method = InMethod {
                action: id,
                index: inside,
                shift,
                base: way << WAY_SHIFT,
                original,
            };
            let outer = self.tofino.method.replace(method);
            self.method_body(id, &slots)?;
            self.tofino.method = outer;
            self.op(Op::RegisterWrite {
                r,
                index: at,
                s: value,
            })?;
            for ((all, n), own) in given.iter().zip(&slots[3..]) {
                for word in 0..*n {
                    let (d, b) = (all + word, own + word);
                    self.op(Op::Or(T3 { w: 64, d, a: d, b }))?;
                }
            }
        }
        let to = std::iter::once(result).chain(outs.iter().map(written));
        for (to, (slot, _)) in to.zip(given) {
            if let Some(lvalue) = to {
                let place = self.locate(lvalue)?;
                self.store(&place, slot)?;
            }
        }
        Ok(())
    }

    /// Whether any of a LearnAction's comparisons is true: those with `learn`, or those of the digest without it.
    fn any(&mut self, d: Slot, action: &'p Action, slots: &[Slot], learns: bool) -> Result<()> {
        self.op(Op::Zero { d, n: 1 })?;
        for (param, slot) in action.params.iter().zip(slots) {
            self.scope.slots[param.var.index()] = *slot;
        }
        for e in comparisons(action) {
            if is_of(action, e, learns) {
                let b = self.expr(e)?;
                self.op(Op::Or(T3 { w: 1, d, a: d, b }))?;
            }
        }
        Ok(())
    }
}

/// Whether a comparison is one that learns, or else one with the digest.
pub fn is_of(action: &Action, comparison: &Expr, learns: bool) -> bool {
    let of = |i: usize| {
        action
            .params
            .get(i)
            .is_some_and(|p| mentions(comparison, p.var))
    };
    if learns { of(2) } else { of(1) && !of(2) }
}
