//! The state of a switch's fault units after the packets so far.

use std::hash::{Hash, Hasher};

use super::progress::Followed;
use super::slots::Slots;
use crate::model::selection::Cell;

/// Contents of the units' cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Ordinals and channel states.
    pub(super) cells: Vec<Cell>,
    /// By cell, the time at which the last held packet is due, in nanoseconds, if packets keep their order.
    pub(super) due_ns: Vec<u64>,
    /// State of each trigger.
    pub(super) followed: Vec<Followed>,
    /// Cells of the keys, by unit that numbers keys.
    pub(super) slots: Vec<Slots<Cell>>,
}

/// The hash omits the keys' cells: hashing a table takes long, and states that differ only there are compared by value.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.cells.hash(hasher);
        self.due_ns.hash(hasher);
        self.followed.hash(hasher);
    }
}

impl State {
    /// Adds a cell and returns its index.
    pub(super) fn add_cell(&mut self) -> usize {
        self.cells.push(Cell::default());
        self.due_ns.push(0);
        self.cells.len() - 1
    }

    /// Creates the initial state of `count` triggers.
    pub(super) fn await_triggers(&mut self, count: usize) {
        self.followed = vec![Followed::default(); count];
    }

    /// Adds a table for one unit's keys and returns its index.
    pub(super) fn add_slots(&mut self) -> usize {
        self.slots.push(Slots::default());
        self.slots.len() - 1
    }
}
