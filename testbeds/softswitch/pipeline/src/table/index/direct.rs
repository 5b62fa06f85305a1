//! An array for exact keys of a few bits.
//!
//! Ports, classes, next hops: such a key is its own index. The array grows to the largest key inserted, at most 256 KiB.

use crate::table::rows::{Index, Rows};

/// Maximum width of a key; wider keys are hashed.
pub const BITS: u32 = 16;

const NONE: Index = Index::MAX;

/// The row of each key.
#[derive(Debug, Clone, Default)]
pub struct DirectIndex {
    rows: Vec<Index>,
    /// Shift from the first word of a packed key, where the key is in the uppermost bits.
    shift: u32,
}

impl DirectIndex {
    /// Creates the array for keys of this width.
    pub fn new(bits: u32) -> DirectIndex {
        DirectIndex {
            rows: Vec::new(),
            shift: 64 - bits,
        }
    }

    /// The row of a packed key.
    #[inline(always)]
    pub fn find(&self, key: &[u64]) -> Option<Index> {
        let row = self.rows.get(self.place(key)).copied();
        row.filter(|row| *row != NONE)
    }

    #[inline(always)]
    fn place(&self, key: &[u64]) -> usize {
        (key[0] >> self.shift) as usize
    }

    pub fn insert(&mut self, rows: &Rows, row: Index) {
        let place = self.place(rows.values(row));
        if self.rows.len() <= place {
            self.rows.resize(place + 1, NONE);
        }
        self.rows[place] = row;
    }

    /// Removes a row, which is still in `rows`.
    pub fn remove(&mut self, rows: &Rows, row: Index) {
        let place = self.place(rows.values(row));
        if let Some(row) = self.rows.get_mut(place) {
            *row = NONE;
        }
    }
}
