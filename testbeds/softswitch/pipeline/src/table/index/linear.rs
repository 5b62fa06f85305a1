//! A sorted list, scanned: up to sixteen entries nothing is faster, and it is what the other structures are compared with.
//! Insertion and search are O(n).

use crate::table::rows::{Index, Rows};

/// Rows in the order in which they win.
#[derive(Debug, Clone, Default)]
pub struct Linear {
    rows: Vec<Index>,
}

impl Linear {
    /// Of all rows but one.
    pub fn of(rows: &Rows, but: Index) -> Linear {
        let mut sorted: Vec<Index> = rows.iter().filter(|row| *row != but).collect();
        sorted.sort_unstable_by(|a, b| rows.order(*a, *b));
        Linear { rows: sorted }
    }

    /// The first that fits.
    #[inline]
    pub fn find(&self, rows: &Rows, key: &[u64]) -> Option<Index> {
        let mut all = self.rows.iter().copied();
        all.find(|row| rows.matches(*row, key))
    }

    /// Takes a row in.
    pub fn insert(&mut self, rows: &Rows, row: Index) {
        let before = |other: &Index| rows.order(*other, row).is_lt();
        let place = self.rows.partition_point(before);
        self.rows.insert(place, row);
    }

    /// Forgets a row.
    pub fn remove(&mut self, row: Index) {
        self.rows.retain(|other| *other != row);
    }
}
