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
//! Without others: I wait.
//!
//! A rank may leave when it has its last result: who still misses it has it from the switch.

mod lane;
mod operation;
mod outcome;
mod state;

use std::collections::VecDeque;

use wire::{Flags, Kind, Packet, Repr};

use crate::Destination;
use crate::job::{ChunkId, Job, WorkerId, WorkerSet};
use crate::quantise::{Exponent, dequantise, quantise};
use crate::rto::{Retransmission, RttEstimator};
use lane::{Attempt, Lane, LaneState, Send};
use operation::{Chunk, Operation};

pub use operation::Values;
pub use outcome::{Event, RankCounters, RankError, Received, SubmitError};

/// By how much more than wanted the exponent of a chunk may be that was sent on a guess. 32-bit sums of few ranks lose nothing by
/// that which binary32 would keep; beyond, the chunk is sent once more.
const SPARE_BITS: u8 = 4;
/// By how much a guess is above what the lane had last.
const GUESS_ABOVE: u8 = 2;

/// One rank of a job.
#[derive(Debug, Clone)]
pub struct Rank {
    job: Job,
    rank: WorkerId,
    config: Retransmission,
    rtt: RttEstimator,
    /// Those that are not done, the oldest first.
    operations: VecDeque<Operation>,
    /// How many were submitted, and how many items they have together.
    submitted: u64,
    items: u64,
    lanes: Vec<Lane>,
    /// Lanes that have something to send.
    queue: VecDeque<u16>,
    next_order: u64,
    /// No lane times out before.
    earliest_ns: u64,
    events: VecDeque<Event>,
    failed: bool,
    counters: RankCounters,
}

impl Rank {
    /// A rank to which nothing was given yet. `rank` must be below the job's number of workers.
    pub fn new(job: Job, rank: WorkerId, config: Retransmission) -> Self {
        debug_assert!(rank.0 < job.workers());
        let lanes = (0..u64::from(job.window())).map(Lane::first);
        Self {
            job,
            rank,
            config,
            rtt: RttEstimator::new(config),
            operations: VecDeque::new(),
            submitted: 0,
            items: 0,
            lanes: lanes.collect(),
            queue: VecDeque::with_capacity(job.window() as usize),
            next_order: 0,
            earliest_ns: u64::MAX,
            events: VecDeque::new(),
            failed: false,
            counters: RankCounters::default(),
        }
    }

    /// What was counted so far.
    pub fn counters(&self) -> RankCounters {
        self.counters
    }

    /// Takes values to be summed over all ranks, and gives the operation's number. Every rank must submit operations of the same
    /// kinds and lengths in the same order.
    pub fn submit(&mut self, values: Values) -> Result<u64, SubmitError> {
        if self.failed {
            return Err(SubmitError::Failed);
        }
        if values.is_empty() {
            return Err(SubmitError::Empty);
        }
        let id = self.submitted;
        let operation = Operation::new(&self.job, id, self.items, values);
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
        let scale = match self.chunk_of(lane.item) {
            Some((operation, chunk)) => match chunk {
                Chunk::ScaleOnly => Exponent::ZERO,
                Chunk::Values(_) if operation.is_integer() => Exponent::ZERO,
                Chunk::Values(_) if operation.is_long() => lane.agreed,
                Chunk::Values(_) => lane.guess(),
            },
            None => return,
        };
        self.lanes[slot].start(scale);
        self.enqueue(slot, Send::Values);
    }

    fn enqueue(&mut self, slot: usize, what: Send) {
        let lane = &mut self.lanes[slot];
        // Values say all that a probe asks.
        if lane.sends.is_none() {
            self.queue.push_back(slot as u16);
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

    /// The next frame, written to `buffer` (whose former content is dropped), and whom it goes to.
    pub fn poll_transmit(&mut self, now_ns: u64, buffer: &mut Vec<u8>) -> Option<Destination> {
        while let Some(slot) = self.queue.pop_front() {
            let slot = usize::from(slot);
            let lane = &mut self.lanes[slot];
            let Some(what) = lane.sends.take() else {
                continue;
            };
            if lane.state == LaneState::Idle {
                continue; // answered meanwhile
            }
            let previous = lane.transmissions;
            lane.state = LaneState::InFlight;
            lane.sent_at_ns = now_ns;
            lane.deadline_ns = now_ns.saturating_add(self.rtt.timeout_ns(lane.timeouts));
            lane.last_order = self.next_order;
            if previous == 0 {
                lane.first_order = self.next_order;
            }
            lane.overtaken = 0;
            lane.transmissions += 1;
            self.next_order += 1;
            self.earliest_ns = self.earliest_ns.min(lane.deadline_ns);
            self.write(slot, what, previous, buffer);
            self.counters.sent.count(buffer.len(), previous > 0);
            self.counters.probes += u64::from(what == Send::Probe);
            return Some(match what {
                Send::Values => Destination::All,
                Send::Probe | Send::Fetch => Destination::Worker(self.rank),
            });
        }
        None
    }

    fn write(&self, slot: usize, what: Send, previous: u32, buffer: &mut Vec<u8>) {
        let lane = &self.lanes[slot];
        let (operation, chunk) = match self.chunk_of(lane.item) {
            Some((operation, chunk)) => (Some(operation), chunk),
            None => (None, Chunk::ScaleOnly),
        };
        let is_probe = what == Send::Probe;
        let scale_only = chunk == Chunk::ScaleOnly;
        let mut repr = self.job.header(Kind::Update, lane.sequence, scale_only);
        let wants = match (operation, chunk) {
            (Some(operation), Chunk::Values(index)) => operation.exponent(index),
            _ => Some(Exponent::ZERO),
        };
        repr.flags = repr
            .flags
            .with(Flags::NON_FINITE, wants.is_none() && !is_probe)
            .with(Flags::AGAIN, previous > 0)
            .with(Flags::PROBE, is_probe);
        repr.worker = self.rank.0;
        repr.transmission = u8::try_from(previous).unwrap_or(u8::MAX);
        repr.scale = lane.scale.bits();
        if is_probe {
            repr.count = 0;
        } else {
            repr.contributors = WorkerSet::only(self.rank).0;
            repr.next_scale = self.wanted(lane).bits();
        }
        buffer.clear();
        buffer.resize(repr.buffer_len(), 0);
        let mut packet = Packet::new_unchecked(&mut buffer[..]);
        repr.emit(&mut packet);
        let (Some(operation), Chunk::Values(index), false) = (operation, chunk, is_probe) else {
            return;
        };
        match operation.values(&self.job, index) {
            operation::Slice::Integers(values) => {
                packet.write_i32(values.iter().copied());
            }
            // What the guess has no room for is said by `next_scale`: all ranks send the chunk once more.
            operation::Slice::Floats(values) if wants.is_some_and(|wants| wants <= lane.scale) => {
                packet.write_i32(quantise(values, lane.scale, self.job.workers()));
            }
            operation::Slice::Floats(_) => {}
        }
    }

    /// Takes a frame in, from the aggregation header on.
    pub fn handle_packet(&mut self, now_ns: u64, bytes: &[u8]) -> Received {
        let received = match Packet::new_checked(bytes) {
            Ok(packet) => self.receive(now_ns, &packet),
            Err(_) => Received::Malformed,
        };
        match received {
            Received::Answer | Received::Told => {}
            Received::Duplicate => self.counters.duplicates += 1,
            Received::NotOurs => self.counters.not_ours += 1,
            Received::Malformed => self.counters.malformed += 1,
        }
        received
    }

    fn receive(&mut self, now_ns: u64, packet: &Packet<&[u8]>) -> Received {
        let repr = Repr::parse(packet);
        if repr.kind != Kind::Sum || repr.job != self.job.id().0 {
            return Received::NotOurs;
        }
        let chunk = ChunkId(repr.chunk);
        let slot = self.lane_of(chunk);
        let lane = &self.lanes[slot];
        let Some(sequence) = self.job.sequence_near(lane.sequence, chunk) else {
            return Received::Malformed;
        };
        if sequence < lane.sequence || sequence == lane.sequence && lane.state == LaneState::Idle {
            return Received::Duplicate;
        }
        // No chunk completes before this rank has sent it.
        if sequence > lane.sequence || lane.state != LaneState::InFlight {
            return Received::Malformed;
        }
        let contributors = WorkerSet(repr.contributors);
        let is_of_chunk = repr.slot == self.job.slot(chunk).0
            && repr.flags.contains(Flags::VERSION) == self.job.version(chunk).0
            && contributors.without(self.job.everyone()).is_empty();
        if !is_of_chunk {
            return Received::Malformed;
        }
        let is_complete = contributors == self.job.everyone();
        let scale_only = matches!(self.chunk_of(lane.item), Some((_, Chunk::ScaleOnly)));
        if repr.flags.contains(Flags::PROBE) && !(is_complete && scale_only) {
            return self.told(now_ns, slot, contributors);
        }
        let count = match scale_only {
            true => 0,
            false => self.job.values_per_packet(),
        };
        let is_answer = is_complete
            && repr.scale == lane.scale.bits()
            && repr.flags.contains(Flags::SCALE_ONLY) == scale_only
            && usize::from(repr.count) == count
            && Exponent::from_bits(repr.next_scale) >= self.wanted(lane);
        if !is_answer {
            return Received::Malformed;
        }
        if lane.transmissions == 1 {
            self.rtt.sample(now_ns.saturating_sub(lane.sent_at_ns));
        }
        let first_order = lane.first_order;
        self.take_answer(slot, &repr, packet);
        self.count_overtaken(first_order);
        Received::Answer
    }

    /// Lanes count from the job's first chunk, slots from number 0.
    fn lane_of(&self, chunk: ChunkId) -> usize {
        let from_first = chunk.0.wrapping_sub(self.job.first_chunk().0);
        (from_first & (self.job.window() - 1)) as usize
    }

    /// What the switch says to a probe.
    fn told(&mut self, now_ns: u64, slot: usize, contributors: WorkerSet) -> Received {
        let lane = &mut self.lanes[slot];
        lane.silences = 0;
        lane.misses = self.job.everyone().without(contributors);
        if lane.misses.is_empty() {
            self.enqueue(slot, Send::Fetch);
        } else if lane.misses.contains(self.rank) {
            self.enqueue(slot, Send::Values);
        } else {
            // Others are to come: one asks again, ever less often.
            lane.deadline_ns = now_ns.saturating_add(self.rtt.timeout_ns(lane.timeouts));
            self.earliest_ns = self.earliest_ns.min(lane.deadline_ns);
        }
        Received::Told
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
        let Chunk::Values(index) = chunk else {
            let lane = &mut self.lanes[slot];
            lane.agreed = told;
            lane.advance(window);
            self.close_item(at);
            self.begin(slot);
            return;
        };
        if repr.flags.contains(Flags::NON_FINITE) {
            let chunk = ChunkId(repr.chunk);
            let operation = self.operations[at].id;
            self.fail(RankError::NonFinite {
                operation,
                index,
                chunk,
            });
            return;
        }
        if !is_integer && !is_long && attempt == Attempt::Guess {
            if told != Exponent::ZERO {
                self.lanes[slot].last = told;
            }
            let fits = told <= scale
                && (told == Exponent::ZERO || scale.bits() - told.bits() <= SPARE_BITS);
            if !fits {
                self.counters.repeated_guesses += 1;
                self.lanes[slot].repeat(window, told);
                self.enqueue(slot, Send::Values);
                return;
            }
        }
        let workers = self.job.workers();
        match self.operations[at].values_mut(&self.job, index) {
            operation::SliceMut::Integers(values) => {
                values
                    .iter_mut()
                    .zip(packet.values_i32())
                    .for_each(|(value, sum)| *value = sum);
            }
            operation::SliceMut::Floats(values) => {
                let sums = packet.values_i32();
                let floats = values.iter_mut().zip(sums);
                floats.for_each(|(value, sum)| *value = dequantise(sum, scale, workers) as f32);
            }
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
        self.operations[at].unanswered -= 1;
        while self
            .operations
            .front()
            .is_some_and(|operation| operation.unanswered == 0)
        {
            if let Some(Operation { id, values, .. }) = self.operations.pop_front() {
                self.counters.operations += 1;
                self.events.push_back(Event::Done {
                    operation: id,
                    values,
                });
            }
        }
    }

    /// A chunk sent first at `order` is answered: every chunk whose last transmission is older was overtaken. Retransmitted
    /// chunks say nothing, by Karn's argument, unless even their first came later.
    fn count_overtaken(&mut self, order: u64) {
        let threshold = self.config.fast_threshold;
        if threshold == 0 {
            return;
        }
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if lane.state != LaneState::InFlight || lane.sends.is_some() || lane.last_order >= order
            {
                continue;
            }
            lane.overtaken += 1;
            if lane.overtaken >= threshold && !lane.asked_early {
                lane.asked_early = true;
                self.counters.early_probes += 1;
                self.enqueue(slot, Send::Probe);
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called. May be early, never late.
    pub fn poll_timeout(&self) -> Option<u64> {
        (!self.failed && self.earliest_ns != u64::MAX).then_some(self.earliest_ns)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if now_ns < self.earliest_ns || self.failed {
            return;
        }
        self.earliest_ns = u64::MAX;
        let mut silent: Option<u64> = None;
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if lane.state != LaneState::InFlight || lane.sends.is_some() {
                continue;
            }
            if lane.deadline_ns > now_ns {
                self.earliest_ns = self.earliest_ns.min(lane.deadline_ns);
                continue;
            }
            lane.timeouts += 1;
            lane.silences += 1;
            self.counters.timeouts += 1;
            self.rtt.timed_out(now_ns, lane.sent_at_ns);
            if lane.silences > self.config.max_timeouts {
                silent = Some(silent.map_or(lane.sequence, |other| other.min(lane.sequence)));
            } else {
                self.enqueue(slot, Send::Probe);
            }
        }
        if let Some(sequence) = silent {
            let chunk = self.job.chunk(sequence);
            let timeouts = self.config.max_timeouts;
            self.fail(RankError::Silent { chunk, timeouts });
        }
    }

    /// Whom the oldest chunk under way waits for, as far as the switch has told.
    pub fn waits_for(&self) -> Option<(ChunkId, WorkerSet)> {
        let waiting = self
            .lanes
            .iter()
            .filter(|lane| lane.state == LaneState::InFlight);
        let told = waiting.filter(|lane| !lane.misses.is_empty());
        let oldest = told.min_by_key(|lane| lane.first_order)?;
        Some((self.job.chunk(oldest.sequence), oldest.misses))
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
