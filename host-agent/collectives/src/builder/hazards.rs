//! Data hazards between steps: which step wrote each element of a rank's buffer last, and which steps have read it since.

use std::collections::BTreeMap;

use crate::schedule::{Buffer, Span};

/// Data hazards of one buffer of a rank.
#[derive(Debug, Clone, Default)]
pub struct Hazards {
    /// Ranges of elements with equal hazards. The key is a range's first element; the range ends where the next one begins.
    cells: BTreeMap<usize, Cell>,
}

#[derive(Debug, Clone, Default)]
struct Cell {
    writer: Option<usize>,
    readers: Vec<usize>,
}

impl Hazards {
    /// Records that `step` reads a range; returns the steps that must finish before.
    pub fn read(&mut self, span: Span, step: usize) -> Vec<usize> {
        // Nothing writes the input, so its readers need not be recorded.
        if span.buffer == Buffer::Input || span.len == 0 {
            return Vec::new();
        }
        self.cut(span);
        let mut needs = Vec::new();
        for cell in self.cells.range_mut(span.start..span.end()) {
            needs.extend(cell.1.writer);
            cell.1.readers.push(step);
        }
        needs
    }

    /// Records that `step` writes a range; returns the steps that must finish before.
    pub fn write(&mut self, span: Span, step: usize) -> Vec<usize> {
        if span.len == 0 {
            return Vec::new();
        }
        self.cut(span);
        let mut needs = Vec::new();
        let cells = self.cells.range(span.start..span.end());
        let starts: Vec<usize> = cells.map(|(start, _)| *start).collect();
        for start in starts {
            let cell = self.cells.remove(&start).unwrap_or_default();
            needs.extend(cell.writer);
            needs.extend(cell.readers);
        }
        let cell = Cell {
            writer: Some(step),
            readers: Vec::new(),
        };
        self.cells.insert(span.start, cell);
        needs
    }

    /// Splits the recorded ranges at both ends of `span`.
    fn cut(&mut self, span: Span) {
        for at in [span.start, span.end()] {
            let around = self.cells.range(..=at).next_back();
            let cell = around.map(|(_, cell)| cell.clone()).unwrap_or_default();
            self.cells.entry(at).or_insert(cell);
        }
    }
}
