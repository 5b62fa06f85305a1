//! Entries in full and by position, as the P4Runtime server writes and reads them; and those that no packet finds.

use super::Undo;
use crate::error::{ProfileError, TableError};
use crate::externs::counter::CounterValue;
use crate::externs::meter;
use crate::switch::Switch;
use crate::table::key::FieldKey;
use crate::table::profile::Indirect;
use crate::table::{Bound, DirectChange, EntryAction, EntryState, EntryWrite, Spec, Table};

/// Entries looked at in one call of [`Switch::handle_timeout`]; the rest is due at once.
const LOOKS: u32 = 1024;
/// Idle entries held for the control plane; more are counted and lost.
const IDLE_LIMIT: usize = 4096;

/// Which entry of a table is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryRef {
    /// What happens where no entry matches.
    Default,
    /// The entry with this priority and key.
    Entry(i32, Vec<FieldKey>),
}

impl Switch {
    /// The number of a table.
    pub fn table_position(&self, name: &str) -> Option<usize> {
        self.table_index(name).ok()
    }

    /// What a table is.
    pub fn table_spec(&self, table: usize) -> Option<&Spec> {
        Some(&self.core.state.tables.get(table)?.spec)
    }

    fn table_at(&mut self, table: usize) -> Result<&mut Table, TableError> {
        let tables = &mut self.core.state.tables;
        tables.get_mut(table).ok_or(TableError::NoSuchTable)
    }

    /// Adds an entry.
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

    /// Adds an entry as another program had it, with whatever has gathered there.
    pub(crate) fn insert_kept(
        &mut self,
        now_ns: u64,
        table: usize,
        mut write: EntryWrite,
    ) -> Result<(), ProfileError> {
        self.table_at(table)?;
        let named = self.named_by(table, &mut write.action)?;
        // The key is needed again only to take the entry back.
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

    /// Changes an entry.
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

    /// Takes an entry out.
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

    /// Entries of a table have numbers below this; not every number has an entry.
    pub fn entry_numbers(&self, table: usize) -> u32 {
        self.core.state.tables.get(table).map_or(0, Table::numbers)
    }

    /// An entry by its number.
    pub fn entry_state(&self, now_ns: u64, table: usize, number: u32) -> Option<EntryState> {
        let (mut state, indirect) = self.core.state.tables.get(table)?.state(number, now_ns)?;
        if let Some(Indirect::OneShot(id)) = indirect {
            state.action = EntryAction::OneShot(self.one_shot_actions(table, id)?);
        }
        Some(state)
    }

    /// An entry's direct meter.
    pub fn entry_meter(&self, table: usize, number: u32) -> Option<meter::Cell> {
        self.core.state.tables.get(table)?.meter_of(number)
    }

    /// The number of the entry with this priority and key.
    pub fn entry_number(&self, table: usize, priority: i32, key: &[FieldKey]) -> Option<u32> {
        self.core.state.tables.get(table)?.number(priority, key)
    }

    /// The default action as it lies in the frame, and whether the control plane has written it.
    pub fn default_bound(&self, table: usize) -> Option<(&Bound, bool)> {
        let table = self.core.state.tables.get(table)?;
        Some((table.default_bound(), table.default_written()))
    }

    /// The direct counter and meter of the default entry.
    pub fn default_direct(&self, table: usize) -> Option<(CounterValue, meter::Cell)> {
        Some(self.core.state.tables.get(table)?.default_direct())
    }

    /// Changes a direct counter or meter.
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

    /// When [`Self::expire`] has something to do.
    pub(crate) fn next_idle_ns(&self) -> Option<u64> {
        let tables = self.idle_tables.iter();
        tables
            .filter_map(|t| self.core.state.tables[*t].next_idle_ns())
            .min()
    }

    /// Packets come from now on. What was written earlier is timed as if it were written now.
    pub fn start(&mut self, now_ns: u64) {
        for table in &self.idle_tables {
            self.core.state.tables[*table].restart_timers(now_ns);
        }
    }

    /// Finds entries that were idle for their time.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        let mut looks = LOOKS;
        for position in 0..self.idle_tables.len() {
            let table = self.idle_tables[position];
            while let Some(number) = self.core.state.tables[table].expired(now_ns, &mut looks) {
                if self.idle.len() >= IDLE_LIMIT {
                    self.idle_lost += 1;
                } else if let Some(state) = self.entry_state(now_ns, table, number) {
                    self.idle.push_back((table, state));
                }
            }
        }
    }

    /// The next entry that no packet has found for its idle timeout: its table's number, and the entry as it was then.
    pub fn poll_idle(&mut self) -> Option<(usize, EntryState)> {
        self.idle.pop_front()
    }

    /// Idle entries lost because nobody fetched them.
    pub fn idle_lost(&self) -> u64 {
        self.idle_lost
    }
}
