//! Compiles access to the cell that a register action works on: finds it, reads it, writes it back.

use super::rows::{ROW, row_of};
use crate::compile::{Compiler, Result};
use crate::op::bindings::{Object, TofinoObject};
use crate::op::{Op, Slot, T3};
use p4lang::ir::{ExternId, Type};

/// Position of the cell that a register action works on.
#[derive(Clone, Copy)]
pub(super) enum AluCell {
    /// A register's cell: number of the register, slot of the index.
    Indexed(u32, Slot),
    /// A direct register's cell in the found table entry: table index, first word in the entry's data, number of words.
    Direct(u32, u32, u32),
    /// A selector's group member: index of the profile, slot of the index that counts members through all groups.
    Member(u32, Slot),
    /// A row (cells that are accessed together): register number, slot of its first cell's index, width of a cell in bits.
    Row(u32, Slot, u32),
}

impl Compiler<'_> {
    /// The cell of the register or selector `target` on which `action` executes; `index`: slot of the cell's index.
    pub(super) fn cell_of(
        &self,
        action: ExternId,
        target: ExternId,
        index: Slot,
    ) -> Result<AluCell> {
        match self.bindings.objects.get(target.index()) {
            Some(Object::Register(r)) => Ok(AluCell::Indexed(*r, index)),
            Some(Object::Tofino(TofinoObject::DirectRegister)) => {
                match self.bindings.direct_registers.get(&target) {
                    Some((table, offset, words)) => Ok(AluCell::Direct(*table, *offset, *words)),
                    None => self.unsupported("a direct register that no table uses"),
                }
            }
            _ => match self.selector_of(action) {
                Some(profile) => {
                    let selector = self.state.profiles[profile as usize].selector;
                    if selector.is_none_or(|s| s.max_group_size == 0) {
                        return self
                            .unsupported("a SelectorAction of a selector without max_group_size");
                    }
                    Ok(AluCell::Member(profile, index))
                }
                None => self.unsupported("a register action of this object"),
            },
        }
    }

    /// Replaces the cell by the row that contains it, if the action's value has the type of a whole row of cells.
    pub(super) fn whole_row(
        &mut self,
        cell: AluCell,
        target: ExternId,
        value: &Type,
    ) -> Result<AluCell> {
        let (AluCell::Indexed(r, index), Some(w)) = (cell, row_of(self.program, target, value))
        else {
            return Ok(cell);
        };
        let (first, n) = (self.alloc(1)?, self.constant((ROW / w).into())?);
        self.op(Op::Mul(T3 {
            w: 64,
            d: first,
            a: index,
            b: n,
        }))?;
        Ok(AluCell::Row(r, first, w))
    }

    pub(super) fn words_of(&self, cell: AluCell) -> u32 {
        match cell {
            AluCell::Row(..) => ROW / 64,
            AluCell::Indexed(r, _) => self.code.registers[r as usize].words,
            AluCell::Direct(_, _, words) => words,
            AluCell::Member(..) => 1,
        }
    }

    pub(super) fn read_cell(&mut self, cell: AluCell, d: Slot) -> Result<()> {
        match cell {
            AluCell::Row(r, first, w) => self.read_row(d, r, first, w),
            AluCell::Indexed(r, index) => self.op(Op::RegisterRead { r, d, index }),
            AluCell::Direct(table, offset, words) => self.op(Op::DirectRead {
                table,
                offset,
                words,
                d,
            }),
            AluCell::Member(profile, index) => self.op(Op::MemberRead { profile, index, d }),
        }
    }

    pub(super) fn write_cell(&mut self, cell: AluCell, s: Slot) -> Result<()> {
        match cell {
            AluCell::Row(r, first, w) => self.write_row(s, r, first, w),
            AluCell::Indexed(r, index) => self.op(Op::RegisterWrite { r, index, s }),
            AluCell::Direct(table, offset, words) => self.op(Op::DirectWrite {
                every: false,
                table,
                offset,
                words,
                s,
            }),
            AluCell::Member(profile, index) => self.op(Op::MemberWrite { profile, index, s }),
        }
    }
}
