//! Compiles operations on a whole row of a stateful ALU's memory: reading, writing, and the minimum or maximum of its cells.

use super::predicate::mentions;
use crate::compile::layout::width;
use crate::compile::methods::written;
use crate::compile::{Compiler, Result};
use crate::op::{Op, Slot, T3};
use p4lang::ir::{Arg, ExprKind, ExternId, LValue, Program, Type, VarId};

/// Width of a row of a stateful ALU's memory, in bits.
pub const ROW: u32 = 128;

/// Width of a register's cells in bits, if `value`, the type of an action's value, is that of a row of several cells.
pub fn row_of(program: &Program, register: ExternId, value: &Type) -> Option<u32> {
    match (program.externs[register.index()].type_args.first(), value) {
        (Some(Type::Bit(w)), Type::Bit(ROW)) => (8..ROW)
            .contains(w)
            .then_some(*w)
            .filter(|w| ROW.is_multiple_of(*w)),
        _ => None,
    }
}

/// Whether a minimum or maximum operation with these arguments changes the variable.
pub(crate) fn is_modified(args: &[Arg], var: VarId) -> bool {
    matches!(args, [Arg::In(value), _, _, Arg::In(_)] if mentions(value, var))
}

impl Compiler<'_> {
    /// Reads the cells of a row from index `first` on into the slots `d`, side by side, the first cell in the lowest bits.
    pub(crate) fn read_row(&mut self, d: Slot, r: u32, first: Slot, w: u32) -> Result<()> {
        self.op(Op::Zero { d, n: ROW / 64 })?;
        for i in 0..ROW / w {
            let (index, s) = (self.nth(first, i)?, self.alloc(1)?);
            self.op(Op::RegisterRead { r, d: s, index })?;
            let d = d + i * w / 64;
            let lo = (i * w % 64) as u8;
            self.op(Op::Insert {
                lo,
                w: w as u8,
                d,
                a: d,
                s,
            })?;
        }
        Ok(())
    }

    /// Writes the value in the slots `s` to the cells of a row from index `first` on, the first cell from the lowest bits.
    pub(crate) fn write_row(&mut self, s: Slot, r: u32, first: Slot, w: u32) -> Result<()> {
        for i in 0..ROW / w {
            let (index, d) = (self.nth(first, i)?, self.alloc(1)?);
            self.op(Op::Slice {
                lo: (i * w % 64) as u8,
                w: w as u8,
                d,
                a: s + i * w / 64,
            })?;
            self.op(Op::RegisterWrite { r, index, s: d })?;
        }
        Ok(())
    }

    fn nth(&mut self, first: Slot, i: u32) -> Result<Slot> {
        let (d, b) = (self.alloc(1)?, self.constant(i.into())?);
        self.op(Op::Add(T3 {
            w: 64,
            d,
            a: first,
            b,
        }))?;
        Ok(d)
    }

    /// Compiles the minimum or maximum of the elements of a row that a mask selects, and its index (the rightmost if equal).
    pub(crate) fn extreme(
        &mut self,
        least: bool,
        part: u32,
        args: &[Arg],
        result: Option<&LValue>,
    ) -> Result<()> {
        let [Arg::In(value), Arg::In(mask), rest @ ..] = args else {
            return self.unsupported("this use of a minimum or maximum");
        };
        let bits = width(&value.ty);
        let (s, mask) = (self.expr(value)?, self.expr(mask)?);
        let (best, at, any) = (self.alloc(1)?, self.alloc(1)?, self.alloc(1)?);
        self.op(Op::Zero { d: best, n: 1 })?;
        self.op(Op::Zero { d: at, n: 1 })?;
        self.op(Op::Zero { d: any, n: 1 })?;
        let one = self.constant(1)?;
        for i in 0..bits / part {
            let (skip, take) = (self.label(), self.label());
            let (named, x) = (self.alloc(1)?, self.alloc(1)?);
            self.slice(named, mask, 16, i, i)?;
            self.op(Op::JumpIfNot { c: named, to: skip })?;
            self.slice(x, s, bits, (i + 1) * part - 1, i * part)?;
            self.op(Op::JumpIfNot { c: any, to: take })?;
            let (a, b) = if least { (x, best) } else { (best, x) };
            self.op(Op::Lt(T3 {
                w: 64,
                d: named,
                a,
                b,
            }))?;
            self.op(Op::JumpIfNot { c: named, to: skip })?;
            self.place(take);
            let i = self.constant(i.into())?;
            self.op(Op::Mov { d: best, s: x })?;
            self.op(Op::Mov { d: at, s: i })?;
            self.op(Op::Mov { d: any, s: one })?;
            self.place(skip);
        }
        if let Some(index) = rest.first().and_then(written) {
            let place = self.locate(index)?;
            self.store(&place, at)?;
        }
        if let Some(Arg::In(change)) = rest.get(1) {
            let ExprKind::Read(lvalue) = &value.kind else {
                return self.unsupported("a minimum or maximum that changes no variable");
            };
            let place = self.locate(lvalue)?;
            if !place.is_plain() {
                return self.unsupported("a minimum or maximum that changes this");
            }
            let (by, new) = (self.expr(change)?, self.alloc(1)?);
            self.op(Op::SignExtend {
                from: width(&change.ty).min(64) as u8,
                to: 64,
                d: new,
                a: by,
            })?;
            self.op(Op::Add(T3 {
                w: part as u8,
                d: new,
                a: best,
                b: new,
            }))?;
            let end = self.label();
            self.op(Op::JumpIfNot { c: any, to: end })?;
            for i in 0..bits / part {
                let (skip, this) = (self.label(), self.constant(i.into())?);
                self.op(Op::JumpNe {
                    a: at,
                    b: this,
                    to: skip,
                })?;
                let d = place.slot + i * part / 64;
                self.op(Op::Insert {
                    lo: (i * part % 64) as u8,
                    w: part as u8,
                    d,
                    a: d,
                    s: new,
                })?;
                self.place(skip);
            }
            self.place(end);
        }
        self.write_result(result, |c, d| c.op(Op::Mov { d, s: best }))
    }
}
