//! Deadlines: what is there of a chunk after some time is its sum, and who is late is told so.
//!
//! A rank whose chunk waits for longer than the deadline asks the switch who is there. If so many are that the quorum is
//! reached, it sends its values once more with `CLOSE`: the switch sends all ranks the sum of those who are there, and nothing
//! is added to it afterwards. A late rank's values are answered with that sum. So all ranks take the same sum, of the same
//! contributors.
//!
//! Who is late may be behind by more than the switch remembers. So every rank keeps the last sums of each slot, and nobody
//! closes a chunk that somebody would miss which no rank keeps any more.
//!
//! A switch that restarts has forgotten what it closed. Its cells are no longer *opened*, and there frames count no more that
//! are of a chunk which may be closed ([`Flags::TIMED`]). A rank that is told so sends the chunk's values without that flag, and
//! takes from then on no partial sum but one that another rank has taken and kept. If somebody has taken one, he never sends
//! his values again, so the chunk is not complete without him, and all have it from him; if nobody has, nobody will, and the
//! chunk is complete when all have sent it. Either way it has one sum.

use std::collections::BTreeMap;

use wire::{Flags, Repr};

use super::lane::Attempt;
use super::operation::Operation;
use super::peers::Word;
use super::{Lane, NonFinite, Rank, Received, Reduction, Sums, Values};
use crate::job::{Job, Place, WorkerId, WorkerSet};
use crate::lanes::Send;

/// So often the switch is asked at most.
const LEAST_PACE_NS: u64 = 100_000;
/// A chunk that is not the oldest is asked for at half the pace each time, so often.
const MOST_HALVINGS: u32 = 6;
/// A late rank asks so many others at a time for a sum that the switch has overwritten.
const ASKED_FOR_KEPT: u16 = 2;
/// Tensors whose late parts are remembered.
const MAX_KEYS: usize = 4096;
/// The others close a chunk when they were told so often that it can be: the first of those who are there does it at once.
pub const TOLD_BEFORE_HELPING: u32 = 2;

/// What becomes of values that came too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Carry {
    /// They are dropped, and counted.
    #[default]
    Drop,
    /// They are added to those of the next operation of the same [`key`](super::Reduction::key). Those of an operation without a
    /// key are dropped.
    NextRound,
}

/// When a sum is made of fewer than all. All ranks must say the same, but for `carry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lateness {
    deadline_ns: u64,
    quorum: u16,
    carry: Carry,
    keeps: u32,
}

/// Why a job cannot have such a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LatenessError {
    /// With all there is nothing to close, with none nothing to sum.
    #[error("a quorum of {quorum} of {ranks} ranks: it must be at least 1, and less than all")]
    Quorum {
        /// What was said.
        quorum: u16,
        /// How many there are.
        ranks: u16,
    },
    /// A switch of a tree does not know who is missing elsewhere.
    #[error("on a tree of switches there are no deadlines")]
    Tree,
    /// A rank that is late could not be told what it missed.
    #[error("at least 2 sums of each slot have to be kept")]
    Keeps,
}

impl Lateness {
    /// So much of sums is kept if nothing else is said, and so many of each slot at most.
    const KEPT_BYTES: u64 = 64 << 20;
    const MOST_KEPT: u64 = 4096;

    /// A chunk that `quorum` ranks have sent is closed when so much time has passed since one of them did. With a deadline of 0
    /// the sum is that of the fastest.
    pub fn new(
        job: &Job,
        place: Place,
        deadline_ns: u64,
        quorum: u16,
        carry: Carry,
    ) -> Result<Self, LatenessError> {
        let ranks = job.workers();
        if !place.is_flat(job) {
            return Err(LatenessError::Tree);
        }
        if !(1..ranks).contains(&quorum) {
            return Err(LatenessError::Quorum { quorum, ranks });
        }
        Ok(Self {
            deadline_ns,
            quorum,
            carry,
            keeps: {
                let of_window = u64::from(job.window()) * job.max_frame_len() as u64;
                (Self::KEPT_BYTES / of_window).clamp(2, Self::MOST_KEPT) as u32
            },
        })
    }

    /// The same, but another number of sums is kept of each slot. A rank that is behind by as many stops the others.
    pub fn keeping(self, keeps: u32) -> Result<Self, LatenessError> {
        match keeps {
            0 | 1 => Err(LatenessError::Keeps),
            keeps => Ok(Self { keeps, ..self }),
        }
    }

    /// Sums that are kept of each slot.
    pub fn keeps(&self) -> u32 {
        self.keeps
    }
}

/// A chunk whose sum is not that of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partial {
    /// Which of the operation's chunks.
    pub index: usize,
    /// Whose values are in it.
    pub contributors: WorkerSet,
}

/// What a rank of a job with deadlines knows.
#[derive(Debug, Clone)]
pub struct Late {
    pub config: Lateness,
    ranks: usize,
    /// The switch has opened cells, as far as it was told.
    pub is_opened: bool,
    /// By lane and rank, from which chunk on that rank may miss sums: it has contributed to that one.
    pub needs_from: Vec<u64>,
    /// By key, what came too late.
    pub residuals: BTreeMap<u64, Values>,
}

impl Late {
    pub fn new(config: Lateness, job: &Job) -> Self {
        let ranks = usize::from(job.workers());
        let lanes = u64::from(job.window());
        Self {
            config,
            ranks,
            is_opened: true,
            needs_from: (0..lanes)
                .flat_map(|lane| std::iter::repeat_n(lane, ranks))
                .collect(),
            residuals: BTreeMap::new(),
        }
    }

    /// How often the switch is asked.
    fn pace_ns(&self) -> u64 {
        (self.config.deadline_ns / 4).max(LEAST_PACE_NS)
    }
}

impl Rank {
    /// How a lane's chunk is first sent: of one that others are far ahead of the switch has no sum any more.
    pub(super) fn first_send(&mut self, slot: usize) -> Send {
        let window = u64::from(self.job.window());
        let lane = &mut self.lanes[slot];
        lane.is_timed = self.late.as_ref().is_some_and(|late| late.is_opened);
        match lane.seen > lane.sequence + window {
            true => Send::Probe,
            false => Send::Values,
        }
    }

    /// A lane has sent: when it asks whether its chunk can be closed.
    pub(super) fn plan_closing(&mut self, now_ns: u64, slot: usize, is_first: bool) {
        let Some(late) = &self.late else {
            return;
        };
        let lane = &mut self.lanes[slot];
        if !lane.is_timed {
            return;
        }
        if is_first {
            lane.closable_ns = now_ns.saturating_add(late.config.deadline_ns);
            lane.closing_ns = lane.closable_ns.max(now_ns.saturating_add(LEAST_PACE_NS));
        } else {
            let halvings = lane.asks.saturating_sub(1).min(MOST_HALVINGS);
            let pace_ns = late.pace_ns() << halvings;
            lane.closing_ns = lane.closable_ns.max(now_ns.saturating_add(pace_ns));
        }
        let closing_ns = lane.closing_ns;
        self.lanes.wake_at(closing_ns);
    }

    /// Asks for chunks whose deadline is over. That is not a timeout: nothing is taken for lost.
    pub(super) fn check_closing(&mut self, now_ns: u64) {
        let Some(late) = &self.late else {
            return;
        };
        let pace_ns = late.pace_ns();
        let timed = self.lanes.in_flight().filter(|lane| lane.is_timed);
        let oldest = timed.map(|lane| lane.first_order).min();
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if !lane.is_quiet() || !lane.is_timed {
                continue;
            }
            // The oldest is asked for at the whole pace.
            if oldest == Some(lane.first_order) && lane.asks > 0 {
                let next_ns = lane.sent_at_ns.saturating_add(pace_ns);
                lane.closing_ns = lane.closing_ns.min(next_ns.max(lane.closable_ns));
            }
            if now_ns < lane.closing_ns {
                let closing_ns = lane.closing_ns;
                self.lanes.wake_at(closing_ns);
                continue;
            }
            lane.asks += 1;
            self.counters.deadlines += 1;
            self.lanes.enqueue(slot, Send::Probe);
        }
    }

    /// A chunk was closed: those behind it that were asked for are likely to have the same contributors by now.
    pub(super) fn hurry(&mut self, now_ns: u64) {
        if self.late.is_none() {
            return;
        }
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if lane.is_quiet() && lane.asks > 0 {
                let closing_ns = now_ns.max(lane.closable_ns);
                lane.closing_ns = closing_ns;
                self.lanes.wake_at(closing_ns);
            }
        }
    }

    /// What a switch says to a probe, if it is of interest here.
    pub(super) fn told_of_closable(
        &mut self,
        now_ns: u64,
        slot: usize,
        repr: &Repr,
    ) -> Option<Received> {
        let late = self.late.as_mut()?;
        let lane = &mut self.lanes[slot];
        if !lane.is_timed {
            return None;
        }
        if !repr.flags.contains(Flags::TIMED) {
            late.is_opened = false;
            lane.is_timed = false;
            self.counters.forgotten += 1;
            self.lanes.enqueue(slot, Send::Values);
            return Some(Received::Told);
        }
        if repr.flags.contains(Flags::AGAIN) || now_ns < lane.closable_ns {
            return None;
        }
        let present = WorkerSet(repr.contributors).union(WorkerSet::only(self.rank));
        let missing = self.job.everyone().without(present);
        let is_reached = present.len() >= usize::from(late.config.quorum);
        // All that somebody may miss afterwards is kept, this chunk's sum included.
        let window = u64::from(self.job.window());
        let needs_from = &late.needs_from[slot * late.ranks..];
        let kept_from = lane
            .sequence
            .saturating_sub(u64::from(late.config.keeps - 1) * window);
        let is_kept = |rank: WorkerId| needs_from[usize::from(rank.0)] >= kept_from;
        if !is_reached || missing.is_empty() || !missing.iter().all(is_kept) {
            return None;
        }
        let is_first = present.iter().next() == Some(self.rank);
        if !is_first && lane.asks < TOLD_BEFORE_HELPING {
            return None;
        }
        lane.others_missing = 0;
        lane.misses = WorkerSet::EMPTY;
        self.lanes.enqueue(slot, Send::Close);
        Some(Received::Told)
    }

    /// What a switch says to a probe of a chunk that its cell is past: others may be ahead, and have kept its sum. Otherwise
    /// another use of the job has begun.
    pub(super) fn asks_for_kept(&mut self, now_ns: u64, slot: usize, repr: &Repr) -> bool {
        let Some(late) = &self.late else {
            return false;
        };
        let ahead = (repr.contributors as u32).wrapping_neg();
        let most = u64::from(late.config.keeps + 2) * u64::from(self.job.window());
        if u64::from(ahead) > most {
            return false;
        }
        let lane = &mut self.lanes[slot];
        lane.silences = 0;
        let (timeouts, sequence) = (lane.timeouts, lane.sequence);
        let deadline_ns = now_ns.saturating_add(self.lanes.rtt.timeout_ns(timeouts));
        self.lanes.wait_until(slot, deadline_ns);
        let chunk = self.job.chunk(sequence);
        if let Some(peers) = &mut self.peers {
            for _ in 0..ASKED_FOR_KEPT.min(self.job.workers() - 1) {
                let peer = peers.in_turn();
                peers.say(peer, Word::Ask(chunk));
            }
        }
        true
    }

    /// A sum has come of a chunk that this rank has not sent: it is late.
    pub(super) fn see(&mut self, slot: usize, sequence: u64) -> Received {
        if self.late.is_none() {
            return Received::Malformed;
        }
        let lane = &mut self.lanes[slot];
        lane.seen = lane.seen.max(sequence);
        self.counters.early += 1;
        Received::Early
    }

    /// Whether a sum of these may be this chunk's; `None` if it could have been, before the switch forgot its cells.
    pub(super) fn takes(&self, slot: usize, repr: &Repr, everyone: WorkerSet) -> Option<bool> {
        let contributors = WorkerSet(repr.contributors);
        if contributors == everyone {
            return Some(true);
        }
        let Some(late) = &self.late else {
            return Some(false);
        };
        let is_possible = contributors.without(self.job.everyone()).is_empty()
            && contributors.len() >= usize::from(late.config.quorum);
        if !is_possible {
            return Some(false);
        }
        let may = self.lanes[slot].is_timed || repr.flags.contains(Flags::KEPT);
        may.then_some(true)
    }

    /// Whether this rank's values are in a sum.
    pub(super) fn is_in(&self, contributors: WorkerSet) -> bool {
        self.late.is_none() || contributors.contains(self.rank)
    }

    /// Whose values are in a sum: all, unless the job has deadlines.
    pub(super) fn shares(&self, contributors: WorkerSet) -> u16 {
        match &self.late {
            None => self.job.workers(),
            Some(_) => contributors.len() as u16,
        }
    }

    /// Takes note of who has contributed to a chunk: they have all sums before it.
    pub(super) fn note_contributors(&mut self, slot: usize, contributors: WorkerSet) {
        let sequence = self.lanes[slot].sequence;
        if let Some(late) = &mut self.late {
            let of_lane = &mut late.needs_from[slot * late.ranks..(slot + 1) * late.ranks];
            for rank in contributors.iter() {
                if let Some(needs_from) = of_lane.get_mut(usize::from(rank.0)) {
                    *needs_from = sequence;
                }
            }
        }
    }

    /// Before a chunk's values give way to its sum: what of them is not in it.
    pub(super) fn set_aside(
        &mut self,
        slot: usize,
        at: usize,
        index: usize,
        contributors: WorkerSet,
    ) {
        let Some(late) = &self.late else {
            return;
        };
        let is_in = contributors.contains(self.rank);
        let lane = &self.lanes[slot];
        let clips = clips(lane, &self.operations[at], index);
        let operation = &mut self.operations[at];
        if contributors != self.job.everyone() {
            self.counters.partial_chunks += 1;
            // Answers come in any order.
            let before = operation
                .partial
                .partition_point(|other| other.index < index);
            let partial = Partial {
                index,
                contributors,
            };
            operation.partial.insert(before, partial);
        }
        // Who gives nothing is late with nothing.
        if is_in && !clips || !operation.reduction.share.gives() {
            return;
        }
        match is_in {
            true => self.counters.clipped_chunks += 1,
            false => self.counters.late_chunks += 1,
        }
        let carries = late.config.carry == Carry::NextRound
            && operation.reduction.key.is_some()
            && (operation.is_integer() || operation.exponent(index).is_some());
        if carries {
            let kept_back = is_in.then_some(lane.scale);
            operation.set_aside(&self.job, index, kept_back);
        } else {
            self.counters.dropped_chunks += 1;
        }
    }

    /// Adds to an operation's values what came too late of the one before of the same key.
    pub(super) fn add_residual(&mut self, values: &mut Values, reduction: Reduction) -> bool {
        // Of one that gives nothing it stays for the next.
        let key = reduction.key.filter(|_| reduction.share.gives());
        let (Some(late), Some(key)) = (&mut self.late, key) else {
            return false;
        };
        let Some(residual) = late.residuals.remove(&key) else {
            return false;
        };
        let is_added = values.add(&residual);
        match is_added {
            true => self.counters.carried += 1,
            false => self.counters.lost_residuals += 1,
        }
        is_added
    }

    /// An operation is done: its outcome, and what of it came too late is remembered.
    pub(super) fn finish(&mut self, operation: Operation) -> Result<Sums, NonFinite> {
        let (key, is_carrying) = (operation.reduction.key, operation.is_carrying);
        let (outcome, residual) = operation.finish();
        // What had joined it is in no sum.
        self.counters.lost_residuals += u64::from(is_carrying && outcome.is_err());
        self.keep_residual(key, residual);
        outcome
    }

    fn keep_residual(&mut self, key: Option<u64>, residual: Option<Values>) {
        let (Some(late), Some(key), Some(residual)) = (&mut self.late, key, residual) else {
            return;
        };
        // One that was given before this one was done has left what it found.
        if let Some(left) = late.residuals.get_mut(&key) {
            if !left.add(&residual) {
                self.counters.lost_residuals += 1;
            }
        } else if late.residuals.len() < MAX_KEYS {
            late.residuals.insert(key, residual);
        } else {
            self.counters.lost_residuals += 1;
        }
    }

    /// What came too late and has not joined an operation yet, by key.
    pub fn residuals(&self) -> impl Iterator<Item = (u64, &Values)> {
        let late = self.late.iter();
        late.flat_map(|late| late.residuals.iter().map(|(key, values)| (*key, values)))
    }
}

/// Whether a chunk is sent with a smaller exponent than this rank's values want: the others agreed on it without this rank.
pub(super) fn clips(lane: &Lane, operation: &Operation, index: usize) -> bool {
    let is_agreed = operation.is_long() || lane.attempt == Attempt::Known;
    let wants = operation.exponent(index);
    is_agreed && !operation.is_integer() && wants.is_some_and(|wants| wants > lane.scale)
}
