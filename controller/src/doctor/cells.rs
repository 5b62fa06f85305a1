//! Chunks in the cells of a switch.

use super::switch_jobs::SummedJob;

/// Contents of a switch's cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cells {
    /// The chunk that owns each cell.
    pub owners: Vec<u32>,
    /// Bitmap of the contributors of each cell.
    pub bitmaps: Vec<u64>,
}

/// A cell of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The slot within the job.
    pub slot: u32,
    /// The chunk that owns it.
    pub chunk: u32,
    /// Bitmap of the contributors.
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

    /// The cells of a job.
    pub fn of<'a>(&'a self, job: &'a SummedJob) -> impl Iterator<Item = Cell> + 'a {
        let first = 2 * job.base as usize;
        let last = first + 2 * job.window as usize;
        // A job's entry may name more cells than exist.
        (first..last.min(self.owners.len())).filter_map(|index| self.at(job, index))
    }

    /// The cell of a chunk, whichever chunk owns it.
    pub fn for_chunk(&self, job: &SummedJob, chunk: u32) -> Option<Cell> {
        self.at(job, job.cell(chunk))
    }

    /// Incomplete chunks of a job that have contributions; the oldest first.
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

    /// The newest chunk that a member has contributed to.
    pub fn last_of(&self, job: &SummedJob, member: u16) -> Option<u32> {
        let own = self.of(job).filter(|cell| cell.bitmap >> member & 1 == 1);
        own.map(|cell| cell.chunk).reduce(newer)
    }
}

/// The later of two chunks, in serial arithmetic.
fn newer(one: u32, other: u32) -> u32 {
    match (one.wrapping_sub(other) as i32) < 0 {
        true => other,
        false => one,
    }
}
