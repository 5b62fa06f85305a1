//! Interprets stateful ALUs (TNA 7.13): reads a cell, runs the body of `apply` on it, writes the cell, returns the outputs.

use crate::arch::tna::externs::registers::executes;
use crate::arch::tna::externs::rows::{ROW, row_of};
use crate::call::MethodCall;
use crate::op::bindings::{Object, TofinoObject};
use crate::reference::bits::Bits;
use crate::reference::frame::{from_words, to_words};
use crate::reference::value::{Value, width};
use crate::reference::{EnvUnit, Interpreter, Result, RunningMethod, Stop};
use p4lang::ir::{Action, Arg, Control, ExprKind, ExternId, LValue, Method, Param, Type};

/// Position of the cell that a register action works on.
#[derive(Clone, Copy)]
pub(crate) enum CellRef {
    /// A register's cell: number of the register, index of the cell.
    Indexed(u32, u64),
    /// A direct register's cell in the found table entry: table index, first word in the entry's data, number of words.
    Direct(u32, u32, u32),
    /// A selector's group member: index of the profile, index that counts members through all groups.
    Member(u32, u64),
    /// A row (all cells that an ALU accesses at once): register number, index of the row, width of a cell in bits.
    Row(u32, u64, u32),
}

impl<'p> Interpreter<'_, 'p> {
    /// Interprets a method of `RegisterAction` or a related extern, such as `execute`.
    pub(crate) fn register_action(&mut self, call: MethodCall<'p>) -> Result<()> {
        let MethodCall {
            object: id,
            method,
            args,
            result,
        } = call;
        match method {
            Method::Execute => {
                let (index, outs) = match args {
                    [Arg::In(index), outs @ ..] => (self.index_of(id, index)?, outs),
                    [Arg::Ignore, outs @ ..] if self.register_of(id).is_some() => (0, outs),
                    outs => (0, outs),
                };
                self.execute(id, index, (outs, result))
            }
            Method::Predicate | Method::Min8 | Method::Max8 | Method::Min16 | Method::Max16 => {
                // Evaluated before the call changes them.
                let values = match self.watch.steps {
                    true => self.extern_args(args)?.0,
                    false => Vec::new(),
                };
                match method {
                    Method::Predicate => self.predicate(args, result)?,
                    _ => self.extreme(call)?,
                }
                let given = self.value_at(result)?;
                let given = given.as_ref().map(|(ty, value)| (ty, Some(value)));
                let name = &self.program.externs[id.index()].name;
                let given = given.unwrap_or((&Type::Void, None));
                self.trace_method(name, method.name(), args, &values, given);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Interprets `read`, `write` and `clear` of `Register` and `DirectRegister`; a write returns the written value.
    pub(crate) fn plain_register(
        &mut self,
        id: ExternId,
        method: &Method,
        values: &[Value],
        ty: &Type,
    ) -> Option<Value> {
        self.executed(id);
        let (cell, written) = match self.code.bindings.objects[id.index()] {
            Object::Register(r) => {
                let index = values.first().map_or(0, |v| v.bits().u64());
                (CellRef::Indexed(r, index), values.get(1))
            }
            _ => {
                let (table, offset, words) = *self.code.bindings.direct_registers.get(&id)?;
                (CellRef::Direct(table, offset, words), values.first())
            }
        };
        if *method == Method::Read {
            let cell_type = self.program.externs[id.index()].type_args.first()?;
            return Some(self.load(cell, cell_type));
        }
        if *method == Method::Clear {
            // The value is the first argument.
            let value = values.first()?;
            match cell {
                CellRef::Direct(table, offset, _) => {
                    let (words, pipe) = (to_words(value), self.state.pass.pipe);
                    self.state.tables[table as usize].write_cells(offset, pipe, &words);
                }
                _ => {
                    let r = self.register_itself(id)?;
                    for row in 0..self.rows(r) {
                        self.keep(CellRef::Indexed(r, row), value);
                    }
                }
            }
            return None;
        }
        let written = written?;
        self.keep(cell, written);
        (!matches!(ty, Type::Void)).then(|| written.clone())
    }

    /// Evaluates the index of the cell that a register action uses; reports undefined bits, because they select the cell.
    pub(crate) fn index_of(&mut self, id: ExternId, index: &p4lang::ir::Expr) -> Result<u64> {
        let bits = self.expr(index)?.bits();
        let name = &self.program.externs[id.index()].name;
        self.influences(&bits, || format!("the index of {name}"));
        Ok(bits.u64())
    }

    /// The register or selector that a register action executes.
    pub(crate) fn target(&self, id: ExternId) -> Option<ExternId> {
        executes(&self.program.externs[id.index()])
    }

    pub(crate) fn register_of(&self, id: ExternId) -> Option<u32> {
        self.register_itself(self.target(id)?)
    }

    fn register_itself(&self, register: ExternId) -> Option<u32> {
        match self.code.bindings.objects[register.index()] {
            Object::Register(r) => Some(r),
            _ => None,
        }
    }

    /// Number of cells of register `r`.
    pub(crate) fn rows(&self, r: u32) -> u64 {
        let plan = &self.code.bindings.registers[r as usize];
        self.state.cells.banks[plan.bank as usize].rows()
    }

    /// Executes the body of `apply` on a cell; a packet may execute it once per register.
    fn execute(
        &mut self,
        id: ExternId,
        index: u64,
        (outs, result): (&'p [Arg], Option<&'p LValue>),
    ) -> Result<()> {
        let Some(target) = self.target(id) else {
            return Ok(());
        };
        self.executed(target);
        let cell = match self.code.bindings.objects[target.index()] {
            Object::Register(r) => CellRef::Indexed(r, index),
            Object::Tofino(TofinoObject::DirectRegister) => {
                match self.code.bindings.direct_registers.get(&target) {
                    Some((table, offset, words)) => CellRef::Direct(*table, *offset, *words),
                    None => return Ok(()),
                }
            }
            _ => match self.code.bindings.profiles.get(&target) {
                Some(profile) => CellRef::Member(*profile, index),
                None => return Ok(()),
            },
        };
        let Some((control, action)) = self.body_of(id) else {
            return Ok(());
        };
        let ty_of = |i: usize| &control.vars[action.params[i].var.index()].ty;
        let cell = match (cell, row_of(self.program, target, ty_of(0))) {
            (CellRef::Indexed(r, index), Some(w)) => CellRef::Row(r, index, w),
            (cell, _) => cell,
        };
        let value = self.load(cell, ty_of(0));
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
        let method = RunningMethod {
            action,
            original: value,
        };
        self.run_method(id, method, &action.params[1..], (cell, index))?;
        for (param, place) in action.params[1..].iter().zip(places) {
            if let Some(place) = place {
                let value = self.env().vars[param.var.index()].clone();
                self.write(&place, value);
            }
        }
        Ok(())
    }

    /// Runs a register action's method with its `in` parameters' values, stores the cell's new value, and traces the call.
    fn run_method(
        &mut self,
        id: ExternId,
        method: RunningMethod<'p>,
        outputs: &'p [Param],
        (cell, index): (CellRef, u64),
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
        self.influences_all(&after, || format!("the value that {object} writes"));
        self.keep(cell, &after);
        self.trace_execution((object, "execute"), index, &after, outputs);
        Ok(())
    }

    /// The body of a register action's `apply`, and the control that contains it, if this is the current control.
    fn body_of(&mut self, id: ExternId) -> Option<(&'p Control, &'p Action)> {
        let instance = &self.program.externs[id.index()];
        let EnvUnit::Control(of, control) = self.env().scope else {
            return None;
        };
        let mut methods = instance.methods.iter();
        let found = methods.find(|m| m.method == Method::Apply && m.control == of)?;
        Some((control, &control.actions[found.action.index()]))
    }

    fn load(&self, cell: CellRef, ty: &Type) -> Value {
        match cell {
            CellRef::Indexed(r, index) => self.cell_of(r, index, ty),
            CellRef::Direct(table, offset, words) => {
                let mut cell = vec![0; words as usize];
                let (found, pipe) = (self.state.found[table as usize], self.state.pass.pipe);
                self.state.tables[table as usize].read_cell(found, offset, pipe, &mut cell);
                from_words(self.program, ty, &cell, 0).0
            }
            CellRef::Row(r, row, w) => {
                let cells = u64::from(ROW / w);
                let cell = |i| {
                    let at = row.wrapping_mul(cells).wrapping_add(i);
                    self.cell_of(r, at, &Type::Bit(w)).bits()
                };
                let high_first = (0..cells).rev().map(cell);
                Value::Bits(high_first.fold(Bits::new(0, 0u8), |row, cell| row.concat(&cell)))
            }
            CellRef::Member(profile, index) => {
                let is_in = self.state.profiles[profile as usize].is_in(index);
                Value::Bits(Bits::new(1, u64::from(is_in)))
            }
        }
    }

    /// The value of the register's cell at an index.
    pub(crate) fn cell_of(&self, r: u32, index: u64, ty: &Type) -> Value {
        let plan = &self.code.bindings.registers[r as usize];
        let mut words = vec![0; plan.words as usize];
        self.state.cells.banks[plan.bank as usize].read(index, plan.offset, &mut words);
        from_words(self.program, ty, &words, 0).0
    }

    pub(crate) fn keep(&mut self, cell: CellRef, value: &Value) {
        let words = to_words(value);
        match cell {
            CellRef::Indexed(r, index) => {
                let plan = &self.code.bindings.registers[r as usize];
                self.state.cells.banks[plan.bank as usize].write(index, plan.offset, &words);
            }
            CellRef::Direct(table, offset, _) => {
                let (found, pipe) = (self.state.found[table as usize], self.state.pass.pipe);
                self.state.tables[table as usize].write_cell(found, offset, pipe, &words);
            }
            CellRef::Row(r, row, w) => {
                let (plan, row_bits) = (&self.code.bindings.registers[r as usize], value.bits());
                for i in 0..ROW / w {
                    let at = row.wrapping_mul((ROW / w).into()).wrapping_add(i.into());
                    let cell = row_bits.slice((i + 1) * w - 1, i * w).u64();
                    self.state.cells.banks[plan.bank as usize].write(at, plan.offset, &[cell]);
                }
            }
            CellRef::Member(profile, index) => {
                let is_in = words.first().is_some_and(|w| *w != 0);
                self.state.profiles[profile as usize].put_in(index, is_in);
            }
        }
    }

    /// Counts an execution of a register that a packet may execute twice; a second one in a pass is a conflict.
    pub(crate) fn executed(&mut self, register: ExternId) {
        if let Some(unit) = self.code.bindings.executed_twice.get(&register) {
            self.state.executed(*unit);
        }
    }

    pub(crate) fn returned(
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

    /// Interprets the minimum or maximum of the elements of a row that a mask selects, and its index (the rightmost if equal).
    fn extreme(&mut self, call: MethodCall<'p>) -> Result<()> {
        let [Arg::In(of), Arg::In(mask), rest @ ..] = call.args else {
            return Ok(());
        };
        let (value, mask) = (self.expr(of)?.bits(), self.expr(mask)?.bits());
        let (least, part) = match call.method {
            Method::Min8 => (true, 8),
            Method::Min16 => (true, 16),
            Method::Max8 => (false, 8),
            _ => (false, 16),
        };
        let parts = (0..value.width / part).filter(|i| mask.value.bit(u64::from(*i)));
        let parts = parts.map(|i| (value.slice((i + 1) * part - 1, i * part).u64(), i));
        let best = if least {
            parts.min_by_key(|(x, _)| *x)
        } else {
            // `max_by_key` returns the last of equal elements.
            parts.rev().max_by_key(|(x, _)| *x)
        };
        let any = best.is_some();
        let (best, found) = best.unwrap_or((0, 0));
        if let Some(Arg::Out(index) | Arg::InOut(index)) = rest.first() {
            let place = self.resolve(index)?;
            let at = Bits::new(width(&place.ty), found);
            self.write(&place, Value::Bits(at));
        }
        // The new value of the element found.
        if let (Some(Arg::In(change)), ExprKind::Read(lvalue), true) = (rest.get(1), &of.kind, any)
        {
            let by = self.expr(change)?.bits().int(true);
            let new = Bits::from_int(part, &(by + best));
            let place = self.resolve(lvalue)?;
            self.write(&place, Value::Bits(value.insert(found * part, &new)));
        }
        self.returned(call.result, |ty| Value::Bits(Bits::new(width(ty), best)))
    }
}
