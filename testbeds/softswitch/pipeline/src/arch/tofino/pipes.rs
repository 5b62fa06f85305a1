//! Keeps the cells of registers, counters and meters for each pipe of a Tofino on which all pipes run one pipeline.
//!
//! The cells of pipe 0 are in the switch's state, where the control plane finds them. Another pipe's cells are swapped in while
//! it runs.

use crate::externs::counter::CounterValue;
use crate::port_numbers::PIPES;
use crate::state::{Cells, State};

/// The cells of all pipes but pipe 0. Empty if each pipe has its own pipeline.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    /// Cells for pipes that no packet has passed so far: initial values and writes of the control plane.
    fresh: Option<Cells>,
    others: [Option<Cells>; PIPES as usize - 1],
}

impl Pipes {
    /// Prepares a copy of the program's initial cells for each pipe.
    pub(crate) fn replicated(state: &State) -> Pipes {
        Pipes {
            fresh: Some(state.cells.clone()),
            others: Default::default(),
        }
    }

    /// Swaps a pipe's cells into the state, before a packet passes the pipe.
    pub(crate) fn enter(&mut self, state: &mut State, pipe: u32) {
        let (Some(fresh), Some(other)) = (&self.fresh, (pipe as usize).checked_sub(1)) else {
            return;
        };
        if let Some(other) = self.others.get_mut(other) {
            let other = other.get_or_insert_with(|| fresh.clone());
            std::mem::swap(other, &mut state.cells);
        }
    }

    /// Swaps the cells of pipe 0 back into the state, after a packet has passed the pipe.
    pub(crate) fn leave(&mut self, state: &mut State, pipe: u32) {
        let Some(other) = (pipe as usize).checked_sub(1) else {
            return;
        };
        if let Some(Some(other)) = self.others.get_mut(other) {
            std::mem::swap(other, &mut state.cells);
        }
    }

    /// Pairs the cells of each pipe but pipe 0 with those of the same pipe in `old`.
    pub(crate) fn beside<'a>(
        &'a mut self,
        old: &'a Pipes,
    ) -> impl Iterator<Item = (&'a mut Cells, &'a Cells)> {
        if let Some(fresh) = &self.fresh {
            for (mine, other) in self.others.iter_mut().zip(&old.others) {
                if other.is_some() && mine.is_none() {
                    *mine = Some(fresh.clone());
                }
            }
        }
        let others = self.others.iter_mut().zip(&old.others);
        let both = std::iter::once((&mut self.fresh, &old.fresh)).chain(others);
        both.filter_map(|(mine, other)| mine.as_mut().zip(other.as_ref()))
    }

    /// The cells of all pipes but pipe 0, so that the control plane can write to every pipe.
    pub(crate) fn each(&mut self) -> impl Iterator<Item = &mut Cells> {
        let others = self.others.iter_mut().flatten();
        self.fresh.iter_mut().chain(others)
    }

    /// The cells of one pipe; `None` for pipe 0, or if the pipes have no separate cells.
    pub(crate) fn other(&self, pipe: u32) -> Option<&Cells> {
        let other = self.others.get((pipe as usize).checked_sub(1)?)?;
        other.as_ref().or(self.fresh.as_ref())
    }

    /// The value of an indexed counter's cell, summed over all pipes but pipe 0.
    pub(crate) fn counted(&self, counter: usize, index: usize) -> CounterValue {
        let cells = self.others.iter().flatten();
        let cells = cells.filter_map(|l| l.counters.get(counter)?.cells.get(index));
        cells.fold(CounterValue::default(), |sum, cell| CounterValue {
            packets: sum.packets.wrapping_add(cell.packets),
            bytes: sum.bytes.wrapping_add(cell.bytes),
        })
    }
}
