//! What the control plane may do, by fully qualified names; and batches that are undone as a whole.

use crate::error::{ExternError, ReplicationError, TableError};
use crate::externs::State;
use crate::externs::counter::CounterValue;
use crate::externs::meter::{Cell, ColourCounts, MeterConfig};
use crate::externs::profile::{OldGroup, OldMember, OldOneShot};
use crate::externs::register::Info;
use crate::switch::Switch;
use crate::table::key::{FieldKey, FieldSpec};
use crate::table::{Removed, Spec, Table};
use hashbrown::HashMap;
use p4lang::runtime::{ActionCall, CloneSession, Match, MulticastGroup, TableEntry};

/// Names to indices.
#[derive(Debug, Default)]
pub(crate) struct Names {
    tables: HashMap<String, usize>,
    registers: HashMap<String, usize>,
    counters: HashMap<String, usize>,
    direct_counters: HashMap<String, usize>,
    direct_meters: HashMap<String, usize>,
    meters: HashMap<String, usize>,
    value_sets: HashMap<String, usize>,
}

impl Names {
    pub fn new(state: &State, registers: &[Info]) -> Names {
        fn index<'a>(names: impl Iterator<Item = &'a String>) -> HashMap<String, usize> {
            names.enumerate().map(|(i, n)| (n.clone(), i)).collect()
        }
        let direct = state.tables.iter().enumerate();
        let metered = state.tables.iter().enumerate();
        Names {
            tables: index(state.tables.iter().map(|t| &t.spec.name)),
            registers: index(registers.iter().map(|r| &r.name)),
            counters: index(state.counters.iter().map(|c| &c.name)),
            direct_counters: direct
                .filter_map(|(i, t)| Some((t.spec.direct_counter.as_ref()?.0.clone(), i)))
                .collect(),
            direct_meters: metered
                .filter_map(|(i, t)| Some((t.spec.direct_meter.as_ref()?.name.clone(), i)))
                .collect(),
            meters: index(state.meters.iter().map(|m| &m.name)),
            value_sets: index(state.value_sets.iter().map(|v| &v.name)),
        }
    }
}

/// The inverse of a write that succeeded cannot fail.
fn discard<T, E>(_: Result<T, E>) {}

/// How to take one write back.
#[derive(Debug)]
pub(crate) enum Undo {
    Inserted(TableEntry),
    Modified(TableEntry),
    Deleted(usize, Removed),
    /// A whole entry was inserted: table, priority, key.
    Whole(usize, i32, Vec<FieldKey>),
    DefaultDirect(usize, CounterValue, Cell),
    /// `None`: it was not there.
    OneShot(usize, u32, Option<OldOneShot>),
    /// The action, and whether it was written before.
    Default(String, ActionCall, bool),
    Group(u32, Option<MulticastGroup>),
    Session(u32, Option<CloneSession>),
    Register(String, u64, Vec<u128>),
    Counter(usize, usize, CounterValue),
    DirectCounter(usize, Option<TableEntry>, CounterValue),
    Meter(usize, u64, Cell),
    DirectMeter(usize, Option<TableEntry>, Cell),
    ValueSet(usize, Vec<Vec<FieldKey>>),
    Member(usize, u32, OldMember),
    ProfileGroup(usize, u32, OldGroup),
}

impl Switch {
    /// From here on writes are recorded, until [`Switch::commit`] or [`Switch::rollback`]. A batch that is open is committed.
    pub fn begin(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// Keeps the batch.
    pub fn commit(&mut self) {
        self.undo = None;
    }

    /// Takes the batch back, the last write first. No packet can have seen a part of it unless the caller let one pass.
    pub fn rollback(&mut self) {
        for undo in self.undo.take().unwrap_or_default().into_iter().rev() {
            match undo {
                Undo::Inserted(entry) => discard(self.delete_entry(&entry)),
                Undo::Modified(entry) => discard(self.modify_entry(&entry)),
                Undo::Deleted(table, removed) => self.core.state.tables[table].restore(removed),
                Undo::Whole(table, priority, key) => {
                    self.core.state.tables[table].undo_insert(priority, key)
                }
                Undo::DefaultDirect(table, counter, meter) => {
                    self.core.state.tables[table].restore_default_direct(counter, meter)
                }
                Undo::OneShot(profile, id, Some(old)) => {
                    self.core.state.profiles[profile].restore_one_shot(id, old)
                }
                Undo::OneShot(profile, id, None) => {
                    self.core.state.profiles[profile].delete_one_shot(id);
                }
                Undo::Default(table, action, written) => {
                    discard(self.set_default_action(&table, written.then_some(&action)))
                }
                Undo::Group(id, None) => discard(self.delete_multicast_group(id)),
                Undo::Group(_, Some(group)) => discard(self.set_multicast_group(&group)),
                Undo::Session(id, None) => discard(self.delete_clone_session(id)),
                Undo::Session(_, Some(session)) => discard(self.set_clone_session(&session)),
                Undo::Register(name, index, fields) => {
                    discard(self.register_write(&name, index, &fields))
                }
                Undo::Counter(counter, index, value) => {
                    self.core.state.counters[counter].cells[index] = value;
                }
                Undo::DirectCounter(table, entry, value) => {
                    if let Ok(cell) = self.core.state.tables[table].counter(entry.as_ref()) {
                        *cell = value;
                    }
                }
                Undo::Meter(meter, index, old) => {
                    if let Some(cell) = self.core.state.meters[meter].cell_mut(index) {
                        *cell = old;
                    }
                }
                Undo::DirectMeter(table, entry, old) => {
                    if let Ok(cell) = self.core.state.tables[table].meter(entry.as_ref()) {
                        *cell = old;
                    }
                }
                Undo::ValueSet(set, members) => self.core.state.value_sets[set].members = members,
                Undo::Member(profile, id, old) => {
                    self.core.state.profiles[profile].restore_member(id, old)
                }
                Undo::ProfileGroup(profile, id, old) => {
                    self.core.state.profiles[profile].restore_group(id, old)
                }
            }
        }
    }

    /// Runs `batch`; an error takes back all that it wrote.
    pub fn atomically<T, E>(
        &mut self,
        batch: impl FnOnce(&mut Switch) -> Result<T, E>,
    ) -> Result<T, E> {
        self.begin();
        let result = batch(self);
        if result.is_ok() {
            self.commit();
        } else {
            self.rollback();
        }
        result
    }

    pub(crate) fn record(&mut self, undo: Undo) {
        if let Some(batch) = &mut self.undo {
            batch.push(undo);
        }
    }

    pub(crate) fn table_index(&self, name: &str) -> Result<usize, TableError> {
        self.names
            .tables
            .get(name)
            .copied()
            .ok_or(TableError::NoSuchTable)
    }

    fn table(&self, name: &str) -> Result<&Table, TableError> {
        Ok(&self.core.state.tables[self.table_index(name)?])
    }

    /// What the program's tables are, in order of declaration.
    pub fn tables(&self) -> impl Iterator<Item = &Spec> {
        self.core.state.tables.iter().map(|t| &t.spec)
    }

    /// Adds an entry.
    pub fn insert_entry(&mut self, entry: &TableEntry) -> Result<(), TableError> {
        let table = self.table_index(&entry.table)?;
        self.core.state.tables[table].insert(entry)?;
        self.record(Undo::Inserted(entry.clone()));
        Ok(())
    }

    /// Changes the action of an entry.
    pub fn modify_entry(&mut self, entry: &TableEntry) -> Result<(), TableError> {
        let table = self.table_index(&entry.table)?;
        let action = self.core.state.tables[table].modify(entry)?;
        self.record(Undo::Modified(TableEntry {
            action,
            ..entry.clone()
        }));
        Ok(())
    }

    /// Takes an entry out; only its key and priority are looked at.
    pub fn delete_entry(&mut self, entry: &TableEntry) -> Result<(), TableError> {
        let table = self.table_index(&entry.table)?;
        let removed = self.core.state.tables[table].delete(entry)?;
        let had = removed.indirect();
        self.record(Undo::Deleted(table, removed));
        self.release(table, had);
        Ok(())
    }

    /// All entries of a table: the highest priority first, then by key.
    pub fn entries(&self, table: &str) -> Result<Vec<TableEntry>, TableError> {
        Ok(self.table(table)?.entries().collect())
    }

    /// The default action.
    pub fn default_action(&self, table: &str) -> Result<ActionCall, TableError> {
        Ok(self.table(table)?.default_action())
    }

    /// Sets the default action; `None`: the one of the source.
    pub fn set_default_action(
        &mut self,
        table: &str,
        action: Option<&ActionCall>,
    ) -> Result<(), TableError> {
        let index = self.table_index(table)?;
        let written = self.core.state.tables[index].default_written();
        let old = self.core.state.tables[index].set_default(action)?;
        self.record(Undo::Default(table.to_owned(), old, written));
        Ok(())
    }

    /// Adds or replaces a multicast group.
    pub fn set_multicast_group(&mut self, group: &MulticastGroup) -> Result<(), ReplicationError> {
        let old = self.core.replication.set_group(group)?;
        self.record(Undo::Group(group.id, old));
        Ok(())
    }

    /// Takes a multicast group out.
    pub fn delete_multicast_group(&mut self, id: u32) -> Result<(), ReplicationError> {
        let old = self.core.replication.delete_group(id)?;
        self.record(Undo::Group(id, Some(old)));
        Ok(())
    }

    /// All multicast groups by id.
    pub fn multicast_groups(&self) -> Vec<MulticastGroup> {
        self.core.replication.groups()
    }

    /// Adds or replaces a clone session.
    pub fn set_clone_session(&mut self, session: &CloneSession) -> Result<(), ReplicationError> {
        let old = self.core.replication.set_session(session)?;
        self.record(Undo::Session(session.id, old));
        Ok(())
    }

    /// Takes a clone session out.
    pub fn delete_clone_session(&mut self, id: u32) -> Result<(), ReplicationError> {
        let old = self.core.replication.delete_session(id)?;
        self.record(Undo::Session(id, Some(old)));
        Ok(())
    }

    /// All clone sessions by id.
    pub fn clone_sessions(&self) -> Vec<CloneSession> {
        self.core.replication.sessions()
    }

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
    pub fn register_read(&self, name: &str, index: u64) -> Result<Vec<u128>, ExternError> {
        let info = self.register(name)?;
        info.read(&self.core.state.banks[info.bank as usize], index)
    }

    /// Writes the fields of a register's cell.
    pub fn register_write(
        &mut self,
        name: &str,
        index: u64,
        fields: &[u128],
    ) -> Result<(), ExternError> {
        let info = self.register(name)?.clone();
        let bank = &mut self.core.state.banks[info.bank as usize];
        let old = info.read(bank, index)?;
        info.write(bank, index, fields)?;
        for local in self.core.tofino.pipes.each() {
            info.write(&mut local.banks[info.bank as usize], index, fields)?;
        }
        self.record(Undo::Register(name.to_owned(), index, old));
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
        self.record(Undo::Counter(counter, index, old));
        Ok(())
    }

    /// The table that a direct counter belongs to.
    pub fn direct_counter_table(&self, name: &str) -> Option<&str> {
        let table = self.names.direct_counters.get(name)?;
        Some(&self.core.state.tables[*table].spec.name)
    }

    /// The direct counter of an entry, or with `None` of the default action.
    pub fn direct_counter_read(
        &mut self,
        table: &str,
        entry: Option<&TableEntry>,
    ) -> Result<CounterValue, TableError> {
        let table = self.table_index(table)?;
        Ok(*self.core.state.tables[table].counter(entry)?)
    }

    /// Sets it.
    pub fn direct_counter_write(
        &mut self,
        table: &str,
        entry: Option<&TableEntry>,
        value: CounterValue,
    ) -> Result<(), TableError> {
        let table = self.table_index(table)?;
        let old = std::mem::replace(self.core.state.tables[table].counter(entry)?, value);
        self.record(Undo::DirectCounter(table, entry.cloned(), old));
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
        self.record(Undo::Meter(meter, index, old));
        Ok(())
    }

    /// The table that a direct meter belongs to.
    pub fn direct_meter_table(&self, name: &str) -> Option<&str> {
        let table = self.names.direct_meters.get(name)?;
        Some(&self.core.state.tables[*table].spec.name)
    }

    /// The configuration of an entry's direct meter, or with `None` of the default action's.
    pub fn direct_meter_config(
        &mut self,
        table: &str,
        entry: Option<&TableEntry>,
    ) -> Result<Option<MeterConfig>, TableError> {
        let table = self.table_index(table)?;
        Ok(self.core.state.tables[table].meter(entry)?.config())
    }

    /// Configures it, its buckets full at `now_ns`.
    pub fn direct_meter_configure(
        &mut self,
        table: &str,
        entry: Option<&TableEntry>,
        config: Option<MeterConfig>,
        now_ns: u64,
    ) -> Result<(), TableError> {
        let table = self.table_index(table)?;
        let cell = self.core.state.tables[table].meter(entry)?;
        let old = *cell;
        cell.configure(config, now_ns);
        self.record(Undo::DirectMeter(table, entry.cloned(), old));
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
        change: impl FnOnce(&mut crate::externs::value_set::ValueSet) -> Result<(), ExternError>,
    ) -> Result<(), ExternError> {
        let index = *self
            .names
            .value_sets
            .get(name)
            .ok_or(ExternError::NotFound)?;
        let set = &mut self.core.state.value_sets[index];
        let old = set.members.clone();
        change(set)?;
        self.record(Undo::ValueSet(index, old));
        Ok(())
    }
}
