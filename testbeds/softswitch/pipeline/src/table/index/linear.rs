//! Finds the entry for a key by scanning a sorted list: the fastest structure for up to sixteen entries, and the reference for
//! the others. Insertion and search are O(n).

use crate::table::rows::{Index, Rows};

/// A list of a table's rows in order of precedence.
#[derive(Debug, Clone, Default)]
pub struct Linear {
    rows: Vec<Index>,
}

impl Linear {
    /// Builds the list of all rows except for the row `but`.
    pub fn without(rows: &Rows, but: Index) -> Linear {
        let mut sorted: Vec<Index> = rows.iter().filter(|row| *row != but).collect();
        sorted.sort_unstable_by(|a, b| rows.order(*a, *b));
        Linear { rows: sorted }
    }

    /// The first row of the list whose entry matches a packed key; `None` if no entry matches.
    #[inline]
    pub fn find(&self, rows: &Rows, key: &[u64]) -> Option<Index> {
        let mut all = self.rows.iter().copied();
        all.find(|row| rows.matches(*row, key))
    }

    pub fn insert(&mut self, rows: &Rows, row: Index) {
        let before = |other: &Index| rows.order(*other, row).is_lt();
        let place = self.rows.partition_point(before);
        self.rows.insert(place, row);
    }

    pub fn remove(&mut self, row: Index) {
        self.rows.retain(|other| *other != row);
    }
}
