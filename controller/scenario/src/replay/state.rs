//! What a switch remembers of the packets that came.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use parser_gen::key::KeyHash;

use super::progress::Followed;
use crate::decision;
use crate::selection::Cell;

/// What the units' cells hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Ordinals and channels.
    pub(super) cells: Vec<Cell>,
    /// By cell too, when what was held last is due, where packets keep their order.
    pub(super) due_ns: Vec<u64>,
    /// By trigger.
    pub(super) followed: Vec<Followed>,
    /// By unit that numbers keys.
    pub(super) slots: Vec<Slots<Cell>>,
}

/// Leaves out what keys have: a table takes long to read, and states that differ there alone are compared.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.cells.hash(hasher);
        self.due_ns.hash(hasher);
        self.followed.hash(hasher);
    }
}

impl State {
    /// One cell more; its index.
    pub(super) fn add_cell(&mut self) -> usize {
        self.cells.push(Cell::default());
        self.due_ns.push(0);
        self.cells.len() - 1
    }

    /// Triggers that have seen nothing.
    pub(super) fn await_triggers(&mut self, count: usize) {
        self.followed = vec![Followed::default(); count];
    }

    /// Room for one unit's keys more; its index.
    pub(super) fn add_slots(&mut self) -> usize {
        self.slots.push(Slots::default());
        self.slots.len() - 1
    }
}

/// The cells of the keys of one unit, or of one trigger. States are copied while it is not known when an epoch began, or what a
/// packet met, so what they have in common is shared: a copy takes as long as there are branches, and a change of it copies one
/// branch and one chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Slots<T: Copy>(BTreeMap<u32, Arc<Branch<T>>>);

/// Chunks that stand side by side.
type Branch<T> = [Option<Arc<Chunk<T>>>; BRANCH as usize];
/// Cells that do.
type Chunk<T> = [Slot<T>; CHUNK as usize];

const CHUNK: u32 = 16;
const BRANCH: u32 = 256;

/// The cell of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slot<T> {
    /// 0 while it is nobody's.
    print: u32,
    /// Whose it is: what the switch cannot tell.
    owner: u64,
    /// The sequence number with which its last connection began.
    pub born: u32,
    pub cell: T,
}

/// Where a key's cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is its own.
    Own(u32),
    /// It is nobody's, and would become its own.
    Free(u32),
    /// There is none.
    Nowhere,
}

impl<T: Copy + Default> Slots<T> {
    /// Where the cell of a key is: the first of its places that is its own, or empty.
    #[inline]
    pub fn place(&self, hash: &KeyHash, salt: u32, bits: u32) -> Place {
        let print = hash.print(salt);
        let mut cells = hash.cells(salt, bits).into_iter();
        let found = cells.find_map(|at| match self.get(at).print {
            0 => Some(Place::Free(at)),
            held if held == print => Some(Place::Own(at)),
            _ => None,
        });
        found.unwrap_or(Place::Nowhere)
    }

    /// What stands in a place.
    #[inline]
    pub fn get(&self, at: u32) -> Slot<T> {
        let (branch, chunk, cell) = parts(at);
        let chunk = self
            .0
            .get(&branch)
            .and_then(|branch| branch[chunk].as_ref());
        chunk.map_or_else(Slot::default, |chunk| chunk[cell])
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut Slot<T> {
        let (branch, chunk, cell) = parts(at);
        let branch = self.0.entry(branch);
        let branch = branch.or_insert_with(|| Arc::new(std::array::from_fn(|_| None)));
        let chunk = &mut Arc::make_mut(branch)[chunk];
        let chunk = chunk.get_or_insert_with(|| Arc::new([Slot::default(); CHUNK as usize]));
        &mut Arc::make_mut(chunk)[cell]
    }

    /// Gives a place that is nobody's to a key.
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

    /// The cell of a key, which takes one if it has none; `None` if there is none to be had.
    #[inline]
    pub fn find(&mut self, hash: &KeyHash, salt: u32, bits: u32) -> Option<&mut Slot<T>> {
        match self.place(hash, salt, bits) {
            Place::Own(at) => Some(self.get_mut(at)),
            Place::Free(at) => Some(self.take(at, hash, salt)),
            Place::Nowhere => None,
        }
    }
}

/// In which branch, chunk and cell of that a number's is.
#[inline]
fn parts(at: u32) -> (u32, usize, usize) {
    let (chunk, cell) = (at / CHUNK, at % CHUNK);
    (chunk / BRANCH, (chunk % BRANCH) as usize, cell as usize)
}

impl<T> Slot<T> {
    /// Whether it is that of another key, which the switch takes for this one.
    #[inline]
    pub fn is_of_another(&self, hash: &KeyHash) -> bool {
        self.owner != owner(hash)
    }
}

/// Tells keys apart that have the same print.
#[inline]
fn owner(hash: &KeyHash) -> u64 {
    let chunks = hash.key.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_be_bytes(word)
    });
    chunks.fold(0, |owner, word| decision::mix(owner ^ word))
}
