//! Tables with one state cell per key, such as a connection: which cell a key has, and what the cell contains.

use std::collections::BTreeMap;
use std::sync::Arc;

use parser_gen::key::KeyHash;

use crate::model::decision;

/// The cells of all keys of one fault unit or trigger. The judge copies states while it does not know when an epoch began or
/// what a packet met. Copies share unchanged parts: a copy costs one step per branch; a change then copies one branch and one
/// chunk of cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Slots<T: Copy>(BTreeMap<u32, Arc<Branch<T>>>);

/// [`BRANCH`] neighboring chunks of cells; `None`: all cells of the chunk are free.
type Branch<T> = [Option<Arc<Chunk<T>>>; BRANCH as usize];
/// [`CHUNK`] neighboring cells.
type Chunk<T> = [Slot<T>; CHUNK as usize];

const CHUNK: u32 = 16;
const BRANCH: u32 = 256;

/// A cell of the table, which belongs to one key (such as a connection) or is free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slot<T> {
    /// Fingerprint of the key, as the switch stores it; 0 while the cell is free.
    print: u32,
    /// Hash that identifies the key more precisely than the switch's fingerprint.
    owner: u64,
    /// TCP sequence number with which the key's last connection began.
    pub born: u32,
    pub cell: T,
}

/// The result of the search for a key's cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellPlace {
    /// The key has the cell with this index.
    Own(u32),
    /// The key has no cell yet and would get the free cell with this index.
    Free(u32),
    /// The key has no cell, and all cells that it could have belong to other keys.
    Nowhere,
}

impl<T: Copy + Default> Slots<T> {
    /// Finds the cell of a key: the first of its candidate cells that belongs to the key or is free.
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

    /// The cell at an index of the table.
    #[inline]
    pub fn get(&self, at: u32) -> Slot<T> {
        let (branch, chunk, cell) = parts(at);
        let chunk = self
            .0
            .get(&branch)
            .and_then(|branch| branch[chunk].as_ref());
        chunk.map_or_else(Slot::default, |chunk| chunk[cell])
    }

    /// The cell at an index, to be changed.
    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut Slot<T> {
        let (branch, chunk, cell) = parts(at);
        let branch = self.0.entry(branch);
        let branch = branch.or_insert_with(|| Arc::new(std::array::from_fn(|_| None)));
        let chunk = &mut Arc::make_mut(branch)[chunk];
        let chunk = chunk.get_or_insert_with(|| Arc::new([Slot::default(); CHUNK as usize]));
        &mut Arc::make_mut(chunk)[cell]
    }

    /// Assigns the free cell at an index to a key.
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

    /// The cell of a key; a key without a cell gets a free one. `None` if none of its candidate cells is free.
    #[inline]
    pub fn find(&mut self, hash: &KeyHash, salt: u32, bits: u32) -> Option<&mut Slot<T>> {
        match self.place(hash, salt, bits) {
            CellPlace::Own(at) => Some(self.get_mut(at)),
            CellPlace::Free(at) => Some(self.take(at, hash, salt)),
            CellPlace::Nowhere => None,
        }
    }
}

/// Position of a cell by its index: index of the branch, of the chunk in the branch, and of the cell in the chunk.
#[inline]
fn parts(at: u32) -> (u32, usize, usize) {
    let (chunk, cell) = (at / CHUNK, at % CHUNK);
    (chunk / BRANCH, (chunk % BRANCH) as usize, cell as usize)
}

impl<T> Slot<T> {
    /// Whether the cell belongs to another key with the same fingerprint, which the switch confuses with this key.
    #[inline]
    pub fn is_of_another(&self, hash: &KeyHash) -> bool {
        self.owner != owner(hash)
    }
}

/// Hash of a key that distinguishes keys with the same fingerprint.
#[inline]
fn owner(hash: &KeyHash) -> u64 {
    let chunks = hash.key.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_be_bytes(word)
    });
    chunks.fold(0, |owner, word| decision::mix(owner ^ word))
}
