//! Register cells in which a switch sums: which chunk each cell holds, and which workers have contributed to it.

use super::switch_jobs::SummedJob;

/// Contents of the register cells in which a switch sums. Each aggregation slot has two: cells 2 × slot and 2 × slot + 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cells {
    /// Number of the chunk that each cell holds, by cell index.
    pub owners: Vec<u32>,
    /// Bitmap of the workers that have contributed to each cell, by cell index.
    pub bitmaps: Vec<u64>,
}

/// A register cell that belongs to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Number of the cell's slot, counted from the job's first slot.
    pub slot: u32,
    /// Number of the chunk that the cell holds.
    pub chunk: u32,
    /// Bitmap of the workers that have contributed to the chunk.
    pub bitmap: u64,
}

impl Cells {
    fn at(&self, job: &SummedJob, index: usize) -> Option<Cell> {
        Some(Cell {
            slot: (index as u32 / 2).checked_sub(job.base)?,
            chunk: *self.owners.get(index)?,
            bitmap: *self.bitmaps.get(index)?,
        })
    }

    /// The register cells that belong to a job.
    pub fn of<'a>(&'a self, job: &'a SummedJob) -> impl Iterator<Item = Cell> + 'a {
        let first = 2 * job.base as usize;
        let last = first + 2 * job.window as usize;
        // A job's entry may name more cells than exist.
        (first..last.min(self.owners.len())).filter_map(|index| self.at(job, index))
    }

    /// The register cell in which the switch sums `chunk`, even if it holds another chunk now; `None` if there is no such cell.
    pub fn for_chunk(&self, job: &SummedJob, chunk: u32) -> Option<Cell> {
        self.at(job, job.cell(chunk))
    }

    /// Cells whose chunk has contributions of some members of the job, but not of all; the oldest chunk first.
    pub fn incomplete(&self, job: &SummedJob) -> Vec<Cell> {
        let cells = self.of(job);
        let some = cells.filter(|cell| cell.bitmap != 0 && cell.bitmap & job.all != job.all);
        let mut some: Vec<Cell> = some.collect();
        if let Some(newest) = some.iter().map(|cell| cell.chunk).reduce(newer) {
            // Chunk numbers wrap: a chunk is older, the farther it is behind the newest.
            some.sort_by_key(|cell| std::cmp::Reverse(newest.wrapping_sub(cell.chunk)));
        }
        some
    }

    /// Number of the newest chunk to which the member with this worker number has contributed; `None` if no cell shows one.
    pub fn last_of(&self, job: &SummedJob, member: u16) -> Option<u32> {
        let own = self.of(job).filter(|cell| cell.bitmap >> member & 1 == 1);
        own.map(|cell| cell.chunk).reduce(newer)
    }
}

/// Returns the later of two chunk numbers, in serial arithmetic (chunk numbers wrap around).
fn newer(one: u32, other: u32) -> u32 {
    match (one.wrapping_sub(other) as i32) < 0 {
        true => other,
        false => one,
    }
}
