//! Before a job begins: from which chunk number on are the switch's cells free?
//!
//! A job that begins again at number 0 in cells that an earlier use left at 5000 would find all its frames stale. So one rank
//! asks for each cell by a probe. A cell that is older than the number asked for, and empty, is taken; of any other the answer
//! says how far it has come. The first chunk is beyond them all.

use wire::{Flags, Kind, Packet, Repr};

use super::DROPS;
use crate::job::{ChunkId, Job, Place};
use crate::rto::Retransmission;

/// Asks for the cells of a job.
#[derive(Debug, Clone)]
pub struct Opening {
    job: Job,
    place: Place,
    config: Retransmission,
    /// Cells are opened: their chunks may be closed.
    has_deadlines: bool,
    is_refused: bool,
    /// By offset from the job's first chunk: the cell has answered.
    answered: Vec<bool>,
    unanswered: usize,
    /// How far beyond the job's first chunk the furthest cell is.
    used: u32,
    next: usize,
    timeouts: u32,
    /// When the cells that have not answered are asked again; `None` while some were not asked at all.
    due_ns: Option<u64>,
}

/// Why a job cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// Nothing was heard of the switch.
    #[error(
        "the switch did not answer within {0} timeouts: does it sum for this job, by this port? {drops}",
        drops = DROPS
    )]
    Silent(u32),
    /// The job has a deadline, and the switch knows of none.
    #[error(
        "the switch makes no sums of fewer than all ranks for this job: is `deadline` said there?"
    )]
    NoDeadlines,
}

impl Opening {
    /// Asks from the job's first chunk on.
    pub fn new(job: Job, place: Place, config: Retransmission) -> Self {
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

    /// The same of a job with deadlines: each cell is opened as well. The frames of this must not outlive a restart of the switch.
    #[must_use]
    pub fn with_deadlines(mut self) -> Self {
        self.has_deadlines = true;
        self
    }

    /// The job's first chunk, once it is known.
    pub fn first_chunk(&self) -> Option<ChunkId> {
        let first = self.job.first_chunk();
        if self.unanswered > 0 {
            return None;
        }
        if self.used == 0 {
            return Some(first);
        }
        // Other switches of the tree may be ahead of this one by what can be under way. And slots are found by masking.
        let cells = self.job.cells() as u32;
        let beyond = self.used.wrapping_add(2 * cells);
        Some(first.plus(beyond.checked_next_multiple_of(cells).unwrap_or(0)))
    }

    /// The next probe, written to `buffer`; it goes to this rank itself, by the switch.
    pub fn poll_transmit(&mut self, now_ns: u64, buffer: &mut Vec<u8>) -> bool {
        while self.next < self.answered.len() {
            let offset = self.next;
            self.next += 1;
            if self.answered[offset] {
                continue;
            }
            let mut repr = self.job.header(Kind::Update, offset as u64, true);
            repr.flags = (repr.flags.with(Flags::SCALE_ONLY, false) | Flags::PROBE)
                .with(Flags::CLOSE, self.has_deadlines);
            repr.worker = self.place.child.0;
            buffer.clear();
            buffer.resize(repr.buffer_len(), 0);
            repr.emit(&mut Packet::new_unchecked(&mut buffer[..]));
            return true;
        }
        if self.due_ns.is_none() && self.unanswered > 0 {
            let timeout = self.config.initial_ns.min(self.config.ceiling_ns);
            self.due_ns = Some(now_ns.saturating_add(timeout));
        }
        false
    }

    /// The chunk with these low bits that was asked for, if any was.
    pub fn near(&self, low: u16) -> ChunkId {
        let first = self.job.first_chunk();
        first.plus(low.wrapping_sub(first.0 as u16).into())
    }

    /// Takes a frame in.
    pub fn handle_packet(&mut self, bytes: &[u8]) {
        let Ok(packet) = Packet::new_checked(bytes) else {
            return;
        };
        let repr = Repr::parse(&packet);
        let is_answer = repr.kind == Kind::Sum
            && repr.job == self.job.id().0
            && repr.flags.contains(Flags::PROBE)
            && repr.worker == self.place.child.0;
        let offset = repr.chunk.wrapping_sub(self.job.first_chunk().0) as usize;
        if !is_answer || self.answered.get(offset) != Some(&false) {
            return;
        }
        // Of a cell that is ahead the answer says no more than that.
        self.is_refused |=
            self.has_deadlines && repr.scale == 0 && !repr.flags.contains(Flags::TIMED);
        self.answered[offset] = true;
        self.unanswered -= 1;
        let used = match (repr.scale, repr.contributors) {
            // Taken: the cell was older, and is empty.
            (0, 0) => return,
            // Somebody was here with this very number.
            (0, _) => offset as u32 + 1,
            // The cell is ahead: the difference is negative.
            (_, behind) => (offset as u32).wrapping_sub(behind as u32).wrapping_add(1),
        };
        self.used = self.used.max(used);
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.due_ns
    }

    /// Time has passed.
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
