//! Control plane operations on tables, by fully qualified names.

use super::Undo;
use crate::error::TableError;
use crate::externs::counter::CounterValue;
use crate::externs::meter::MeterConfig;
use crate::switch::Switch;
use crate::table::{Key, Spec, Table};
use p4lang::runtime::{ActionCall, TableEntry};

impl Switch {
    pub(crate) fn table_index(&self, name: &str) -> Result<usize, TableError> {
        self.names
            .tables
            .get(name)
            .copied()
            .ok_or(TableError::NoSuchTable)
    }

    /// Converts a table's name to its index, and an entry's key to its internal form.
    fn lowered(
        &self,
        table: &str,
        entry: Option<&TableEntry>,
    ) -> Result<(usize, Option<Key>), TableError> {
        let index = self.table_index(table)?;
        let key = entry.map(|entry| self.core.state.tables[index].entry_key(entry));
        Ok((index, key.transpose()?))
    }

    fn table(&self, name: &str) -> Result<&Table, TableError> {
        Ok(&self.core.state.tables[self.table_index(name)?])
    }

    /// Specifications of the program's tables, in order of declaration.
    pub fn tables(&self) -> impl Iterator<Item = &Spec> {
        self.core.state.tables.iter().map(|t| &t.spec)
    }

    /// Adds an entry to the table that it names.
    pub fn insert_entry(&mut self, entry: &TableEntry) -> Result<(), TableError> {
        let table = self.table_index(&entry.table)?;
        let key = self.core.state.tables[table].insert(entry)?;
        self.record(|| Undo::Inserted(table, key));
        Ok(())
    }

    /// Changes the action of an existing table entry.
    pub fn modify_entry(&mut self, entry: &TableEntry) -> Result<(), TableError> {
        let table = self.table_index(&entry.table)?;
        let old = self.core.state.tables[table].modify(entry)?;
        let had = old.indirect();
        self.record(|| Undo::Deleted(table, old));
        self.release(table, had);
        Ok(())
    }

    /// Removes a table entry; only the key and priority of `entry` matter.
    pub fn delete_entry(&mut self, entry: &TableEntry) -> Result<(), TableError> {
        let table = self.table_index(&entry.table)?;
        let removed = self.core.state.tables[table].delete(entry)?;
        let had = removed.indirect();
        self.record(|| Undo::Deleted(table, removed));
        self.release(table, had);
        Ok(())
    }

    /// All entries of a table, sorted by priority, the highest first, then by key.
    pub fn entries(&self, table: &str) -> Result<Vec<TableEntry>, TableError> {
        Ok(self.table(table)?.entries().collect())
    }

    /// The default action of a table.
    pub fn default_action(&self, table: &str) -> Result<ActionCall, TableError> {
        Ok(self.table(table)?.default_action())
    }

    /// Sets the default action of a table; `None`: the default action in the program's source.
    pub fn set_default_action(
        &mut self,
        table: &str,
        action: Option<&ActionCall>,
    ) -> Result<(), TableError> {
        let index = self.table_index(table)?;
        let written = self.core.state.tables[index].default_written();
        let old = self.core.state.tables[index].set_default(action)?;
        self.record(|| Undo::Default(index, old, written));
        Ok(())
    }

    /// The name of the table that a direct counter belongs to; `None` if there is none.
    pub fn direct_counter_table(&self, name: &str) -> Option<&str> {
        let table = self.names.direct_counters.get(name)?;
        Some(&self.core.state.tables[*table].spec.name)
    }

    /// The direct counter of a table entry, or of the default action for `None`.
    pub fn direct_counter_read(
        &mut self,
        table: &str,
        entry: Option<&TableEntry>,
    ) -> Result<CounterValue, TableError> {
        let (table, key) = self.lowered(table, entry)?;
        Ok(*self.core.state.tables[table].counter(key.as_ref())?)
    }

    /// Sets the direct counter of a table entry, or of the default action for `None`.
    pub fn direct_counter_write(
        &mut self,
        table: &str,
        entry: Option<&TableEntry>,
        value: CounterValue,
    ) -> Result<(), TableError> {
        let (table, key) = self.lowered(table, entry)?;
        let cell = self.core.state.tables[table].counter(key.as_ref())?;
        let old = std::mem::replace(cell, value);
        self.record(|| Undo::DirectCounter(table, key, old));
        Ok(())
    }

    /// The name of the table that a direct meter belongs to; `None` if there is none.
    pub fn direct_meter_table(&self, name: &str) -> Option<&str> {
        let table = self.names.direct_meters.get(name)?;
        Some(&self.core.state.tables[*table].spec.name)
    }

    /// The configuration of a table entry's direct meter, or of the default action's for `None`.
    pub fn direct_meter_config(
        &mut self,
        table: &str,
        entry: Option<&TableEntry>,
    ) -> Result<Option<MeterConfig>, TableError> {
        let (table, key) = self.lowered(table, entry)?;
        Ok(self.core.state.tables[table].meter(key.as_ref())?.config())
    }

    /// Configures the direct meter of a table entry, or of the default action for `None`, with full buckets at `now_ns`.
    pub fn direct_meter_configure(
        &mut self,
        table: &str,
        entry: Option<&TableEntry>,
        config: Option<MeterConfig>,
        now_ns: u64,
    ) -> Result<(), TableError> {
        let (table, key) = self.lowered(table, entry)?;
        let cell = self.core.state.tables[table].meter(key.as_ref())?;
        let old = *cell;
        cell.configure(config, now_ns);
        self.record(|| Undo::DirectMeter(table, key, old));
        Ok(())
    }
}
