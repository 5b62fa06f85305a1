//! Reads and writes the cells of registers, indexed counters and meters: one cell, or a whole array. On a Tofino, each pipe has
//! its own cells, and these functions access all of them.

use super::undo::{OldCells, Undo};
use crate::error::ExternError;
use crate::externs::counter::{Counter, CounterValue};
use crate::externs::meter::{Meter, MeterCell, MeterConfig};
use crate::externs::register::{Bank, Info};
use crate::switch::Switch;
use p4lang::runtime::Value;
use std::iter::once;
use std::ops::Range;

/// A copy of consecutive cells of a register.
#[derive(Debug, Clone)]
pub struct RegisterCells {
    info: Info,
    count: usize,
    words: Vec<u64>,
}

impl RegisterCells {
    /// The field values of the copied cell number `cell`, from 0; `None` beyond the last cell.
    pub fn fields(&self, cell: usize) -> Option<Vec<Value>> {
        // A cell may have no words: a struct without fields.
        let words = self.info.words() as usize;
        let at = cell.checked_mul(words).filter(|_| cell < self.count)?;
        Some(self.info.fields(self.words.get(at..at + words)?))
    }
}

impl Switch {
    fn register(&self, name: &str) -> Result<&Info, ExternError> {
        let index = self.names.registers.get(name);
        Ok(&self.registers[*index.ok_or(ExternError::NotFound)?])
    }

    /// The program's registers, in order of declaration.
    pub fn registers(&self) -> &[Info] {
        &self.registers
    }

    /// Reads the field values of a register's cell.
    pub fn register_read(&self, name: &str, index: u64) -> Result<Vec<Value>, ExternError> {
        let info = self.register(name)?;
        info.read(&self.core.state.cells.banks[info.bank as usize], index)
    }

    /// Copies consecutive cells of a register, as one block of memory.
    pub fn register_cells(&self, name: &str, at: Range<u64>) -> Result<RegisterCells, ExternError> {
        let info = self.register(name)?;
        if at.end > info.size {
            return Err(ExternError::OutOfRange);
        }
        let bank = &self.core.state.cells.banks[info.bank as usize];
        let each = info.words() as usize;
        let count = at.end.saturating_sub(at.start) as usize;
        let mut words = vec![0; count * each];
        for (row, into) in at.zip(words.chunks_exact_mut(each.max(1))) {
            bank.read(row, info.offset, into);
        }
        let info = info.clone();
        Ok(RegisterCells { info, count, words })
    }

    /// Writes the field values of a register's cell.
    pub fn register_write(
        &mut self,
        name: &str,
        index: u64,
        fields: &[Value],
    ) -> Result<(), ExternError> {
        let info = self.register(name)?;
        let (bank, offset) = (info.bank as usize, info.offset);
        if index >= info.size {
            return Err(ExternError::OutOfRange);
        }
        let words = info.cell(fields)?;
        let mut old = Vec::new();
        let recording = self.is_recording();
        for banks in self.banks() {
            if recording {
                let mut was = vec![0; words.len()];
                banks[bank].read(index, offset, &mut was);
                old.push(was);
            }
            banks[bank].write(index, offset, &words);
        }
        self.record(|| Undo::Cells(OldCells::Register(bank, offset, index, old)));
        Ok(())
    }

    /// Writes the same field values to all cells of a register.
    pub fn register_fill(&mut self, name: &str, fields: &[Value]) -> Result<(), ExternError> {
        let info = self.register(name)?;
        let (bank, offset, words) = (info.bank as usize, info.offset, info.cell(fields)?);
        self.remember(
            |old| matches!(old, OldCells::Registers(known, _) if *known == bank),
            |switch| OldCells::Registers(bank, switch.banks().map(|b| b[bank].clone()).collect()),
        );
        for banks in self.banks() {
            banks[bank].fill(offset, &words);
        }
        Ok(())
    }

    fn counter_index(&self, name: &str) -> Result<usize, ExternError> {
        let index = self.names.counters.get(name);
        index.copied().ok_or(ExternError::NotFound)
    }

    fn counter_cell(&self, name: &str, index: u64) -> Result<(usize, usize), ExternError> {
        let counter = self.counter_index(name)?;
        let cells = self.core.state.cells.counters[counter].cells.len();
        match usize::try_from(index) {
            Ok(index) if index < cells => Ok((counter, index)),
            _ => Err(ExternError::OutOfRange),
        }
    }

    /// Number of cells of an indexed counter.
    pub fn counter_size(&self, name: &str) -> Result<u64, ExternError> {
        let counter = self.counter_index(name)?;
        Ok(self.core.state.cells.counters[counter].cells.len() as u64)
    }

    /// Reads the value of an indexed counter's cell.
    pub fn counter_read(&self, name: &str, index: u64) -> Result<CounterValue, ExternError> {
        let (counter, index) = self.counter_cell(name, index)?;
        Ok(self.counted(counter, index))
    }

    /// Reads consecutive cells of an indexed counter.
    pub fn counter_cells(
        &self,
        name: &str,
        at: Range<u64>,
    ) -> Result<Vec<CounterValue>, ExternError> {
        let Some(last) = at.end.checked_sub(1).filter(|last| *last >= at.start) else {
            return Ok(Vec::new());
        };
        let (counter, last) = self.counter_cell(name, last)?;
        let first = last + 1 - (at.end - at.start) as usize;
        Ok((first..=last).map(|i| self.counted(counter, i)).collect())
    }

    /// The value of an indexed counter's cell, summed over all pipes.
    fn counted(&self, counter: usize, index: usize) -> CounterValue {
        let own = self.core.state.cells.counters[counter].cells[index];
        let others = self.core.tofino.pipes.counted(counter, index);
        CounterValue {
            packets: own.packets.wrapping_add(others.packets),
            bytes: own.bytes.wrapping_add(others.bytes),
        }
    }

    /// Sets the value of an indexed counter's cell.
    pub fn counter_write(
        &mut self,
        name: &str,
        index: u64,
        value: CounterValue,
    ) -> Result<(), ExternError> {
        let (counter, index) = self.counter_cell(name, index)?;
        // A read returns the sum over the pipes.
        let mut values = once(value).chain(std::iter::repeat(CounterValue::default()));
        let replace = |counters: &mut Vec<Counter>| {
            let value = values.next().unwrap_or_default();
            std::mem::replace(&mut counters[counter].cells[index], value)
        };
        let old: Vec<CounterValue> = self.counters().map(replace).collect();
        self.record(|| Undo::Cells(OldCells::Counter(counter, index, old)));
        Ok(())
    }

    /// Sets all cells of an indexed counter to the same value.
    pub fn counter_fill(&mut self, name: &str, value: CounterValue) -> Result<(), ExternError> {
        let counter = self.counter_index(name)?;
        self.remember(
            |old| matches!(old, OldCells::Counters(known, _) if *known == counter),
            |switch| {
                let counters = switch.counters().map(|c| c[counter].clone());
                OldCells::Counters(counter, counters.collect())
            },
        );
        let values = once(value).chain(std::iter::repeat(CounterValue::default()));
        for (counters, value) in self.counters().zip(values) {
            counters[counter].cells.fill(value);
        }
        Ok(())
    }

    /// A copy of an indexed meter's cell: its configuration, buckets and counts.
    pub fn meter_cell(&self, name: &str, index: u64) -> Result<MeterCell, ExternError> {
        let meter = &self.core.state.cells.meters[self.meter_index(name)?];
        meter.cell(index).copied().ok_or(ExternError::OutOfRange)
    }

    /// Copies of consecutive cells of an indexed meter.
    pub fn meter_cells(&self, name: &str, at: Range<u64>) -> Result<Vec<MeterCell>, ExternError> {
        let meter = &self.core.state.cells.meters[self.meter_index(name)?];
        let cell = |index| meter.cell(index).copied().ok_or(ExternError::OutOfRange);
        at.map(cell).collect()
    }

    fn meter_index(&self, name: &str) -> Result<usize, ExternError> {
        let index = self.names.meters.get(name);
        index.copied().ok_or(ExternError::NotFound)
    }

    /// Number of cells of an indexed meter.
    pub fn meter_size(&self, name: &str) -> Result<u64, ExternError> {
        Ok(self.core.state.cells.meters[self.meter_index(name)?].size())
    }

    /// The configuration of an indexed meter's cell; `None`: all packets are green.
    pub fn meter_config(&self, name: &str, index: u64) -> Result<Option<MeterConfig>, ExternError> {
        Ok(self.meter_cell(name, index)?.config())
    }

    /// Packets and bytes that a meter's cell has marked green, yellow and red.
    pub fn meter_counts(&self, name: &str, index: u64) -> Result<[CounterValue; 3], ExternError> {
        Ok(self.meter_cell(name, index)?.counts())
    }

    /// Configures a cell of an indexed meter, its buckets full at `now_ns`, or removes its configuration for `None`.
    pub fn meter_configure(
        &mut self,
        name: &str,
        index: u64,
        config: Option<MeterConfig>,
        now_ns: u64,
    ) -> Result<(), ExternError> {
        self.change_meter(name, index, |cell| cell.configure(config, now_ns))
    }

    /// Resets a meter cell's counts of green, yellow and red packets.
    pub fn meter_clear_counts(&mut self, name: &str, index: u64) -> Result<(), ExternError> {
        self.change_meter(name, index, MeterCell::clear_counts)
    }

    /// Changes a cell of an indexed meter by a closure, on a Tofino in each pipe.
    fn change_meter(
        &mut self,
        name: &str,
        index: u64,
        change: impl Fn(&mut MeterCell),
    ) -> Result<(), ExternError> {
        let meter = self.meter_index(name)?;
        let changed = |meters: &mut Vec<Meter>| {
            let cell = meters[meter].cell_mut(index)?;
            let old = *cell;
            change(cell);
            Some(old)
        };
        let old: Option<Vec<MeterCell>> = self.meters().map(changed).collect();
        let old = old.ok_or(ExternError::OutOfRange)?;
        self.record(|| Undo::Cells(OldCells::Meter(meter, index, old)));
        Ok(())
    }

    /// Configures those cells of a meter whose configuration differs, with full buckets at `now_ns`. `clears`: resets all
    /// counts.
    pub fn meter_fill(
        &mut self,
        name: &str,
        config: Option<MeterConfig>,
        clears: bool,
        now_ns: u64,
    ) -> Result<(), ExternError> {
        let meter = self.meter_index(name)?;
        self.remember(
            |old| matches!(old, OldCells::Meters(known, _) if *known == meter),
            |switch| {
                let meters = switch.meters().map(|m| m[meter].clone());
                OldCells::Meters(meter, meters.collect())
            },
        );
        for meters in self.meters() {
            for cell in meters[meter].cells_mut() {
                if cell.config() != config {
                    cell.configure(config, now_ns);
                }
                if clears {
                    cell.clear_counts();
                }
            }
        }
        Ok(())
    }

    /// Restores the previous values of cells, to roll a write back.
    pub(super) fn restore_cells(&mut self, old: OldCells) {
        match old {
            OldCells::Register(bank, offset, index, old) => {
                for (banks, words) in self.banks().zip(old) {
                    banks[bank].write(index, offset, &words);
                }
            }
            OldCells::Registers(bank, old) => {
                for (banks, old) in self.banks().zip(old) {
                    banks[bank] = old;
                }
            }
            OldCells::Counter(counter, index, old) => {
                for (counters, old) in self.counters().zip(old) {
                    counters[counter].cells[index] = old;
                }
            }
            OldCells::Counters(counter, old) => {
                for (counters, old) in self.counters().zip(old) {
                    counters[counter] = old;
                }
            }
            OldCells::Meter(meter, index, old) => {
                for (meters, old) in self.meters().zip(old) {
                    if let Some(cell) = meters[meter].cell_mut(index) {
                        *cell = old;
                    }
                }
            }
            OldCells::Meters(meter, old) => {
                for (meters, old) in self.meters().zip(old) {
                    meters[meter] = old;
                }
            }
        }
    }

    /// Records the previous values of a whole array of cells at its first write in a batch, which a rollback restores.
    fn remember(
        &mut self,
        same: impl Fn(&OldCells) -> bool,
        old: impl FnOnce(&mut Switch) -> OldCells,
    ) {
        let known = |undo: &Undo| matches!(undo, Undo::Cells(old) if same(old));
        if self
            .undo
            .as_ref()
            .is_some_and(|batch| !batch.iter().any(known))
        {
            let old = old(self);
            self.record(|| Undo::Cells(old));
        }
    }

    pub(crate) fn banks(&mut self) -> impl Iterator<Item = &mut Vec<Bank>> {
        let others = self.core.tofino.pipes.each().map(|local| &mut local.banks);
        once(&mut self.core.state.cells.banks).chain(others)
    }

    fn counters(&mut self) -> impl Iterator<Item = &mut Vec<Counter>> {
        let others = self.core.tofino.pipes.each();
        let others = others.map(|local| &mut local.counters);
        once(&mut self.core.state.cells.counters).chain(others)
    }

    fn meters(&mut self) -> impl Iterator<Item = &mut Vec<Meter>> {
        let others = self.core.tofino.pipes.each().map(|local| &mut local.meters);
        once(&mut self.core.state.cells.meters).chain(others)
    }
}
