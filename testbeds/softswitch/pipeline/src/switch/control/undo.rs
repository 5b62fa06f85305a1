//! The record of an open batch: the inverse of each write.

use crate::externs::counter::{Counter, CounterValue};
use crate::externs::meter::{Meter, MeterCell};
use crate::externs::register::Bank;
use crate::switch::{Noted, Switch};
use crate::table::key::FieldKey;
use crate::table::profile::{OldGroup, OldMember, OldOneShot};
use crate::table::{Bound, Key, Note, Removed};
use p4lang::runtime::{CloneSession, MulticastGroup};

/// The inverse of a write.
#[derive(Debug)]
pub(crate) enum Undo {
    Inserted(usize, Key),
    /// An entry was removed or changed.
    Deleted(usize, Removed),
    /// A whole entry was inserted: table, priority, key.
    Whole(usize, i32, Vec<FieldKey>),
    DefaultDirect(usize, CounterValue, MeterCell),
    /// `None`: it did not exist.
    OneShot(usize, u32, Option<OldOneShot>),
    /// The action, and whether the control plane had written it.
    Default(usize, Bound, bool),
    Group(u32, Option<MulticastGroup>),
    Session(u32, Option<CloneSession>),
    Cells(OldCells),
    DirectCounter(usize, Option<Key>, CounterValue),
    DirectMeter(usize, Option<Key>, MeterCell),
    ValueSet(usize, Vec<Vec<FieldKey>>),
    Member(usize, u32, OldMember),
    ProfileGroup(usize, u32, OldGroup),
    Note(Noted, Option<Note>),
}

/// The previous values of cells, for rolling back a write: one for each pipe, starting with the state's. No packet comes
/// between a write and its rollback, so the pipes are the same.
#[derive(Debug)]
pub(crate) enum OldCells {
    /// Bank, first word in a row, row.
    Register(usize, u32, u64, Vec<Vec<u64>>),
    Registers(usize, Vec<Bank>),
    Counter(usize, usize, Vec<CounterValue>),
    Counters(usize, Vec<Counter>),
    Meter(usize, u64, Vec<MeterCell>),
    Meters(usize, Vec<Meter>),
}

impl Switch {
    /// Records the inverse of a write, if a batch is open; `undo` is not called otherwise.
    pub(crate) fn record(&mut self, undo: impl FnOnce() -> Undo) {
        if let Some(batch) = &mut self.undo {
            batch.push(undo());
        }
    }

    /// Whether a batch is open, so that replaced values must be kept.
    pub(crate) fn is_recording(&self) -> bool {
        self.undo.is_some()
    }
}
