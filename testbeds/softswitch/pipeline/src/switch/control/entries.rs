//! Reads and writes complete table entries with fields in the table's order, for the P4Runtime server; and idle entries.

use super::Undo;
use crate::error::{ProfileError, TableError};
use crate::externs::counter::CounterValue;
use crate::externs::meter;
use crate::switch::Switch;
use crate::table::key::FieldKey;
use crate::table::profile::Indirect;
use crate::table::{Bound, DirectChange, EntryAction, EntryState, EntryWrite, Spec, Table};

/// Maximum number of idle timers that a call of [`Switch::handle_timeout`] checks; the next call checks the others.
const IDLE_CHECKS: u32 = 1024;
/// Maximum number of idle entries held for the control plane; the switch counts and loses entries beyond it.
const IDLE_LIMIT: usize = 4096;

/// A reference to a table's default entry, or to an entry by priority and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryRef {
    /// The default entry, which applies if no entry matches.
    Default,
    /// The table entry with this priority and key.
    Entry(i32, Vec<FieldKey>),
}

impl Switch {
    /// The index of the table with this name; `None` if there is none.
    pub fn table_position(&self, name: &str) -> Option<usize> {
        self.table_index(name).ok()
    }

    /// The specification of the table with this index; `None` if there is none.
    pub fn table_spec(&self, table: usize) -> Option<&Spec> {
        Some(&self.core.state.tables.get(table)?.spec)
    }

    fn table_at(&mut self, table: usize) -> Result<&mut Table, TableError> {
        let tables = &mut self.core.state.tables;
        tables.get_mut(table).ok_or(TableError::NoSuchTable)
    }

    /// Adds a table entry.
    pub fn insert_whole(
        &mut self,
        now_ns: u64,
        table: usize,
        write: EntryWrite,
    ) -> Result<(), ProfileError> {
        let of = self.table_at(table)?;
        if let EntryAction::Own(bound) = &write.action {
            of.check_executed(bound.index, &write)?;
        }
        self.insert_kept(now_ns, table, write)
    }

    /// Adds a table entry taken over from another program, with its counters and timers.
    pub(crate) fn insert_kept(
        &mut self,
        now_ns: u64,
        table: usize,
        mut write: EntryWrite,
    ) -> Result<(), ProfileError> {
        self.table_at(table)?;
        let named = self.named_by(table, &mut write.action)?;
        // The key is needed again only to roll the entry back.
        let undo = self
            .is_recording()
            .then(|| (write.priority, write.key.clone()));
        let inserted = self.core.state.tables[table].insert_whole(now_ns, write, named);
        if let Err(error) = inserted {
            self.forget(table, named);
            return Err(error.into());
        }
        self.record_one_shot(table, named);
        if let Some((priority, key)) = undo {
            self.record(|| Undo::Whole(table, priority, key));
        }
        Ok(())
    }

    /// Changes the action and attached data of a table entry.
    pub fn modify_whole(
        &mut self,
        now_ns: u64,
        table: usize,
        mut write: EntryWrite,
    ) -> Result<(), ProfileError> {
        self.table_at(table)?;
        let keeps = write.action == EntryAction::Keep;
        let named = self.named_by(table, &mut write.action)?;
        match self.core.state.tables[table].modify_whole(now_ns, write, named) {
            Ok(old) => {
                self.record_one_shot(table, named);
                let had = old.indirect();
                self.record(|| Undo::Deleted(table, old));
                if !keeps {
                    self.release(table, had);
                }
                Ok(())
            }
            Err(error) => {
                self.forget(table, named);
                Err(error.into())
            }
        }
    }

    /// Removes a table entry.
    pub fn delete_whole(
        &mut self,
        table: usize,
        priority: i32,
        key: Vec<FieldKey>,
    ) -> Result<(), TableError> {
        let old = self.table_at(table)?.delete_whole(priority, key)?;
        let had = old.indirect();
        self.record(|| Undo::Deleted(table, old));
        self.release(table, had);
        Ok(())
    }

    /// Upper bound of the numbers that identify a table's entries. Some numbers below it belong to no entry.
    pub fn entry_numbers(&self, table: usize) -> u32 {
        self.core.state.tables.get(table).map_or(0, Table::numbers)
    }

    /// The state of the table entry with this number; `None` if there is none.
    pub fn entry_state(&self, now_ns: u64, table: usize, number: u32) -> Option<EntryState> {
        let (mut state, indirect) = self.core.state.tables.get(table)?.state(number, now_ns)?;
        if let Some(Indirect::OneShot(id)) = indirect {
            state.action = EntryAction::OneShot(self.one_shot_actions(table, id)?);
        }
        Some(state)
    }

    /// The direct meter of the table entry with this number; `None` if there is no such entry or meter.
    pub fn entry_meter(&self, table: usize, number: u32) -> Option<meter::MeterCell> {
        self.core.state.tables.get(table)?.meter_of(number)
    }

    /// The number of the table entry with this priority and key; `None` if there is none.
    pub fn entry_number(&self, table: usize, priority: i32, key: &[FieldKey]) -> Option<u32> {
        self.core.state.tables.get(table)?.number(priority, key)
    }

    /// A table's default action with its parameters as slots, and whether the control plane has written it.
    pub fn default_bound(&self, table: usize) -> Option<(&Bound, bool)> {
        let table = self.core.state.tables.get(table)?;
        Some((table.default_bound(), table.default_written()))
    }

    /// The direct counter and direct meter of a table's default entry.
    pub fn default_direct(&self, table: usize) -> Option<(CounterValue, meter::MeterCell)> {
        Some(self.core.state.tables.get(table)?.default_direct())
    }

    /// Changes the direct counter or direct meter of a table entry or of the default entry.
    pub fn change_direct(
        &mut self,
        now_ns: u64,
        table: usize,
        entry: &EntryRef,
        change: &DirectChange,
    ) -> Result<(), TableError> {
        let undo = match entry {
            EntryRef::Default => {
                let (counter, cell) = self.table_at(table)?.default_direct();
                self.core.state.tables[table].change_default_direct(now_ns, change);
                Undo::DefaultDirect(table, counter, cell)
            }
            EntryRef::Entry(priority, key) => {
                let at = self.table_at(table)?;
                Undo::Deleted(table, at.change_direct(now_ns, *priority, key, change)?)
            }
        };
        self.record(|| undo);
        Ok(())
    }

    /// Time at which [`Self::expire`] has work to do, in nanoseconds; `None` if no entry has an idle timeout.
    pub(crate) fn next_idle_ns(&self) -> Option<u64> {
        let tables = self.idle_tables.iter();
        tables
            .filter_map(|t| self.core.state.tables[*t].next_idle_ns())
            .min()
    }

    /// Restarts all idle timers at `now_ns`, when packets begin to come: an entry's time without packets counts from now.
    pub fn start(&mut self, now_ns: u64) {
        for table in &self.idle_tables {
            self.core.state.tables[*table].restart_timers(now_ns);
        }
    }

    /// Finds table entries whose idle timeout has passed, and queues them for [`Switch::poll_idle`].
    pub(crate) fn expire(&mut self, now_ns: u64) {
        let mut checks = IDLE_CHECKS;
        for position in 0..self.idle_tables.len() {
            let table = self.idle_tables[position];
            while let Some(number) = self.core.state.tables[table].expired(now_ns, &mut checks) {
                if self.idle.len() >= IDLE_LIMIT {
                    self.idle_lost += 1;
                } else if let Some(state) = self.entry_state(now_ns, table, number) {
                    self.idle.push_back((table, state));
                }
            }
        }
    }

    /// The next entry that no packet matched within its idle timeout: index of its table, and its state when it expired.
    pub fn poll_idle(&mut self) -> Option<(usize, EntryState)> {
        self.idle.pop_front()
    }

    /// Number of idle entries lost because the caller did not fetch them in time.
    pub fn idle_lost(&self) -> u64 {
        self.idle_lost
    }
}
