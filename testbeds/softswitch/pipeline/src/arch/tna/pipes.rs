//! Registers, counters and meters of each pipe, where all pipes run one pipeline.
//!
//! Pipe 0's lie in the state, where the control plane finds them. Another pipe's change places with them while it runs.

use crate::externs::counter::CounterValue;
use crate::state::{Cells, State};

/// The other pipes. Empty where each pipe has a pipeline of its own.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    /// What a pipe starts with that no packet has met yet, and what the control plane wrote to it.
    fresh: Option<Cells>,
    others: [Option<Cells>; super::PIPES as usize - 1],
}

impl Pipes {
    /// Each pipe with a copy of what the program starts with.
    pub(super) fn replicated(state: &State) -> Pipes {
        Pipes {
            fresh: Some(state.cells.clone()),
            others: Default::default(),
        }
    }

    /// Puts a pipe's state in place.
    pub(super) fn enter(&mut self, state: &mut State, pipe: u32) {
        let (Some(fresh), Some(other)) = (&self.fresh, (pipe as usize).checked_sub(1)) else {
            return;
        };
        if let Some(other) = self.others.get_mut(other) {
            let other = other.get_or_insert_with(|| fresh.clone());
            std::mem::swap(other, &mut state.cells);
        }
    }

    /// Puts pipe 0's back.
    pub(super) fn leave(&mut self, state: &mut State, pipe: u32) {
        let Some(other) = (pipe as usize).checked_sub(1) else {
            return;
        };
        if let Some(Some(other)) = self.others.get_mut(other) {
            std::mem::swap(other, &mut state.cells);
        }
    }

    /// What these keep beside what those do, pipe by pipe, but for pipe 0.
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

    /// All but pipe 0, for what the control plane writes to every pipe.
    pub(crate) fn each(&mut self) -> impl Iterator<Item = &mut Cells> {
        let others = self.others.iter_mut().flatten();
        self.fresh.iter_mut().chain(others)
    }

    /// One of them; `None`: it keeps what pipe 0 was loaded with, or there are no pipes.
    pub(crate) fn other(&self, pipe: u32) -> Option<&Cells> {
        let other = self.others.get((pipe as usize).checked_sub(1)?)?;
        other.as_ref().or(self.fresh.as_ref())
    }

    /// What the other pipes counted in a cell.
    pub(crate) fn counted(&self, counter: usize, index: usize) -> CounterValue {
        let cells = self.others.iter().flatten();
        let cells = cells.filter_map(|l| l.counters.get(counter)?.cells.get(index));
        cells.fold(CounterValue::default(), |sum, cell| CounterValue {
            packets: sum.packets.wrapping_add(cell.packets),
            bytes: sum.bytes.wrapping_add(cell.bytes),
        })
    }
}
