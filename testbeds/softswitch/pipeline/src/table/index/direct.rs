//! Finds the entry for an exact key of a few bits in an array.
//!
//! Ports, classes, next hops: such a key is its own index. The array grows to the largest key inserted, at most 256 KiB.

use crate::table::rows::{Index, Rows};

/// Maximum width in bits of a key that indexes the array; wider keys are hashed.
pub const BITS: u32 = 16;

const NONE: Index = Index::MAX;

/// An array with the table row of each possible key.
#[derive(Debug, Clone, Default)]
pub struct DirectIndex {
    rows: Vec<Index>,
    /// Number of bits by which the first word of a packed key is shifted right to get the key, which is in its uppermost bits.
    shift: u32,
}

impl DirectIndex {
    /// Creates the array for keys of this width in bits.
    pub fn new(bits: u32) -> DirectIndex {
        DirectIndex {
            rows: Vec::new(),
            shift: 64 - bits,
        }
    }

    /// The row of the entry with this packed key; `None` if there is none.
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

    /// Removes the entry of a row that is still in `rows`.
    pub fn remove(&mut self, rows: &Rows, row: Index) {
        let place = self.place(rows.values(row));
        if let Some(row) = self.rows.get_mut(place) {
            *row = NONE;
        }
    }
}
