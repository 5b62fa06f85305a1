//! Match-action tables.
//!
//! ```text
//! Table             what the control plane writes, what the data plane looks up
//! key, packing      a field's match in canonical form; a key as dense words
//! rows              all entries in one arena, and an index by whole key
//! index/            structures that find the row for a key: trie, bit vectors, tuple space …
//! attached, idle    counters, meters, timers, members and groups that entries have
//! cells             Tofino's direct registers
//! whole             entries with all that P4Runtime knows of them, by position
//! ```
//!
//! If several entries match, the one with the largest rank wins: the priority if the table has priorities (P4Runtime),
//! else the length of the LPM prefix. Of equal ones the first in the listing wins, whatever the order of insertion
//! ([`Rows::order`]).

mod action;
mod attached;
pub mod cells;
mod idle;
mod index;
pub mod key;
mod linear;
mod packing;
pub mod profile;
mod rows;
mod spec;
pub mod value_set;
mod whole;

pub use action::{Action, Bound};
pub use attached::{Note, Removed};
pub use packing::{KeyPlan, MAX_WORDS};
pub use rows::Index;
pub use spec::{ActionSpec, DirectMeter, Spec};
pub use whole::{DirectChange, EntryAction, EntryState, EntryWrite};

use crate::bits::Slot;
use crate::error::TableError;
use crate::externs::counter::CounterValue;
use crate::externs::meter;
use attached::{Attached, Attachments};
use index::Structure;
use key::{FieldKey, FieldSpec, Kind};
use p4lang::runtime::{ActionCall, FieldMatch, TableEntry};
use packing::Packing;
use rows::{Head, MAX_ROWS, Rows};
use std::cmp::Reverse;

#[derive(Debug, Clone)]
pub struct Table {
    /// The table's declaration.
    pub spec: Spec,
    default: Bound,
    initial_default: Bound,
    rows: Rows,
    structure: Structure,
    /// For each action, the number of slots of its parameters.
    action_slots: Vec<usize>,
    attachments: Attachments,
    /// Cells of the table's direct registers (Tofino).
    pub cells: cells::EntryCells,
    default_counter: CounterValue,
    default_meter: meter::MeterCell,
    /// Whether the control plane has written the default action.
    default_written: bool,
    idle: idle::Timers,
}

/// Rank and packed key of a table entry, which together identify it. (Rank: the priority, or the length of the prefix.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    rank: i32,
    words: Vec<u64>,
}

impl Head {
    /// The head of the row for a table entry that has an action of its own.
    fn running(key: &Key, action: &Bound) -> Head {
        Head {
            rank: key.rank,
            action: action.index,
            is_const: false,
            indirect: None,
        }
    }
}

impl Table {
    /// Creates an empty table. Its key may have at most [`MAX_WORDS`] · 64 bits.
    pub fn new(spec: Spec, default: Bound) -> Table {
        let action_slots: Vec<usize> = spec.actions.iter().map(ActionSpec::slots).collect();
        // The number of a member or group takes one slot.
        let named = usize::from(spec.implementation.is_some());
        let params = action_slots.iter().copied().max().unwrap_or(0).max(named);
        let exact = spec.fields.iter().all(|f| f.kind == Kind::Exact);
        Table {
            rows: Rows::new(Packing::new(&spec.fields), exact, params),
            structure: Structure::new(&spec.fields),
            attachments: Attachments::new(spec.direct_counter.is_some()),
            cells: cells::EntryCells::default(),
            initial_default: default.clone(),
            default,
            action_slots,
            spec,
            default_counter: CounterValue::default(),
            default_meter: meter::MeterCell::default(),
            default_written: false,
            idle: idle::Timers::default(),
        }
    }

    /// The plan to pack a key whose fields start at these slots.
    pub fn key_plan(&self, slots: &[Slot]) -> KeyPlan {
        self.rows.packing.plan(slots)
    }

    /// Finds the row of the table entry that matches a key in the frame; `None` if no entry matches.
    #[inline(always)]
    pub fn lookup(&self, frame: &[u64], key: &KeyPlan) -> Option<Index> {
        match self.rows.packing.words {
            1 => self.structure.find(&self.rows, &key.pack::<1>(frame)),
            words => self.lookup_words(frame, key, words),
        }
    }

    /// Finds the entry for a key of several words. A separate function, so that short keys do not pay for long ones' memory.
    #[inline(never)]
    fn lookup_words(&self, frame: &[u64], key: &KeyPlan, words: usize) -> Option<Index> {
        match words {
            2 => self.structure.find(&self.rows, &key.pack::<2>(frame)),
            n @ ..=8 => self.structure.find(&self.rows, &key.pack::<8>(frame)[..n]),
            n => self
                .structure
                .find(&self.rows, &key.pack::<MAX_WORDS>(frame)[..n]),
        }
    }

    /// The action of the found entry, or the default action if no entry was found.
    #[inline]
    pub fn action(&self, found: Option<Index>) -> Action<'_> {
        match found {
            Some(row) => self.rows.action(row, &self.action_slots),
            None => self.default.as_action(),
        }
    }

    /// Adds a table entry; returns its rank and packed key.
    pub fn insert(&mut self, entry: &TableEntry) -> Result<Key, TableError> {
        self.writable()?;
        let key = self.entry_key(entry)?;
        let action = self.bind(&entry.action, false)?;
        self.has_room_for(&key)?;
        let head = Head::running(&key, &action);
        self.put(head, &key, &action.params, self.attached());
        Ok(key)
    }

    /// Removes an entry that was just added, to undo the addition.
    pub fn take_back(&mut self, key: &Key) {
        if let Ok(row) = self.row(key) {
            self.take(row);
        }
    }

    /// Checks that no entry has this key, and that the table is not full.
    fn has_room_for(&self, key: &Key) -> Result<(), TableError> {
        if self.rows.find(key.rank, &key.words).is_some() {
            return Err(TableError::DuplicateEntry);
        }
        if self.rows.len() as u64 >= self.spec.size.min(MAX_ROWS as u64) {
            return Err(TableError::Full(self.spec.size));
        }
        Ok(())
    }

    fn put(&mut self, head: Head, key: &Key, params: &[u64], attached: Attached) {
        let row = self.rows.add(head, &key.words, params);
        self.join(row, attached);
    }

    /// Adds a new row to the search structure and sets its attached data.
    fn join(&mut self, row: Index, attached: Attached) {
        self.attachments.set(row, attached);
        self.structure.insert(&self.rows, row);
        self.start_timer(row);
    }

    /// Adds an entry that the program's source declares, to which neither the size limit nor `const` applies.
    pub fn insert_initial(
        &mut self,
        key: Vec<FieldKey>,
        priority: i32,
        action: Bound,
        is_const: bool,
    ) -> Result<(), TableError> {
        let key = self.packed(&key, priority);
        if self.rows.find(key.rank, &key.words).is_some() {
            return Err(TableError::DuplicateEntry);
        }
        let head = Head {
            is_const,
            ..Head::running(&key, &action)
        };
        self.put(head, &key, &action.params, self.attached());
        Ok(())
    }

    /// Changes the action of a table entry; returns the previous entry.
    pub fn modify(&mut self, entry: &TableEntry) -> Result<Removed, TableError> {
        let (key, row) = self.changeable(entry)?;
        let action = self.bind(&entry.action, false)?;
        let old = self.copy(row);
        self.rows
            .set(row, Head::running(&key, &action), &action.params);
        Ok(old)
    }

    /// The key and row of the table entry with the key of `entry`, which must exist and not be constant.
    fn changeable(&self, entry: &TableEntry) -> Result<(Key, Index), TableError> {
        self.writable()?;
        let key = self.entry_key(entry)?;
        let row = self.row(&key)?;
        if self.rows.head(row).is_const {
            return Err(TableError::ConstTable);
        }
        Ok((key, row))
    }

    /// Removes a table entry; the action in `entry` is ignored.
    pub fn delete(&mut self, entry: &TableEntry) -> Result<Removed, TableError> {
        let (_, row) = self.changeable(entry)?;
        Ok(self.take(row))
    }

    fn row(&self, key: &Key) -> Result<Index, TableError> {
        let row = self.rows.find(key.rank, &key.words);
        row.ok_or(TableError::NotFound)
    }

    fn take(&mut self, row: Index) -> Removed {
        self.stop_timer(row);
        self.structure.remove(&self.rows, row);
        let removed = self.copy(row);
        self.rows.take(row);
        self.cells.forget(row);
        removed
    }

    /// A copy of an entry with its data, so that the entry can be restored.
    fn copy(&self, row: Index) -> Removed {
        Removed {
            indirect: self.rows.head(row).indirect,
            attached: self.attachments.row(row),
            row: self.rows.copy(row),
        }
    }

    /// Restores an entry that was removed or changed.
    pub fn restore(&mut self, removed: Removed) {
        if let Some(row) = self.rows.find_like(&removed.row) {
            self.take(row);
        }
        let row = self.rows.put_back(&removed.row);
        self.join(row, removed.attached);
    }

    /// All entries of the table, sorted by priority, the highest first, then by key.
    pub fn entries(&self) -> impl Iterator<Item = TableEntry> + '_ {
        let of = |row| (Reverse(self.priority(row)), self.fields(row), row);
        let mut listed: Vec<_> = self.rows.iter().map(of).collect();
        listed.sort_unstable();
        listed
            .into_iter()
            .map(|(priority, key, row)| self.named(priority.0, &key, self.action(Some(row))))
    }

    fn named(&self, priority: i32, key: &[FieldKey], action: Action) -> TableEntry {
        let field = |(spec, key): (&FieldSpec, &FieldKey)| {
            Some(FieldMatch {
                field: spec.name.clone(),
                value: key::to_match(spec, key)?,
            })
        };
        TableEntry {
            table: self.spec.name.clone(),
            key: self.spec.fields.iter().zip(key).filter_map(field).collect(),
            priority,
            action: self.spec.call(action),
        }
    }

    /// The key of an entry in canonical form, field by field.
    fn fields(&self, row: Index) -> Vec<FieldKey> {
        let masks = self.rows.masks(row);
        let masks = (!masks.is_empty()).then_some(masks);
        self.rows.packing.unpack(self.rows.values(row), masks)
    }

    fn priority(&self, row: Index) -> i32 {
        if self.spec.wants_priority() {
            self.rows.rank(row)
        } else {
            0
        }
    }

    pub fn default_action(&self) -> ActionCall {
        self.spec.call(self.default.as_action())
    }

    /// Sets the default action, or restores the source's default action for `None`; returns the previous one.
    pub fn set_default(&mut self, action: Option<&ActionCall>) -> Result<Bound, TableError> {
        if self.spec.const_default {
            return Err(TableError::ConstTable);
        }
        let written = action.is_some();
        let action = match action {
            Some(action) => self.bind(action, true)?,
            None => self.initial_default.clone(),
        };
        self.default_written = written;
        Ok(std::mem::replace(&mut self.default, action))
    }

    /// Restores a previous default action, and whether the control plane had written it.
    pub fn restore_default(&mut self, action: Bound, written: bool) {
        (self.default, self.default_written) = (action, written);
    }

    /// Converts an action call with named parameters to slots.
    pub fn bind(&self, call: &ActionCall, as_default: bool) -> Result<Bound, TableError> {
        self.spec.bind(call, as_default)
    }

    fn writable(&self) -> Result<(), TableError> {
        if self.spec.const_entries {
            Err(TableError::ConstTable)
        } else {
            Ok(())
        }
    }

    /// The rank and packed key of an entry whose fields are given by name.
    pub fn entry_key(&self, entry: &TableEntry) -> Result<Key, TableError> {
        let fields = self.entry_fields(entry)?;
        Ok(self.packed(&fields, entry.priority))
    }

    fn entry_fields(&self, entry: &TableEntry) -> Result<Vec<FieldKey>, TableError> {
        if self.spec.wants_priority() != (entry.priority > 0) || entry.priority < 0 {
            return Err(TableError::BadPriority(entry.priority));
        }
        for (i, field) in entry.key.iter().enumerate() {
            if !self.spec.fields.iter().any(|spec| spec.name == field.field) {
                let known = self.spec.fields.iter().map(|spec| spec.name.clone());
                return Err(TableError::NoSuchField(
                    field.field.clone(),
                    known.collect(),
                ));
            }
            if entry.key[..i]
                .iter()
                .any(|before| before.field == field.field)
            {
                return Err(TableError::FieldTwice(field.field.clone()));
            }
        }
        let field = |spec: &FieldSpec| match entry.key.iter().find(|f| f.field == spec.name) {
            Some(given) => key::field_key(spec, &given.value),
            None => key::dont_care(spec),
        };
        self.spec.fields.iter().map(field).collect()
    }

    fn packed(&self, fields: &[FieldKey], priority: i32) -> Key {
        let prefix_len = || {
            let mut fields = self.spec.fields.iter().zip(fields);
            match fields.find(|(spec, _)| spec.kind == Kind::Lpm) {
                Some((_, FieldKey::Masked { mask, .. })) => mask.count_ones() as i32,
                _ => 0,
            }
        };
        let exact = self.spec.fields.iter().all(|f| f.kind == Kind::Exact);
        let mut words = Vec::with_capacity(2 * self.rows.packing.words);
        self.rows.packing.pack_entry(fields, !exact, &mut words);
        Key {
            rank: if self.spec.wants_priority() {
                priority
            } else {
                prefix_len()
            },
            words,
        }
    }
}

#[cfg(test)]
mod tests;
