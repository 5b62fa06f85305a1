//! Table entries with all data that P4Runtime has about them, by position: fields in the table's order, actions and parameters
//! as numbers. No names are looked up, so that large batches are fast.

use super::idle::Timer;
use super::key::FieldKey;
use super::rows::Head;
use super::{Bound, Index, Key, Note, Removed, Table};
use crate::error::TableError;
use crate::externs::counter::CounterValue;
use crate::externs::meter::{ColourCounts, MeterCell, MeterConfig};
use crate::table::profile::{Indirect, OneShotAction};

/// The action of a table entry that is written or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryAction {
    /// An action of the entry's own, bound to its parameters.
    Own(Bound),
    /// A reference to a member or group of the table's profile.
    Named(Indirect),
    /// One-shot actions of the entry, of which the selector picks one for each packet.
    OneShot(Vec<OneShotAction>),
    /// The previous action stays; only for a change of the entry.
    Keep,
}

/// A table entry to be added or changed.
#[derive(Debug, Clone)]
pub struct EntryWrite {
    /// Matches of the key's fields, in the table's order.
    pub key: Vec<FieldKey>,
    /// Priority of the entry, as in [`p4lang::runtime::TableEntry::priority`].
    pub priority: i32,
    /// The action of the entry.
    pub action: EntryAction,
    /// Configuration of the direct meter; `None`: all packets are green.
    pub meter: Option<MeterConfig>,
    /// Whether to reset the direct meter's counts of green, yellow and red packets.
    pub clear_meter_counts: bool,
    /// Value of the direct counter; `None`: 0 for a new entry, otherwise unchanged.
    pub counter: Option<CounterValue>,
    /// Idle timeout in nanoseconds; 0: no notification.
    pub idle_timeout_ns: u64,
    /// Note that the client attaches; `None`: no note.
    pub note: Option<Box<Note>>,
}

/// The state of a table entry as it is read.
#[derive(Debug, Clone)]
pub struct EntryState {
    /// Matches of the key's fields, in the table's order.
    pub key: Vec<FieldKey>,
    /// Priority of the entry as written.
    pub priority: i32,
    /// The action of the entry; never [`EntryAction::Keep`].
    pub action: EntryAction,
    /// Whether the entry comes from the source and cannot be changed.
    pub is_const: bool,
    /// Configuration of the direct meter; `None`: not configured.
    pub meter: Option<MeterConfig>,
    /// Packets and bytes that the direct meter has marked green, yellow and red.
    pub meter_counts: ColourCounts,
    /// Value of the entry's direct counter.
    pub counter: CounterValue,
    /// Idle timeout as written, in nanoseconds; 0: none.
    pub idle_timeout_ns: u64,
    /// Time since a packet last matched the entry, in nanoseconds; 0 if the table has no idle timeouts.
    pub since_hit_ns: u64,
    /// Note as the client wrote it; empty if there is none.
    pub note: Note,
}

/// A change of the direct counter and direct meter of a table entry; `None` keeps the value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirectChange {
    /// New value of the direct counter; `None` keeps it.
    pub counter: Option<CounterValue>,
    /// New configuration of the direct meter; `None` keeps it, `Some(None)` removes it.
    pub meter: Option<Option<MeterConfig>>,
    /// Whether to reset the direct meter's counts of green, yellow and red packets.
    pub clear_meter_counts: bool,
}

fn change_meter(cell: &mut MeterCell, now_ns: u64, change: &DirectChange) {
    if let Some(config) = change.meter {
        cell.configure(config, now_ns);
    }
    if change.clear_meter_counts {
        cell.clear_counts();
    }
}

impl Table {
    pub(super) fn whole_key(&self, priority: i32, key: &[FieldKey]) -> Result<Key, TableError> {
        if self.spec.wants_priority() != (priority > 0) || priority < 0 {
            return Err(TableError::BadPriority(priority));
        }
        if key.len() != self.spec.fields.len() {
            let field = self.spec.fields.get(key.len());
            return Err(TableError::MissingField(
                field.map(|f| f.name.clone()).unwrap_or_default(),
            ));
        }
        Ok(self.packed(key, priority))
    }

    /// Adds a table entry; `indirect` is its reference to a member or group, if it has no action of its own.
    pub fn insert_whole(
        &mut self,
        now_ns: u64,
        write: EntryWrite,
        indirect: Option<Indirect>,
    ) -> Result<(), TableError> {
        self.writable()?;
        let key = self.whole_key(write.priority, &write.key)?;
        self.has_room_for(&key)?;
        let mut attached = self.attached();
        attached.counter = write.counter.unwrap_or_default();
        if let Some(note) = write.note {
            attached.more().note = *note;
        }
        if let Some(more) = &mut attached.more {
            more.meter.configure(write.meter, now_ns);
            more.timer = Timer::new(write.idle_timeout_ns, now_ns);
        }
        match write.action {
            EntryAction::Own(bound) => {
                let head = Head::running(&key, &bound);
                self.put(head, &key, &bound.params, attached);
            }
            _ => self.put(Head::naming(&key, indirect), &key, &[], attached),
        }
        Ok(())
    }

    /// Changes a table entry; returns the previous entry. `indirect`: its new reference to a member or group, if any.
    pub fn modify_whole(
        &mut self,
        now_ns: u64,
        write: EntryWrite,
        indirect: Option<Indirect>,
    ) -> Result<Removed, TableError> {
        let key = self.whole_key(write.priority, &write.key)?;
        let row = self.row(&key)?;
        // Only counter and meter of a constant entry may change (P4Runtime 1.4, section 9.1.4).
        let constant = self.spec.const_entries || self.rows.head(row).is_const;
        let direct_only =
            write.action == EntryAction::Keep && write.note.is_none() && write.idle_timeout_ns == 0;
        if constant && !direct_only {
            return Err(TableError::ConstTable);
        }
        match &write.action {
            EntryAction::Own(bound) => self.check_executed(bound.index, &write)?,
            EntryAction::Keep if self.rows.head(row).indirect.is_none() => {
                self.check_executed(self.rows.head(row).action, &write)?;
            }
            _ => {}
        }
        let old = self.copy(row);
        match &write.action {
            EntryAction::Keep => {}
            EntryAction::Own(bound) => {
                self.rows
                    .set(row, Head::running(&key, bound), &bound.params);
            }
            _ => self.rows.set(row, Head::naming(&key, indirect), &[]),
        }
        self.stop_timer(row);
        self.attach(now_ns, row, write);
        self.start_timer(row);
        Ok(old)
    }

    /// Refuses to set a direct counter or meter that the entry's action does not use (P4Runtime 1.4, "Direct Resources").
    pub fn check_executed(
        &self,
        action: Option<u32>,
        write: &EntryWrite,
    ) -> Result<(), TableError> {
        let action = action.and_then(|index| self.spec.actions.get(index as usize));
        let refused = |what| TableError::NotExecuted {
            action: action.map_or("NoAction", |a| &a.name).to_owned(),
            what,
        };
        if write.counter.is_some() && !action.is_some_and(|a| a.counts) {
            return Err(refused("counter"));
        }
        if write.meter.is_some() && !action.is_some_and(|a| a.meters) {
            return Err(refused("meter"));
        }
        Ok(())
    }

    /// Changes the counter, meter, timer and note attached to an entry.
    fn attach(&mut self, now_ns: u64, row: Index, write: EntryWrite) {
        if let Some(counter) = write.counter {
            *self.attachments.counter_mut(row) = counter;
        }
        match (write.note, self.attachments.more_mut(row)) {
            (Some(note), _) => self.attachments.make_more(row).note = *note,
            (None, Some(more)) => more.note = Note::default(),
            (None, None) => {}
        }
        let Some(more) = self.attachments.more_mut(row) else {
            return;
        };
        if more.meter.config() != write.meter {
            more.meter.configure(write.meter, now_ns);
        }
        if write.clear_meter_counts {
            more.meter.clear_counts();
        }
        if more.timer.timeout_ns != write.idle_timeout_ns {
            more.timer = more.timer.changed(write.idle_timeout_ns, now_ns);
        }
    }

    /// Removes a table entry; returns it for a rollback.
    pub fn delete_whole(
        &mut self,
        priority: i32,
        key: Vec<FieldKey>,
    ) -> Result<Removed, TableError> {
        self.writable()?;
        let row = self.row(&self.whole_key(priority, &key)?)?;
        if self.rows.head(row).is_const {
            return Err(TableError::ConstTable);
        }
        Ok(self.take(row))
    }

    /// Removes an entry that was just added, to undo the addition.
    pub fn undo_insert(&mut self, priority: i32, key: Vec<FieldKey>) {
        if let Some(row) = self.number(priority, &key) {
            self.take(row);
        }
    }

    /// Changes the direct counter and direct meter of an entry; returns the previous entry.
    pub fn change_direct(
        &mut self,
        now_ns: u64,
        priority: i32,
        key: &[FieldKey],
        change: &DirectChange,
    ) -> Result<Removed, TableError> {
        let row = self.number(priority, key).ok_or(TableError::NotFound)?;
        let old = self.copy(row);
        if let Some(counter) = change.counter {
            *self.attachments.counter_mut(row) = counter;
        }
        if let Some(more) = self.attachments.more_mut(row) {
            change_meter(&mut more.meter, now_ns, change);
        }
        Ok(old)
    }

    /// Value of the direct counter and state of the direct meter of the default entry.
    pub fn default_direct(&self) -> (CounterValue, MeterCell) {
        (self.default_counter, self.default_meter)
    }

    /// Changes the direct counter and direct meter of the default entry.
    pub fn change_default_direct(&mut self, now_ns: u64, change: &DirectChange) {
        self.default_counter = change.counter.unwrap_or(self.default_counter);
        change_meter(&mut self.default_meter, now_ns, change);
    }

    /// Restores the direct counter and direct meter of the default entry.
    pub fn restore_default_direct(&mut self, counter: CounterValue, meter: MeterCell) {
        (self.default_counter, self.default_meter) = (counter, meter);
    }

    /// Takes over the default entry's direct counter and meter from another program's table, as far as they exist here.
    pub fn take_default_direct(&mut self, from: &Table) {
        if self.spec.direct_counter.is_some() {
            self.default_counter = from.default_counter;
        }
        if self.meters_as(from) {
            self.default_meter = from.default_meter;
        }
    }

    /// The number of the table entry with this priority and key; `None` if there is none.
    pub fn number(&self, priority: i32, key: &[FieldKey]) -> Option<u32> {
        self.row(&self.whole_key(priority, key).ok()?).ok()
    }

    /// The state of the entry with this number, and the member or group to which it refers. One-shot actions are left out.
    pub fn state(&self, number: u32, now_ns: u64) -> Option<(EntryState, Option<Indirect>)> {
        if !self.rows.is_live(number) {
            return None;
        }
        let head = self.rows.head(number);
        let more = self.attachments.more(number);
        let state = EntryState {
            key: self.fields(number),
            priority: self.priority(number),
            action: match head.indirect {
                Some(indirect) => EntryAction::Named(indirect),
                None => EntryAction::Own(self.action(Some(number)).into()),
            },
            is_const: head.is_const || self.spec.const_entries,
            meter: more.and_then(|m| m.meter.config()),
            meter_counts: more.map(|m| m.meter.counts()).unwrap_or_default(),
            counter: self.attachments.counter(number),
            idle_timeout_ns: more.map_or(0, |m| m.timer.timeout_ns),
            since_hit_ns: more.map_or(0, |m| now_ns.saturating_sub(m.timer.hit_ns)),
            note: more.map(|m| m.note.clone()).unwrap_or_default(),
        };
        Some((state, head.indirect))
    }

    /// The direct meter of the entry with this number; `None` if there is no such entry or meter.
    pub fn meter_of(&self, number: u32) -> Option<MeterCell> {
        if !self.rows.is_live(number) {
            return None;
        }
        Some(self.attachments.more(number)?.meter)
    }

    /// Upper bound of the numbers that identify the table's entries.
    pub fn numbers(&self) -> u32 {
        self.rows.capacity() as u32
    }

    /// Converts an entry of another program's table to this table, by the names of fields, actions and parameters.
    pub fn translated(&self, from: &Table, state: EntryState) -> Result<EntryWrite, TableError> {
        let mut named = from.named(state.priority, &state.key, Bound::nothing().as_action());
        let action = match state.action {
            EntryAction::Own(bound) => {
                EntryAction::Own(self.bind(&from.spec.call(bound.as_action()), false)?)
            }
            other => other,
        };
        if state.idle_timeout_ns != 0 && !self.spec.idle_timeout {
            return Err(TableError::NoIdleTimeouts);
        }
        // A further field may have become a don't-care, but a table without priorities gains none.
        named.table.clone_from(&self.spec.name);
        Ok(EntryWrite {
            key: self.entry_fields(&named)?,
            priority: named.priority,
            action,
            meter: state.meter.filter(|_| self.meters_as(from)),
            clear_meter_counts: false,
            counter: Some(state.counter).filter(|_| self.spec.direct_counter.is_some()),
            idle_timeout_ns: state.idle_timeout_ns,
            note: Some(Box::new(state.note)),
        })
    }

    /// Whether both tables have direct meters that measure the same: bytes or packets.
    fn meters_as(&self, other: &Table) -> bool {
        let unit = |table: &Table| table.spec.direct_meter.as_ref().map(|meter| meter.bytes);
        unit(self).is_some() && unit(self) == unit(other)
    }

    /// Removes all entries of the table that are not constant.
    pub fn clear(&mut self) {
        if self.spec.const_entries {
            return;
        }
        for row in 0..self.numbers() {
            if self.rows.is_live(row) && !self.rows.head(row).is_const {
                self.take(row);
            }
        }
    }

    /// Whether the control plane has written the table's default action.
    pub fn default_written(&self) -> bool {
        self.default_written
    }

    /// The table's default action with its parameters as slots.
    pub fn default_bound(&self) -> &Bound {
        &self.default
    }
}
