//! Switches with one defect each: a checker that accepts them is useless.

use std::collections::BTreeMap;

use aggregation::job::{CellIndex, ChunkId, Job, WorkerSet};
use cluster::{CellState, Forwarder, Node, SwitchModel};
use wire::{Flags, Kind, Packet, Repr};

/// Defect of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// No defect: the same code must pass, or the mutants prove nothing.
    None,
    /// Arrivals are counted instead of workers, so that a duplicate counts twice.
    NoBitmap,
    /// A delayed duplicate of an old chunk takes the cell over.
    NoStaleCheck,
    /// A cell is taken over without clearing its values.
    StaleValues,
    /// The slot becomes free only after an acknowledgement, which no node sends.
    NeverFreed,
    /// Chunk 0 means "free".
    ZeroIsFree,
    /// Values are in the host's byte order instead of the network's.
    LittleEndian,
    /// A duplicate for a complete cell is dropped instead of answered.
    NoAgain,
    /// An answer to all goes to the first worker only.
    NoMulticast,
    /// Every completed sum's first value is one too large.
    OffByOne,
}

#[derive(Default, Clone)]
struct Cell {
    owner: Option<u32>,
    contributors: u64,
    arrivals: u32,
    next_scale: u8,
    values: Vec<i32>,
}

/// An independent implementation of a switch, with a defect.
pub struct Mutant {
    job: Job,
    defect: Defect,
    forwarder: Forwarder,
    cells: BTreeMap<u32, Cell>,
}

impl Mutant {
    pub fn new(job: Job, defect: Defect) -> Self {
        Self {
            job,
            defect,
            forwarder: Forwarder::new(job),
            cells: BTreeMap::new(),
        }
    }

    /// The sum to send, and whether it is a repetition.
    fn update(&mut self, repr: &Repr, values: Vec<i32>) -> Option<(Vec<i32>, u8, bool)> {
        let defect = self.defect;
        let everyone = self.job.everyone().0;
        let workers = u32::from(self.job.workers());
        let cell = self
            .cells
            .entry(self.job.cell(ChunkId(repr.chunk)).0)
            .or_default();
        let bit = 1 << repr.worker;

        let owned = cell.owner.is_some_and(|owner| {
            owner == repr.chunk && !(defect == Defect::ZeroIsFree && owner == 0)
        });
        if !owned {
            if let Some(owner) = cell.owner {
                let stale = ChunkId(repr.chunk).is_older_than(ChunkId(owner));
                if stale && defect != Defect::NoStaleCheck || defect == Defect::NeverFreed {
                    return None;
                }
            }
            let mut sums = std::mem::take(&mut cell.values);
            sums.resize(self.job.values_per_packet(), 0);
            for (sum, value) in sums.iter_mut().zip(&values) {
                let old = if defect == Defect::StaleValues {
                    *sum
                } else {
                    0
                };
                *sum = old.wrapping_add(*value);
            }
            *cell = Cell {
                owner: Some(repr.chunk),
                values: sums,
                ..Cell::default()
            };
        } else if cell.contributors & bit != 0 && defect != Defect::NoBitmap {
            let again = cell.contributors == everyone && defect != Defect::NoAgain;
            return again.then(|| (cell.values.clone(), cell.next_scale, true));
        } else if cell.arrivals >= workers {
            return Some((cell.values.clone(), cell.next_scale, true));
        } else {
            cell.values
                .iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum = sum.wrapping_add(value));
        }
        cell.contributors |= bit;
        cell.arrivals += 1;
        cell.next_scale = cell.next_scale.max(repr.next_scale);
        let complete = match defect {
            Defect::NoBitmap => cell.arrivals == workers,
            _ => cell.contributors == everyone,
        };
        complete.then(|| (cell.values.clone(), cell.next_scale, false))
    }
}

impl SwitchModel for Mutant {
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        let packet = Packet::new_checked(payload).unwrap();
        if packet.kind() != Kind::Update {
            let before = out.len();
            self.forwarder.handle(now_ns, from, payload, out);
            if self.defect == Defect::NoMulticast {
                out.truncate(before + 1);
            }
            return;
        }
        let repr = Repr::parse(&packet);
        let little = self.defect == Defect::LittleEndian;
        let swap = |value: i32| if little { value.swap_bytes() } else { value };
        let values = packet.values_i32().map(swap).collect();
        let Some((mut sums, next_scale, again)) = self.update(&repr, values) else {
            return;
        };
        if self.defect == Defect::OffByOne
            && let Some(first) = sums.first_mut()
        {
            *first = first.wrapping_add(1);
        }
        let repr = Repr {
            kind: Kind::Sum,
            flags: repr.flags.with(Flags::AGAIN, again),
            contributors: self.job.everyone().0,
            next_scale,
            ..repr
        };
        let mut sum = vec![0; repr.buffer_len()];
        let mut packet = Packet::new_unchecked(&mut sum[..]);
        repr.emit(&mut packet);
        packet.write_i32(sums.into_iter().map(swap));
        out.push((Node::Server, sum));
    }

    fn cell(&self, index: CellIndex) -> Option<CellState> {
        let cell = self.cells.get(&index.0)?;
        Some(CellState {
            owner: ChunkId(cell.owner?),
            contributors: WorkerSet(cell.contributors),
            flags: 0,
            next_scale: cell.next_scale,
            values: cell.values.clone(),
        })
    }
}
