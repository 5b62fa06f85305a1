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
//! What it sends stands in `sending.rs`, when it asks in `timers.rs`, what it does while it waits in `waiting.rs`; how ranks do
//! without a switch in `hosts.rs`, and without those who are late in `late.rs`.
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
mod sending;
mod standing;
mod state;
mod terms;
mod timers;
mod waiting;

use std::collections::VecDeque;

use wire::{Flags, Kind, Packet, Repr};

use crate::congestion::{Answered, CongestionWindow, Mark, SendQueue};
use crate::job::{ChunkId, Job, Place, WorkerId, WorkerSet};
use crate::quantise::Exponent;
use crate::rto::{Retransmission, RttEstimator};
use differing::Differing;
use hosts::Hosts;
use lane::{Attempt, Lane, LaneState, Send};
use late::Late;
use operation::{Chunk, Operation};
use peers::{Kept, Peers};

pub use crate::quantise::rounding::Rounding;
pub use half::{bf16, f16};
pub use hosts::Fallback;
pub use late::{Carry, Lateness, LatenessError, Partial};
pub use opening::{Opening, OpeningError};
pub use operation::{Reduction, Share, Values};
pub use outcome::{Event, NonFinite, RankCounters, RankError, Received, SubmitError, Sums};
pub use terms::Terms;

/// By how much more than wanted the exponent of a chunk may be that was sent on a guess. 32-bit sums of few ranks lose nothing by
/// that which binary32 would keep; beyond, the chunk is sent once more.
const SPARE_BITS: u8 = 4;
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
    rtt: RttEstimator,
    /// Those that are not done, the oldest first.
    operations: VecDeque<Operation>,
    /// How many were submitted, and how many items they have together.
    submitted: u64,
    items: u64,
    lanes: Vec<Lane>,
    /// How many of them were sent and not answered.
    in_flight: usize,
    /// Lanes that have something to send.
    queue: SendQueue,
    window: CongestionWindow,
    next_order: u64,
    /// Transmissions in their order, and by which lane. What is no lane's last any more, or was answered, goes when it has come
    /// to the front: then who was overtaken is known by a look at the front.
    sent: VecDeque<(u64, u16)>,
    /// No lane times out before.
    earliest_ns: u64,
    /// Some wait for longer than they would if they were among the lowest under way.
    is_backed_off: bool,
    events: VecDeque<Event>,
    failed: bool,
    /// Ranks gave different things to an operation.
    differing: Option<Differing>,
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
        let lanes = (0..u64::from(job.window())).map(Lane::first);
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
            rtt: RttEstimator::new(config),
            operations: VecDeque::new(),
            submitted: 0,
            items: 0,
            lanes: lanes.collect(),
            in_flight: 0,
            queue: SendQueue::new(window),
            window: CongestionWindow::new(job.window()),
            next_order: 0,
            sent: VecDeque::with_capacity(timers::SENT_PER_LANE * job.window() as usize),
            earliest_ns: u64::MAX,
            is_backed_off: false,
            events: VecDeque::new(),
            failed: false,
            differing: None,
            counters: RankCounters::default(),
        }
    }

    /// What was counted so far.
    pub fn counters(&self) -> RankCounters {
        RankCounters {
            congestion: self.window.signals(),
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
        self.lanes[slot].start(scale, by_host);
        let what = self.first_send(slot);
        self.enqueue(slot, what);
    }

    fn enqueue(&mut self, slot: usize, what: Send) {
        let lane = &mut self.lanes[slot];
        // Values say all that a probe asks.
        if lane.sends.is_none() {
            match lane.state {
                LaneState::InFlight => self.queue.push_again(slot, lane.item),
                LaneState::Waiting | LaneState::Idle => self.queue.push_first(slot, lane.item),
            }
        }
        lane.sends = Some(lane.sends.map_or(what, |queued| queued.max(what)));
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

    /// Takes a frame in, from the aggregation header on, and what its IP header says of queues.
    pub fn handle_packet(&mut self, now_ns: u64, mark: Mark, bytes: &[u8]) -> Received {
        let received = match Packet::new_checked(bytes) {
            Ok(packet) => self.receive(now_ns, mark, &packet),
            Err(_) => Received::Malformed,
        };
        match received {
            Received::Answer | Received::Told | Received::Word | Received::Early => {}
            Received::Duplicate => self.counters.duplicates += 1,
            Received::NotOurs => self.counters.not_ours += 1,
            Received::Malformed => self.counters.malformed += 1,
        }
        received
    }

    fn receive(&mut self, now_ns: u64, mark: Mark, packet: &Packet<&[u8]>) -> Received {
        let repr = Repr::parse(packet);
        if repr.job != self.job.id().0 {
            return Received::NotOurs;
        }
        match repr.kind {
            Kind::Differ if !self.failed => return self.receive_terms(now_ns, packet),
            _ if self.differing.is_some() => return self.receive_while_differing(&repr),
            // One that has given up answers nobody: those who wait for it are to know.
            _ if self.failed => return Received::NotOurs,
            _ => {}
        }
        let chunk = ChunkId(repr.chunk);
        let slot = self.lane_of(chunk);
        match repr.kind {
            Kind::Sum => {
                let is_probe = repr.flags.contains(Flags::PROBE);
                if is_probe && repr.scale != 0 && self.forgets_switch() {
                    return Received::Told;
                }
                // Other ranks give what they have kept as well, and say that it was sent before.
                if is_probe || !repr.flags.contains(Flags::AGAIN) {
                    self.heard_switch(now_ns, is_probe);
                }
            }
            Kind::Given if self.hosts.is_some() => {}
            Kind::Give => return self.receive_give(now_ns, packet),
            Kind::Ask | Kind::Here => return self.receive_word(now_ns, &repr),
            Kind::Update | Kind::Result | Kind::Given | Kind::Differ => return Received::NotOurs,
        }
        let lane = &self.lanes[slot];
        let Some(sequence) = self.job.sequence_near(lane.sequence, chunk) else {
            return Received::Malformed;
        };
        if sequence < lane.sequence || sequence == lane.sequence && lane.state == LaneState::Idle {
            return Received::Duplicate;
        }
        // No chunk completes before this rank has sent it, unless others have closed it.
        if sequence > lane.sequence || lane.state != LaneState::InFlight {
            return self.see(slot, sequence);
        }
        let contributors = WorkerSet(repr.contributors);
        let is_of_chunk = repr.slot == self.job.slot(chunk).0
            && repr.flags.contains(Flags::VERSION) == self.job.version(chunk).0;
        if !is_of_chunk {
            return Received::Malformed;
        }
        let by_host = repr.kind == Kind::Given;
        let everyone = match &self.hosts {
            Some(hosts) if by_host => hosts.everyone(),
            _ => self.place.complete(),
        };
        let scale_only = matches!(self.chunk_of(lane.item), Some((_, Chunk::ScaleOnly)));
        if repr.flags.contains(Flags::PROBE) {
            if repr.scale != 0 {
                if self.asks_for_kept(now_ns, slot, &repr) {
                    return Received::Told;
                }
                self.fail(RankError::Superseded { chunk });
                return Received::Told;
            }
            if !(repr.flags.contains(Flags::AGAIN) && scale_only) {
                return self.told(now_ns, slot, &repr, everyone);
            }
        }
        let is_scale_only = repr.flags.contains(Flags::SCALE_ONLY);
        let count = match is_scale_only {
            true => 0,
            false => self.job.values_per_packet(),
        };
        let Some(is_sum) = self.takes(slot, &repr, everyone) else {
            return Received::Duplicate;
        };
        let is_sum = is_sum && usize::from(repr.count) == count;
        let is_of_chunk = repr.scale == lane.scale.bits() && is_scale_only == scale_only;
        // Of a sum of fewer than all this rank may not know the exponent.
        let differs = match is_of_chunk {
            true => !self.is_agreed(lane, packet),
            false => self.late.is_none(),
        };
        if is_sum && differs {
            let operation = self.chunk_of(lane.item).map(|(operation, _)| operation.id);
            self.differ(now_ns, operation.unwrap_or_default());
            return Received::Told;
        }
        let is_answer = is_sum
            && is_of_chunk
            && (Exponent::from_bits(repr.next_scale) >= self.wanted(lane)
                || !self.is_in(contributors));
        if !is_answer {
            return Received::Malformed;
        }
        let rtt_ns = now_ns.saturating_sub(lane.sent_at_ns);
        let rtt_ns = (lane.transmissions == 1).then_some(rtt_ns);
        rtt_ns.inspect(|rtt_ns| self.rtt.sample(*rtt_ns));
        let first_order = lane.first_order;
        let answered = Answered {
            order: first_order,
            rtt_ns,
            // A host answers all ranks at once, and so fills a queue however few chunks are under way.
            mark: if by_host { Mark::None } else { mark },
        };
        let refused = self.queue.refused();
        self.window
            .answered(now_ns, answered, self.next_order, refused);
        self.counters.by_hosts += u64::from(by_host);
        self.in_flight -= 1;
        self.hurry_lowest();
        self.take_answer(slot, &repr, packet);
        self.count_overtaken(first_order);
        if self.shares(contributors) < self.job.workers() {
            self.hurry(now_ns);
        }
        Received::Answer
    }

    /// Whether a lane's sum says that those who are in it gave the same to the operation.
    fn is_agreed(&self, lane: &Lane, packet: &Packet<&[u8]>) -> bool {
        let shares = self.shares(WorkerSet(packet.contributors()));
        match self.chunk_of(lane.item) {
            Some((operation, Chunk::Values(index))) => {
                operation.is_agreed(index, shares, packet.payload())
            }
            _ => true,
        }
    }

    /// Lanes count from the job's first chunk, slots from number 0.
    fn lane_of(&self, chunk: ChunkId) -> usize {
        let from_first = chunk.0.wrapping_sub(self.job.first_chunk().0);
        (from_first & (self.job.window() - 1)) as usize
    }

    /// Where a chunk's sum is kept.
    fn kept_at(&self, sequence: u64) -> usize {
        match self.kept.len() as u64 {
            0 => 0,
            kept => (sequence % kept) as usize,
        }
    }

    /// A chunk is complete: its sum is taken, or the chunk is sent once more with the exponent that is known now.
    fn take_answer(&mut self, slot: usize, repr: &Repr, packet: &Packet<&[u8]>) {
        let lane = &self.lanes[slot];
        let (scale, item, attempt) = (lane.scale, lane.item, lane.attempt);
        let told = Exponent::from_bits(repr.next_scale);
        let Some((at, index)) = self.locate(item) else {
            return;
        };
        let operation = &self.operations[at];
        let chunk = operation.chunk(index);
        let (is_integer, is_long) = (operation.is_integer(), operation.is_long());
        let window = u64::from(self.job.window());
        let contributors = WorkerSet(repr.contributors);
        let at_kept = self.kept_at(lane.sequence);
        if let Some(kept) = self.kept.get_mut(at_kept) {
            kept.sequence = Some(lane.sequence);
            kept.contributors = repr.contributors;
            let told = Flags::PROBE | Flags::TIMED | Flags::KEPT;
            kept.flags = repr.flags.with(told, false).bits();
            kept.scale = scale.bits();
            kept.next_scale = repr.next_scale;
            kept.values.clear();
            kept.values.extend(packet.values_i32());
        }
        self.note_contributors(slot, contributors);
        let Chunk::Values(index) = chunk else {
            let lane = &mut self.lanes[slot];
            lane.agreed = told;
            lane.advance(window);
            self.close_item(at);
            self.begin(slot);
            return;
        };
        let is_finite = !repr.flags.contains(Flags::NON_FINITE);
        if !is_integer && !is_long && attempt == Attempt::Guess {
            if told != Exponent::ZERO {
                self.lanes[slot].last = told;
            }
            let fits = told <= scale
                && (told == Exponent::ZERO || scale.bits() - told.bits() <= SPARE_BITS);
            if !fits && is_finite {
                self.counters.repeated_guesses += 1;
                let by_host = self.is_by_hosts();
                self.lanes[slot].repeat(window, told, by_host);
                let what = self.first_send(slot);
                self.enqueue(slot, what);
                return;
            }
        }
        // Of zeros alone nothing was rounded, whatever was guessed.
        let is_zero = !is_long && attempt == Attempt::Guess && told == Exponent::ZERO;
        let scale = if is_zero { Exponent::ZERO } else { scale };
        self.set_aside(slot, at, index, contributors);
        let shares = self.shares(contributors);
        let operation = &mut self.operations[at];
        match is_finite {
            true => operation.decode(&self.job, index, scale, shares, packet.payload()),
            // All ranks are told the same, so all go on without its sums.
            false => operation.fail(index, ChunkId(repr.chunk)),
        }
        let lane = &mut self.lanes[slot];
        if is_long {
            lane.agreed = told;
            if scale != Exponent::ZERO {
                lane.last = scale;
            }
        }
        lane.advance(window);
        self.close_item(at);
        self.begin(slot);
    }

    /// An item of an operation is done.
    fn close_item(&mut self, at: usize) {
        self.operations[at].close_item();
        while self.operations.front().is_some_and(Operation::is_done) {
            if let Some(done) = self.operations.pop_front() {
                let operation = done.id;
                let outcome = self.finish(done);
                match outcome {
                    Ok(_) => self.counters.operations += 1,
                    Err(_) => self.counters.non_finite += 1,
                }
                self.events.push_back(Event::Done { operation, outcome });
            }
        }
    }

    fn fail(&mut self, error: RankError) {
        self.failed = true;
        self.queue.clear();
        self.operations.clear();
        self.events.push_back(Event::Failed(error));
    }

    /// What has happened since the last call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
