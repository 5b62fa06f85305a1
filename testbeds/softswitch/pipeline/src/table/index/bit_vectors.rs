//! Finds the entry for a key among some thousand with masks, ranges, priorities: bit vectors (Lakshman, Stiliadis 1998).
//!
//! An entry has a position; a block has 512 positions. For each four bits of the key and each of their 16 values, a block has a
//! row of 512 bits: the positions whose entries accept the value. ANDing the rows that a key selects leaves the matching
//! entries; positions are in order of precedence, so the first remaining entry wins, for any masks. Four bits rather than
//! eight: a block of a 5-tuple then takes 26 KiB and not 208, and stays in the first-level cache.
//!
//! Inserted entries go to the end, out of order, where all matching ones are compared. When a quarter is out of order,
//! all are sorted and rebuilt, which costs O(n) after n / 4 insertions. A removed entry loses its bit in `live`. A range
//! is represented by the common prefix of its bounds; the remaining candidates are checked against the bounds.
//!
//! Search takes O(n / 512 · key bits / 4) loads of a cache line, in blocks up to the first hit.

use crate::simd::widest;
use crate::table::rows::{Index, Rows};

/// Number of 64-bit words of a bit vector.
const WORDS: usize = 8;
const POSITIONS: usize = WORDS * 64;
/// Number of bit vectors that are ANDed before checking whether any bit is left.
const STRIDE: usize = 8;

type Vector = [u64; WORDS];

/// The bit vectors of 512 positions, each of which has one table entry.
#[derive(Debug, Clone)]
struct VectorBlock {
    live: Vector,
    /// For each nibble of the key, a bit vector for each of its sixteen values.
    rows: Box<[[Vector; 16]]>,
}

/// The bit vectors of all entries of a table.
#[derive(Debug, Clone)]
pub struct BitVectors {
    blocks: Vec<VectorBlock>,
    /// The table row at each position, including removed rows.
    order: Vec<Index>,
    /// Number of positions that are in order of precedence.
    sorted: usize,
    live: usize,
    /// The position of each table row, by row number.
    positions: Vec<u32>,
}

impl BitVectors {
    /// Builds the bit vectors of all entries of a table.
    pub fn from_rows(rows: &Rows) -> BitVectors {
        let mut vectors = BitVectors {
            blocks: Vec::new(),
            order: Vec::new(),
            sorted: 0,
            live: 0,
            positions: Vec::new(),
        };
        vectors.rebuild(rows, rows.iter().collect());
        vectors
    }

    fn rebuild(&mut self, rows: &Rows, mut live: Vec<Index>) {
        live.sort_unstable_by(|a, b| rows.order(*a, *b));
        self.blocks.clear();
        self.order.clear();
        self.live = 0;
        for row in live {
            self.append(rows, row);
        }
        self.sorted = self.order.len();
    }

    pub fn insert(&mut self, rows: &Rows, row: Index) {
        let unsorted = self.order.len() - self.sorted;
        if unsorted >= (self.live / 4).max(64) {
            let mut all: Vec<Index> = self.live_rows().collect();
            all.push(row);
            self.rebuild(rows, all);
        } else {
            self.append(rows, row);
        }
    }

    fn live_rows(&self) -> impl Iterator<Item = Index> + '_ {
        let is_live =
            |p: usize| self.blocks[p / POSITIONS].live[p % POSITIONS / 64] >> (p % 64) & 1;
        let order = self.order.iter().enumerate();
        order
            .filter(move |(p, _)| is_live(*p) == 1)
            .map(|(_, row)| *row)
    }

    fn append(&mut self, rows: &Rows, row: Index) {
        let position = self.order.len();
        let nibbles = rows.packing.bits.div_ceil(4);
        if position.is_multiple_of(POSITIONS) {
            self.blocks.push(VectorBlock {
                live: [0; WORDS],
                rows: vec![[[0; WORDS]; 16]; nibbles].into(),
            });
        }
        let (word, bit) = (position % POSITIONS / 64, 1 << (position % 64));
        let block = &mut self.blocks[position / POSITIONS];
        block.live[word] |= bit;
        let (values, cover) = (rows.values(row), rows.cover(row));
        for (n, row) in block.rows.iter_mut().enumerate() {
            let mask = nibble(&cover, n);
            let value = nibble(values, n) & mask;
            for (v, vector) in row.iter_mut().enumerate() {
                if v & mask == value {
                    vector[word] |= bit;
                }
            }
        }
        self.order.push(row);
        self.live += 1;
        if self.positions.len() <= row as usize {
            self.positions.resize(row as usize + 1, 0);
        }
        self.positions[row as usize] = position as u32;
    }

    /// Removes the entry of a row that is still in `rows`.
    pub fn remove(&mut self, rows: &Rows, row: Index) {
        let position = self.positions[row as usize] as usize;
        self.blocks[position / POSITIONS].live[position % POSITIONS / 64] &=
            !(1 << (position % 64));
        self.live -= 1;
        // Rebuilt once removed entries outnumber the others.
        if self.order.len() > 2 * self.live + POSITIONS {
            self.rebuild(rows, self.live_rows().collect());
        }
    }

    /// The row of the entry that matches a packed key; `None` if no entry matches.
    pub fn find(&self, rows: &Rows, key: &[u64]) -> Option<Index> {
        widest(
            #[inline(always)]
            || self.find_inline(rows, key),
        )
    }

    #[inline(always)]
    fn find_inline(&self, rows: &Rows, key: &[u64]) -> Option<Index> {
        let mut best: Option<Index> = None;
        for (b, block) in self.blocks.iter().enumerate() {
            let start = b * POSITIONS;
            if best.is_some() && start + POSITIONS <= self.sorted {
                continue;
            }
            let left = block.accepting(key);
            for (w, mut word) in left.into_iter().enumerate() {
                while word != 0 {
                    let position = start + w * 64 + word.trailing_zeros() as usize;
                    word &= word - 1;
                    if best.is_some() && position < self.sorted {
                        continue;
                    }
                    let row = self.order[position];
                    if rows.packing.has_ranges()
                        && !rows
                            .packing
                            .in_ranges(key, rows.values(row), rows.masks(row))
                    {
                        continue;
                    }
                    if best.is_none_or(|best| rows.order(row, best).is_lt()) {
                        best = Some(row);
                    }
                }
            }
        }
        best
    }
}

impl VectorBlock {
    /// The bit vector of the positions whose entries accept the key, without the check of ranges.
    #[inline(always)]
    fn accepting(&self, key: &[u64]) -> Vector {
        let mut left = self.live;
        for (rows, word) in self.rows.chunks(16).zip(key) {
            let mut word = *word;
            for rows in rows.chunks(STRIDE) {
                for row in rows {
                    word = word.rotate_left(4);
                    let vector = &row[(word & 15) as usize];
                    for (left, v) in left.iter_mut().zip(vector) {
                        *left &= v;
                    }
                }
                if left.iter().fold(0, |any, word| any | word) == 0 {
                    return left;
                }
            }
        }
        left
    }
}

/// Four bits of a packed key: nibble number `n`, from the first bits of the key on.
#[inline(always)]
fn nibble(words: &[u64], n: usize) -> usize {
    (words[n / 16] >> (60 - n % 16 * 4) & 15) as usize
}
