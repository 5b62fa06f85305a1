//! A rank of an all-reduce: the switch multicasts the sum, and there is no server.
//!
//! ```text
//!                  UPDATE to all                     SUM, complete
//!   next item ──▶ Waiting ──────────────▶ InFlight ─────────────────▶ next item of the lane
//!                    ▲                     │    ▲
//!                    │ values are wanted   │    │ wait
//!                    └──────────────── probe to myself ── "misses …"
//! ```
//!
//! A rank's operations are one stream of *items*: chunks with values, and the scale-only chunks in front of an operation that
//! is longer than the window. Item g goes through *lane* g mod W, one after the other, so each lane's sequence of chunk numbers
//! follows from the operations alone, and every rank that is given the same operations in the same order sends the same.
//!
//! Nobody sends values twice because of somebody else's loss: who waits for too long asks the switch by a short *probe*, which
//! the switch sends back with whom the chunk misses. Complete: the sum is fetched. Without me: my values are sent again.
//! Without others: I wait, and ask those others: who has the sum already gives it, because the switch has forgotten it; and who
//! does not answer is gone.
//!
//! | file | what |
//! |---|---|
//! | `opening.rs` | from which chunk number on a job may begin |
//! | `operation.rs`, `values.rs`, `terms.rs` | what a rank was given, and what of it all ranks must have been given alike |
//! | `lane.rs` | one item under way |
//! | `sending.rs`, `receiving.rs` | what goes out and comes in |
//! | `timers.rs`, `waiting.rs` | when it asks, and what it does while it waits |
//! | `peers.rs` | who was asked, who answers, and what is kept for those who ask |
//! | `hosts.rs` | how ranks do without a switch |
//! | `late.rs` | and without those who are late |
//! | `differing.rs` | how ranks end that were given different things |
//! | `outcome.rs`, `standing.rs` | what is told of it, and what is shown meanwhile |
//! | `state.rs` | the machine's state, for the model checker |
//!
//! In a tree of switches a probe of a chunk that is complete at one switch goes on to the next one above, and so do values that
//! are sent again: the answer names the child of that switch which asked.
//!
//! A rank may leave when it has its last result: who still misses it has it from the switch.

mod differing;
mod hosts;
mod lane;
mod late;
mod opening;
mod operation;
mod outcome;
mod peers;
mod receiving;
mod sending;
mod standing;
mod state;
mod terms;
mod timers;
mod values;
mod waiting;

use std::collections::VecDeque;

use crate::congestion::CongestionWindow;
use crate::job::{Job, Place, WorkerId};
use crate::lanes::{LaneState, Lanes};
use crate::quantise::Exponent;
use crate::rto::Retransmission;
use differing::Differing;
use hosts::Hosts;
use lane::{Attempt, Lane, RankLane};
use late::Late;
use operation::{Chunk, Operation};
use peers::{Kept, Peers};

pub use crate::quantise::rounding::Rounding;
pub use half::{bf16, f16};
pub use hosts::Fallback;
pub use late::{Carry, Lateness, LatenessError, Partial};
pub use opening::{Opening, OpeningError};
pub use operation::{EXACT_VALUES, Reduction, Share};
pub use outcome::{DROPS, Event, NonFinite, RankCounters, RankError, Received, SubmitError, Sums};
pub use terms::{LAYOUT, Terms};
pub use values::Values;

/// By how much a guess is above what the lane had last.
const GUESS_ABOVE: u8 = 2;

/// What a rank is told before it begins.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// The job, which all ranks know alike.
    pub job: Job,
    /// Which rank this is.
    pub rank: WorkerId,
    /// Where it stands among the switches.
    pub place: Place,
    /// When it asks again.
    pub retransmission: Retransmission,
    /// After how long a rank that does not answer another is gone. `None` where ranks cannot ask each other.
    pub dead_after_ns: Option<u64>,
    /// When a sum is made of fewer than all; `None`: never.
    pub lateness: Option<Lateness>,
    /// When ranks sum themselves, if they can ask each other and are 64 at most.
    pub fallback: Option<Fallback>,
}

impl Setup {
    /// A rank of a job that one switch sums, and that asks nobody else.
    pub fn under_one_switch(job: Job, rank: WorkerId, retransmission: Retransmission) -> Self {
        Self {
            job,
            rank,
            place: Place::under_one_switch(&job, rank),
            retransmission,
            dead_after_ns: None,
            lateness: None,
            fallback: None,
        }
    }

    /// Bytes of the sums that such a rank keeps for others, and of those that it makes as a host, beside what it is given.
    pub fn kept_bytes(&self) -> u64 {
        let window = u64::from(self.job.window()) * self.job.max_frame_len() as u64;
        let kept = self.lateness.map_or(1, |late| u64::from(late.keeps()));
        let versions = if self.fallback.is_some() { 2 } else { 0 };
        window.saturating_mul(kept + versions)
    }
}

/// One rank of a job.
#[derive(Debug, Clone)]
pub struct Rank {
    job: Job,
    rank: WorkerId,
    place: Place,
    config: Retransmission,
    /// `None` where they cannot be asked.
    peers: Option<Peers>,
    /// `None` where they cannot sum.
    hosts: Option<Hosts>,
    /// By lane; of a job with deadlines several of each, so that who is late finds what it missed.
    kept: Vec<Kept>,
    late: Option<Late>,
    /// Those that are not done, the oldest first.
    operations: VecDeque<Operation>,
    /// How many were submitted, and how many items they have together.
    submitted: u64,
    items: u64,
    lanes: Lanes<RankLane>,
    /// Some wait for longer than they would if they were among the lowest under way.
    is_backed_off: bool,
    events: VecDeque<Event>,
    failed: bool,
    /// Ranks gave different things to an operation.
    differing: Option<Differing>,
    /// How often the switch has said that other ranks are all, since the last sum that was right.
    doubts: u8,
    counters: RankCounters,
}

impl Rank {
    /// A rank to which nothing was given yet. Its number must be below the job's number of workers.
    pub fn new(setup: Setup) -> Self {
        let Setup {
            job,
            rank,
            place,
            retransmission: config,
            dead_after_ns,
            lateness,
            fallback,
        } = setup;
        // Who is late asks the others.
        let dead_after_ns = dead_after_ns.or(lateness.map(|_| u64::MAX));
        let keeps = lateness.map_or(1, |lateness| lateness.keeps()) as usize;
        debug_assert!(rank.0 < job.workers());
        let window = job.window() as usize;
        let peers =
            dead_after_ns.map(|after| Peers::new(rank, job.workers(), after, 4 * window + 64));
        Self {
            job,
            rank,
            place,
            config,
            kept: vec![Kept::default(); if peers.is_some() { keeps * window } else { 0 }],
            // What was closed a host does not know.
            hosts: fallback
                .filter(|_| peers.is_some() && lateness.is_none())
                .and_then(|fallback| Hosts::new(&job, fallback)),
            late: lateness.map(|lateness| Late::new(lateness, &job)),
            peers,
            operations: VecDeque::new(),
            submitted: 0,
            items: 0,
            lanes: Lanes::new(&job, CongestionWindow::new(job.window()), config),
            is_backed_off: false,
            events: VecDeque::new(),
            failed: false,
            differing: None,
            doubts: 0,
            counters: RankCounters::default(),
        }
    }

    /// Has as many chunks under way as it has slots, whatever queues say: for comparison.
    pub fn fix_window(&mut self) {
        self.lanes.window.fix();
    }

    /// What was counted so far.
    pub fn counters(&self) -> RankCounters {
        RankCounters {
            congestion: self.lanes.window.signals(),
            ..self.counters
        }
    }

    /// Takes values to be summed over all ranks, and gives the operation's number. Every rank must submit operations of the same
    /// kinds and lengths in the same order.
    pub fn submit(&mut self, values: Values) -> Result<u64, SubmitError> {
        self.submit_as(values, Reduction::default())
    }

    /// The same, averaged or rounded otherwise.
    pub fn submit_as(
        &mut self,
        mut values: Values,
        reduction: Reduction,
    ) -> Result<u64, SubmitError> {
        if self.failed {
            return Err(SubmitError::Failed);
        }
        if values.is_empty() {
            return Err(SubmitError::Empty);
        }
        let is_carrying = self.add_residual(&mut values, reduction);
        let id = self.submitted;
        let mut operation = Operation::new(&self.job, id, self.items, values, reduction);
        operation.is_carrying = is_carrying;
        self.submitted += 1;
        self.items += operation.items();
        self.operations.push_back(operation);
        for slot in 0..self.lanes.len() {
            self.begin(slot);
        }
        Ok(id)
    }

    /// The operation that an item belongs to, and which of its items it is.
    fn locate(&self, item: u64) -> Option<(usize, u64)> {
        // They are few, and ascending.
        let at = self
            .operations
            .partition_point(|operation| operation.first + operation.items() <= item);
        let operation = self.operations.get(at)?;
        Some((at, item.checked_sub(operation.first)?))
    }

    fn chunk_of(&self, item: u64) -> Option<(&Operation, Chunk)> {
        let (at, index) = self.locate(item)?;
        let operation = &self.operations[at];
        Some((operation, operation.chunk(index)))
    }

    /// Queues the next item of an idle lane, if there is one.
    fn begin(&mut self, slot: usize) {
        let lane = &self.lanes[slot];
        if lane.state != LaneState::Idle || lane.item >= self.items {
            return;
        }
        let Some((at, item)) = self.locate(lane.item) else {
            return;
        };
        let window = u64::from(self.job.window());
        let operation = &mut self.operations[at];
        let said = if operation.is_long() {
            item + window
        } else {
            item
        };
        operation.read_exponents(&self.job, said);
        let scale = match operation.chunk(item) {
            Chunk::ScaleOnly => Exponent::ZERO,
            Chunk::Values(_) if operation.is_integer() => Exponent::ZERO,
            Chunk::Values(_) if operation.is_long() => lane.agreed,
            Chunk::Values(_) => lane.guess(),
        };
        let by_host = self.is_by_hosts();
        self.lanes[slot].begin(scale, by_host);
        let what = self.first_send(slot);
        self.lanes.enqueue(slot, what);
    }

    /// The exponent that this rank wants the largest of to be known of in the answer to a lane's item: its own, if it was sent
    /// on a guess; else that of the lane's next chunk of the same operation.
    fn wanted(&self, lane: &Lane) -> Exponent {
        let Some((operation, chunk)) = self.chunk_of(lane.item) else {
            return Exponent::ZERO;
        };
        if operation.is_integer() {
            return Exponent::ZERO;
        }
        if operation.is_long() {
            let next = lane.item - operation.first + u64::from(self.job.window());
            return match next < operation.items() {
                true => match operation.chunk(next) {
                    Chunk::Values(index) => operation.exponent(index).unwrap_or_default(),
                    Chunk::ScaleOnly => Exponent::ZERO,
                },
                false => Exponent::ZERO,
            };
        }
        match (chunk, lane.attempt) {
            (Chunk::Values(index), Attempt::Guess) => operation.exponent(index).unwrap_or_default(),
            _ => Exponent::ZERO,
        }
    }

    /// Where a chunk's sum is kept.
    fn kept_at(&self, sequence: u64) -> usize {
        match self.kept.len() as u64 {
            0 => 0,
            kept => (sequence % kept) as usize,
        }
    }

    /// An item of an operation is done.
    fn close_item(&mut self, at: usize) {
        self.operations[at].close_item();
        while self.operations.front().is_some_and(Operation::is_done) {
            if let Some(done) = self.operations.pop_front() {
                let (operation, share) = (done.id, done.reduction.share);
                let outcome = self.finish(done);
                match outcome {
                    Ok(_) => self.counters.operations += u64::from(share != Share::Compares),
                    Err(_) => self.counters.non_finite += 1,
                }
                self.events.push_back(Event::Done { operation, outcome });
            }
        }
    }

    fn fail(&mut self, error: RankError) {
        self.failed = true;
        self.lanes.clear_queue();
        self.operations.clear();
        self.events.push_back(Event::Failed(error));
    }

    /// What has happened since the last call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
