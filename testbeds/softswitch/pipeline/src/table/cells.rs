//! Cells of direct registers (Tofino) in table entries: data of the program for each entry and pipe.

use super::{Index, Table};
use crate::error::TableError;
use crate::port_numbers::PIPES;
use hashbrown::HashMap;
use p4lang::runtime::TableEntry;

/// The contents of a table's direct registers, for each entry and pipe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryCells {
    /// Initial words of an entry, for all direct registers of the table.
    pub initial: Vec<u64>,
    /// Words of the entries written so far: those of pipe 0, then those of the other pipes.
    written: HashMap<Index, Box<[u64]>>,
}

impl EntryCells {
    fn at(&self, offset: u32, pipe: u32) -> usize {
        pipe as usize % PIPES as usize * self.initial.len() + offset as usize
    }

    /// Removes the words of a table entry, when the entry is removed.
    pub fn forget(&mut self, entry: Index) {
        self.written.remove(&entry);
    }

    /// Reads words of an entry in a pipe, from word `offset` on.
    pub fn read(&self, entry: Index, offset: u32, pipe: u32, into: &mut [u64]) {
        let from = match self.written.get(&entry) {
            Some(words) => words.get(self.at(offset, pipe)..),
            None => self.initial.get(offset as usize..),
        };
        for (to, from) in into.iter_mut().zip(from.unwrap_or_default()) {
            *to = *from;
        }
    }

    /// Writes words of an entry in a pipe, from word `offset` on.
    pub fn write(&mut self, entry: Index, offset: u32, pipe: u32, from: &[u64]) {
        let at = self.at(offset, pipe);
        let initial = &self.initial;
        let words = self
            .written
            .entry(entry)
            .or_insert_with(|| initial.repeat(PIPES as usize).into());
        for (to, from) in words.iter_mut().skip(at).zip(from) {
            *to = *from;
        }
    }
}

impl Table {
    /// Reads a direct register's cell at the found entry; zeroes if no entry was found.
    pub fn read_cell(&self, found: Option<Index>, offset: u32, pipe: u32, into: &mut [u64]) {
        into.fill(0);
        if let Some(entry) = found {
            self.cells.read(entry, offset, pipe, into);
        }
    }

    /// Writes a direct register's cell of a table entry in all pipes.
    ///
    /// # Errors
    /// Returns an error if the entry's key is invalid, or no such entry exists.
    pub fn set_cell(
        &mut self,
        entry: &TableEntry,
        offset: u32,
        from: &[u64],
    ) -> Result<(), TableError> {
        let row = self.row(&self.entry_key(entry)?)?;
        for pipe in 0..PIPES {
            self.cells.write(row, offset, pipe, from);
        }
        Ok(())
    }

    /// Writes a direct register's cell of all entries in one pipe.
    pub fn write_cells(&mut self, offset: u32, pipe: u32, from: &[u64]) {
        for entry in self.rows.iter() {
            self.cells.write(entry, offset, pipe, from);
        }
    }

    /// Writes a direct register's cell at the found entry; no effect if no entry was found.
    pub fn write_cell(&mut self, found: Option<Index>, offset: u32, pipe: u32, from: &[u64]) {
        if let Some(entry) = found {
            self.cells.write(entry, offset, pipe, from);
        }
    }
}
