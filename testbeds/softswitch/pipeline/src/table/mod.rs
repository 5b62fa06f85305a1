//! Match-action tables.
//!
//! Entries are grouped by mask (tuple space search): one hash lookup a group, groups in order of their best rank, the
//! search ending as soon as no later group can win. A table of exact fields has one group. The rank is the priority
//! where the table wants one (P4Runtime: the largest wins), else the length of the LPM prefix.

pub mod attached;
mod idle;
pub mod key;
mod linear;
mod whole;

use crate::error::TableError;
use crate::exec::bits::mask as low_bits;
use crate::externs::counter::{CounterValue, Kind as CounterKind};
use crate::externs::meter;
use crate::externs::profile::Indirect;
use attached::Attached;
use hashbrown::HashMap;
use key::{FieldKey, FieldSpec, Kind};
use p4lang::runtime::{ActionCall, FieldMatch, TableEntry};
use std::cmp::Reverse;
use std::collections::BTreeMap;
pub use whole::{EntryAction, EntryState, EntryWrite, Note};

/// An action with its parameters as they lie in the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Index into the table's actions; `None` runs nothing.
    pub index: Option<u32>,
    /// Slots of all parameters.
    pub params: Box<[u64]>,
}

/// An action that a table offers.
#[derive(Debug, Clone)]
pub struct ActionSpec {
    /// Fully qualified.
    pub name: String,
    /// Parameters of the control plane: name and width in bits.
    pub params: Vec<(String, u32)>,
    /// `@defaultonly`
    pub default_only: bool,
    /// `@tableonly`
    pub table_only: bool,
}

/// A meter with a cell for each entry.
#[derive(Debug, Clone)]
pub struct DirectMeter {
    /// Fully qualified.
    pub name: String,
    /// Bytes rather than packets.
    pub bytes: bool,
    /// The program's values of green, yellow, red.
    pub colours: [u64; 3],
}

/// What a table is, apart from its entries.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Fully qualified.
    pub name: String,
    /// Key.
    pub fields: Vec<FieldSpec>,
    /// Actions in order.
    pub actions: Vec<ActionSpec>,
    /// `const default_action`
    pub const_default: bool,
    /// `const entries`
    pub const_entries: bool,
    /// Entries at most.
    pub size: u64,
    /// Its direct counter.
    pub direct_counter: Option<(String, CounterKind)>,
    /// The action profile or selector that its entries may name.
    pub implementation: Option<String>,
    /// Its direct meter.
    pub direct_meter: Option<DirectMeter>,
    /// Its entries may have a time after which the control plane is told that no packet found them.
    pub idle_timeout: bool,
}

impl Spec {
    /// Entries carry a priority.
    pub fn wants_priority(&self) -> bool {
        self.fields.iter().any(|f| f.kind.wants_priority())
    }
}

type EntryKey = (Reverse<i32>, Vec<FieldKey>);

#[derive(Debug, Clone)]
struct Entry {
    key: EntryKey,
    action: Bound,
    is_const: bool,
    /// In place of its action.
    indirect: Option<Indirect>,
    attached: Attached,
}

/// An entry taken out, to be put back as it was.
#[derive(Debug, Clone)]
pub struct Removed(Entry);

impl Removed {
    /// What it named instead of an action.
    pub fn indirect(&self) -> Option<Indirect> {
        self.0.indirect
    }
}

#[derive(Debug, Clone)]
struct Candidate {
    rank: i64,
    entry: u32,
}

#[derive(Debug, Clone)]
struct Group {
    mask: Box<[u64]>,
    /// Best first; ties by key, so that the order of insertion does not matter.
    by_value: HashMap<Box<[u64]>, Vec<Candidate>>,
    /// How many entries have each rank.
    ranks: BTreeMap<i64, u32>,
}

impl Group {
    fn best(&self) -> i64 {
        self.ranks
            .last_key_value()
            .map_or(i64::MIN, |(rank, _)| *rank)
    }
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it is.
    pub spec: Spec,
    default: Bound,
    initial_default: Bound,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    by_key: BTreeMap<EntryKey, u32>,
    groups: Vec<Group>,
    has_ranges: bool,
    /// Slot and width of each field in a key.
    places: Vec<(usize, u32)>,
    scratch: Vec<u64>,
    found: Option<u32>,
    default_counter: CounterValue,
    default_meter: meter::Cell,
    /// The control plane has written the default action.
    default_written: bool,
    idle: idle::Timers,
    /// Cells of direct registers.
    pub cells: attached::Cells,
}

impl Table {
    /// Without entries.
    pub fn new(spec: Spec, default: Bound) -> Table {
        let mut at = 0;
        let places = spec.fields.iter().map(|f| {
            at += f.slots() as usize;
            (at - f.slots() as usize, f.width)
        });
        Table {
            places: places.collect(),
            scratch: vec![0; at],
            has_ranges: spec.fields.iter().any(|f| f.kind == Kind::Range),
            initial_default: default.clone(),
            default,
            spec,
            entries: Vec::new(),
            free: Vec::new(),
            by_key: BTreeMap::new(),
            groups: Vec::new(),
            found: None,
            default_counter: CounterValue::default(),
            default_meter: meter::Cell::default(),
            default_written: false,
            idle: idle::Timers::default(),
            cells: attached::Cells::default(),
        }
    }

    /// Finds the entry for a key, or the default action; remembers it for the direct counter.
    #[inline]
    pub fn lookup(&mut self, key: &[u64]) -> (bool, &Bound) {
        let mut best: Option<(i64, u32)> = None;
        for group in &self.groups {
            if best.is_some_and(|(rank, _)| rank >= group.best()) {
                break;
            }
            for ((to, k), m) in self.scratch.iter_mut().zip(key).zip(&group.mask) {
                *to = k & m;
            }
            let Some(candidates) = group.by_value.get(self.scratch.as_slice()) else {
                continue;
            };
            for candidate in candidates {
                if best.is_some_and(|(rank, _)| rank >= candidate.rank) {
                    break;
                }
                if !self.has_ranges || self.in_ranges(candidate.entry, key) {
                    best = Some((candidate.rank, candidate.entry));
                    break;
                }
            }
        }
        self.found = best.map(|(_, entry)| entry);
        match self.found.and_then(|e| self.entries.get(e as usize)) {
            Some(Some(entry)) => (true, &entry.action),
            _ => (false, &self.default),
        }
    }

    fn in_ranges(&self, entry: u32, key: &[u64]) -> bool {
        let Some(Some(entry)) = self.entries.get(entry as usize) else {
            return false;
        };
        entry
            .key
            .1
            .iter()
            .zip(&self.places)
            .all(|(field, (slot, width))| match field {
                FieldKey::Masked { .. } => true,
                range => {
                    let high = if *width > 64 { key[slot + 1] } else { 0 };
                    range.matches(u128::from(key[*slot]) | u128::from(high) << 64)
                }
            })
    }

    /// Adds an entry.
    pub fn insert(&mut self, entry: &TableEntry) -> Result<(), TableError> {
        self.writable()?;
        let key = self.entry_key(entry)?;
        let action = self.bind(&entry.action, false)?;
        if self.by_key.contains_key(&key) {
            return Err(TableError::DuplicateEntry);
        }
        if self.by_key.len() as u64 >= self.spec.size {
            return Err(TableError::Full(self.spec.size));
        }
        self.put(Entry {
            key,
            action,
            is_const: false,
            indirect: None,
            attached: self.attached(),
        });
        Ok(())
    }

    /// Adds an entry of the source, which neither size nor `const` forbids.
    pub fn insert_initial(
        &mut self,
        key: Vec<FieldKey>,
        priority: i32,
        action: Bound,
        is_const: bool,
    ) -> Result<(), TableError> {
        let key = (
            Reverse(if self.spec.wants_priority() {
                priority
            } else {
                0
            }),
            key,
        );
        if self.by_key.contains_key(&key) {
            return Err(TableError::DuplicateEntry);
        }
        self.put(Entry {
            key,
            action,
            is_const,
            indirect: None,
            attached: self.attached(),
        });
        Ok(())
    }

    /// Changes an entry's action; gives what it was.
    pub fn modify(&mut self, entry: &TableEntry) -> Result<ActionCall, TableError> {
        self.writable()?;
        let key = self.entry_key(entry)?;
        let action = self.bind(&entry.action, false)?;
        let old = match self
            .by_key
            .get(&key)
            .and_then(|e| self.entries.get_mut(*e as usize))
        {
            Some(Some(entry)) if entry.is_const => return Err(TableError::ConstTable),
            Some(Some(entry)) => {
                entry.indirect = None;
                std::mem::replace(&mut entry.action, action)
            }
            _ => return Err(TableError::NotFound),
        };
        Ok(self.call(&old))
    }

    /// Takes an entry out; its action is not looked at.
    pub fn delete(&mut self, entry: &TableEntry) -> Result<Removed, TableError> {
        self.writable()?;
        let key = self.entry_key(entry)?;
        let index = *self.by_key.get(&key).ok_or(TableError::NotFound)?;
        if matches!(self.entries.get(index as usize), Some(Some(e)) if e.is_const) {
            return Err(TableError::ConstTable);
        }
        self.take(&key, index)
            .map(Removed)
            .ok_or(TableError::NotFound)
    }

    /// Puts back what was taken out.
    pub fn restore(&mut self, removed: Removed) {
        if let Some(index) = self.by_key.get(&removed.0.key).copied() {
            self.take(&removed.0.key, index);
        }
        self.put(removed.0);
    }

    /// All entries: highest priority first, then by key.
    pub fn entries(&self) -> impl Iterator<Item = TableEntry> + '_ {
        self.by_key
            .values()
            .filter_map(|e| self.entries.get(*e as usize)?.as_ref())
            .map(|entry| self.named(entry.key.0.0, &entry.key.1, entry.action.clone()))
    }

    fn named(&self, priority: i32, key: &[FieldKey], action: Bound) -> TableEntry {
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
            action: self.call(&action),
        }
    }

    /// The default action.
    pub fn default_action(&self) -> ActionCall {
        self.call(&self.default)
    }

    /// Sets the default action, or with `None` the one of the source; gives what it was.
    pub fn set_default(&mut self, action: Option<&ActionCall>) -> Result<ActionCall, TableError> {
        if self.spec.const_default {
            return Err(TableError::ConstTable);
        }
        let written = action.is_some();
        let action = match action {
            Some(action) => self.bind(action, true)?,
            None => self.initial_default.clone(),
        };
        self.default_written = written;
        let old = std::mem::replace(&mut self.default, action);
        Ok(self.call(&old))
    }

    fn writable(&self) -> Result<(), TableError> {
        if self.spec.const_entries {
            Err(TableError::ConstTable)
        } else {
            Ok(())
        }
    }

    fn entry_key(&self, entry: &TableEntry) -> Result<EntryKey, TableError> {
        if self.spec.wants_priority() != (entry.priority > 0) || entry.priority < 0 {
            return Err(TableError::BadPriority(entry.priority));
        }
        for (i, field) in entry.key.iter().enumerate() {
            if !self.spec.fields.iter().any(|spec| spec.name == field.field) {
                return Err(TableError::NoSuchField(field.field.clone()));
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
        let fields = self
            .spec
            .fields
            .iter()
            .map(field)
            .collect::<Result<_, _>>()?;
        Ok((Reverse(entry.priority), fields))
    }

    /// An action with its parameters as slots.
    pub fn bind(&self, call: &ActionCall, as_default: bool) -> Result<Bound, TableError> {
        let no_action = || TableError::NoSuchAction(call.name.clone());
        let Some(index) = self.spec.actions.iter().position(|a| a.name == call.name) else {
            // Every table may do nothing on a miss.
            if as_default && call.name == "NoAction" && call.params.is_empty() {
                return Ok(Bound {
                    index: None,
                    params: Box::default(),
                });
            }
            return Err(no_action());
        };
        let action = &self.spec.actions[index];
        if if as_default {
            action.table_only
        } else {
            action.default_only
        } {
            return Err(no_action());
        }
        if let Some((name, _)) = call
            .params
            .iter()
            .find(|(n, _)| !action.params.iter().any(|(p, _)| p == n))
        {
            return Err(TableError::NoSuchParam(name.clone()));
        }
        let mut params = Vec::new();
        for (name, width) in &action.params {
            let (_, value) = call
                .params
                .iter()
                .find(|(n, _)| n == name)
                .ok_or_else(|| TableError::MissingParam(name.clone()))?;
            if *width < 128 && value >> width != 0 {
                return Err(TableError::ValueTooWide(name.clone()));
            }
            params.push(*value as u64);
            if *width > 64 {
                params.push((value >> 64) as u64);
            }
        }
        Ok(Bound {
            index: Some(index as u32),
            params: params.into(),
        })
    }

    fn call(&self, bound: &Bound) -> ActionCall {
        let Some(action) = bound.index.and_then(|i| self.spec.actions.get(i as usize)) else {
            return ActionCall {
                name: "NoAction".into(),
                params: Vec::new(),
            };
        };
        let mut slots = bound.params.iter().copied();
        let mut value = |width: u32| {
            let low = slots.next().unwrap_or(0);
            let high = if width > 64 {
                slots.next().unwrap_or(0)
            } else {
                0
            };
            u128::from(low) | u128::from(high) << 64
        };
        ActionCall {
            name: action.name.clone(),
            params: action
                .params
                .iter()
                .map(|(n, w)| (n.clone(), value(*w)))
                .collect(),
        }
    }

    fn rank(&self, key: &EntryKey) -> i64 {
        if self.spec.wants_priority() {
            return key.0.0.into();
        }
        let lpm = self
            .spec
            .fields
            .iter()
            .zip(&key.1)
            .find(|(spec, _)| spec.kind == Kind::Lpm);
        match lpm {
            Some((_, FieldKey::Masked { mask, .. })) => mask.count_ones().into(),
            _ => 0,
        }
    }

    /// Mask and masked value of a key, slot by slot; ranges match anything here.
    fn masked(&self, key: &[FieldKey]) -> (Box<[u64]>, Box<[u64]>) {
        let (mut masks, mut values) = (Vec::new(), Vec::new());
        for (spec, field) in self.spec.fields.iter().zip(key) {
            let (value, mask) = match *field {
                FieldKey::Masked { value, mask } => (value, mask),
                FieldKey::Range { .. } => (0, 0),
            };
            masks.push(mask as u64 & low_bits(spec.width));
            values.push(value as u64);
            if spec.width > 64 {
                masks.push((mask >> 64) as u64);
                values.push((value >> 64) as u64);
            }
        }
        (masks.into(), values.into())
    }

    fn put(&mut self, entry: Entry) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as u32
        });
        let (mask, value) = self.masked(&entry.key.1);
        let rank = self.rank(&entry.key);
        let at = self
            .groups
            .iter()
            .position(|g| g.mask == mask)
            .unwrap_or_else(|| {
                self.groups.push(Group {
                    mask,
                    by_value: HashMap::new(),
                    ranks: BTreeMap::new(),
                });
                self.groups.len() - 1
            });
        *self.groups[at].ranks.entry(rank).or_default() += 1;
        let entries = &self.entries;
        let before = |candidate: &Candidate| {
            let key = entries
                .get(candidate.entry as usize)
                .and_then(Option::as_ref)
                .map(|e| &e.key);
            (Reverse(candidate.rank), key) < (Reverse(rank), Some(&entry.key))
        };
        let candidates = self.groups[at].by_value.entry(value).or_default();
        let place = candidates.partition_point(before);
        candidates.insert(place, Candidate { rank, entry: index });
        self.by_key.insert(entry.key.clone(), index);
        self.entries[index as usize] = Some(entry);
        self.sort_groups();
        self.start_timer(index);
    }

    fn take(&mut self, key: &EntryKey, index: u32) -> Option<Entry> {
        self.by_key.remove(key)?;
        self.stop_timer(index);
        let entry = self.entries.get_mut(index as usize)?.take()?;
        self.free.push(index);
        self.cells.forget(index);
        self.found = None;
        let (mask, value) = self.masked(&key.1);
        let rank = self.rank(key);
        let at = self.groups.iter().position(|g| g.mask == mask)?;
        let group = &mut self.groups[at];
        if let Some(candidates) = group.by_value.get_mut(&value) {
            candidates.retain(|c| c.entry != index);
            if candidates.is_empty() {
                group.by_value.remove(&value);
            }
        }
        if let Some(n) = group.ranks.get_mut(&rank) {
            *n -= 1;
            if *n == 0 {
                group.ranks.remove(&rank);
            }
        }
        if group.ranks.is_empty() {
            self.groups.remove(at);
        }
        self.sort_groups();
        Some(entry)
    }

    fn sort_groups(&mut self) {
        if self.groups.len() > 1 {
            self.groups
                .sort_by(|a, b| b.best().cmp(&a.best()).then_with(|| a.mask.cmp(&b.mask)));
        }
    }
}

#[cfg(test)]
mod tests;
