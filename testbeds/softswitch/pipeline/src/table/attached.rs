//! What hangs on entries: counters, meters, and the members or groups that they name.

use super::idle::Timer;
use super::{Bound, DirectMeter, Entry, EntryKey, Note, Removed, Table};
use crate::error::TableError;
use crate::externs::counter::CounterValue;
use crate::externs::meter;
use crate::externs::profile::Indirect;
use p4lang::runtime::TableEntry;

/// What an entry has beside key and action. The rarer part is apart, so that large tables stay small.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attached {
    pub counter: CounterValue,
    pub more: Option<Box<More>>,
}

/// Of entries whose table has a direct meter or idle timeouts, or that carry a note.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct More {
    pub meter: meter::Cell,
    pub timer: Timer,
    pub note: Note,
}

impl Attached {
    /// The rarer part, made if it is not there.
    pub fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }
}

impl Bound {
    /// Nothing to run.
    pub(super) fn nothing() -> Bound {
        Bound {
            index: None,
            params: Box::default(),
        }
    }
}

impl Entry {
    fn naming(key: EntryKey, indirect: Indirect, attached: Attached) -> Entry {
        Entry {
            key,
            action: Bound::nothing(),
            is_const: false,
            indirect: Some(indirect),
            attached,
        }
    }
}

impl Table {
    /// What a new entry of this table has.
    pub(super) fn attached(&self) -> Attached {
        let more = self.spec.direct_meter.is_some() || self.spec.idle_timeout;
        Attached {
            counter: CounterValue::default(),
            more: more.then(Box::default),
        }
    }

    /// What the entry found last names instead of an action.
    pub fn found_indirect(&self) -> Option<Indirect> {
        self.found_entry()?.indirect
    }

    /// The action of the entry found last, or the default action; and whether there was an entry.
    pub fn found_action(&self) -> (bool, &Bound) {
        match self.found_entry() {
            Some(entry) => (true, &entry.action),
            None => (false, &self.default),
        }
    }

    fn found_entry(&self) -> Option<&Entry> {
        self.entries.get(self.found? as usize)?.as_ref()
    }

    /// Counts a packet at the entry found last.
    #[inline]
    pub fn count(&mut self, bytes: u64) {
        let Some((_, kind)) = &self.spec.direct_counter else {
            return;
        };
        match self.found.and_then(|e| self.entries.get_mut(e as usize)) {
            Some(Some(entry)) => entry.attached.counter.add(*kind, bytes),
            _ => self.default_counter.add(*kind, bytes),
        }
    }

    /// Marks a packet that came with `colour` (the program's value) with the meter of the entry found last.
    pub fn mark(&mut self, colour: u64, now_ns: u64, bytes: u64) -> u64 {
        let Some(DirectMeter {
            bytes: by_bytes,
            colours,
            ..
        }) = self.spec.direct_meter
        else {
            return colour;
        };
        let before = colours.iter().position(|c| *c == colour).unwrap_or(0) as u64;
        let units = if by_bytes { bytes } else { 1 };
        let cell = match self.found.and_then(|e| self.entries.get_mut(e as usize)) {
            Some(Some(entry)) => &mut entry.attached.more().meter,
            _ => &mut self.default_meter,
        };
        colours[cell.mark(before, now_ns, units, bytes) as usize]
    }

    /// Adds an entry that names a member or group of the profile; its action is not looked at.
    pub fn insert_indirect(
        &mut self,
        entry: &TableEntry,
        indirect: Indirect,
    ) -> Result<(), TableError> {
        self.writable()?;
        let key = self.entry_key(entry)?;
        if self.by_key.contains_key(&key) {
            return Err(TableError::DuplicateEntry);
        }
        if self.by_key.len() as u64 >= self.spec.size {
            return Err(TableError::Full(self.spec.size));
        }
        self.put(Entry::naming(key, indirect, self.attached()));
        Ok(())
    }

    /// Puts such an entry in the place of another; gives that.
    pub fn replace_indirect(
        &mut self,
        entry: &TableEntry,
        indirect: Indirect,
    ) -> Result<Removed, TableError> {
        let removed = self.delete(entry)?;
        let (key, attached) = (removed.0.key.clone(), removed.0.attached.clone());
        self.put(Entry::naming(key, indirect, attached));
        Ok(removed)
    }

    /// What an entry names instead of an action.
    pub fn indirect(&self, entry: &TableEntry) -> Result<Option<Indirect>, TableError> {
        let key = self.entry_key(entry)?;
        let index = *self.by_key.get(&key).ok_or(TableError::NotFound)?;
        match self.entries.get(index as usize) {
            Some(Some(entry)) => Ok(entry.indirect),
            _ => Err(TableError::NotFound),
        }
    }

    /// Whether an entry names it.
    pub fn names(&self, indirect: Indirect) -> bool {
        let mut entries = self.entries.iter().flatten();
        entries.any(|e| e.indirect == Some(indirect))
    }

    /// The direct counter of an entry, or with `None` of the default action.
    pub fn counter(&mut self, entry: Option<&TableEntry>) -> Result<&mut CounterValue, TableError> {
        let Some(entry) = entry else {
            return Ok(&mut self.default_counter);
        };
        let key = self.entry_key(entry)?;
        let index = *self.by_key.get(&key).ok_or(TableError::NotFound)?;
        match self.entries.get_mut(index as usize) {
            Some(Some(entry)) => Ok(&mut entry.attached.counter),
            _ => Err(TableError::NotFound),
        }
    }

    /// The direct meter of an entry, or with `None` of the default action.
    pub fn meter(&mut self, entry: Option<&TableEntry>) -> Result<&mut meter::Cell, TableError> {
        let Some(entry) = entry else {
            return Ok(&mut self.default_meter);
        };
        let key = self.entry_key(entry)?;
        let index = *self.by_key.get(&key).ok_or(TableError::NotFound)?;
        match self.entries.get_mut(index as usize) {
            Some(Some(entry)) => Ok(&mut entry.attached.more().meter),
            _ => Err(TableError::NotFound),
        }
    }
}
