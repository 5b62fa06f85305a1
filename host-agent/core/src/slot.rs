//! The register slots of one job, in which a switch sums: `docs/protocol.md`, "What a slot does with an UPDATE".
//!
//! This is the reference for the P4 `Aggregate`; a server uses it where no switch aggregates.

use wire::{Flags, Kind, Packet, Repr, values_i32};

use crate::job::{CellIndex, ChunkId, Job, WorkerId, WorkerSet};
use crate::state::Put;

/// Result of processing an UPDATE in a switch's slots. Its `CellIndex` is that of the register cell that sums the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The frame is not for these slots; no register cell changed.
    Refused(Refusal),
    /// The frame's chunk is older than the chunk that owns the register cell: a delayed duplicate.
    Stale,
    /// The frame is the first of its chunk, which now owns the cell; contributions of other workers are missing.
    TakenOver(CellIndex),
    /// The values were added; contributions of other workers are missing.
    Absorbed(CellIndex),
    /// The values were added and all workers have contributed: the cell holds the sum.
    Completed(CellIndex),
    /// The sender has already contributed and the sum is complete: the sender requests the sum again.
    Again(CellIndex),
    /// The sender has already contributed; contributions of other workers are missing.
    DuplicateIncomplete(CellIndex),
    /// The frame is a probe of the chunk that owns the cell.
    Probed(CellIndex),
    /// The frame is a probe of a chunk older than the cell's owner. The number is the probed chunk minus the owner, modulo 2³².
    ProbedStale(u32),
    /// This frame closed the chunk: the cell holds the sum of the contributions so far.
    Closed(CellIndex),
    /// The chunk was closed before: the cell keeps its sum, and the sender receives it.
    Late(CellIndex),
    /// The chunk may be closed, but its cell is not opened (or no longer, after a restart): the frame's values are not added.
    Forgotten,
}

impl Outcome {
    /// The register cell whose content goes into the outgoing frame; `None` if there is no outgoing frame.
    fn cell(self) -> Option<CellIndex> {
        match self {
            Self::Completed(cell)
            | Self::Again(cell)
            | Self::Probed(cell)
            | Self::Closed(cell)
            | Self::Late(cell) => Some(cell),
            _ => None,
        }
    }

    /// Whether the outgoing frame goes to the sender of the UPDATE alone, whatever destination the UPDATE has.
    pub fn is_for_sender(self) -> bool {
        matches!(self, Self::Late(_))
    }
}

/// Reason why the slots ignore a frame, which then changes no register cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The frame is not an UPDATE: SUMs and RESULTs pass through a switch.
    Kind,
    /// The frame belongs to another job.
    Job,
    /// Slot, version or number of values in the header do not match the chunk number.
    Malformed,
    /// The job has no worker with this number.
    Worker,
}

/// Content of a register cell, which sums one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellView<'a> {
    /// The chunk that is summed in the cell, or was summed last.
    pub owner: ChunkId,
    /// The workers whose contributions are in the sum.
    pub contributors: WorkerSet,
    /// `NON_FINITE` if any contributor set it; the cell keeps no other flag.
    pub flags: Flags,
    /// Largest `next_scale` among the contributors' frames.
    pub next_scale: u8,
    /// The sums. Frames without values leave them unchanged.
    pub values: &'a [i32],
    /// Whether a probe has opened the cell since the switch started: only then may a chunk in it be closed.
    pub is_opened: bool,
    /// Whether the cell's chunk is closed.
    pub is_closed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    owner: ChunkId,
    contributors: WorkerSet,
    flags: Flags,
    next_scale: u8,
    is_opened: bool,
    is_closed: bool,
}

/// The register cells in which a switch (or server) sums the chunks of one job.
#[derive(Debug, Clone)]
pub struct SlotTable {
    job: Job,
    complete: WorkerSet,
    /// Whether the job has deadlines, so that its chunks may be closed.
    has_deadlines: bool,
    cells: Vec<Cell>,
    values: Vec<i32>,
}

impl SlotTable {
    /// Creates the slots of a new job whose workers, at most 64, all contribute to this table: no cell has a contribution, and
    /// each cell's owner is older than the job's first chunk.
    pub fn new(job: Job) -> Self {
        Self::with_children(job, job.workers().min(u16::from(wire::MAX_CHILDREN)) as u8)
    }

    /// Sets the owner of every cell to just before `chunk`, for a job that has already reached that chunk.
    #[must_use]
    pub fn beginning_at(mut self, chunk: ChunkId) -> Self {
        for cell in &mut self.cells {
            cell.owner = chunk.plus(u32::MAX);
        }
        self
    }

    /// Makes this the table of `part`, a part of the same job, with unchanged cells, as a switch does when it receives a new
    /// plan ([`Server::replan`](crate::server::Server::replan)).
    #[must_use]
    pub fn handed_to(self, part: Job) -> Self {
        let new = Self::new(part);
        Self {
            cells: self.cells,
            values: self.values,
            ..new
        }
    }

    /// The slots of one switch in a tree of switches; `children` is the number of workers or switches directly below it.
    pub fn with_children(job: Job, children: u8) -> Self {
        let owner = job.first_chunk().plus(u32::MAX);
        let cell = Cell {
            owner,
            contributors: WorkerSet::EMPTY,
            flags: Flags::NONE,
            next_scale: 0,
            is_opened: false,
            is_closed: false,
        };
        Self {
            job,
            complete: WorkerSet::first(u16::from(children)),
            has_deadlines: false,
            cells: vec![cell; job.cells()],
            values: vec![0; job.cells() * job.values_per_packet()],
        }
    }

    /// Enables deadlines: a chunk may be closed, with the sum of fewer workers, once its cell is opened.
    #[must_use]
    pub fn with_deadlines(mut self) -> Self {
        self.has_deadlines = true;
        self
    }

    /// Opens every cell, as one probe with `CLOSE` per cell would.
    #[must_use]
    pub fn opened(mut self) -> Self {
        self.cells.iter_mut().for_each(|cell| cell.is_opened = true);
        self
    }

    /// Content of a register cell; `None` if the index is beyond the job's cells.
    pub fn cell(&self, cell: CellIndex) -> Option<CellView<'_>> {
        let Cell {
            owner,
            contributors,
            flags,
            next_scale,
            is_opened,
            is_closed,
        } = *self.cells.get(cell.index())?;
        let values = &self.values[self.range(cell)];
        Some(CellView {
            owner,
            contributors,
            flags,
            next_scale,
            values,
            is_opened,
            is_closed,
        })
    }

    /// Clears the chunk's cell and makes its owner older than `chunk`, so that it accepts `chunk` and later chunks.
    pub fn forget(&mut self, chunk: ChunkId) {
        let index = self.job.cell(chunk).index();
        self.cells[index] = Cell {
            owner: chunk.plus(u32::MAX),
            contributors: WorkerSet::EMPTY,
            flags: Flags::NONE,
            next_scale: 0,
            ..self.cells[index]
        };
    }

    /// Appends the complete content of all cells to a serialized state.
    pub fn state(&self, out: &mut Vec<u8>) {
        let Self {
            job: _,
            complete: _,
            has_deadlines: _,
            cells,
            values,
        } = self;
        for cell in cells {
            let Cell {
                owner,
                contributors,
                flags,
                next_scale,
                is_opened,
                is_closed,
            } = cell;
            out.put_u32(owner.0);
            out.put_u64(contributors.0);
            out.put(&[flags.bits(), *next_scale]);
            out.put_u8(u8::from(*is_opened) << 1 | u8::from(*is_closed));
        }
        values.iter().for_each(|value| out.put_u32(*value as u32));
    }

    /// Indices of all register cells of the job.
    pub fn cells(&self) -> impl Iterator<Item = CellIndex> + use<> {
        (0..self.cells.len() as u32).map(CellIndex)
    }

    fn range(&self, cell: CellIndex) -> std::ops::Range<usize> {
        let values = self.job.values_per_packet();
        cell.index() * values..(cell.index() + 1) * values
    }

    /// Processes an UPDATE as a switch does, and returns what it did to the chunk's cell.
    pub fn update<T: AsRef<[u8]>>(&mut self, packet: &Packet<T>) -> Outcome {
        self.handle_update(&Repr::parse(packet), packet.payload())
    }

    /// Like [`update`](Self::update), for an UPDATE that is not in one buffer.
    pub fn handle_update(&mut self, repr: &Repr, payload: &[u8]) -> Outcome {
        if repr.kind != Kind::Update {
            return Outcome::Refused(Refusal::Kind);
        }
        if repr.job != self.job.id().0 {
            return Outcome::Refused(Refusal::Job);
        }
        if !self.job.is_well_formed(repr) {
            return Outcome::Refused(Refusal::Malformed);
        }
        if !self.complete.contains(WorkerId(repr.worker)) {
            return Outcome::Refused(Refusal::Worker);
        }

        let chunk = ChunkId(repr.chunk);
        let index = self.job.cell(chunk);
        let sender = WorkerId(repr.worker);
        let range = self.range(index);
        let cell = &mut self.cells[index.index()];

        let is_probe = repr.flags.contains(Flags::PROBE);
        let is_timed = self.has_deadlines && repr.flags.contains(Flags::TIMED);
        let may_mark = self.has_deadlines && repr.flags.contains(Flags::CLOSE);
        // A probe opens the cell whichever chunk owns it.
        cell.is_opened |= may_mark && is_probe;
        if chunk.is_older_than(cell.owner) {
            return match is_probe {
                true => Outcome::ProbedStale(chunk.0.wrapping_sub(cell.owner.0)),
                false => Outcome::Stale,
            };
        }
        if self.has_deadlines && chunk == cell.owner && cell.is_closed {
            return match is_probe {
                true => Outcome::Probed(index),
                false => Outcome::Late(index),
            };
        }
        // A timed frame does not count after a restart: the switch may have counted it before and forgotten it.
        let is_forgotten = is_timed && !cell.is_opened;
        let closes = may_mark && is_timed && !is_probe && !is_forgotten;
        // A probe or forgotten frame contributes nothing: the first contributor takes an empty cell over once more.
        let adds = !is_probe && !is_forgotten;
        if adds && chunk == cell.owner && cell.contributors.contains(sender) {
            if closes {
                cell.is_closed = true;
                return Outcome::Closed(index);
            }
            return if cell.contributors == self.complete {
                Outcome::Again(index)
            } else {
                Outcome::DuplicateIncomplete(index)
            };
        }

        let (non_finite, next_scale) = match is_forgotten && !is_probe {
            true => (Flags::NONE, 0),
            false => (repr.flags & Flags::NON_FINITE, repr.next_scale),
        };
        // The values of a cell without contributors are leftovers, which nothing is ever added to.
        let is_first = chunk != cell.owner || cell.contributors.is_empty();
        let added = match adds {
            true => WorkerSet::only(sender),
            false => WorkerSet::EMPTY,
        };
        if is_first {
            *cell = Cell {
                owner: chunk,
                contributors: added,
                flags: non_finite,
                next_scale,
                is_opened: cell.is_opened,
                is_closed: closes,
            };
        } else {
            cell.contributors = cell.contributors.union(added);
            cell.flags |= non_finite;
            cell.next_scale = cell.next_scale.max(next_scale);
            cell.is_closed = closes;
        }
        if is_probe {
            return Outcome::Probed(index);
        }
        if is_forgotten {
            return Outcome::Forgotten;
        }
        let complete = cell.contributors == self.complete;

        // A frame without values ends the zip at once.
        let sums = self.values[range].iter_mut().zip(values_i32(payload));
        if is_first {
            sums.for_each(|(sum, value)| *sum = value);
        } else {
            sums.for_each(|(sum, value)| *sum = sum.wrapping_add(value));
        }

        if closes {
            return Outcome::Closed(index);
        }
        match (complete, is_first) {
            (true, _) => Outcome::Completed(index),
            (false, true) => Outcome::TakenOver(index),
            (false, false) => Outcome::Absorbed(index),
        }
    }

    /// Turns an UPDATE with this outcome into the switch's SUM, in place. The frame keeps its length and the fields that the
    /// slot does not know (worker, transmission, scale). Returns `false` if the outcome sends no SUM.
    pub fn make_sum<T: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        outcome: Outcome,
        packet: &mut Packet<T>,
    ) -> bool {
        if let Outcome::ProbedStale(behind) = outcome {
            let told = Repr {
                kind: Kind::Sum,
                flags: packet.flags() & Self::of_chunk(),
                contributors: u64::from(behind),
                // A probe has no values that need a scale; 1 marks a newer owner.
                scale: 1,
                ..Repr::parse(packet)
            };
            told.emit(packet);
            return true;
        }
        let Some(cell) = outcome.cell().and_then(|index| self.cell(index)) else {
            return false;
        };
        self.write(Kind::Sum, outcome, cell, packet);
        true
    }

    /// For a switch in a tree: turns an UPDATE whose chunk is complete here into the UPDATE for the switch above, where this
    /// switch has the number `child`. Returns `false` if nothing is to be sent.
    pub fn make_update<T: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        outcome: Outcome,
        child: WorkerId,
        packet: &mut Packet<T>,
    ) -> bool {
        let cell = outcome.cell().and_then(|index| self.cell(index));
        let Some(cell) = cell.filter(|cell| cell.contributors == self.complete) else {
            return false;
        };
        self.write(Kind::Update, outcome, cell, packet);
        packet.set_worker(child.0);
        true
    }

    /// Mask of the flags that belong to the chunk, not to the single frame.
    const fn of_chunk() -> Flags {
        Flags::from_bits(Flags::SCALE_ONLY.bits() | Flags::VERSION.bits() | Flags::PROBE.bits())
    }

    fn write<T: AsRef<[u8]> + AsMut<[u8]>>(
        &self,
        kind: Kind,
        outcome: Outcome,
        cell: CellView<'_>,
        packet: &mut Packet<T>,
    ) {
        let again = match outcome {
            // `AGAIN` reports that the chunk is complete or closed.
            Outcome::Probed(_) => cell.contributors == self.complete || cell.is_closed,
            Outcome::Again(_) | Outcome::Late(_) => true,
            _ => false,
        };
        let is_opened =
            self.has_deadlines && matches!(outcome, Outcome::Probed(_)) && cell.is_opened;
        let from_chunk = packet.flags() & Self::of_chunk();
        let repr = Repr {
            kind,
            flags: (cell.flags | from_chunk)
                .with(Flags::AGAIN, again)
                .with(Flags::TIMED, is_opened),
            contributors: cell.contributors.0,
            next_scale: cell.next_scale,
            ..Repr::parse(packet)
        };
        repr.emit(packet);
        packet.write_i32(cell.values.iter().copied());
    }
}
