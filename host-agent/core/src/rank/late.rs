//! Deadlines: after some time a chunk's sum is that of the contributions so far, and late ranks receive that sum, too.
//!
//! A rank whose chunk waits for longer than the deadline probes the switch for the contributors. If they reach the quorum, the
//! rank sends its values once more with `CLOSE`: the switch sends all ranks the sum of the contributors so far, and then adds
//! nothing to it. It answers the values of a late rank with that sum. So all ranks take the same sum of the same contributors.
//!
//! A late rank may be further behind than the switch's memory. So every rank keeps the last sums of each slot, and no rank
//! closes a chunk if a missing rank might then need a sum that is no longer kept.
//!
//! A switch that restarts has forgotten which chunks it closed. Its cells are no longer *opened*, so frames of chunks that
//! may be closed ([`Flags::TIMED`]) do not count. A rank that learns this sends the chunk's values without that flag, and
//! from then on takes a partial sum only from a rank that has kept it. If some rank has taken a partial sum, it never sends
//! its values again, so the chunk cannot complete, and all others get that sum from it. If none has, none will, and the chunk
//! completes when all have sent it. Either way the chunk has one sum.

use std::collections::BTreeMap;

use wire::{Flags, Repr};

use super::lane::Attempt;
use super::operation::Operation;
use super::peers::Word;
use super::{NonFinite, Partial, Rank, RankFrame, RankLane, Reduction, Sums, Values};
use crate::job::{Job, TreePosition, WorkerId, WorkerSet};
use crate::lanes::Send;

/// Minimum interval between a rank's probes of the switch, in nanoseconds.
const LEAST_PACE_NS: u64 = 100_000;
/// Maximum number of halvings of the rate of probes for a chunk. The oldest chunk in flight keeps the full rate.
const MOST_HALVINGS: u32 = 6;
/// Number of ranks that a late rank asks at a time for a sum that the switch has overwritten.
const ASKED_FOR_KEPT: u16 = 2;
/// Maximum number of operation keys (tensors) whose late values are remembered.
const MAX_KEYS: usize = 4096;
/// Number of answers that a chunk can be closed, after which any rank closes it. The contributor of lowest rank need not wait.
pub const TOLD_BEFORE_HELPING: u32 = 2;

/// Treatment of a rank's values that came too late for their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Carry {
    /// Late values are dropped and counted.
    #[default]
    Drop,
    /// Late values are added to the next operation of the same [`key`](super::Reduction::key). Those of an operation without
    /// a key are dropped.
    NextRound,
}

/// Deadline and quorum after which a chunk gets a partial sum. All ranks must have equal settings, except for `carry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lateness {
    deadline_ns: u64,
    quorum: u16,
    carry: Carry,
    keeps: u32,
}

/// Reason why the settings of a deadline are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LatenessError {
    /// The quorum is 0, or not less than the number of ranks.
    #[error(
        "a quorum of {quorum} of {ranks} ranks: a partial sum needs at least 1, and fewer than all"
    )]
    Quorum {
        /// The requested quorum: number of contributions in a partial sum.
        quorum: u16,
        /// The number of ranks in the job.
        ranks: u16,
    },
    /// The job uses a tree of switches, which do not know which ranks are missing elsewhere.
    #[error("a tree of switches does not support deadlines")]
    Tree,
    /// Fewer than 2 sums per slot are kept, so that a late rank could not get a sum that it missed.
    #[error("at least 2 sums per slot must be kept")]
    Keeps,
}

impl Lateness {
    /// Default memory for kept sums in bytes, and maximum number of sums kept per slot.
    const KEPT_BYTES: u64 = 64 << 20;
    const MOST_KEPT: u64 = 4096;

    /// A chunk is closed when `quorum` ranks have contributed and `deadline_ns` has passed since one of them sent it. With a
    /// deadline of 0 the sum is that of the fastest ranks.
    pub fn new(
        job: &Job,
        place: TreePosition,
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

    /// Sets the number of past sums that each rank keeps per slot, at least 2. Others wait for a rank that is further behind.
    pub fn keeping(self, keeps: u32) -> Result<Self, LatenessError> {
        match keeps {
            0 | 1 => Err(LatenessError::Keeps),
            keeps => Ok(Self { keeps, ..self }),
        }
    }

    /// Number of sums that each rank keeps per slot.
    pub fn keeps(&self) -> u32 {
        self.keeps
    }
}

/// A rank's state in a job with deadlines (partial sums).
#[derive(Debug, Clone)]
pub struct Late {
    pub config: Lateness,
    ranks: usize,
    /// Whether the switch's cells are opened (their chunks may be closed), by the switch's last answer.
    pub is_opened: bool,
    /// For each lane and rank: the last chunk that the rank contributed to. The rank may need the sum of it, and later ones.
    pub needs_from: Vec<u64>,
    /// Values that came too late for their sum, by operation key.
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

    /// Interval between probes of the oldest chunk in flight, in nanoseconds.
    fn pace_ns(&self) -> u64 {
        (self.config.deadline_ns / 4).max(LEAST_PACE_NS)
    }
}

impl Rank {
    /// Kind of a lane's first transmission: its values, or a probe if the switch has already overwritten the chunk's sum.
    pub(super) fn first_send(&mut self, slot: usize) -> Send {
        let window = u64::from(self.job.window());
        let lane = &mut self.lanes[slot];
        lane.is_timed = self.late.as_ref().is_some_and(|late| late.is_opened);
        match lane.seen > lane.sequence + window {
            true => Send::Probe,
            false => Send::Values,
        }
    }

    /// After a transmission: schedules the probe by which the rank learns whether the chunk can be closed.
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

    /// Probes the switch for chunks whose deadline has passed. Unlike a timeout, this does not count as a loss.
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
            // The oldest chunk is probed at the full rate.
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

    /// After a chunk was closed: probes later chunks that wait, too, since they probably have the same contributors by now.
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

    /// Processes the switch's answer to a probe, as far as deadlines matter; `None` if the answer does not concern them.
    pub(super) fn handle_closable(
        &mut self,
        now_ns: u64,
        slot: usize,
        repr: &Repr,
    ) -> Option<RankFrame> {
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
            return Some(RankFrame::Told);
        }
        if repr.flags.contains(Flags::AGAIN) || now_ns < lane.closable_ns {
            return None;
        }
        let present = WorkerSet(repr.contributors).union(WorkerSet::only(self.rank));
        let missing = self.job.everyone().without(present);
        let is_reached = present.len() >= usize::from(late.config.quorum);
        // Every sum that a missing rank may need afterwards is still kept, including this chunk's.
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
        Some(RankFrame::Told)
    }

    /// Handles the answer that the probed cell already has a later chunk: asks other ranks, which may have kept the chunk's
    /// sum. Returns `false` if the later chunk must belong to another use of the job's number.
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
                peers.queue(peer, Word::Ask(chunk));
            }
        }
        true
    }

    /// Processes the sum of a chunk that this rank has not sent yet: this rank is late.
    pub(super) fn see(&mut self, slot: usize, sequence: u64) -> RankFrame {
        if self.late.is_none() {
            return RankFrame::Malformed;
        }
        let lane = &mut self.lanes[slot];
        lane.seen = lane.seen.max(sequence);
        self.counters.early += 1;
        RankFrame::Early
    }

    /// Whether to accept a sum of these contributors; `None`: ignore it, since after a restart only ranks send partial sums.
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

    /// Whether this rank's values are in a sum of these contributors.
    pub(super) fn is_in(&self, contributors: WorkerSet) -> bool {
        self.late.is_none() || contributors.contains(self.rank)
    }

    /// Number of ranks whose values are in a sum with these contributors; always all ranks in a job without deadlines.
    pub(super) fn shares(&self, contributors: WorkerSet) -> u16 {
        match &self.late {
            None => self.job.workers(),
            Some(_) => contributors.len() as u16,
        }
    }

    /// Records the contributors to a chunk: they have received the sums of all earlier chunks of the slot.
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

    /// Before a sum replaces a chunk's values: saves what the sum lacks of them (all, or what was clipped off each value).
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
            // Answers arrive in any order.
            let before = operation
                .partial
                .partition_point(|other| other.index < index);
            let partial = Partial {
                index,
                contributors,
            };
            operation.partial.insert(before, partial);
        }
        // A rank that contributes only zeros loses nothing by being late.
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

    /// Adds the late values of the last operation with the same key to an operation's values. Returns whether there were any.
    pub(super) fn add_residual(&mut self, values: &mut Values, reduction: Reduction) -> bool {
        // They stay for the next operation if this rank gives nothing to this one.
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

    /// Finishes an operation: returns its sums or the reason for none, and remembers its late values.
    pub(super) fn finish(&mut self, operation: Operation) -> Result<Sums, NonFinite> {
        let (key, is_carrying) = (operation.reduction.key, operation.is_carrying);
        let (outcome, residual) = operation.finish();
        // The late values that had joined this operation are in no sum.
        self.counters.lost_residuals += u64::from(is_carrying && outcome.is_err());
        self.keep_residual(key, residual);
        outcome
    }

    fn keep_residual(&mut self, key: Option<u64>, residual: Option<Values>) {
        let (Some(late), Some(key), Some(residual)) = (&mut self.late, key, residual) else {
            return;
        };
        // An operation submitted before this one finished has left its late values here.
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

    /// Late values that have not yet joined an operation, as pairs of operation key and values.
    pub fn residuals(&self) -> impl Iterator<Item = (u64, &Values)> {
        let late = self.late.iter();
        late.flat_map(|late| late.residuals.iter().map(|(key, values)| (*key, values)))
    }
}

/// Whether this rank's values exceed the exponent on which the other ranks agreed without it, so that they are clipped.
pub(super) fn clips(lane: &RankLane, operation: &Operation, index: usize) -> bool {
    let is_agreed = operation.is_long() || lane.attempt == Attempt::Known;
    let wants = operation.exponent(index);
    is_agreed && !operation.is_integer() && wants.is_some_and(|wants| wants > lane.scale)
}
