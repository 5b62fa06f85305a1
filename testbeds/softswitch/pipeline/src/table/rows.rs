//! Stores the entries of a table as rows of one flat array, with an index by the whole key.
//!
//! A row consists of a head (rank, action index, flags), the key's values, its masks unless all fields are exact, and the
//! action's parameters. So finding an exact key touches the index and usually one more cache line. Rows keep their number while
//! they exist; a freed row is reused.

use super::action::Action;
use super::packing::{MAX_WORDS, Packing};
use crate::table::profile::Indirect;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::cmp::{Ordering, Reverse};
use std::hash::{BuildHasher, Hasher};

/// The number of a table entry's row in the arena.
pub type Index = u32;

/// Maximum number of rows. Search structures use the uppermost bit of an [`Index`], and all ones for no row.
pub const MAX_ROWS: usize = (1 << 31) - 1;

/// The data of a table entry's row besides its key and parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The larger rank wins if several entries match: the priority if the table has priorities, else the LPM prefix length.
    pub rank: i32,
    /// Index of the entry's action; `None` if it runs no action or refers to a member or group.
    pub action: Option<u32>,
    /// Whether the entry comes from `const` entries in the source.
    pub is_const: bool,
    /// The member or group that the entry refers to instead of an action.
    pub indirect: Option<Indirect>,
}

const LIVE: u64 = 1 << 63;
const CONST: u64 = 1 << 62;
/// Bits of a row's head that tell which kind of object the entry refers to; the object's number is the first parameter.
const NAMES: u64 = 3 << 60;
const MEMBER: u64 = 1 << 60;
const GROUP: u64 = 2 << 60;
const ONE_SHOT: u64 = 3 << 60;
/// Mask of the action in a row's head, after a shift by 32: the action's index + 1; 0 means no action.
const ACTION: u64 = (1 << 28) - 1;

#[derive(Debug, Clone)]
pub struct Rows {
    /// The positions of the key's fields in packed keys.
    pub packing: Packing,
    /// Number of 64-bit words of a row's key: values, and masks unless all fields are exact.
    key_words: usize,
    stride: usize,
    data: Vec<u64>,
    free: Vec<Index>,
    by_key: HashTable<Index>,
}

/// The words of a removed row, so that it can be restored.
#[derive(Debug, Clone)]
pub struct Row(Box<[u64]>);

impl Rows {
    /// Creates an arena without rows. `params`: the largest number of parameter slots of any action.
    pub fn new(packing: Packing, exact: bool, params: usize) -> Rows {
        let key_words = packing.words * if exact { 1 } else { 2 };
        Rows {
            packing,
            key_words,
            stride: 1 + key_words + params,
            data: Vec::new(),
            free: Vec::new(),
            by_key: HashTable::new(),
        }
    }

    /// Number of rows that hold an entry.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Numbers of the rows that hold an entry, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Index> + '_ {
        let all = 0..(self.data.len() / self.stride) as Index;
        all.filter(|row| self.is_live(*row))
    }

    /// Number of row numbers assigned so far, including free rows.
    pub fn capacity(&self) -> usize {
        self.data.len() / self.stride
    }

    #[inline(always)]
    fn row(&self, row: Index) -> &[u64] {
        let at = row as usize * self.stride;
        &self.data[at..at + self.stride]
    }

    /// Whether the row holds an entry.
    pub fn is_live(&self, row: Index) -> bool {
        let head = self.data.get(row as usize * self.stride);
        head.is_some_and(|head| head & LIVE != 0)
    }

    pub fn rank(&self, row: Index) -> i32 {
        self.row(row)[0] as u32 as i32
    }

    /// The head of a row: its data other than key and parameters.
    pub fn head(&self, row: Index) -> Head {
        let head = self.row(row)[0];
        let number = || self.params(row).first().map_or(0, |n| *n as u32);
        Head {
            rank: head as u32 as i32,
            action: ((head >> 32 & ACTION) as u32).checked_sub(1),
            is_const: head & CONST != 0,
            indirect: match head & NAMES {
                MEMBER => Some(Indirect::Member(number())),
                GROUP => Some(Indirect::Group(number())),
                ONE_SHOT => Some(Indirect::OneShot(number())),
                _ => None,
            },
        }
    }

    /// The packed values of a row's key; for ranges, the lower bounds.
    #[inline(always)]
    pub fn values(&self, row: Index) -> &[u64] {
        &self.row(row)[1..1 + self.packing.words]
    }

    /// The packed masks of a row's key; for ranges, the upper bounds. Empty if all fields are exact.
    #[inline(always)]
    pub fn masks(&self, row: Index) -> &[u64] {
        &self.row(row)[1 + self.packing.words..1 + self.key_words]
    }

    fn key(&self, row: Index) -> &[u64] {
        &self.row(row)[1..1 + self.key_words]
    }

    fn params(&self, row: Index) -> &[u64] {
        &self.row(row)[1 + self.key_words..]
    }

    /// The action of a row; `slots`: number of parameter slots of each action. A row that refers to a member or group has
    /// no action.
    #[inline(always)]
    pub fn action(&self, row: Index, slots: &[usize]) -> Action<'_> {
        let row = self.row(row);
        let index = ((row[0] >> 32 & ACTION) as u32).checked_sub(1);
        match index.and_then(|i| slots.get(i as usize)) {
            Some(n) => Action {
                index,
                params: &row[1 + self.key_words..1 + self.key_words + n],
            },
            None => Action {
                index: None,
                params: &[],
            },
        }
    }

    /// The row with this rank and packed key (values, and masks unless all fields are exact); `None` if there is none.
    pub fn find(&self, rank: i32, key: &[u64]) -> Option<Index> {
        let same = |row: &Index| self.key(*row) == key && self.rank(*row) == rank;
        self.by_key.find(hash(rank, key), same).copied()
    }

    /// The row that matches a packed key, in a table whose fields are all exact; `None` if there is none.
    #[inline(always)]
    pub fn find_exact(&self, key: &[u64]) -> Option<Index> {
        // Compared word by word: for a few words, a call costs more than the comparison.
        let same = |row: &Index| {
            let words = self.values(*row).iter().zip(key);
            words.fold(0, |different, (a, b)| different | (a ^ b)) == 0
        };
        self.by_key.find(hash(0, key), same).copied()
    }

    /// Adds a row for an entry with a new key; returns its number.
    pub fn add(&mut self, head: Head, key: &[u64], params: &[u64]) -> Index {
        let row = self.free.pop().unwrap_or_else(|| {
            let row = self.capacity() as Index;
            self.data.resize(self.data.len() + self.stride, 0);
            row
        });
        let at = row as usize * self.stride;
        self.data[at + 1..at + 1 + self.key_words].copy_from_slice(key);
        self.set(row, head, params);
        self.index(row);
        row
    }

    /// Replaces a row's head and parameters, but not its key; the rank must stay.
    pub fn set(&mut self, row: Index, head: Head, params: &[u64]) {
        let at = row as usize * self.stride;
        let to = &mut self.data[at..at + self.stride];
        let action = head.action.map_or(0, |i| u64::from(i) + 1);
        to[0] = LIVE | u64::from(head.rank as u32) | (action & ACTION) << 32;
        if head.is_const {
            to[0] |= CONST;
        }
        let to_params = &mut to[1 + self.key_words..];
        to_params.fill(0);
        to_params[..params.len()].copy_from_slice(params);
        let (names, number) = match head.indirect {
            None => return,
            Some(Indirect::Member(number)) => (MEMBER, number),
            Some(Indirect::Group(number)) => (GROUP, number),
            Some(Indirect::OneShot(number)) => (ONE_SHOT, number),
        };
        if let Some(first) = to_params.first_mut() {
            *first = number.into();
            to[0] |= names;
        }
    }

    pub fn copy(&self, row: Index) -> Row {
        Row(self.row(row).into())
    }

    /// Removes a row and returns its words.
    pub fn take(&mut self, row: Index) -> Row {
        let key_hash = hash(self.rank(row), self.key(row));
        if let Ok(found) = self.by_key.find_entry(key_hash, |other| *other == row) {
            found.remove();
        }
        let taken = self.copy(row);
        self.data[row as usize * self.stride] = 0;
        self.free.push(row);
        taken
    }

    /// Restores a removed row, possibly under another number, which is returned.
    pub fn put_back(&mut self, taken: &Row) -> Index {
        let row = self.free.pop().unwrap_or_else(|| {
            let row = self.capacity() as Index;
            self.data.resize(self.data.len() + self.stride, 0);
            row
        });
        let at = row as usize * self.stride;
        self.data[at..at + self.stride].copy_from_slice(&taken.0);
        self.index(row);
        row
    }

    /// The row that has the key of a removed row now; `None` if there is none.
    pub fn find_like(&self, taken: &Row) -> Option<Index> {
        self.find(taken.0[0] as u32 as i32, &taken.0[1..1 + self.key_words])
    }

    fn index(&mut self, row: Index) {
        let (stride, key_words) = (self.stride, self.key_words);
        let data = &self.data;
        let hash_of = |row: &Index| {
            let at = *row as usize * stride;
            hash(data[at] as u32 as i32, &data[at + 1..at + 1 + key_words])
        };
        self.by_key.insert_unique(hash_of(&row), row, hash_of);
    }

    /// Whether a packed key matches the row, in a table with a field that is not exact.
    #[inline(always)]
    pub fn matches(&self, row: Index, key: &[u64]) -> bool {
        let row = &self.row(row)[1..1 + self.key_words];
        let (values, masks) = row.split_at(self.packing.words);
        self.packing.matches(key, values, masks)
    }

    /// The order of rows in listings, and the precedence of rows that match a key: larger rank first, then smaller key. No two
    /// rows are equal, so the order of insertion does not matter.
    pub fn order(&self, a: Index, b: Index) -> Ordering {
        let by_rank = Reverse(self.rank(a)).cmp(&Reverse(self.rank(b)));
        by_rank.then_with(|| {
            let of = |row| (self.values(row), self.masks(row));
            self.packing.order(of(a), of(b))
        })
    }

    /// Mask of the key bits that must be equal for the row to match; words beyond the key are 0.
    pub fn cover(&self, row: Index) -> [u64; MAX_WORDS] {
        let mut cover = [0; MAX_WORDS];
        let words = self.packing.words;
        self.packing
            .cover(self.values(row), self.masks(row), &mut cover[..words]);
        cover
    }
}

#[inline(always)]
fn hash(rank: i32, key: &[u64]) -> u64 {
    masked_hash(rank as u64, key.iter().copied())
}

/// Hashes the words of a key for a hash table, with this seed.
#[inline(always)]
pub fn masked_hash(seed: u64, words: impl Iterator<Item = u64>) -> u64 {
    let mut hasher = FixedState::with_seed(seed).build_hasher();
    for word in words {
        hasher.write_u64(word);
    }
    hasher.finish()
}
