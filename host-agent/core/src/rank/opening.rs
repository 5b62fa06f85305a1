//! Opening of a job: finds a chunk number from which on the switch's cells are free.
//!
//! A job that restarts at number 0 in cells that an earlier use left at 5000 would find all its frames stale. So before the job
//! begins, one rank probes each cell. A cell without contributions, whose chunk is older than the probed one, is free; any
//! other cell answers how far it has advanced. The job's first chunk lies beyond them all.

use wire::{Flags, Kind, Repr};

use super::DROPS;
use crate::job::{ChunkId, Job, TreePosition};
use crate::rto::Retransmission;

/// Probes of a job's cells, which find the first chunk number that is free in all of them.
#[derive(Debug, Clone)]
pub struct Opening {
    job: Job,
    place: TreePosition,
    config: Retransmission,
    /// Whether the probes also open the cells, so that chunks may be closed.
    has_deadlines: bool,
    is_refused: bool,
    /// Whether each cell has answered its probe; the index is the probed chunk minus the job's first chunk.
    answered: Vec<bool>,
    unanswered: usize,
    /// Distance of the furthest chunk in any cell beyond the job's first chunk.
    used: u32,
    next: usize,
    timeouts: u32,
    /// Time at which cells without an answer are probed again; `None` until all cells were probed once.
    due_ns: Option<u64>,
}

/// Reason why a job cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// The switch did not answer the probes.
    #[error(
        "the switch did not answer within {0} timeouts: check that it sums for this job at this port; {drops}",
        drops = DROPS
    )]
    Silent(u32),
    /// The job has a deadline, but the switch does not support deadlines for it.
    #[error(
        "the switch makes no partial sums for this job: set `deadline` for the job at the switch"
    )]
    NoDeadlines,
}

impl Opening {
    /// Prepares probes of all cells, from the job's first chunk number on.
    pub fn new(job: Job, place: TreePosition, config: Retransmission) -> Self {
        Self {
            job,
            place,
            config,
            has_deadlines: false,
            is_refused: false,
            answered: vec![false; job.cells()],
            unanswered: job.cells(),
            used: 0,
            next: 0,
            timeouts: 0,
            due_ns: None,
        }
    }

    /// Makes the probes open each cell, too, for a job with deadlines. No probe may outlive a restart of the switch.
    #[must_use]
    pub fn with_deadlines(mut self) -> Self {
        self.has_deadlines = true;
        self
    }

    /// The first chunk number that the job may use; `None` until all cells have answered.
    pub fn first_chunk(&self) -> Option<ChunkId> {
        let first = self.job.first_chunk();
        if self.unanswered > 0 {
            return None;
        }
        if self.used == 0 {
            return Some(first);
        }
        // Other switches of a tree may be ahead of this one by the chunks in flight; slots are found by masking.
        let cells = self.job.cells() as u32;
        let beyond = self.used.wrapping_add(2 * cells);
        Some(first.plus(beyond.checked_next_multiple_of(cells).unwrap_or(0)))
    }

    /// The next probe, a frame without payload, to be sent to this rank by way of the switch; `None` if no probe is due.
    pub fn poll_transmit(&mut self, now_ns: u64) -> Option<Repr> {
        while self.next < self.answered.len() {
            let offset = self.next;
            self.next += 1;
            if self.answered[offset] {
                continue;
            }
            let mut repr = self.job.probe(offset as u64, self.place.child);
            repr.flags = repr.flags.with(Flags::CLOSE, self.has_deadlines);
            return Some(repr);
        }
        if self.due_ns.is_none() && self.unanswered > 0 {
            let timeout = self.config.initial_ns.min(self.config.ceiling_ns);
            self.due_ns = Some(now_ns.saturating_add(timeout));
        }
        None
    }

    /// The probed chunk whose number has these low 16 bits.
    pub fn near(&self, low: u16) -> ChunkId {
        let first = self.job.first_chunk();
        first.plus(low.wrapping_sub(first.0 as u16).into())
    }

    /// Processes the header of a received frame: the switch's answer to a probe.
    pub fn handle_frame(&mut self, repr: &Repr) {
        let is_answer = repr.kind == Kind::Sum
            && repr.job == self.job.id().0
            && repr.flags.contains(Flags::PROBE)
            && repr.worker == self.place.child.0;
        let offset = repr.chunk.wrapping_sub(self.job.first_chunk().0) as usize;
        if !is_answer || self.answered.get(offset) != Some(&false) {
            return;
        }
        // The answer of a cell that is ahead does not show whether deadlines are supported.
        self.is_refused |=
            self.has_deadlines && repr.scale == 0 && !repr.flags.contains(Flags::TIMED);
        self.answered[offset] = true;
        self.unanswered -= 1;
        let used = match (repr.scale, repr.contributors) {
            // The cell was taken over: it was older and is empty.
            (0, 0) => return,
            // Another use of the job has contributed to this very chunk.
            (0, _) => offset as u32 + 1,
            // The cell is ahead: the difference is negative.
            (_, behind) => (offset as u32).wrapping_sub(behind as u32).wrapping_add(1),
        };
        self.used = self.used.max(used);
    }

    /// Time at which the driver must call [`handle_timeout`](Self::handle_timeout); `None` if never.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.due_ns
    }

    /// Probes cells without an answer again if they are due at `now_ns`; fails after too many timeouts.
    pub fn handle_timeout(&mut self, now_ns: u64) -> Result<(), OpeningError> {
        if self.is_refused {
            return Err(OpeningError::NoDeadlines);
        }
        if self.due_ns.is_some_and(|due_ns| now_ns >= due_ns) {
            self.timeouts += 1;
            if self.timeouts >= self.config.max_timeouts {
                return Err(OpeningError::Silent(self.timeouts));
            }
            self.next = 0;
            self.due_ns = None;
        }
        Ok(())
    }
}
