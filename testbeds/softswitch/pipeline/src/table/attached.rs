//! Data attached to table entries: counters, meters, idle timers, notes, and references to members or groups.

use super::idle::Timer;
use super::rows::{Head, Index, Row};
use super::{DirectMeter, Key, Table};
use crate::error::TableError;
use crate::externs::counter::CounterValue;
use crate::externs::meter;
use crate::table::profile::Indirect;
use p4lang::runtime::TableEntry;

/// The data of a table entry besides key and action. The rare part of the data is separate, so that large tables stay small.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attached {
    pub counter: CounterValue,
    pub more: Option<Box<More>>,
}

/// The rare part of a table entry's data: exists if the table has a direct meter or idle timeouts, or the entry a note.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct More {
    pub meter: meter::MeterCell,
    pub timer: Timer,
    pub note: Note,
}

/// Data that a control plane client attaches to a table entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    /// Opaque bytes: P4Runtime's `metadata`.
    pub metadata: Vec<u8>,
    /// An opaque number: P4Runtime's `controller_metadata`, the older form of a note.
    pub number: u64,
}

impl Attached {
    /// The rare part of the table entry's data, created if it is missing.
    pub fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }
}

/// Attached data of a table's entries, by row number. It extends only to the last row that has needed it: a table without such
/// data takes no memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachments {
    /// Whether each row has a direct counter.
    counts: bool,
    counters: Vec<CounterValue>,
    more: Vec<Option<Box<More>>>,
}

impl Attachments {
    /// Creates the attached data of a table without entries.
    pub fn new(counts: bool) -> Attachments {
        Attachments {
            counts,
            counters: Vec::new(),
            more: Vec::new(),
        }
    }

    pub fn set(&mut self, row: Index, attached: Attached) {
        let at = row as usize;
        if self.counts || at < self.counters.len() || attached.counter != CounterValue::default() {
            *self.counter_mut(row) = attached.counter;
        }
        if at < self.more.len() || attached.more.is_some() {
            *cell(&mut self.more, row) = attached.more;
        }
    }

    pub fn row(&self, row: Index) -> Attached {
        Attached {
            counter: self.counter(row),
            more: self.more.get(row as usize).cloned().flatten(),
        }
    }

    pub fn counter(&self, row: Index) -> CounterValue {
        let cell = self.counters.get(row as usize);
        cell.copied().unwrap_or_default()
    }

    /// The direct counter of a row, mutable.
    #[inline]
    pub fn counter_mut(&mut self, row: Index) -> &mut CounterValue {
        cell(&mut self.counters, row)
    }

    /// The rare part of a row's data; `None` if it does not exist.
    pub fn more(&self, row: Index) -> Option<&More> {
        self.more.get(row as usize)?.as_deref()
    }

    /// The rare part of a row's data, mutable; `None` if it does not exist.
    pub fn more_mut(&mut self, row: Index) -> Option<&mut More> {
        self.more.get_mut(row as usize)?.as_deref_mut()
    }

    /// The rare part of a row's data, created if it is missing.
    pub fn make_more(&mut self, row: Index) -> &mut More {
        cell(&mut self.more, row).get_or_insert_default()
    }
}

/// The element of a row in a list, which is extended if it is too short.
fn cell<T: Clone + Default>(cells: &mut Vec<T>, row: Index) -> &mut T {
    if cells.len() <= row as usize {
        cells.resize(row as usize + 1, T::default());
    }
    &mut cells[row as usize]
}

/// A removed table entry with its data, which can be restored.
#[derive(Debug, Clone)]
pub struct Removed {
    pub(super) row: Row,
    pub(super) indirect: Option<Indirect>,
    pub(super) attached: Attached,
}

impl Removed {
    /// The member or group that the entry referred to; `None` if it had an action of its own.
    pub fn indirect(&self) -> Option<Indirect> {
        self.indirect
    }
}

impl Head {
    /// The head of a table entry that refers to a member or group.
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
    /// The initial data of a new entry of this table, without counts.
    pub(super) fn attached(&self) -> Attached {
        let more = self.spec.direct_meter.is_some() || self.spec.idle_timeout;
        Attached {
            counter: CounterValue::default(),
            more: more.then(Box::default),
        }
    }

    /// The member or group that the found entry refers to; `None` if there is none.
    pub fn found_indirect(&self, found: Option<Index>) -> Option<Indirect> {
        self.rows.head(found?).indirect
    }

    /// Counts a packet in the direct counter of the found entry, or of the default action if none was found.
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

    /// Marks a packet with color `colour` (a value of the program) with the meter of the found entry; returns the new color.
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

    /// Adds an entry that refers to a member or group of the profile; the action in `entry` is ignored.
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

    /// Replaces an entry by an entry that refers to a member or group; returns the previous entry.
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

    /// The member or group that a table entry refers to; `None` if it has an action of its own.
    pub fn indirect(&self, entry: &TableEntry) -> Result<Option<Indirect>, TableError> {
        let row = self.row(&self.entry_key(entry)?)?;
        Ok(self.rows.head(row).indirect)
    }

    /// Whether any entry of the table refers to a member or group.
    pub fn names(&self, indirect: Indirect) -> bool {
        let mut rows = self.rows.iter();
        rows.any(|row| self.rows.head(row).indirect == Some(indirect))
    }

    /// The direct counter of a table entry, or of the default action for `None`.
    pub fn counter(&mut self, key: Option<&Key>) -> Result<&mut CounterValue, TableError> {
        let Some(key) = key else {
            return Ok(&mut self.default_counter);
        };
        let row = self.row(key)?;
        Ok(self.attachments.counter_mut(row))
    }

    /// The direct meter of a table entry, or of the default action for `None`.
    pub fn meter(&mut self, key: Option<&Key>) -> Result<&mut meter::MeterCell, TableError> {
        let Some(key) = key else {
            return Ok(&mut self.default_meter);
        };
        let row = self.row(key)?;
        Ok(&mut self.attachments.make_more(row).meter)
    }
}
