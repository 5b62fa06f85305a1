//! What queues on the way to the server have marked, and who is told so: the answer to a contribution that was marked is marked, as
//! that of a switch is that sums.

use crate::job::{CellIndex, WorkerSet};
use crate::{Destination, Mark};

/// Of each cell.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    /// Whose contributions to the chunk that is not complete were marked.
    incomplete: WorkerSet,
    /// The same of the chunk that was answered last.
    answered: WorkerSet,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Marks {
    cells: Vec<Cell>,
    told: Mark,
}

impl Marks {
    /// None yet.
    pub fn new(cells: usize) -> Self {
        Self {
            cells: vec![Cell::default(); cells],
            told: Mark::None,
        }
    }

    /// What these have contributed to a chunk that is not complete was marked.
    pub fn note(&mut self, cell: CellIndex, whose: WorkerSet) {
        let incomplete = &mut self.cells[cell.index()].incomplete;
        *incomplete = incomplete.union(whose);
    }

    /// The chunk is complete.
    pub fn complete(&mut self, cell: CellIndex) {
        let cell = &mut self.cells[cell.index()];
        cell.answered = std::mem::take(&mut cell.incomplete);
    }

    /// A cell's answer is given to somebody.
    pub fn tell(&mut self, cell: CellIndex, to: Destination) {
        let marked = self.cells[cell.index()].answered;
        let is_marked = match to {
            Destination::Worker(worker) => marked.contains(worker),
            _ => !marked.is_empty(),
        };
        self.told = match is_marked {
            true => Mark::Congested,
            false => Mark::None,
        };
    }

    /// What was told last.
    pub fn told(&self) -> Mark {
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkerId;

    #[test]
    fn whose_contribution_was_marked_is_told_so_of_that_chunk() {
        let (one, other) = (CellIndex(0), CellIndex(1));
        let [first, second] = [0, 1].map(WorkerId);
        let mut marks = Marks::new(2);
        let told = |marks: &mut Marks, cell, to| {
            marks.tell(cell, to);
            marks.told()
        };
        marks.note(one, WorkerSet::only(second));
        let to = Destination::Worker(second);
        assert_eq!(told(&mut marks, one, to), Mark::None, "it is not complete");
        marks.complete(one);
        assert_eq!(told(&mut marks, one, to), Mark::Congested);
        assert_eq!(
            told(&mut marks, one, Destination::Worker(first)),
            Mark::None
        );
        assert_eq!(told(&mut marks, one, Destination::All), Mark::Congested);
        assert_eq!(told(&mut marks, other, Destination::All), Mark::None);
        // The cell's next chunk.
        marks.complete(one);
        assert_eq!(told(&mut marks, one, to), Mark::None);
    }
}
