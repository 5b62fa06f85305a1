//! Stateful ALUs (TNA 7.13): a cell is read, the body of `apply` runs on it, the cell is written, the outputs are given.

use super::frame::{of_words, to_words};
use super::learn::InMethod;
use super::poison::Fill;
use super::value::{Bits, Value, width};
use super::{Interpreter, Result, Scope, Stop};
use crate::compile::Object;
use crate::compile::tna;
use crate::compile::tna_logs::other_body;
use crate::compile::tna_rows::{ROW, row_of};
use crate::compile::tna_salu::executes;
use crate::externs::log::Turn;
use p4lang::ir::{Action, Arg, Control, ExprKind, ExternId, LValue, Param, Type};

/// Where an action's cell is.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    /// Register and index.
    Indexed(u32, u64),
    /// Table, first word, words.
    Direct(u32, u32, u32),
    /// Profile, and place among its groups' members.
    Member(u32, u64),
    /// Register, index of a row, and the width of the cells that fill it.
    Row(u32, u64, u32),
}

impl<'p> Interpreter<'_, 'p> {
    /// `RegisterAction` and its kin.
    pub(super) fn register_action(
        &mut self,
        id: ExternId,
        method: &'p str,
        args: &'p [Arg],
        result: Option<&'p LValue>,
    ) -> Result<()> {
        if Turn::of(method).is_some() || matches!(method, "execute" | "sweep") {
            self.executing = method;
        }
        match method {
            "execute" => {
                let (index, outs) = match args {
                    [Arg::In(index), outs @ ..] => (self.index_of(id, index)?, outs),
                    [Arg::Ignore, outs @ ..] if self.register_of(id).is_some() => (0, outs),
                    outs => (0, outs),
                };
                self.executed_at.insert(id, index);
                self.execute(id, "apply", index, (outs, result))
            }
            "sweep" => self.sweep(id),
            "address" | "predicate" | "min8" | "max8" | "min16" | "max16" => {
                // Before the call changes them.
                let values = match self.watch.steps {
                    true => self.extern_args(args)?.0,
                    false => Vec::new(),
                };
                match method {
                    "address" => self.address(id, args, result)?,
                    "predicate" => self.predicate(args, result)?,
                    _ => self.extreme(method, args, result)?,
                }
                let given = self.value_at(result)?;
                let given = given.as_ref().map(|(ty, value)| (ty, Some(value)));
                let name = &self.program.externs[id.index()].name;
                let given = given.unwrap_or((&Type::Void, None));
                self.trace_method(name, method, args, &values, given);
                Ok(())
            }
            _ => match Turn::of(method) {
                Some(turn) => self.turn(id, turn, args, result),
                None => Ok(()),
            },
        }
    }

    /// `execute_log`, and a queue's or stack's methods: where that is full or empty, the method for it, or nothing.
    fn turn(
        &mut self,
        id: ExternId,
        turn: Turn,
        outs: &'p [Arg],
        result: Option<&'p LValue>,
    ) -> Result<()> {
        let Some(register) = self.target(id) else {
            return Ok(());
        };
        let Some(log) = self.code.bindings.logs.get(&register) else {
            return Ok(());
        };
        let log = &mut self.state.logs[*log as usize];
        let (cell, beyond) = (log.turn(turn), log.size());
        self.executed_at.insert(id, cell.unwrap_or(beyond));
        if let Some(cell) = cell {
            return self.execute(id, "apply", cell, (outs, result));
        }
        if let Some(other) = other_body(self.program, register, turn) {
            return self.execute(other, turn.otherwise(), beyond, (outs, result));
        }
        // Nothing is executed: the outputs are 0.
        let name = &self.program.externs[id.index()].name;
        let none = Value::Bits(Bits::new(1, 0u8));
        let none = result.map_or((&Type::Void, None), |to| (&to.ty, Some(&none)));
        self.trace_method(name, self.executing, &[], &[], none);
        let outs = outs.iter().filter_map(|out| match out {
            Arg::Out(to) | Arg::InOut(to) => Some(to),
            _ => None,
        });
        for to in result.into_iter().chain(outs) {
            let place = self.resolve(to)?;
            let zero = Value::undefined(self.program, &place.ty, &mut Fill::default());
            self.write(&place, zero);
        }
        Ok(())
    }

    /// The action on all cells, one after the other.
    fn sweep(&mut self, id: ExternId) -> Result<()> {
        let (Some(register), Some(r)) = (self.target(id), self.register_of(id)) else {
            return Ok(());
        };
        self.executed(register);
        for cell in 0..self.rows(r) {
            self.execute_again(id, "apply", cell, (&[], None))?;
        }
        Ok(())
    }

    /// In a method: where its cell is, in bits, or one half of it. Elsewhere: the index of the cell executed last, as the
    /// next register of a chain counts it.
    fn address(&mut self, id: ExternId, args: &'p [Arg], result: Option<&'p LValue>) -> Result<()> {
        let at = match &self.method {
            Some(method) => {
                let (index, base) = (method.index, method.base);
                let bits = method.bits.next_power_of_two();
                let half = match args {
                    [Arg::In(half), ..] => self.expr(half)?.bits().u64(),
                    _ => 0,
                };
                index.wrapping_mul(bits) | base | (half * bits / 2)
            }
            None => {
                let size = self.register_of(id).map_or(0, |r| self.rows(r));
                let index = self.executed_at.get(&id).copied().unwrap_or(0);
                index.wrapping_sub(size)
            }
        };
        self.returned(result, |ty| Value::Bits(Bits::new(width(ty), at)))
    }

    /// `read`, `write` and `clear` of `Register` and `DirectRegister`; a write gives what was written.
    pub(super) fn plain_register(
        &mut self,
        id: ExternId,
        method: &str,
        values: &[Value],
        ty: &Type,
    ) -> Option<Value> {
        self.executed(id);
        let (cell, written) = match self.code.bindings.objects[id.index()] {
            Object::Register(r) => {
                let index = values.first().map_or(0, |v| v.bits().u64());
                (Cell::Indexed(r, index), values.get(1))
            }
            _ => {
                let (table, offset, words) = *self.code.bindings.direct_registers.get(&id)?;
                (Cell::Direct(table, offset, words), values.first())
            }
        };
        if method == "read" {
            let cell_type = self.program.externs[id.index()].type_args.first()?;
            return Some(self.load(cell, cell_type));
        }
        if method == "clear" {
            // Its value is the first argument.
            let value = values.first()?;
            match cell {
                Cell::Direct(table, offset, _) => {
                    let (words, pipe) = (to_words(value), self.state.pipe);
                    self.state.tables[table as usize].write_cells(offset, pipe, &words);
                }
                _ => {
                    let r = self.register_itself(id)?;
                    for row in 0..self.rows(r) {
                        self.keep(Cell::Indexed(r, row), value);
                    }
                }
            }
            return None;
        }
        let written = written?;
        self.keep(cell, written);
        (!matches!(ty, Type::Void)).then(|| written.clone())
    }

    /// The index of an execution; undefined bits of it choose a cell.
    pub(super) fn index_of(&mut self, id: ExternId, index: &p4lang::ir::Expr) -> Result<u64> {
        let bits = self.expr(index)?.bits();
        let name = &self.program.externs[id.index()].name;
        self.influences(&bits, || format!("the index of {name}"));
        Ok(bits.u64())
    }

    /// The extern that an action executes.
    pub(super) fn target(&self, id: ExternId) -> Option<ExternId> {
        executes(&self.program.externs[id.index()])
    }

    pub(super) fn register_of(&self, id: ExternId) -> Option<u32> {
        self.register_itself(self.target(id)?)
    }

    fn register_itself(&self, register: ExternId) -> Option<u32> {
        match self.code.bindings.objects[register.index()] {
            Object::Register(r) => Some(r),
            _ => None,
        }
    }

    /// Cells of a register.
    pub(super) fn rows(&self, r: u32) -> u64 {
        let plan = &self.code.bindings.registers[r as usize];
        self.state.banks[plan.bank as usize].rows()
    }

    /// Executes a method's body on a cell, once per packet and register.
    fn execute(
        &mut self,
        id: ExternId,
        method: &str,
        index: u64,
        to: (&'p [Arg], Option<&'p LValue>),
    ) -> Result<()> {
        if let Some(target) = self.target(id) {
            self.executed(target);
        }
        self.execute_again(id, method, index, to)
    }

    /// The same, not counted.
    fn execute_again(
        &mut self,
        id: ExternId,
        method: &str,
        index: u64,
        (outs, result): (&'p [Arg], Option<&'p LValue>),
    ) -> Result<()> {
        let Some(target) = self.target(id) else {
            return Ok(());
        };
        let cell = match self.code.bindings.objects[target.index()] {
            Object::Register(r) => Cell::Indexed(r, index),
            Object::Tofino(tna::Object::DirectRegister) => {
                match self.code.bindings.direct_registers.get(&target) {
                    Some((table, offset, words)) => Cell::Direct(*table, *offset, *words),
                    None => return Ok(()),
                }
            }
            _ => match self.code.bindings.profiles.get(&target) {
                Some(profile) => Cell::Member(*profile, index),
                None => return Ok(()),
            },
        };
        let Some((control, action)) = self.body_of(id, method) else {
            return Ok(());
        };
        let ty_of = |i: usize| &control.vars[action.params[i].var.index()].ty;
        let cell = match (cell, row_of(self.program, target, ty_of(0))) {
            (Cell::Indexed(r, index), Some(w)) => Cell::Row(r, index, w),
            (cell, _) => cell,
        };
        let value = self.load(cell, ty_of(0));
        let bits = u64::from(value.flat().width);
        // L-values are resolved before the body runs (P4_16 6.8).
        let mut places = vec![match result {
            Some(lvalue) => Some(self.resolve(lvalue)?),
            None => None,
        }];
        for out in outs {
            places.push(match out {
                Arg::Out(to) | Arg::InOut(to) => Some(self.resolve(to)?),
                _ => None,
            });
        }
        self.env().vars[action.params[0].var.index()] = value.clone();
        let method = InMethod {
            action,
            index,
            bits,
            base: 0,
            original: value,
        };
        let called = (id, self.executing);
        self.run_method(called, method, &action.params[1..], (cell, index))?;
        for (param, place) in action.params[1..].iter().zip(places) {
            if let Some(place) = place {
                let value = self.env().vars[param.var.index()].clone();
                self.write(&place, value);
            }
        }
        Ok(())
    }

    /// Runs a method's body, its `in` parameters given, keeps what the cell becomes, and tells of it.
    pub(super) fn run_method(
        &mut self,
        (id, name): (ExternId, &str),
        method: InMethod<'p>,
        outputs: &'p [Param],
        (cell, index): (Cell, u64),
    ) -> Result<()> {
        for param in outputs {
            let ty = &self.env().declared[param.var.index()].ty;
            let nothing = self.undefined(ty);
            self.env().vars[param.var.index()] = nothing;
        }
        let action = method.action;
        let outer = self.method.replace(method);
        let ended = self.block(&action.body);
        self.method = outer;
        match ended {
            Err(Stop::Return) => {}
            other => other?,
        }
        let after = self.env().vars[action.params[0].var.index()].clone();
        let object = &self.program.externs[id.index()].name;
        self.influences_all(&after, || format!("what {object} writes"));
        self.keep(cell, &after);
        self.trace_execution((object, name), index, &after, outputs);
        Ok(())
    }

    /// An implemented method.
    pub(super) fn body_of(
        &mut self,
        id: ExternId,
        method: &str,
    ) -> Option<(&'p Control, &'p Action)> {
        let instance = &self.program.externs[id.index()];
        let Scope::Control(of, control) = self.env().scope else {
            return None;
        };
        let mut methods = instance.methods.iter();
        let found = methods.find(|m| m.name == method && m.control == of)?;
        Some((control, &control.actions[found.action.index()]))
    }

    fn load(&self, cell: Cell, ty: &Type) -> Value {
        match cell {
            Cell::Indexed(r, index) => self.cell_of(r, index, ty),
            Cell::Direct(table, offset, words) => {
                let mut cell = vec![0; words as usize];
                let (found, pipe) = (self.state.found[table as usize], self.state.pipe);
                self.state.tables[table as usize].read_cell(found, offset, pipe, &mut cell);
                of_words(self.program, ty, &cell, 0).0
            }
            Cell::Row(r, row, w) => {
                let cells = u64::from(ROW / w);
                let cell = |i| {
                    let at = row.wrapping_mul(cells).wrapping_add(i);
                    self.cell_of(r, at, &Type::Bit(w)).bits()
                };
                let high_first = (0..cells).rev().map(cell);
                Value::Bits(high_first.fold(Bits::new(0, 0u8), |row, cell| row.concat(&cell)))
            }
            Cell::Member(profile, index) => {
                let is_in = self.state.profiles[profile as usize].is_in(index);
                Value::Bits(Bits::new(1, u64::from(is_in)))
            }
        }
    }

    /// A cell of a register.
    pub(super) fn cell_of(&self, r: u32, index: u64, ty: &Type) -> Value {
        let plan = &self.code.bindings.registers[r as usize];
        let mut words = vec![0; plan.words as usize];
        self.state.banks[plan.bank as usize].read(index, plan.offset, &mut words);
        of_words(self.program, ty, &words, 0).0
    }

    pub(super) fn keep(&mut self, cell: Cell, value: &Value) {
        let words = to_words(value);
        match cell {
            Cell::Indexed(r, index) => {
                let plan = &self.code.bindings.registers[r as usize];
                self.state.banks[plan.bank as usize].write(index, plan.offset, &words);
            }
            Cell::Direct(table, offset, _) => {
                let (found, pipe) = (self.state.found[table as usize], self.state.pipe);
                self.state.tables[table as usize].write_cell(found, offset, pipe, &words);
            }
            Cell::Row(r, row, w) => {
                let (plan, row_bits) = (&self.code.bindings.registers[r as usize], value.bits());
                for i in 0..ROW / w {
                    let at = row.wrapping_mul((ROW / w).into()).wrapping_add(i.into());
                    let cell = row_bits.slice((i + 1) * w - 1, i * w).u64();
                    self.state.banks[plan.bank as usize].write(at, plan.offset, &[cell]);
                }
            }
            Cell::Member(profile, index) => {
                let is_in = words.first().is_some_and(|w| *w != 0);
                self.state.profiles[profile as usize].put_in(index, is_in);
            }
        }
    }

    /// Counts where a packet executes a register twice.
    pub(super) fn executed(&mut self, register: ExternId) {
        if let Some(unit) = self.code.bindings.executed_twice.get(&register) {
            self.state.executed(*unit);
        }
    }

    pub(super) fn returned(
        &mut self,
        result: Option<&'p LValue>,
        value: impl FnOnce(&Type) -> Value,
    ) -> Result<()> {
        if let Some(lvalue) = result {
            let place = self.resolve(lvalue)?;
            let value = value(&place.ty);
            self.write(&place, value);
        }
        Ok(())
    }

    /// The least or greatest of a wide value's parts that the mask names, and which it is: the first from the right wins.
    fn extreme(&mut self, method: &str, args: &'p [Arg], result: Option<&'p LValue>) -> Result<()> {
        let [Arg::In(of), Arg::In(mask), rest @ ..] = args else {
            return Ok(());
        };
        let (value, mask) = (self.expr(of)?.bits(), self.expr(mask)?.bits());
        let part = if method.ends_with('8') { 8 } else { 16 };
        let parts = (0..value.width / part).filter(|i| mask.value.bit(u64::from(*i)));
        let parts = parts.map(|i| (value.slice((i + 1) * part - 1, i * part).u64(), i));
        let best = if method.starts_with("min") {
            parts.min_by_key(|(x, _)| *x)
        } else {
            // Of equal ones `max_by_key` takes the last.
            parts.rev().max_by_key(|(x, _)| *x)
        };
        let any = best.is_some();
        let (best, found) = best.unwrap_or((0, 0));
        if let Some(Arg::Out(index) | Arg::InOut(index)) = rest.first() {
            let place = self.resolve(index)?;
            let at = Bits::new(width(&place.ty), found);
            self.write(&place, Value::Bits(at));
        }
        // What the part found becomes.
        if let (Some(Arg::In(change)), ExprKind::Read(lvalue), true) = (rest.get(1), &of.kind, any)
        {
            let by = self.expr(change)?.bits().int(true);
            let new = Bits::of_int(part, &(by + best));
            let place = self.resolve(lvalue)?;
            self.write(&place, Value::Bits(value.insert(found * part, &new)));
        }
        self.returned(result, |ty| Value::Bits(Bits::new(width(ty), best)))
    }
}
