//! The cells of keys: where a key has its cell, and what the cell holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use parser_gen::key::KeyHash;

use crate::model::decision;

/// The cells of the keys of one unit or trigger. States are copied while it is unknown when an epoch began or what a
/// packet met, so copies share their common parts: a copy costs one step per branch, and a change copies one branch and
/// one chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Slots<T: Copy>(BTreeMap<u32, Arc<Branch<T>>>);

/// A fixed number of neighboring chunks.
type Branch<T> = [Option<Arc<Chunk<T>>>; BRANCH as usize];
/// A fixed number of neighboring cells.
type Chunk<T> = [Slot<T>; CHUNK as usize];

const CHUNK: u32 = 16;
const BRANCH: u32 = 256;

/// The cell of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slot<T> {
    /// Fingerprint of the key; 0 while the cell is free.
    print: u32,
    /// Identity of the key, which the switch does not know.
    owner: u64,
    /// Sequence number with which the key's last connection began.
    pub born: u32,
    pub cell: T,
}

/// The position of a key's cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellPlace {
    /// The key has this cell.
    Own(u32),
    /// The key has no cell and would take this free one.
    Free(u32),
    /// The key has no cell, and none of its cells is free.
    Nowhere,
}

impl<T: Copy + Default> Slots<T> {
    /// Finds the cell of a key: the first of its candidates that belongs to it or is free.
    #[inline]
    pub fn place(&self, hash: &KeyHash, salt: u32, bits: u32) -> CellPlace {
        let print = hash.print(salt);
        let mut cells = hash.cells(salt, bits).into_iter();
        let found = cells.find_map(|at| match self.get(at).print {
            0 => Some(CellPlace::Free(at)),
            held if held == print => Some(CellPlace::Own(at)),
            _ => None,
        });
        found.unwrap_or(CellPlace::Nowhere)
    }

    /// The cell at an index.
    #[inline]
    pub fn get(&self, at: u32) -> Slot<T> {
        let (branch, chunk, cell) = parts(at);
        let chunk = self
            .0
            .get(&branch)
            .and_then(|branch| branch[chunk].as_ref());
        chunk.map_or_else(Slot::default, |chunk| chunk[cell])
    }

    /// The cell at an index, mutable.
    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut Slot<T> {
        let (branch, chunk, cell) = parts(at);
        let branch = self.0.entry(branch);
        let branch = branch.or_insert_with(|| Arc::new(std::array::from_fn(|_| None)));
        let chunk = &mut Arc::make_mut(branch)[chunk];
        let chunk = chunk.get_or_insert_with(|| Arc::new([Slot::default(); CHUNK as usize]));
        &mut Arc::make_mut(chunk)[cell]
    }

    /// Assigns a free cell to a key.
    #[inline]
    pub fn take(&mut self, at: u32, hash: &KeyHash, salt: u32) -> &mut Slot<T> {
        let slot = self.get_mut(at);
        *slot = Slot {
            print: hash.print(salt),
            owner: owner(hash),
            ..Slot::default()
        };
        slot
    }

    /// The cell of a key, which takes a free one if it has none; `None` if no cell is free.
    #[inline]
    pub fn find(&mut self, hash: &KeyHash, salt: u32, bits: u32) -> Option<&mut Slot<T>> {
        match self.place(hash, salt, bits) {
            CellPlace::Own(at) => Some(self.get_mut(at)),
            CellPlace::Free(at) => Some(self.take(at, hash, salt)),
            CellPlace::Nowhere => None,
        }
    }
}

/// The branch, chunk and cell of an index.
#[inline]
fn parts(at: u32) -> (u32, usize, usize) {
    let (chunk, cell) = (at / CHUNK, at % CHUNK);
    (chunk / BRANCH, (chunk % BRANCH) as usize, cell as usize)
}

impl<T> Slot<T> {
    /// Whether the cell belongs to another key that the switch cannot distinguish from this one.
    #[inline]
    pub fn is_of_another(&self, hash: &KeyHash) -> bool {
        self.owner != owner(hash)
    }
}

/// Distinguishes keys with the same fingerprint.
#[inline]
fn owner(hash: &KeyHash) -> u64 {
    let chunks = hash.key.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_be_bytes(word)
    });
    chunks.fold(0, |owner, word| decision::mix(owner ^ word))
}
