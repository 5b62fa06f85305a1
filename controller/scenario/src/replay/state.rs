//! The state of a switch's fault units and triggers, after all packets so far.

use std::hash::{Hash, Hasher};

use super::progress::Followed;
use super::slots::Slots;
use crate::model::selection::Cell;

/// The contents of all register cells of a switch: those of fault units and triggers, for flows and for keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// For each fault and flow: the number of packets so far, and the state of a Gilbert-Elliott channel.
    pub(super) cells: Vec<Cell>,
    /// For each cell in `cells`: time in nanoseconds when the last held packet is due, for units that keep the packets' order.
    pub(super) due_ns: Vec<u64>,
    /// State of each trigger of the switch.
    pub(super) followed: Vec<Followed>,
    /// For each unit that numbers the packets of each key separately: the cells of its keys.
    pub(super) slots: Vec<Slots<Cell>>,
}

/// The hash leaves out the cells of keys, because hashing a whole table takes long. Equality does compare them.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.cells.hash(hasher);
        self.due_ns.hash(hasher);
        self.followed.hash(hasher);
    }
}

impl State {
    /// Adds the register cell for a fault and flow, and returns its index.
    pub(super) fn add_cell(&mut self) -> usize {
        self.cells.push(Cell::default());
        self.due_ns.push(0);
        self.cells.len() - 1
    }

    /// Sets all `count` triggers of the switch to their initial state.
    pub(super) fn await_triggers(&mut self, count: usize) {
        self.followed = vec![Followed::default(); count];
    }

    /// Adds an empty table of cells for the keys of one fault unit, and returns the table's index.
    pub(super) fn add_slots(&mut self) -> usize {
        self.slots.push(Slots::default());
        self.slots.len() - 1
    }
}
