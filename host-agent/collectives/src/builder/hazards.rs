//! Which steps of a rank wrote, and have since read, each element of a buffer.

use std::collections::BTreeMap;

use crate::schedule::{Buffer, Span};

/// Of one buffer.
#[derive(Debug, Clone, Default)]
pub struct Hazards {
    /// By first element; each holds up to the next.
    cells: BTreeMap<usize, Cell>,
}

#[derive(Debug, Clone, Default)]
struct Cell {
    writer: Option<usize>,
    readers: Vec<usize>,
}

impl Hazards {
    /// A step reads a range: the steps that it comes after.
    pub fn read(&mut self, span: Span, step: usize) -> Vec<usize> {
        // Nothing writes the input: nobody has to know who reads it.
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

    /// A step writes a range: the steps that it comes after.
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

    /// Makes cells begin where the range does, and behind it.
    fn cut(&mut self, span: Span) {
        for at in [span.start, span.end()] {
            let around = self.cells.range(..=at).next_back();
            let cell = around.map(|(_, cell)| cell.clone()).unwrap_or_default();
            self.cells.entry(at).or_insert(cell);
        }
    }
}
