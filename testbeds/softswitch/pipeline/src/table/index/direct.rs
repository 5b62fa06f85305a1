//! Exact keys of a few bits: an array.
//!
//! Ports, classes, next hops: such a key is its own place. The array grows to the largest key met, 256 KiB at most.

use crate::table::rows::{Index, Rows};

/// Wider keys are hashed.
pub const BITS: u32 = 16;

const NONE: Index = Index::MAX;

/// The row of each key.
#[derive(Debug, Clone, Default)]
pub struct Direct {
    rows: Vec<Index>,
    /// From the first word of a packed key, where the key lies uppermost.
    shift: u32,
}

impl Direct {
    /// For keys of so many bits.
    pub fn new(bits: u32) -> Direct {
        Direct {
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

    /// Takes a row in.
    pub fn insert(&mut self, rows: &Rows, row: Index) {
        let place = self.place(rows.values(row));
        if self.rows.len() <= place {
            self.rows.resize(place + 1, NONE);
        }
        self.rows[place] = row;
    }

    /// Forgets a row, which is still among `rows`.
    pub fn remove(&mut self, rows: &Rows, row: Index) {
        let place = self.place(rows.values(row));
        if let Some(row) = self.rows.get_mut(place) {
            *row = NONE;
        }
    }
}
