//! Congestion marks (ECN) in a server's answers: the answer to a marked contribution is marked, and so is the answer to a sum
//! from a switch that was marked.

use crate::job::{CellIndex, WorkerSet};
use crate::{Destination, Mark};

/// Congestion marks of the contributions to one aggregation cell.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    /// Workers whose contributions to the incomplete chunk were marked.
    incomplete: WorkerSet,
    /// Workers whose contributions to the last answered chunk were marked.
    answered: WorkerSet,
}

/// Congestion marks of the contributions to all aggregation cells.
#[derive(Debug, Clone)]
pub struct Marks {
    cells: Vec<Cell>,
    selected: Mark,
}

impl Marks {
    /// Creates the state for `cells` cells, without any mark.
    pub fn new(cells: usize) -> Self {
        Self {
            cells: vec![Cell::default(); cells],
            selected: Mark::None,
        }
    }

    /// Records that contributions of the workers `whose` to the cell's incomplete chunk were congestion-marked.
    pub fn note(&mut self, cell: CellIndex, whose: WorkerSet) {
        let incomplete = &mut self.cells[cell.index()].incomplete;
        *incomplete = incomplete.union(whose);
    }

    /// Makes the marks of the cell's incomplete chunk those of its answered chunk, once the chunk is complete.
    pub fn complete(&mut self, cell: CellIndex) {
        let cell = &mut self.cells[cell.index()];
        cell.answered = std::mem::take(&mut cell.incomplete);
    }

    /// Selects the congestion mark for the answer to the cell's chunk that the server sends to destination `to`.
    pub fn select(&mut self, cell: CellIndex, to: Destination) {
        let marked = self.cells[cell.index()].answered;
        let is_marked = match to {
            Destination::Worker(worker) => marked.contains(worker),
            _ => !marked.is_empty(),
        };
        self.selected = match is_marked {
            true => Mark::Congested,
            false => Mark::None,
        };
    }

    /// The congestion mark that [`select`](Self::select) selected last.
    pub fn selected(&self) -> Mark {
        self.selected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkerId;

    #[test]
    fn the_answer_to_a_marked_contribution_is_marked() {
        let (one, other) = (CellIndex(0), CellIndex(1));
        let [first, second] = [0, 1].map(WorkerId);
        let mut marks = Marks::new(2);
        let told = |marks: &mut Marks, cell, to| {
            marks.select(cell, to);
            marks.selected()
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
        // The next chunk of the cell.
        marks.complete(one);
        assert_eq!(told(&mut marks, one, to), Mark::None);
    }
}
