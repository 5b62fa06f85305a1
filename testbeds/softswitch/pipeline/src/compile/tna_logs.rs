//! Registers of Tofino 2 as logs, queues and stacks; clearing and sweeping; addresses.
//!
//! A register has one pair of counters ([`crate::externs::log`]) for all its actions, and one `overflow` and `underflow`.

use super::expr::literal;
use super::layout::width;
use super::v1model_functions::written;
use super::{Compiler, Result, const_u64};
use crate::externs::log::{Log, Purpose, Turn};
use crate::op::{Op, Slot, T3};
use p4lang::ast::Literal;
use p4lang::ir::{Arg, Expr, ExternId, LValue, Program, Type};

/// Whether the next register goes on where this action's ends.
pub fn is_chained(program: &Program, action: ExternId) -> bool {
    let annotations = &program.externs[action.index()].annotations;
    annotations.iter().any(|a| a.name == "chain_address")
}

/// The action whose method a register executes where its queue or stack is full, or empty.
pub fn other_body(program: &Program, register: ExternId, turn: Turn) -> Option<ExternId> {
    let mut externs = program.externs.iter().zip(0..);
    let found = externs.find(|(instance, _)| {
        super::tna_salu::executes(instance) == Some(register)
            && instance.methods.iter().any(|m| m.name == turn.otherwise())
    });
    found.map(|(_, id)| ExternId(id))
}

impl Compiler<'_> {
    /// `execute_log`, `enqueue`, `dequeue`, `push`, `pop`.
    pub(super) fn turn(
        &mut self,
        object: ExternId,
        turn: Turn,
        outs: &[Arg],
        result: Option<&LValue>,
    ) -> Result<()> {
        let (Some(register), true) = (self.target(object), self.register_of(object).is_some())
        else {
            return self.unsupported("a log, queue or stack that is not a register");
        };
        self.purpose(register, turn.purpose())?;
        let log = self.log_of(register);
        let d = self.alloc(2)?;
        self.op(Op::TurnLog { log, turn, d })?;
        self.keep_index(object, d)?;
        if turn == Turn::Log {
            return self.execute(object, "apply", d, (outs, result));
        }
        let (otherwise, end) = (self.label(), self.label());
        self.op(Op::JumpIfNot {
            c: d + 1,
            to: otherwise,
        })?;
        self.execute(object, "apply", d, (outs, result))?;
        self.op(Op::Jump(end))?;
        self.place(otherwise);
        match other_body(self.program, register, turn) {
            Some(other) => self.execute(other, turn.otherwise(), d, (outs, result))?,
            None => self.nothing(outs, result)?,
        }
        self.place(end);
        Ok(())
    }

    /// For an address that is asked for later.
    pub(super) fn keep_index(&mut self, action: ExternId, s: Slot) -> Result<()> {
        match self.tofino.executed_at.get(&action).copied() {
            Some(d) => self.op(Op::Mov { d, s }),
            None => Ok(()),
        }
    }

    /// Nothing is executed: the outputs are 0.
    fn nothing(&mut self, outs: &[Arg], result: Option<&LValue>) -> Result<()> {
        let result = result.filter(|to| !matches!(to.ty, Type::Void));
        for to in result.into_iter().chain(outs.iter().filter_map(written)) {
            let n = self.size(&to.ty)?;
            let (place, zero) = (self.locate(to)?, self.alloc(n)?);
            self.op(Op::Zero { d: zero, n })?;
            self.store(&place, zero)?;
        }
        Ok(())
    }

    /// A register's counters have one purpose.
    fn purpose(&mut self, register: ExternId, purpose: Purpose) -> Result<()> {
        let known = *self.tofino.purposes.entry(register).or_insert(purpose);
        if known == purpose {
            return Ok(());
        }
        let name = &self.program.externs[register.index()].name;
        self.unsupported(format!(
            "{name} as {known} and as {purpose}: a register has counters for one of them"
        ))
    }

    fn log_of(&mut self, register: ExternId) -> u32 {
        let next = self.state.logs.len() as u32;
        let log = *self.tofino.logs.entry(register).or_insert(next);
        if log == next {
            let instance = &self.program.externs[register.index()];
            let size = instance.args.iter().find(|(name, _)| name == "size");
            let size = size.and_then(|(_, v)| const_u64(v)).unwrap_or(0);
            // A chain of registers counts in its first one.
            let mut annotations = instance.annotations.iter();
            let chain = annotations.find(|a| a.name == "chain_total_size");
            let total = chain.and_then(|a| match a.literals.first() {
                Some(Literal::Int(n)) => u64::try_from(n).ok(),
                _ => None,
            });
            self.state.logs.push(Log::new(total.unwrap_or(size)));
        }
        log
    }

    /// `Register.clear`: all cells, at once.
    pub(super) fn clear(&mut self, register: ExternId, r: u32, value: &Expr) -> Result<()> {
        self.purpose(register, Purpose::Sweep)?;
        self.once(register)?;
        let s = self.expr(value)?;
        self.each_cell(r, |c, index| c.op(Op::RegisterWrite { r, index, s }))
    }

    /// `sweep`: the action on all cells, at once.
    pub(super) fn sweep(&mut self, object: ExternId) -> Result<()> {
        let (Some(register), Some(r)) = (self.target(object), self.register_of(object)) else {
            return self.unsupported("a sweep of something that is not a register");
        };
        self.purpose(register, Purpose::Sweep)?;
        self.once(register)?;
        self.each_cell(r, |c, index| {
            c.execute_again(object, "apply", index, (&[], None))
        })
    }

    fn each_cell(
        &mut self,
        r: u32,
        body: impl FnOnce(&mut Self, Slot) -> Result<()>,
    ) -> Result<()> {
        let size = self.registers[r as usize].size;
        let (index, size, one) = (self.alloc(1)?, self.constant(size)?, self.constant(1)?);
        let (head, end) = (self.label(), self.label());
        self.op(Op::Zero { d: index, n: 1 })?;
        self.place(head);
        self.op(Op::JumpEq {
            a: index,
            b: size,
            to: end,
        })?;
        body(self, index)?;
        self.op(Op::Add(T3 {
            w: 64,
            d: index,
            a: index,
            b: one,
        }))?;
        self.op(Op::Jump(head))?;
        self.place(end);
        Ok(())
    }

    /// In a method: where its cell is, in bits, or one half of it. Elsewhere, of a chained action: the index of the cell
    /// executed last, as the next register counts it.
    pub(super) fn address(
        &mut self,
        object: ExternId,
        args: &[Arg],
        result: Option<&LValue>,
    ) -> Result<()> {
        let Some(lvalue) = result else { return Ok(()) };
        let w = match width(&lvalue.ty) {
            w @ 0..=64 => w as u8,
            _ => return self.unsupported("an address beyond 64 bits"),
        };
        if let Some(method) = self.tofino.method {
            let half = match args {
                [Arg::In(e), ..] => literal(e).unwrap_or(0),
                _ => 0,
            };
            let half = half
                .checked_shl(method.shift.saturating_sub(1))
                .unwrap_or(0);
            let (by, half) = (
                self.constant(method.shift.into())?,
                self.constant(method.base | half)?,
            );
            let at = self.alloc(1)?;
            self.op(Op::Shl(T3 {
                w,
                d: at,
                a: method.index,
                b: by,
            }))?;
            return self.write_result(result, |c, d| {
                c.op(Op::Or(T3 {
                    w,
                    d,
                    a: at,
                    b: half,
                }))
            });
        }
        let found = self.tofino.executed_at.get(&object).copied();
        let (Some(index), Some(r)) = (found, self.register_of(object)) else {
            let what = "the address of an action without @chain_address, outside of its methods";
            return self.unsupported(what);
        };
        let size = self.constant(self.registers[r as usize].size)?;
        self.write_result(result, |c, d| {
            c.op(Op::Sub(T3 {
                w,
                d,
                a: index,
                b: size,
            }))
        })
    }
}
