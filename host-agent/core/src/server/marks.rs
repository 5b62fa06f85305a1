//! Congestion marks of contributions, and the marking of answers: the answer to a marked contribution is marked, and that of
//! a summing switch is, too.

use crate::job::{CellIndex, WorkerSet};
use crate::{Destination, Mark};

/// Congestion marks of one cell.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    /// Workers whose contributions to the incomplete chunk were marked.
    incomplete: WorkerSet,
    /// Workers whose contributions to the last answered chunk were marked.
    answered: WorkerSet,
}

/// Congestion marks of all cells.
#[derive(Debug, Clone)]
pub struct Marks {
    cells: Vec<Cell>,
    selected: Mark,
}

impl Marks {
    /// No marks yet.
    pub fn new(cells: usize) -> Self {
        Self {
            cells: vec![Cell::default(); cells],
            selected: Mark::None,
        }
    }

    /// Records that these workers' contributions to an incomplete chunk were marked.
    pub fn note(&mut self, cell: CellIndex, whose: WorkerSet) {
        let incomplete = &mut self.cells[cell.index()].incomplete;
        *incomplete = incomplete.union(whose);
    }

    /// Moves the marks to the answered chunk, now that the chunk is complete.
    pub fn complete(&mut self, cell: CellIndex) {
        let cell = &mut self.cells[cell.index()];
        cell.answered = std::mem::take(&mut cell.incomplete);
    }

    /// Selects the mark for a cell's answer to this destination.
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

    /// The mark that [`select`](Self::select) selected last.
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
