//! What hangs on entries: counters, meters, timers, and the members or groups that they name.

use super::idle::Timer;
use super::rows::{Head, Index, Row};
use super::{DirectMeter, Key, Note, Table};
use crate::error::TableError;
use crate::externs::counter::CounterValue;
use crate::externs::meter;
use crate::table::profile::Indirect;
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

/// What all entries of a table have, by the numbers of their rows. There are cells as far as a row has had one, so that a
/// table where none has any takes no memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachments {
    /// Each row has a counter.
    counts: bool,
    counters: Vec<CounterValue>,
    more: Vec<Option<Box<More>>>,
}

impl Attachments {
    /// For a table without entries.
    pub fn new(counts: bool) -> Attachments {
        Attachments {
            counts,
            counters: Vec::new(),
            more: Vec::new(),
        }
    }

    /// Sets what a row has.
    pub fn set(&mut self, row: Index, attached: Attached) {
        let at = row as usize;
        if self.counts || at < self.counters.len() || attached.counter != CounterValue::default() {
            *self.counter_mut(row) = attached.counter;
        }
        if at < self.more.len() || attached.more.is_some() {
            *cell(&mut self.more, row) = attached.more;
        }
    }

    /// What a row has.
    pub fn of(&self, row: Index) -> Attached {
        Attached {
            counter: self.counter(row),
            more: self.more.get(row as usize).cloned().flatten(),
        }
    }

    /// A row's counter.
    pub fn counter(&self, row: Index) -> CounterValue {
        let cell = self.counters.get(row as usize);
        cell.copied().unwrap_or_default()
    }

    /// A row's counter.
    #[inline]
    pub fn counter_mut(&mut self, row: Index) -> &mut CounterValue {
        cell(&mut self.counters, row)
    }

    /// The rarer part, if it is there.
    pub fn more(&self, row: Index) -> Option<&More> {
        self.more.get(row as usize)?.as_deref()
    }

    /// The rarer part, if it is there.
    pub fn more_mut(&mut self, row: Index) -> Option<&mut More> {
        self.more.get_mut(row as usize)?.as_deref_mut()
    }

    /// The rarer part, made if it is not there.
    pub fn make_more(&mut self, row: Index) -> &mut More {
        cell(&mut self.more, row).get_or_insert_default()
    }
}

/// A row's cell, made if it is not there.
fn cell<T: Clone + Default>(cells: &mut Vec<T>, row: Index) -> &mut T {
    if cells.len() <= row as usize {
        cells.resize(row as usize + 1, T::default());
    }
    &mut cells[row as usize]
}

/// An entry taken out, to be put back as it was.
#[derive(Debug, Clone)]
pub struct Removed {
    pub(super) row: Row,
    pub(super) indirect: Option<Indirect>,
    pub(super) attached: Attached,
}

impl Removed {
    /// What it named instead of an action.
    pub fn indirect(&self) -> Option<Indirect> {
        self.indirect
    }
}

impl Head {
    /// Of an entry that names something instead of an action.
    pub(super) fn naming(key: &Key, indirect: Option<Indirect>) -> Head {
        Head {
            rank: key.rank,
            action: None,
            is_const: false,
            indirect,
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

    /// What an entry that a lookup found names instead of an action.
    pub fn found_indirect(&self, found: Option<Index>) -> Option<Indirect> {
        self.rows.head(found?).indirect
    }

    /// Counts a packet at the entry that a lookup found, or else at the default action.
    #[inline]
    pub fn count(&mut self, found: Option<Index>, bytes: u64) {
        let Some((_, kind)) = &self.spec.direct_counter else {
            return;
        };
        let cell = match found {
            Some(row) => self.attachments.counter_mut(row),
            None => &mut self.default_counter,
        };
        cell.add(*kind, bytes);
    }

    /// Marks a packet that came with `colour` (the program's value) with the meter of the entry that a lookup found.
    pub fn mark(&mut self, found: Option<Index>, colour: u64, now_ns: u64, bytes: u64) -> u64 {
        let Some(DirectMeter {
            bytes: by_bytes,
            colours,
            ..
        }) = self.spec.direct_meter
        else {
            return colour;
        };
        let before = meter::rank(&colours, colour);
        let units = if by_bytes { bytes } else { 1 };
        let cell = match found {
            Some(row) => &mut self.attachments.make_more(row).meter,
            None => &mut self.default_meter,
        };
        colours[cell.mark(before, now_ns, units, bytes) as usize]
    }

    /// Adds an entry that names a member or group of the profile; its action is not looked at.
    pub fn insert_indirect(
        &mut self,
        entry: &TableEntry,
        indirect: Indirect,
    ) -> Result<Key, TableError> {
        self.writable()?;
        let key = self.entry_key(entry)?;
        self.has_room_for(&key)?;
        let head = Head::naming(&key, Some(indirect));
        self.put(head, &key, &[], self.attached());
        Ok(key)
    }

    /// Puts such an entry in the place of another; gives that.
    pub fn replace_indirect(
        &mut self,
        entry: &TableEntry,
        indirect: Indirect,
    ) -> Result<Removed, TableError> {
        let (key, row) = self.changeable(entry)?;
        let old = self.copy(row);
        self.rows.set(row, Head::naming(&key, Some(indirect)), &[]);
        Ok(old)
    }

    /// What an entry names instead of an action.
    pub fn indirect(&self, entry: &TableEntry) -> Result<Option<Indirect>, TableError> {
        let row = self.row(&self.entry_key(entry)?)?;
        Ok(self.rows.head(row).indirect)
    }

    /// Whether an entry names it.
    pub fn names(&self, indirect: Indirect) -> bool {
        let mut rows = self.rows.iter();
        rows.any(|row| self.rows.head(row).indirect == Some(indirect))
    }

    /// The direct counter of an entry, or with `None` of the default action.
    pub fn counter(&mut self, key: Option<&Key>) -> Result<&mut CounterValue, TableError> {
        let Some(key) = key else {
            return Ok(&mut self.default_counter);
        };
        let row = self.row(key)?;
        Ok(self.attachments.counter_mut(row))
    }

    /// The direct meter of an entry, or with `None` of the default action.
    pub fn meter(&mut self, key: Option<&Key>) -> Result<&mut meter::Cell, TableError> {
        let Some(key) = key else {
            return Ok(&mut self.default_meter);
        };
        let row = self.row(key)?;
        Ok(&mut self.attachments.make_more(row).meter)
    }
}
