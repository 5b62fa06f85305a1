//! Finds the entry for a key among any number with masks, ranges and priorities: tuple space search (Srinivasan, Suri, Varghese
//! 1999).
//!
//! Entries are grouped by mask, each group being a hash table; groups are searched in order of their best rank, until no later
//! group can win. A group without a match costs the hash of the masked key and one cache line: hashbrown compares seven bits of
//! the hash for 16 slots at once, and only then reads a row. In a group, a range is represented by the common prefix of its
//! bounds (see [`Packing::cover`](crate::table::packing::Packing::cover)); candidates are checked against the bounds.
//!
//! Search is O(groups), insertion and removal O(log n), except for entries that differ only in rank and range: those form
//! a sorted list.

use crate::table::rows::{Index, Rows, masked_hash};
use hashbrown::{HashMap, HashTable};
use std::collections::BTreeMap;

/// Rows with the same mask and the same values under the mask, in order of precedence.
#[derive(Debug, Clone)]
enum Bucket {
    One(Index),
    Many(Vec<Index>),
}

impl Bucket {
    #[inline(always)]
    fn rows(&self) -> &[Index] {
        match self {
            Bucket::One(row) => std::slice::from_ref(row),
            Bucket::Many(rows) => rows,
        }
    }
}

/// A group: all rows with the same mask, in a hash table by their values under the mask.
#[derive(Debug, Clone)]
struct Tuple {
    cover: Box<[u64]>,
    by_value: HashTable<Bucket>,
    /// Number of rows of the group with each rank.
    ranks: BTreeMap<i32, u32>,
}

/// A group of rows in the order of search, and the best rank among its rows.
#[derive(Debug, Clone, Copy)]
struct Turn {
    best: i32,
    group: u32,
}

/// The groups of all rows of a table.
#[derive(Debug, Clone, Default)]
pub struct TupleSpace {
    groups: Vec<Tuple>,
    free: Vec<u32>,
    by_cover: HashMap<Box<[u64]>, u32>,
    /// Groups by their best rank, the largest first, then by mask, so that a group can be found by binary search.
    turns: Vec<Turn>,
}

impl TupleSpace {
    /// Builds the groups of all rows of a table.
    pub fn from_rows(rows: &Rows) -> TupleSpace {
        let mut space = TupleSpace::default();
        for row in rows.iter() {
            space.insert(rows, row);
        }
        space
    }

    /// The row of the entry that matches a packed key; `None` if no entry matches.
    #[inline(always)]
    pub fn find(&self, rows: &Rows, key: &[u64]) -> Option<Index> {
        let ranges = rows.packing.has_ranges();
        let mut best: Option<(i32, Index)> = None;
        for turn in &self.turns {
            if best.is_some_and(|(rank, _)| turn.best < rank) {
                break;
            }
            let group = &self.groups[turn.group as usize];
            let Some(slot) = group.find(rows, key) else {
                continue;
            };
            for row in slot.rows().iter().copied() {
                if ranges
                    && !rows
                        .packing
                        .in_ranges(key, rows.values(row), rows.masks(row))
                {
                    continue;
                }
                if best.is_none_or(|(_, best)| rows.order(row, best).is_lt()) {
                    best = Some((rows.rank(row), row));
                }
                break;
            }
        }
        best.map(|(_, row)| row)
    }

    fn place(&self, turn: Turn) -> Result<usize, usize> {
        let cover = &self.groups[turn.group as usize].cover;
        self.turns.binary_search_by(|other| {
            let other_cover = &self.groups[other.group as usize].cover;
            turn.best
                .cmp(&other.best)
                .then_with(|| other_cover.cmp(cover))
        })
    }

    /// Moves a group in the search order when its best rank may have changed from `before`; `None`: the group was empty.
    fn take_turn(&mut self, group: u32, before: Option<i32>) {
        let best = self.groups[group as usize].best();
        if best == before {
            return;
        }
        if let Some(best) = before
            && let Ok(place) = self.place(Turn { best, group })
        {
            self.turns.remove(place);
        }
        if let Some(best) = best
            && let Err(place) = self.place(Turn { best, group })
        {
            self.turns.insert(place, Turn { best, group });
        }
    }

    pub fn insert(&mut self, rows: &Rows, row: Index) {
        let cover = rows.cover(row);
        let cover = &cover[..rows.packing.words];
        let group = match self.by_cover.get(cover) {
            Some(group) => *group,
            None => self.new_group(cover.into()),
        };
        let this = &mut self.groups[group as usize];
        let before = this.best();
        this.insert(rows, row);
        self.take_turn(group, before);
    }

    fn new_group(&mut self, cover: Box<[u64]>) -> u32 {
        let group = Tuple {
            cover: cover.clone(),
            by_value: HashTable::new(),
            ranks: BTreeMap::new(),
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.groups[at as usize] = group;
                at
            }
            None => {
                self.groups.push(group);
                (self.groups.len() - 1) as u32
            }
        };
        self.by_cover.insert(cover, at);
        at
    }

    /// Removes the entry of a row that is still in `rows`.
    pub fn remove(&mut self, rows: &Rows, row: Index) {
        let cover = rows.cover(row);
        let cover = &cover[..rows.packing.words];
        let Some(group) = self.by_cover.get(cover).copied() else {
            return;
        };
        let this = &mut self.groups[group as usize];
        let before = this.best();
        this.remove(rows, row);
        let empty = this.ranks.is_empty();
        self.take_turn(group, before);
        if empty {
            self.by_cover.remove(cover);
            self.free.push(group);
        }
    }
}

impl Tuple {
    fn best(&self) -> Option<i32> {
        self.ranks.last_key_value().map(|(rank, _)| *rank)
    }

    #[inline(always)]
    fn hash(&self, key: &[u64]) -> u64 {
        hash(&self.cover, key)
    }

    /// Whether a packed key equals the values of the rows in `slot` in all bits that the group's mask selects.
    #[inline(always)]
    fn is_in(&self, rows: &Rows, slot: &Bucket, key: &[u64]) -> bool {
        let values = rows.values(slot.rows()[0]);
        let words = values.iter().zip(key).zip(&self.cover);
        words.fold(0, |different, ((v, k), c)| different | ((v ^ k) & c)) == 0
    }

    #[inline(always)]
    fn find(&self, rows: &Rows, key: &[u64]) -> Option<&Bucket> {
        let same = |slot: &Bucket| self.is_in(rows, slot, key);
        self.by_value.find(self.hash(key), same)
    }

    fn insert(&mut self, rows: &Rows, row: Index) {
        *self.ranks.entry(rows.rank(row)).or_default() += 1;
        let values = rows.values(row);
        let hash_of = self.hash(values);
        let cover = &self.cover;
        let same = |slot: &Bucket| {
            let words = rows.values(slot.rows()[0]).iter().zip(values).zip(cover);
            words.fold(0, |different, ((v, k), c)| different | ((v ^ k) & c)) == 0
        };
        match self.by_value.find_mut(hash_of, same) {
            Some(slot) => {
                if let Bucket::One(first) = *slot {
                    *slot = Bucket::Many(vec![first]);
                }
                if let Bucket::Many(all) = slot {
                    let place = all.partition_point(|other| rows.order(*other, row).is_lt());
                    all.insert(place, row);
                }
            }
            None => {
                let hash_of_slot = |slot: &Bucket| hash(cover, rows.values(slot.rows()[0]));
                self.by_value
                    .insert_unique(hash_of, Bucket::One(row), hash_of_slot);
            }
        }
    }

    fn remove(&mut self, rows: &Rows, row: Index) {
        let rank = rows.rank(row);
        if let Some(n) = self.ranks.get_mut(&rank) {
            *n -= 1;
            if *n == 0 {
                self.ranks.remove(&rank);
            }
        }
        let hash_of = self.hash(rows.values(row));
        let has = |slot: &Bucket| slot.rows().contains(&row);
        let Ok(mut slot) = self.by_value.find_entry(hash_of, has) else {
            return;
        };
        match slot.get_mut() {
            Bucket::Many(all) if all.len() > 2 => all.retain(|other| *other != row),
            Bucket::Many(all) => {
                let other = if all[0] == row { all[1] } else { all[0] };
                *slot.get_mut() = Bucket::One(other);
            }
            Bucket::One(_) => {
                slot.remove();
            }
        }
    }
}

#[inline(always)]
fn hash(cover: &[u64], key: &[u64]) -> u64 {
    masked_hash(0, key.iter().zip(cover).map(|(k, c)| k & c))
}
