//! Structures that find the entry for a key; each holds numbers of [`Rows`], which hold the entries.
//!
//! | key | structure |
//! |---|---|
//! | exact fields only, at most 16 bits | [`DirectIndex`] |
//! | exact fields only | the index of [`Rows`] itself: one probe |
//! | one lpm field, others exact, at most 128 bits | [`Trie`] |
//! | ternary, range, optional fields; wider lpm | [`Linear`], [`BitVectors`] or [`TupleSpace`], by the number of entries |
//!
//! All can change by one entry at a time, at a cost that does not depend on the number of entries, or is amortized. All
//! agree with [`Linear`] on tables with inexact keys: `tests.rs`.

mod bit_vectors;
mod direct;
mod linear;
mod trie;
mod tuple_space;

use super::key::{FieldSpec, Kind};
use super::rows::{Index, Rows};
use bit_vectors::BitVectors;
use direct::DirectIndex;
use linear::Linear;
use trie::Trie;
use tuple_space::TupleSpace;

/// Maximum number of entries for which scanning a list is the fastest search.
const LINEAR: usize = 16;
/// Maximum number of entries for which bit vectors are the fastest search.
const BIT_VECTORS: usize = 4096;

/// The structure by which a table currently finds the entry for a key.
#[derive(Debug, Clone)]
pub enum Structure {
    /// For keys whose fields are all exact: the index of [`Rows`] itself.
    Exact,
    /// For keys whose fields are all exact and have few bits.
    Direct(DirectIndex),
    /// For keys of at most 64 bits with one LPM field.
    Narrow(Trie<u64>),
    /// For keys of at most 128 bits with one LPM field.
    Wide(Trie<u128>),
    /// For a few entries with masks or ranges.
    Linear(Linear),
    /// For some thousand entries with masks or ranges.
    BitVectors(BitVectors),
    /// For any number of entries with masks or ranges.
    TupleSpace(TupleSpace),
}

impl Structure {
    /// Creates the search structure of a table without entries, for a key with these fields.
    pub fn new(fields: &[FieldSpec]) -> Structure {
        let only = |kinds: &[Kind]| fields.iter().all(|f| kinds.contains(&f.kind));
        let lpm = fields.iter().find(|f| f.kind == Kind::Lpm);
        let bits: u32 = fields.iter().map(|f| f.width).sum();
        let trie = only(&[Kind::Exact, Kind::Lpm]) && bits > 0;
        match lpm {
            None if only(&[Kind::Exact]) => match bits {
                1..=direct::BITS => Structure::Direct(DirectIndex::new(bits)),
                _ => Structure::Exact,
            },
            Some(lpm) if trie && bits <= 64 => Structure::Narrow(Trie::new(bits - lpm.width)),
            Some(lpm) if trie && bits <= 128 => Structure::Wide(Trie::new(bits - lpm.width)),
            _ => Structure::Linear(Linear::default()),
        }
    }

    /// The row of the entry that matches a packed key; `None` if no entry matches.
    #[inline(always)]
    pub fn find(&self, rows: &Rows, key: &[u64]) -> Option<Index> {
        match self {
            Structure::Exact => rows.find_exact(key),
            Structure::Direct(direct) => direct.find(key),
            Structure::Narrow(trie) => trie.find(rows, key),
            more => more.find_more(rows, key),
        }
    }

    /// Searches the larger structures, in a function separate from `find`, to keep that small.
    #[inline(never)]
    fn find_more(&self, rows: &Rows, key: &[u64]) -> Option<Index> {
        match self {
            Structure::Wide(trie) => trie.find(rows, key),
            Structure::Linear(linear) => linear.find(rows, key),
            Structure::BitVectors(vectors) => vectors.find(rows, key),
            Structure::TupleSpace(space) => space.find(rows, key),
            // Handled in `find`.
            Structure::Exact | Structure::Direct(_) | Structure::Narrow(_) => None,
        }
    }

    /// Adds the entry of a row that is already in `rows`.
    pub fn insert(&mut self, rows: &Rows, row: Index) {
        match self {
            Structure::Exact => {}
            Structure::Direct(direct) => direct.insert(rows, row),
            Structure::Narrow(trie) => trie.insert(rows, row),
            Structure::Wide(trie) => trie.insert(rows, row),
            Structure::Linear(linear) if rows.len() <= LINEAR => linear.insert(rows, row),
            Structure::Linear(_) => *self = Structure::BitVectors(BitVectors::from_rows(rows)),
            Structure::BitVectors(vectors) if rows.len() <= BIT_VECTORS => {
                vectors.insert(rows, row)
            }
            Structure::BitVectors(_) => *self = Structure::TupleSpace(TupleSpace::from_rows(rows)),
            Structure::TupleSpace(space) => space.insert(rows, row),
        }
    }

    /// Removes the entry of a row that is about to be removed from `rows`. A smaller structure takes over only at half its
    /// limit, so that changes around the limit do not rebuild the structure each time.
    pub fn remove(&mut self, rows: &Rows, row: Index) {
        match self {
            Structure::Exact => {}
            Structure::Direct(direct) => direct.remove(rows, row),
            Structure::Narrow(trie) => trie.remove(rows, row),
            Structure::Wide(trie) => trie.remove(rows, row),
            Structure::Linear(linear) => linear.remove(row),
            Structure::BitVectors(vectors) => {
                vectors.remove(rows, row);
                if rows.len() <= LINEAR / 2 {
                    *self = Structure::Linear(Linear::without(rows, row));
                }
            }
            Structure::TupleSpace(space) => {
                space.remove(rows, row);
                if rows.len() <= BIT_VECTORS / 2 {
                    let mut vectors = BitVectors::from_rows(rows);
                    vectors.remove(rows, row);
                    *self = Structure::BitVectors(vectors);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
