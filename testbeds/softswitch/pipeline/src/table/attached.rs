//! What hangs on entries: counters, meters, and the members or groups that they name.

use super::idle::Timer;
use super::{Bound, DirectMeter, Entry, EntryKey, Note, Removed, Table};
use crate::error::TableError;
use crate::externs::counter::CounterValue;
use crate::externs::meter;
use crate::externs::profile::Indirect;
use hashbrown::HashMap;
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

/// Pipes of a Tofino: a direct register has a cell in each.
pub const PIPES: usize = 4;

/// What the direct registers of a table keep for each entry, and in each pipe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cells {
    /// Words of a new entry, of all registers.
    pub initial: Vec<u64>,
    /// Entries written so far: the words of pipe 0, then of the others.
    written: HashMap<u32, Box<[u64]>>,
}

impl Cells {
    fn at(&self, offset: u32, pipe: u32) -> usize {
        pipe as usize % PIPES * self.initial.len() + offset as usize
    }

    /// An entry is gone.
    pub fn forget(&mut self, entry: u32) {
        self.written.remove(&entry);
    }

    /// Some words of an entry.
    pub fn read(&self, entry: u32, offset: u32, pipe: u32, into: &mut [u64]) {
        let from = match self.written.get(&entry) {
            Some(words) => words.get(self.at(offset, pipe)..),
            None => self.initial.get(offset as usize..),
        };
        for (to, from) in into.iter_mut().zip(from.unwrap_or_default()) {
            *to = *from;
        }
    }

    /// Sets them.
    pub fn write(&mut self, entry: u32, offset: u32, pipe: u32, from: &[u64]) {
        let at = self.at(offset, pipe);
        let initial = &self.initial;
        let words = self
            .written
            .entry(entry)
            .or_insert_with(|| initial.repeat(PIPES).into());
        for (to, from) in words.iter_mut().skip(at).zip(from) {
            *to = *from;
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

    /// Direct registers of the entry found last; zeroes if there is none.
    pub fn read_cell(&self, offset: u32, pipe: u32, into: &mut [u64]) {
        into.fill(0);
        if let Some(entry) = self.found {
            self.cells.read(entry, offset, pipe, into);
        }
    }

    /// Sets them; nothing if there is no entry.
    pub fn write_cell(&mut self, offset: u32, pipe: u32, from: &[u64]) {
        if let Some(entry) = self.found {
            self.cells.write(entry, offset, pipe, from);
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
