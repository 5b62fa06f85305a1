//! One rank of an all-reduce: the switch multicasts the sums, and there is no server.
//!
//! ```text
//!                  UPDATE to all                     SUM, complete
//!   next item ──▶ Waiting ──────────────▶ InFlight ─────────────────▶ next item of the lane
//!                    ▲                     │    ▲
//!                    │ values are wanted   │    │ wait
//!                    └──────────────── probe to myself ── "misses …"
//! ```
//!
//! A rank's operations form one stream of *items*: chunks with values, and the scale-only chunks in front of an operation
//! that is longer than the window. Item g uses *lane* g mod W, in order, so the chunk numbers of each lane follow from the
//! operations alone, and ranks that submit the same operations in the same order send the same chunks.
//!
//! No rank sends values again because of another rank's loss: a rank that waits too long sends the switch a short *probe*,
//! and the switch returns it with the chunk's contributors. If the chunk is complete, the rank fetches the sum. If its own
//! values are missing, it sends them again. If others are missing, it waits, and asks those others: a rank that has the sum,
//! which the switch has forgotten, sends it; a rank that does not answer is declared dead.
//!
//! | file | contents |
//! |---|---|
//! | `opening.rs` | the first chunk number that a new job may use |
//! | `operation.rs`, `values.rs`, `terms.rs` | a submitted operation, and the part of it that all ranks must have in common |
//! | `lane.rs` | one item in flight |
//! | `sending.rs`, `receiving.rs` | outgoing and incoming frames |
//! | `timers.rs`, `waiting.rs` | the times of probes, and the behavior while a chunk waits |
//! | `peers.rs` | questions to other ranks, their replies, and the sums kept for them |
//! | `hosts.rs` | summation by the ranks while no switch answers |
//! | `late.rs` | partial sums without late ranks |
//! | `differing.rs` | failure of ranks that submitted different operations |
//! | `outcome.rs`, `standing.rs` | events, errors and counters; progress reports |
//! | `state.rs` | the machine's state as bytes, for the model checker |
//!
//! In a tree of switches, a probe of a chunk that is complete at one switch ascends to the next switch, and so do values that
//! are sent again: the answer names the child through which the frame reached the answering switch.
//!
//! A rank may leave when it has its last result: a rank that misses it gets it from the switch.

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
use crate::job::{Job, TreePosition, WorkerId};
use crate::lanes::{LaneState, Lanes};
use crate::quantise::Exponent;
use crate::rto::Retransmission;
use differing::Differing;
use hosts::Hosts;
use lane::{Attempt, RankLane, RankLaneFields};
use late::Late;
use operation::{Chunk, Operation};
use peers::{Kept, Peers};

pub use crate::quantise::rounding::Rounding;
pub use half::{bf16, f16};
pub use hosts::Fallback;
pub use late::{Carry, Lateness, LatenessError};
pub use opening::{Opening, OpeningError};
pub use operation::{EXACT_VALUES, Reduction, Share};
pub use outcome::{
    DROPS, NonFinite, Partial, RankCounters, RankError, RankEvent, RankFrame, SubmitError, Sums,
};
pub use sending::Transmit;
pub use terms::{LAYOUT, Terms};
pub use values::Values;

/// Amount by which the guess of a chunk's exponent exceeds the exponent that its lane's last chunk needed.
const GUESS_ABOVE: u8 = 2;

/// Settings of a rank of an all-reduce job.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// The job, identical for all ranks.
    pub job: Job,
    /// The number of this rank.
    pub rank: WorkerId,
    /// The rank's position in the tree of switches.
    pub place: TreePosition,
    /// Timeouts of the rank's probes and retransmissions.
    pub retransmission: Retransmission,
    /// Time without a reply after which another rank is declared dead; `None` if ranks cannot send frames to each other.
    pub dead_after_ns: Option<u64>,
    /// Deadline and quorum of partial sums; `None` if every sum includes the values of all ranks.
    pub lateness: Option<Lateness>,
    /// When the ranks sum the values instead of the switch; `None` if never. Needs frames between ranks and at most 64 ranks.
    pub fallback: Option<Fallback>,
}

impl Setup {
    /// Settings of a rank in a job that one switch sums, without communication between ranks.
    pub fn under_one_switch(job: Job, rank: WorkerId, retransmission: Retransmission) -> Self {
        Self {
            job,
            rank,
            place: TreePosition::under_one_switch(&job, rank),
            retransmission,
            dead_after_ns: None,
            lateness: None,
            fallback: None,
        }
    }

    /// Memory in bytes for sums that the rank keeps for others, or makes for them as their host, besides the submitted values.
    pub fn kept_bytes(&self) -> u64 {
        let window = u64::from(self.job.window()) * self.job.max_frame_len() as u64;
        let kept = self.lateness.map_or(1, |late| u64::from(late.keeps()));
        let versions = if self.fallback.is_some() { 2 } else { 0 };
        window.saturating_mul(kept + versions)
    }
}

/// One rank of an all-reduce job.
#[derive(Debug, Clone)]
pub struct Rank {
    job: Job,
    rank: WorkerId,
    place: TreePosition,
    config: Retransmission,
    /// State of communication with other ranks; `None` if ranks cannot send frames to each other.
    peers: Option<Peers>,
    /// State of summation by the ranks themselves; `None` if the job does not allow it.
    hosts: Option<Hosts>,
    /// Payloads of this rank's own contribution to a chunk that it hosts (sums), and of its answer to itself.
    own: Vec<u8>,
    answer: Vec<u8>,
    /// Sums kept for other ranks, by lane; several per lane if the job has deadlines, so that a late rank finds all it missed.
    kept: Vec<Kept>,
    late: Option<Late>,
    /// Submitted operations that are not finished, oldest first.
    operations: VecDeque<Operation>,
    /// Number of operations submitted so far, and the number of items (chunks) in them.
    submitted: u64,
    items: u64,
    lanes: Lanes<RankLaneFields>,
    /// Whether some lane's timeout was doubled more than once, as only those of later items may be (`timers.rs`).
    is_backed_off: bool,
    events: VecDeque<RankEvent>,
    failed: bool,
    /// State of the exchange of terms (type, length, …) after ranks submitted different operations; `None` before.
    differing: Option<Differing>,
    /// Number of the switch's answers with a wrong set of ranks since the last correct sum.
    doubts: u8,
    counters: RankCounters,
}

impl Rank {
    /// Creates a rank without any operation. Its number must be below the job's number of workers.
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
        // A late rank asks the others, so deadlines need communication between ranks.
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
            // Hosts do not know which chunks were closed.
            hosts: fallback
                .filter(|_| peers.is_some() && lateness.is_none())
                .and_then(|fallback| Hosts::new(&job, fallback)),
            own: Vec::new(),
            answer: Vec::new(),
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

    /// Fixes the congestion window at the number of slots, whatever congestion signals arrive: for comparison.
    pub fn fix_window(&mut self) {
        self.lanes.window.fix();
    }

    /// Counters of the rank since its start.
    pub fn counters(&self) -> RankCounters {
        RankCounters {
            congestion: self.lanes.window.signals(),
            ..self.counters
        }
    }

    /// Submits values to be summed over all ranks, and returns the operation's number. Every rank must submit operations of
    /// the same kinds and lengths in the same order.
    pub fn submit(&mut self, values: Values) -> Result<u64, SubmitError> {
        self.submit_as(values, Reduction::default())
    }

    /// Like [`submit`](Self::submit), with settings for averages, exact sums, rounding and this rank's role.
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

    /// Index of the unfinished operation to which an item belongs, and the item's index in it; `None` if not submitted.
    fn locate(&self, item: u64) -> Option<(usize, u64)> {
        // There are few operations, in ascending order.
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

    /// Queues the next item of an idle lane, if one was submitted.
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

    /// The exponent that this rank requests in the frame of a lane's item; the answer has the maximum over all ranks. In a long
    /// operation it is that of the lane's next item, otherwise the item's own, if it is sent with a guess.
    fn wanted(&self, lane: &RankLane) -> Exponent {
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

    /// Index in `self.kept` at which the sum of the chunk with this sequence number is kept.
    fn kept_at(&self, sequence: u64) -> usize {
        match self.kept.len() as u64 {
            0 => 0,
            kept => (sequence % kept) as usize,
        }
    }

    /// Finishes one item of the operation at index `at`, and reports operations that are now complete.
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
                self.events
                    .push_back(RankEvent::Done { operation, outcome });
            }
        }
    }

    fn fail(&mut self, error: RankError) {
        self.failed = true;
        self.lanes.clear_queue();
        self.operations.clear();
        self.events.push_back(RankEvent::Failed(error));
    }

    /// Takes the oldest event of the rank; `None` if there is none.
    pub fn poll_event(&mut self) -> Option<RankEvent> {
        self.events.pop_front()
    }
}
