//! The record of an open batch: for each write, the data to undo it.

use crate::externs::counter::{Counter, CounterValue};
use crate::externs::meter::{Meter, MeterCell};
use crate::externs::register::Bank;
use crate::switch::{Noted, Switch};
use crate::table::key::FieldKey;
use crate::table::profile::{OldGroup, OldMember, OldOneShot};
use crate::table::{Bound, Key, Note, Removed};
use p4lang::runtime::{CloneSession, MulticastGroup};

/// The data to undo a write of the control plane.
#[derive(Debug)]
pub(crate) enum Undo {
    Inserted(usize, Key),
    /// Undoes the removal or change of a table entry: index of the table, previous entry.
    Deleted(usize, Removed),
    /// Undoes the insertion of a whole table entry: index of the table, priority, key.
    Whole(usize, i32, Vec<FieldKey>),
    DefaultDirect(usize, CounterValue, MeterCell),
    /// Undoes a change of an entry's one-shot actions: profile index, their number, previous actions; `None`: there were none.
    OneShot(usize, u32, Option<OldOneShot>),
    /// Undoes a write of a default action: table index, previous action, whether that was written by the control plane.
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

/// The values of cells before a write, to undo the write: one for each pipe, pipe 0 first. No packet comes between a write and
/// its rollback, so the pipes are the same then.
#[derive(Debug)]
pub(crate) enum OldCells {
    /// A register's cell: index of its memory bank, first word in a row, index of the row; the cell's words in each pipe.
    Register(usize, u32, u64, Vec<Vec<u64>>),
    Registers(usize, Vec<Bank>),
    Counter(usize, usize, Vec<CounterValue>),
    Counters(usize, Vec<Counter>),
    Meter(usize, u64, Vec<MeterCell>),
    Meters(usize, Vec<Meter>),
}

impl Switch {
    /// Records the data to undo a write, if a batch is open; otherwise does not call `undo`.
    pub(crate) fn record(&mut self, undo: impl FnOnce() -> Undo) {
        if let Some(batch) = &mut self.undo {
            batch.push(undo());
        }
    }

    /// Whether a batch is open, so that writes must keep the values that they replace.
    pub(crate) fn is_recording(&self) -> bool {
        self.undo.is_some()
    }
}
