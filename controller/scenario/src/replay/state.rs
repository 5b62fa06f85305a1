//! What a switch remembers of the packets that came.

use std::collections::BTreeMap;
use std::sync::Arc;

use parser_gen::key::KeyHash;

use super::trigger::Progress;
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
    pub(super) progress: Vec<Progress>,
    /// By unit that numbers keys.
    pub(super) slots: Vec<Slots>,
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
        self.progress = vec![Progress::default(); count];
    }

    /// Room for one unit's keys more; its index.
    pub(super) fn add_slots(&mut self) -> usize {
        self.slots.push(Slots::default());
        self.slots.len() - 1
    }
}

/// The cells of one unit's keys. States are copied while it is not known when an epoch began, so what they have in common is
/// shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Slots(BTreeMap<u32, Arc<[Slot; CHUNK as usize]>>);

const CHUNK: u32 = 64;

/// The cell of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// 0 while it is nobody's.
    print: u32,
    /// Whose it is: what the switch cannot tell.
    owner: u64,
    /// The sequence number with which its last connection began.
    pub born: u32,
    pub cell: Cell,
}

impl Slots {
    /// The cell of a key, which takes one if it has none; `None` if there is none to be had.
    pub fn find(&mut self, hash: &KeyHash, salt: u32, bits: u32) -> Option<&mut Slot> {
        let print = hash.print(salt);
        let is_free = |at: &u32| {
            let chunk = self.0.get(&(at / CHUNK));
            let held = chunk.map_or(0, |chunk| chunk[(at % CHUNK) as usize].print);
            held == 0 || held == print
        };
        let at = hash.cells(salt, bits).into_iter().find(is_free)?;
        let chunk = self.0.entry(at / CHUNK);
        let chunk = Arc::make_mut(chunk.or_insert_with(|| Arc::new([Slot::default(); 64])));
        let slot = &mut chunk[(at % CHUNK) as usize];
        if slot.print == 0 {
            *slot = Slot {
                print,
                owner: owner(hash),
                ..Slot::default()
            };
        }
        Some(slot)
    }
}

impl Slot {
    /// Whether it is that of another key, which the switch takes for this one.
    pub fn is_of_another(&self, hash: &KeyHash) -> bool {
        self.owner != owner(hash)
    }
}

/// Tells keys apart that have the same print.
fn owner(hash: &KeyHash) -> u64 {
    let chunks = hash.key.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_be_bytes(word)
    });
    chunks.fold(0, |owner, word| decision::mix(owner ^ word))
}
