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
//! What it does while it waits stands in `waiting.rs`.
//!
//! In a tree of switches a probe of a chunk that is complete at one switch goes on to the next one above, and so do values that
//! are sent again: the answer names the child of that switch which asked.
//!
//! A rank may leave when it has its last result: who still misses it has it from the switch.

mod hosts;
mod lane;
mod late;
mod opening;
mod operation;
mod outcome;
mod peers;
mod standing;
mod state;
mod waiting;

use std::collections::VecDeque;

use wire::{Flags, Kind, Packet, Repr};

use crate::Destination;
use crate::job::{ChunkId, Job, Place, WorkerId, WorkerSet};
use crate::quantise::Exponent;
use crate::rto::{Retransmission, RttEstimator};
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
pub use operation::{Reduction, Values};
pub use outcome::{Event, NonFinite, RankCounters, RankError, Received, SubmitError, Sums};

/// By how much more than wanted the exponent of a chunk may be that was sent on a guess. 32-bit sums of few ranks lose nothing by
/// that which binary32 would keep; beyond, the chunk is sent once more.
const SPARE_BITS: u8 = 4;
/// By how much a guess is above what the lane had last.
const GUESS_ABOVE: u8 = 2;

/// So few chunks under way have few behind them that could overtake them, and as many that ask often are no load: they wait for no
/// more than two timeouts.
const FEW_IN_FLIGHT: usize = 8;
/// So often the number of chunks is doubled that have to overtake one before it is asked for again.
const MOST_DOUBLINGS: u32 = 6;
/// Transmissions that are remembered: one under way for each lane, and as many that are over.
const SENT_PER_LANE: usize = 2;

/// Whether a transmission is its lane's last, and not answered.
fn is_under_way(lanes: &[Lane], (order, slot): (u64, u16)) -> bool {
    let lane = &lanes[usize::from(slot)];
    lane.state == LaneState::InFlight && lane.last_order == order
}

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
    queue: VecDeque<u16>,
    next_order: u64,
    /// Transmissions in their order, and by which lane. What is no lane's last any more, or was answered, goes when it has come
    /// to the front: then who was overtaken is known by a look at the front.
    sent: VecDeque<(u64, u16)>,
    /// No lane times out before.
    earliest_ns: u64,
    events: VecDeque<Event>,
    failed: bool,
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
            queue: VecDeque::with_capacity(job.window() as usize),
            next_order: 0,
            sent: VecDeque::with_capacity(SENT_PER_LANE * job.window() as usize),
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
        let is_carrying = self.add_residual(&mut values, reduction.key);
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
        if let Some(slot) = self.retried() {
            let transmissions = self.lanes[slot].transmissions;
            self.write(slot, Send::Probe, transmissions, false, buffer);
            self.counters.sent.count(buffer.len(), true);
            self.counters.probes += 1;
            return Some(Destination::Worker(self.rank));
        }
        while let Some(slot) = self.queue.pop_front() {
            let slot = usize::from(slot);
            let lane = &mut self.lanes[slot];
            let Some(what) = lane.sends.take() else {
                continue;
            };
            if lane.state == LaneState::Idle {
                continue; // answered meanwhile
            }
            let (previous, timeouts) = (lane.transmissions, lane.timeouts);
            self.in_flight += usize::from(lane.state != LaneState::InFlight);
            let deadline_ns = now_ns.saturating_add(self.timeout_ns(timeouts));
            let lane = &mut self.lanes[slot];
            lane.state = LaneState::InFlight;
            lane.sent_at_ns = now_ns;
            lane.deadline_ns = deadline_ns;
            lane.last_order = self.next_order;
            if previous == 0 {
                lane.first_order = self.next_order;
                lane.first_sent_ns = now_ns;
            }
            lane.overtaken = 0;
            lane.transmissions += 1;
            self.earliest_ns = self.earliest_ns.min(lane.deadline_ns);
            self.remember_sent(slot);
            self.next_order += 1;
            self.plan_closing(now_ns, slot, previous == 0);
            let by_host = self.lanes[slot].by_host;
            self.write(slot, what, previous, by_host, buffer);
            let host = self.host_of(slot);
            if by_host && host == self.rank {
                self.sum_here(now_ns, buffer);
                continue;
            }
            self.counters.sent.count(buffer.len(), previous > 0);
            self.counters.probes += u64::from(what == Send::Probe);
            self.counters.closes += u64::from(what == Send::Close);
            return Some(match what {
                _ if by_host => Destination::Worker(host),
                Send::Values | Send::Close => Destination::All,
                Send::Probe | Send::Fetch => Destination::Worker(self.rank),
            });
        }
        let to = loop {
            let (to, word) = self.peers.as_mut()?.next_word()?;
            if self.write_word(word, buffer) {
                break to;
            }
        };
        self.counters.sent.count(buffer.len(), false);
        self.counters.words += 1;
        Some(Destination::Worker(to))
    }

    /// A lane has sent. One that waits for long may hold back at the front what others sent since: then that is sorted out, so
    /// that no more is kept than the window allows.
    fn remember_sent(&mut self, slot: usize) {
        if self.sent.len() == SENT_PER_LANE * self.lanes.len() {
            let lanes = &self.lanes;
            self.sent.retain(|sent| is_under_way(lanes, *sent));
        }
        self.sent.push_back((self.next_order, slot as u16));
    }

    fn write(&self, slot: usize, what: Send, previous: u32, by_host: bool, buffer: &mut Vec<u8>) {
        let lane = &self.lanes[slot];
        let (operation, chunk) = match self.chunk_of(lane.item) {
            Some((operation, chunk)) => (Some(operation), chunk),
            None => (None, Chunk::ScaleOnly),
        };
        let is_probe = what == Send::Probe;
        let scale_only = chunk == Chunk::ScaleOnly;
        let (kind, child) = match by_host {
            true => (Kind::Give, self.rank),
            false => (Kind::Update, self.place.child),
        };
        let mut repr = self.job.header(kind, lane.sequence, scale_only);
        let wants = match (operation, chunk) {
            (Some(operation), Chunk::Values(index)) => operation.exponent(index),
            _ => Some(Exponent::ZERO),
        };
        repr.flags = repr
            .flags
            .with(Flags::NON_FINITE, wants.is_none() && !is_probe)
            .with(Flags::AGAIN, previous > 0)
            .with(Flags::PROBE, is_probe)
            .with(Flags::TIMED, lane.is_timed)
            .with(Flags::CLOSE, what == Send::Close);
        repr.worker = child.0;
        repr.transmission = u8::try_from(previous).unwrap_or(u8::MAX);
        if is_probe {
            repr.count = 0;
        } else {
            repr.scale = lane.scale.bits();
            repr.contributors = WorkerSet::only(child).0;
            repr.next_scale = self.wanted(lane).bits();
        }
        buffer.clear();
        buffer.resize(repr.buffer_len(), 0);
        let mut packet = Packet::new_unchecked(&mut buffer[..]);
        repr.emit(&mut packet);
        let (Some(operation), Chunk::Values(index), false) = (operation, chunk, is_probe) else {
            return;
        };
        // What the guess has no room for is said by `next_scale`: all ranks send the chunk once more.
        let draws = operation.draws(self.rank.0, lane.item);
        if wants.is_some_and(|wants| wants <= lane.scale) {
            operation.encode(&self.job, index, lane.scale, draws, packet.payload_mut());
        } else if self.late.is_some() && late::clips(lane, operation, index) {
            operation.encode_clipped(&self.job, index, lane.scale, draws, packet.payload_mut());
        }
    }

    /// Takes a frame in, from the aggregation header on.
    pub fn handle_packet(&mut self, now_ns: u64, bytes: &[u8]) -> Received {
        let received = match Packet::new_checked(bytes) {
            Ok(packet) => self.receive(now_ns, &packet),
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

    fn receive(&mut self, now_ns: u64, packet: &Packet<&[u8]>) -> Received {
        let repr = Repr::parse(packet);
        // One that has given up answers nobody: those who wait for it are to know.
        if repr.job != self.job.id().0 || self.failed {
            return Received::NotOurs;
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
            Kind::Update | Kind::Result | Kind::Given => return Received::NotOurs,
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
        let count = match scale_only {
            true => 0,
            false => self.job.values_per_packet(),
        };
        let Some(is_sum) = self.takes(slot, &repr, everyone) else {
            return Received::Duplicate;
        };
        let is_answer = is_sum
            && repr.scale == lane.scale.bits()
            && repr.flags.contains(Flags::SCALE_ONLY) == scale_only
            && usize::from(repr.count) == count
            && (Exponent::from_bits(repr.next_scale) >= self.wanted(lane)
                || !self.is_in(contributors));
        if !is_answer {
            return Received::Malformed;
        }
        if lane.transmissions == 1 {
            self.rtt.sample(now_ns.saturating_sub(lane.sent_at_ns));
        }
        let first_order = lane.first_order;
        self.counters.by_hosts += u64::from(by_host);
        self.in_flight -= 1;
        if self.in_flight == FEW_IN_FLIGHT {
            self.hurry_last();
        }
        self.take_answer(slot, &repr, packet);
        self.count_overtaken(first_order);
        if self.shares(contributors) < self.job.workers() {
            self.hurry(now_ns);
        }
        Received::Answer
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

    /// A chunk sent first at `order` is answered: every chunk whose last transmission is older was overtaken. Retransmitted
    /// chunks say nothing, by Karn's argument, unless even their first came later.
    fn count_overtaken(&mut self, order: u64) {
        let threshold = self.config.fast_threshold;
        if threshold == 0 {
            return;
        }
        while let Some(sent) = self.sent.front().copied() {
            if is_under_way(&self.lanes, sent) {
                break;
            }
            self.sent.pop_front();
        }
        if self.sent.front().is_none_or(|(oldest, _)| *oldest >= order) {
            return;
        }
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if lane.state != LaneState::InFlight || lane.sends.is_some() || lane.last_order >= order
            {
                continue;
            }
            lane.overtaken += 1;
            // What was asked may be lost as well, and what was answered: a timeout is many windows long. Whoever waits
            // for others asks ever less often.
            if lane.overtaken >= threshold.saturating_mul(1 << lane.asked_early.min(MOST_DOUBLINGS))
            {
                lane.asked_early += 1;
                self.counters.early_probes += 1;
                self.enqueue(slot, Send::Probe);
            }
        }
    }

    /// How long a chunk waits that has timed out so often.
    fn timeout_ns(&self, timeouts: u32) -> u64 {
        match self.in_flight <= FEW_IN_FLIGHT {
            true => self.rtt.timeout_ns(timeouts.min(1)),
            false => self.rtt.timeout_ns(timeouts),
        }
    }

    /// Few are left: those that have waited for others for long ask soon.
    fn hurry_last(&mut self) {
        let longest_ns = self.timeout_ns(1);
        for lane in &mut self.lanes {
            if lane.state == LaneState::InFlight {
                let latest_ns = lane.sent_at_ns.saturating_add(longest_ns);
                lane.deadline_ns = lane.deadline_ns.min(latest_ns);
                self.earliest_ns = self.earliest_ns.min(lane.deadline_ns);
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called. May be early, never late.
    pub fn poll_timeout(&self) -> Option<u64> {
        let peers_ns = self.peers.as_ref().and_then(Peers::due_ns);
        let hosts_ns = self.hosts.as_ref().and_then(Hosts::due_ns);
        let others_ns = peers_ns.into_iter().chain(hosts_ns).min();
        let due_ns = self.earliest_ns.min(others_ns.unwrap_or(u64::MAX));
        (!self.failed && due_ns != u64::MAX).then_some(due_ns)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.failed {
            return;
        }
        self.check_peers(now_ns);
        self.retry_switch(now_ns);
        if now_ns < self.earliest_ns || self.failed {
            return;
        }
        self.earliest_ns = u64::MAX;
        self.check_closing(now_ns);
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
            let (by_host, silences, sequence) = (lane.by_host, lane.silences, lane.sequence);
            if self.falls_back(now_ns, slot) {
                continue;
            }
            if by_host {
                self.doubt_host(now_ns, slot, silences);
            }
            if !by_host && silences > self.config.max_timeouts {
                silent = Some(silent.map_or(sequence, |other: u64| other.min(sequence)));
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
