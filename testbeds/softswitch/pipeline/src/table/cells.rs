//! Direct registers (Tofino): what the program keeps for each entry, and in each pipe.

use super::{Index, Table};
use crate::error::TableError;
use crate::port_numbers::PIPES;
use hashbrown::HashMap;
use p4lang::runtime::TableEntry;

/// What the direct registers of a table keep for each entry, and in each pipe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cells {
    /// Words of a new entry, of all registers.
    pub initial: Vec<u64>,
    /// Entries written so far: the words of pipe 0, then of the others.
    written: HashMap<Index, Box<[u64]>>,
}

impl Cells {
    fn at(&self, offset: u32, pipe: u32) -> usize {
        pipe as usize % PIPES as usize * self.initial.len() + offset as usize
    }

    /// An entry is gone.
    pub fn forget(&mut self, entry: Index) {
        self.written.remove(&entry);
    }

    /// Some words of an entry.
    pub fn read(&self, entry: Index, offset: u32, pipe: u32, into: &mut [u64]) {
        let from = match self.written.get(&entry) {
            Some(words) => words.get(self.at(offset, pipe)..),
            None => self.initial.get(offset as usize..),
        };
        for (to, from) in into.iter_mut().zip(from.unwrap_or_default()) {
            *to = *from;
        }
    }

    /// Sets them.
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
    /// Direct registers of an entry that a lookup found; zeroes if it found none.
    pub fn read_cell(&self, found: Option<Index>, offset: u32, pipe: u32, into: &mut [u64]) {
        into.fill(0);
        if let Some(entry) = found {
            self.cells.read(entry, offset, pipe, into);
        }
    }

    /// Sets them of an entry in all pipes.
    ///
    /// # Errors
    /// Those of the entry's key.
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

    /// Sets them of all entries.
    pub fn write_cells(&mut self, offset: u32, pipe: u32, from: &[u64]) {
        for entry in self.rows.iter() {
            self.cells.write(entry, offset, pipe, from);
        }
    }

    /// Sets them; nothing if there is no entry.
    pub fn write_cell(&mut self, found: Option<Index>, offset: u32, pipe: u32, from: &[u64]) {
        if let Some(entry) = found {
            self.cells.write(entry, offset, pipe, from);
        }
    }
}
