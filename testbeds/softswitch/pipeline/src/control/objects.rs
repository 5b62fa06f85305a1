//! Registers, indexed counters and meters, and parsers' value sets, by fully qualified names.

use super::Undo;
use crate::error::ExternError;
use crate::externs::counter::CounterValue;
use crate::externs::meter::{Cell, ColourCounts, MeterConfig};
use crate::externs::register::Info;
use crate::externs::value_set::ValueSet;
use crate::switch::Switch;
use crate::table::key::{FieldKey, FieldSpec};
use p4lang::runtime::{Match, Value};

impl Switch {
    fn register(&self, name: &str) -> Result<&Info, ExternError> {
        let index = self
            .names
            .registers
            .get(name)
            .ok_or(ExternError::NotFound)?;
        Ok(&self.registers[*index])
    }

    /// What the program's registers are, in order of declaration.
    pub fn registers(&self) -> &[Info] {
        &self.registers
    }

    /// The fields of a register's cell.
    pub fn register_read(&self, name: &str, index: u64) -> Result<Vec<Value>, ExternError> {
        let info = self.register(name)?;
        info.read(&self.core.state.banks[info.bank as usize], index)
    }

    /// Writes the fields of a register's cell.
    pub fn register_write(
        &mut self,
        name: &str,
        index: u64,
        fields: &[Value],
    ) -> Result<(), ExternError> {
        let info = self.register(name)?.clone();
        let bank = &mut self.core.state.banks[info.bank as usize];
        let old = info.read(bank, index)?;
        info.write(bank, index, fields)?;
        for local in self.core.tofino.pipes.each() {
            info.write(&mut local.banks[info.bank as usize], index, fields)?;
        }
        self.record(|| Undo::Register(name.to_owned(), index, old));
        Ok(())
    }

    fn counter_cell(&self, name: &str, index: u64) -> Result<(usize, usize), ExternError> {
        let counter = *self.names.counters.get(name).ok_or(ExternError::NotFound)?;
        let cells = self.core.state.counters[counter].cells.len();
        match usize::try_from(index) {
            Ok(index) if index < cells => Ok((counter, index)),
            _ => Err(ExternError::OutOfRange),
        }
    }

    /// Cells of an indexed counter.
    pub fn counter_size(&self, name: &str) -> Result<u64, ExternError> {
        let counter = *self.names.counters.get(name).ok_or(ExternError::NotFound)?;
        Ok(self.core.state.counters[counter].cells.len() as u64)
    }

    /// A cell of an indexed counter.
    pub fn counter_read(&self, name: &str, index: u64) -> Result<CounterValue, ExternError> {
        let (counter, index) = self.counter_cell(name, index)?;
        let own = self.core.state.counters[counter].cells[index];
        let others = self.core.tofino.pipes.counted(counter, index);
        Ok(CounterValue {
            packets: own.packets.wrapping_add(others.packets),
            bytes: own.bytes.wrapping_add(others.bytes),
        })
    }

    /// Sets a cell of an indexed counter.
    pub fn counter_write(
        &mut self,
        name: &str,
        index: u64,
        value: CounterValue,
    ) -> Result<(), ExternError> {
        let (counter, index) = self.counter_cell(name, index)?;
        let old = std::mem::replace(&mut self.core.state.counters[counter].cells[index], value);
        for local in self.core.tofino.pipes.each() {
            local.counters[counter].cells[index] = CounterValue::default();
        }
        self.record(|| Undo::Counter(counter, index, old));
        Ok(())
    }

    /// A meter's cell: its configuration, and what it has marked.
    pub fn meter_cell(&self, name: &str, index: u64) -> Result<Cell, ExternError> {
        Ok(self.meter_at(name, index)?.1)
    }

    fn meter_at(&self, name: &str, index: u64) -> Result<(usize, Cell), ExternError> {
        let meter = *self.names.meters.get(name).ok_or(ExternError::NotFound)?;
        let cell = self.core.state.meters[meter].cell(index);
        Ok((meter, *cell.ok_or(ExternError::OutOfRange)?))
    }

    /// Cells of an indexed meter.
    pub fn meter_size(&self, name: &str) -> Result<u64, ExternError> {
        let meter = *self.names.meters.get(name).ok_or(ExternError::NotFound)?;
        Ok(self.core.state.meters[meter].size())
    }

    /// A meter cell's configuration; `None`: all green.
    pub fn meter_config(&self, name: &str, index: u64) -> Result<Option<MeterConfig>, ExternError> {
        Ok(self.meter_at(name, index)?.1.config())
    }

    /// What a meter cell has marked green, yellow and red.
    pub fn meter_counts(&self, name: &str, index: u64) -> Result<ColourCounts, ExternError> {
        Ok(self.meter_at(name, index)?.1.counts())
    }

    /// Configures a meter cell, its buckets full at `now_ns`.
    pub fn meter_configure(
        &mut self,
        name: &str,
        index: u64,
        config: Option<MeterConfig>,
        now_ns: u64,
    ) -> Result<(), ExternError> {
        self.change_meter(name, index, |cell| cell.configure(config, now_ns))
    }

    /// Lets a meter cell's counts begin anew.
    pub fn meter_clear_counts(&mut self, name: &str, index: u64) -> Result<(), ExternError> {
        self.change_meter(name, index, Cell::clear_counts)
    }

    fn change_meter(
        &mut self,
        name: &str,
        index: u64,
        change: impl Fn(&mut Cell),
    ) -> Result<(), ExternError> {
        let (meter, old) = self.meter_at(name, index)?;
        if let Some(cell) = self.core.state.meters[meter].cell_mut(index) {
            change(cell);
        }
        for local in self.core.tofino.pipes.each() {
            if let Some(cell) = local.meters[meter].cell_mut(index) {
                change(cell);
            }
        }
        self.record(|| Undo::Meter(meter, index, old));
        Ok(())
    }

    /// Adds a member to a parser's value set.
    pub fn value_set_insert(&mut self, name: &str, member: &[Match]) -> Result<(), ExternError> {
        self.change_value_set(name, |set| set.insert(member))
    }

    /// Takes a member out of a parser's value set.
    pub fn value_set_delete(&mut self, name: &str, member: &[Match]) -> Result<(), ExternError> {
        self.change_value_set(name, |set| set.delete(member))
    }

    /// Makes these the members of a parser's value set.
    pub fn value_set_assign(
        &mut self,
        name: &str,
        members: &[Vec<FieldKey>],
    ) -> Result<(), ExternError> {
        self.change_value_set(name, |set| set.assign(members))
    }

    /// The members of a parser's value set, in order of insertion.
    pub fn value_set_members(&self, name: &str) -> Result<&[Vec<FieldKey>], ExternError> {
        let set = self.names.value_sets.get(name);
        let set = &self.core.state.value_sets[*set.ok_or(ExternError::NotFound)?];
        Ok(&set.members)
    }

    /// The fields of a parser's value set.
    pub fn value_set_fields(&self, name: &str) -> Result<&[FieldSpec], ExternError> {
        let set = self.names.value_sets.get(name);
        let set = &self.core.state.value_sets[*set.ok_or(ExternError::NotFound)?];
        Ok(&set.fields)
    }

    fn change_value_set(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut ValueSet) -> Result<(), ExternError>,
    ) -> Result<(), ExternError> {
        let index = *self
            .names
            .value_sets
            .get(name)
            .ok_or(ExternError::NotFound)?;
        let set = &mut self.core.state.value_sets[index];
        let old = set.members.clone();
        change(set)?;
        self.record(|| Undo::ValueSet(index, old));
        Ok(())
    }
}
