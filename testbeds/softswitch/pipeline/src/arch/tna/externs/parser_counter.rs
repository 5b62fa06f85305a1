//! Compiles the stack of a Tofino 2's parser counter.
//!
//! `push` saves the counter's value on the stack and gives it a new one; on request (`update`), later changes apply to the
//! saved value too. `pop` sets the counter to (counter & mask) + amount. So each stack level stores these two: without updates
//! the mask 0 and the saved value, with updates a mask of ones and the saved value less the pushed one.

use crate::compile::{Compiler, Result};
use crate::op::{Op, Slot, T3};
use p4lang::ir::{Arg, Const, ExprKind, Type};

/// Maximum number of pushed values below the parser counter's value; a further push loses the lowest one.
pub const LEVELS: u32 = 3;

/// Number of slots of a parser counter: its value, then two slots for each level of its stack.
pub const SLOTS: u32 = 1 + 2 * LEVELS;

/// Splits the arguments of `push` after the value: the numbers that locate a field's bits, if the value is a field, and whether
/// later changes also apply to the saved value.
pub fn pushed(rest: &[Arg]) -> (&[Arg], bool) {
    match rest.split_last() {
        Some((Arg::In(e), numbers)) if e.ty == Type::Bool => {
            let update = matches!(e.kind, ExprKind::Const(Const::Bool(true)));
            (numbers, update)
        }
        Some((Arg::Ignore, numbers)) => (numbers, false),
        _ => (rest, false),
    }
}

impl Compiler<'_> {
    /// Compiles `push` of a parser counter; `load` compiles loading the pushed value into the counter's slot.
    pub(crate) fn push_counter(
        &mut self,
        slot: Slot,
        update: bool,
        load: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        for level in (1..LEVELS).rev() {
            let (to, from) = (slot + 1 + 2 * level, slot + 2 * level - 1);
            self.copy(to, from, 2)?;
        }
        let (base, kept) = (slot + 1, slot + 2);
        self.op(Op::Mov { d: base, s: slot })?;
        load(self)?;
        let s = self.constant(if update { 0xff } else { 0 })?;
        self.op(Op::Mov { d: kept, s })?;
        if update {
            let (w, d, a, b) = (8, base, base, slot);
            self.op(Op::Sub(T3 { w, d, a, b }))?;
        }
        Ok(())
    }

    pub(crate) fn pop_counter(&mut self, slot: Slot) -> Result<()> {
        let (base, kept) = (slot + 1, slot + 2);
        let t3 = |a, b| T3 {
            w: 8,
            d: slot,
            a,
            b,
        };
        self.op(Op::And(t3(slot, kept)))?;
        self.op(Op::Add(t3(slot, base)))?;
        for level in 1..LEVELS {
            let (to, from) = (slot + 2 * level - 1, slot + 2 * level + 1);
            self.copy(to, from, 2)?;
        }
        self.op(Op::Zero {
            d: slot + SLOTS - 2,
            n: 2,
        })
    }
}
