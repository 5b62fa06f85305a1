//! A worker: one rank's side of the protocol, for a switch that sums and a server that sums alike.
//!
//! ```text
//!             start_round              all answered
//!   Idle ───────────────────▶ Running ───────────────▶ Idle ──close──▶ Closing ──▶ Closed
//!                                │
//!                                └── too many timeouts, or NON_FINITE ──▶ Failed
//! ```
//!
//! Each slot of the window is a *lane*: chunk k, then k + W once k is answered, and so on to the end of
//! the round. The answer to k carries the exponent of k + W.

mod lane;
mod moving;
mod outcome;
mod state;

use wire::{Flags, Kind, Packet, Repr};

use crate::congestion::{Answered, CongestionWindow, Mark, SendQueue};
use crate::job::{ChunkId, Job, JobId, Part, Position, WorkerId, WorkerSet};
use crate::quantise::{Exponent, block};
use crate::rto::{Retransmission, RttEstimator};
use crate::{Destination, UnderWay};
use lane::{Lane, LaneState};

pub use outcome::{Event, Received, StartError, WorkerCounters, WorkerError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Running,
    Closing,
    Closed,
    Failed,
}

/// One rank of a job.
#[derive(Debug, Clone)]
pub struct Worker {
    job: Job,
    rank: WorkerId,
    /// What its frames say as their job and worker, from a sequence number on; before it, those of a worker in no part.
    sent_as: (JobId, WorkerId),
    sent_so_from: u64,
    /// Whether what it sent last is of a chunk before that.
    is_before_move: bool,
    config: Retransmission,
    rtt: RttEstimator,
    phase: Phase,
    /// The round under way, or to come.
    round: u64,
    /// Sequence numbers of the round: scale-only chunks from `start`, values from `start + W`, up to `end`.
    start: u64,
    end: u64,
    unanswered: u64,
    values: Vec<f32>,
    /// Each chunk's exponent; `None` where a value is not finite.
    exponents: Vec<Option<Exponent>>,
    results: Vec<u32>,
    /// By slot.
    lanes: Vec<Lane>,
    /// Lanes with a chunk that was sent and not answered.
    in_flight: usize,
    queue: SendQueue,
    window: CongestionWindow,
    next_order: u64,
    /// What was sent before this has timed out once.
    timed_out_before: u64,
    /// No lane times out before.
    earliest_ns: u64,
    event: Option<Event>,
    counters: WorkerCounters,
}

impl Worker {
    /// A worker that has not started. `rank` must be below the job's number of workers.
    pub fn new(job: Job, rank: WorkerId, config: Retransmission) -> Self {
        debug_assert!(rank.0 < job.workers());
        Self {
            job,
            rank,
            sent_as: (job.id(), rank),
            sent_so_from: 0,
            is_before_move: false,
            config,
            rtt: RttEstimator::new(config),
            phase: Phase::Idle,
            round: 0,
            start: 0,
            end: 0,
            unanswered: 0,
            values: Vec::new(),
            exponents: Vec::new(),
            results: vec![0; job.values_per_round()],
            lanes: vec![Lane::idle(); job.window() as usize],
            in_flight: 0,
            queue: SendQueue::new(job.window() as usize),
            window: CongestionWindow::to_one_server(job.window()),
            next_order: 0,
            timed_out_before: 0,
            earliest_ns: u64::MAX,
            event: None,
            counters: WorkerCounters::default(),
        }
    }

    /// A worker whose values a switch sums with those of a part of the job ([`server::Part`](crate::server::Part)), by the
    /// number that the switch knows it by.
    #[must_use]
    pub fn in_part(mut self, number: JobId, child: WorkerId) -> Self {
        self.sent_as = (number, child);
        self
    }

    /// This worker's rank.
    pub fn rank(&self) -> WorkerId {
        self.rank
    }

    /// Has as many chunks under way as it has slots, whatever queues say: for comparison.
    pub fn fix_window(&mut self) {
        self.window.fix();
    }

    /// What was counted so far.
    pub fn counters(&self) -> WorkerCounters {
        WorkerCounters {
            congestion: self.window.signals(),
            ..self.counters
        }
    }

    /// What it waits for: the chunk under way that was sent first. The server or the switch knows whom it misses.
    pub fn under_way(&self) -> Option<UnderWay> {
        let sent = self.lanes.iter();
        let sent = sent.filter(|lane| lane.state == LaneState::InFlight);
        let oldest = sent.min_by_key(|lane| lane.first_order)?;
        Some(UnderWay {
            chunk: self.job.chunk(oldest.sequence),
            since_ns: oldest.first_sent_ns,
            misses: WorkerSet::EMPTY,
        })
    }

    /// The server's answers, value by value, of the round that was done last; for training, binary32.
    pub fn results(&self) -> &[u32] {
        &self.results
    }

    /// Begins a round. Values are copied; nothing is sent before [`poll_transmit`](Self::poll_transmit).
    pub fn start_round(&mut self, values: &[f32]) -> Result<(), StartError> {
        if self.phase != Phase::Idle {
            return Err(StartError::NotIdle);
        }
        if values.len() != self.job.values_per_round() {
            return Err(StartError::Length {
                got: values.len(),
                expected: self.job.values_per_round(),
            });
        }
        self.values.clear();
        self.values.extend_from_slice(values);
        self.exponents.clear();
        self.exponents.extend(
            values
                .chunks(self.job.values_per_packet())
                .map(Exponent::of),
        );
        self.phase = Phase::Running;
        self.open_window();
        Ok(())
    }

    /// Ends the job: sends one last window of scale-only chunks. When they complete, the server knows that
    /// every worker has every answer. No answer to them is no error.
    pub fn close(&mut self) -> Result<(), StartError> {
        if self.phase != Phase::Idle {
            return Err(StartError::NotIdle);
        }
        self.values.clear();
        self.exponents.clear();
        self.phase = Phase::Closing;
        self.open_window();
        Ok(())
    }

    fn open_window(&mut self) {
        self.start = self.end;
        self.unanswered = u64::from(self.job.window()) + self.exponents.len() as u64;
        self.end = self.start + self.unanswered;
        for sequence in self.start..self.start + u64::from(self.job.window()) {
            self.begin(sequence, Exponent::ZERO);
        }
    }

    /// Queues a chunk's first transmission.
    fn begin(&mut self, sequence: u64, scale: Exponent) {
        let slot = self.job.slot(self.job.chunk(sequence)).0;
        self.lanes[usize::from(slot)] = Lane {
            queued: true,
            ..Lane::waiting(sequence, scale, LaneState::Waiting)
        };
        self.queue.push_first(slot.into(), sequence);
    }

    /// Queues another transmission of a chunk under way.
    fn enqueue_again(&mut self, slot: usize) {
        let lane = &mut self.lanes[slot];
        if !lane.queued {
            lane.queued = true;
            self.queue.push_again(slot, lane.sequence);
        }
    }

    /// A chunk has timed out: it is under way no more, and is sent again as far as the window lets it. Would all workers send at once
    /// what has found no room at the server, it would find none again.
    fn send_anew(&mut self, slot: usize) {
        if self.lanes[slot].last_order >= self.timed_out_before {
            self.timed_out_before = self.next_order;
            self.window.timed_out();
        }
        self.wait_again(slot);
    }

    /// A chunk is under way no more, and is sent again.
    fn wait_again(&mut self, slot: usize) {
        let lane = &mut self.lanes[slot];
        lane.state = LaneState::Waiting;
        lane.queued = true;
        self.in_flight -= 1;
        self.queue.push_first(slot, lane.sequence);
    }

    /// The lane that sends next, as far as the window lets it.
    fn next_send(&mut self) -> Option<usize> {
        let has_room = self.in_flight < self.window.chunks();
        loop {
            let lanes = &self.lanes;
            let next = self.queue.pop(has_room, |sequence| {
                let lane = &lanes[usize::from(self.job.slot(self.job.chunk(sequence)).0)];
                lane.sequence == sequence && lane.state == LaneState::InFlight
            })?;
            let lane = &mut self.lanes[next.slot];
            let is_so = match lane.state {
                // Answered while its retransmission was queued.
                LaneState::Idle => false,
                LaneState::Waiting => next.is_first,
                LaneState::InFlight => !next.is_first,
            };
            if next.item == lane.sequence && is_so {
                lane.queued = false;
                return Some(next.slot);
            }
        }
    }

    /// The index among the round's chunks of values; `None` for a scale-only chunk.
    fn index_in_round(&self, sequence: u64) -> Option<usize> {
        (sequence - self.start)
            .checked_sub(u64::from(self.job.window()))
            .map(|index| index as usize)
    }

    /// The exponent that this worker wants for a chunk; zero beyond the round.
    fn wanted(&self, sequence: u64) -> Exponent {
        self.index_in_round(sequence)
            .and_then(|index| *self.exponents.get(index)?)
            .unwrap_or_default()
    }

    fn position(&self, sequence: u64) -> Position {
        let part = match self.index_in_round(sequence) {
            None => Part::ScaleOnly((sequence - self.start) as u32),
            Some(index) => Part::Values(index as u32),
        };
        Position {
            round: self.round,
            part,
        }
    }

    /// The next frame, written to `buffer` (whose former content is dropped), and whom it goes to.
    pub fn poll_transmit(&mut self, now_ns: u64, buffer: &mut Vec<u8>) -> Option<Destination> {
        let slot = self.next_send()?;
        let deadline_ns = now_ns.saturating_add(self.rtt.timeout_ns(self.lanes[slot].timeouts));
        let lane = &mut self.lanes[slot];
        let previous = lane.transmissions;
        self.in_flight += usize::from(lane.state != LaneState::InFlight);
        lane.state = LaneState::InFlight;
        lane.transmissions = lane.transmissions.saturating_add(1);
        lane.sent_at_ns = now_ns;
        lane.deadline_ns = deadline_ns;
        lane.last_order = self.next_order;
        if previous == 0 {
            lane.first_order = self.next_order;
            lane.first_sent_ns = now_ns;
        }
        lane.overtaken = 0;
        self.next_order += 1;
        self.earliest_ns = self.earliest_ns.min(deadline_ns);

        self.is_before_move = self.lanes[slot].sequence < self.sent_so_from;
        self.write_update(slot, previous, buffer);
        self.counters.sent.count(buffer.len(), previous > 0);
        Some(Destination::Server)
    }

    fn write_update(&self, slot: usize, previous: u32, buffer: &mut Vec<u8>) {
        let Lane {
            sequence, scale, ..
        } = self.lanes[slot];
        let index = self.index_in_round(sequence);
        let non_finite = index.is_some_and(|index| self.exponents[index].is_none());
        let mut repr = self.job.header(Kind::Update, sequence, index.is_none());
        repr.flags = repr
            .flags
            .with(Flags::NON_FINITE, non_finite)
            .with(Flags::AGAIN, previous > 0);
        let (number, sender) = self.sent_as(sequence);
        repr.job = number.0;
        repr.worker = sender.0;
        repr.transmission = u8::try_from(previous).unwrap_or(u8::MAX);
        repr.contributors = WorkerSet::only(sender).0;
        repr.scale = scale.bits();
        repr.next_scale = self.wanted(sequence + u64::from(self.job.window())).bits();

        buffer.clear();
        buffer.resize(repr.buffer_len(), 0);
        let mut packet = Packet::new_unchecked(&mut buffer[..]);
        repr.emit(&mut packet);
        if let (Some(index), false) = (index, non_finite) {
            let size = self.job.values_per_packet();
            let from = index * size;
            let to = (from + size).min(self.values.len());
            // The last chunk is filled up with zeros.
            let words = packet.payload_mut();
            block::encode(
                &self.values[from..to],
                scale,
                self.job.workers(),
                None,
                words,
            );
        }
    }

    /// Takes a frame in, from the aggregation header on, and what its IP header says of queues.
    pub fn handle_packet(&mut self, now_ns: u64, mark: Mark, bytes: &[u8]) -> Received {
        let received = match Packet::new_checked(bytes) {
            Ok(packet) => self.receive(now_ns, mark, &packet),
            Err(_) => Received::Malformed,
        };
        match received {
            Received::Answer => {}
            Received::Duplicate => self.counters.duplicates += 1,
            Received::NotOurs => self.counters.not_ours += 1,
            Received::Malformed => self.counters.malformed += 1,
        }
        received
    }

    fn receive(&mut self, now_ns: u64, mark: Mark, packet: &Packet<&[u8]>) -> Received {
        let repr = Repr::parse(packet);
        let for_us = repr.worker == self.rank.0 || repr.worker == wire::ALL_WORKERS;
        if repr.kind != Kind::Result || repr.job != self.job.id().0 || !for_us {
            return Received::NotOurs;
        }
        let chunk = ChunkId(repr.chunk);
        let slot = self.job.slot(chunk);
        let lane = &self.lanes[usize::from(slot.0)];
        let Some(sequence) = self.job.sequence_near(lane.sequence, chunk) else {
            return Received::Malformed;
        };
        if sequence < lane.sequence || sequence == lane.sequence && lane.state == LaneState::Idle {
            return Received::Duplicate;
        }
        // No chunk completes before this worker has sent it.
        if sequence > lane.sequence || lane.transmissions == 0 {
            return Received::Malformed;
        }
        let index = self.index_in_round(sequence);
        let non_finite = index.is_some() && repr.flags.contains(Flags::NON_FINITE);
        let next = sequence + u64::from(self.job.window());
        let next_scale = Exponent::from_bits(repr.next_scale);
        let is_answer = repr.slot == slot.0
            && repr.flags.contains(Flags::VERSION) == self.job.version(chunk).0
            && repr.flags.contains(Flags::SCALE_ONLY) == index.is_none()
            && (non_finite
                || usize::from(repr.count) == index.map_or(0, |_| self.job.values_per_packet()))
            && repr.scale == lane.scale.bits()
            && next_scale >= self.wanted(next);
        if !is_answer {
            return Received::Malformed;
        }

        let rtt_ns = now_ns.saturating_sub(lane.sent_at_ns);
        let rtt_ns = (lane.transmissions == 1).then_some(rtt_ns);
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.sample(rtt_ns);
        } else {
            // Sent again: it, or its answer, was lost, or late by a timeout.
            self.window.lost();
        }
        let first_order = lane.first_order;
        let answered = Answered {
            order: lane.last_order,
            rtt_ns,
            mark,
        };
        let refused = self.queue.refused();
        self.window
            .answered(now_ns, answered, self.next_order, refused);
        if non_finite {
            let position = self.position(sequence);
            self.fail(WorkerError::NonFinite { position, chunk });
            return Received::Answer;
        }
        if let Some(index) = index {
            let from = index * self.job.values_per_packet();
            self.results[from..]
                .iter_mut()
                .zip(packet.values_u32())
                .for_each(|(r, v)| *r = v);
        }
        self.advance(usize::from(slot.0), next, next_scale);
        self.count_overtaken(first_order);
        Received::Answer
    }

    /// The chunk of a lane is answered: the lane goes on to the next.
    fn advance(&mut self, slot: usize, next: u64, next_scale: Exponent) {
        let lane = &mut self.lanes[slot];
        self.in_flight -= usize::from(lane.state == LaneState::InFlight);
        lane.state = LaneState::Idle;
        lane.queued = false;
        if next < self.end {
            self.begin(next, next_scale);
        }
        self.unanswered -= 1;
        if self.unanswered == 0 {
            if self.phase == Phase::Closing {
                self.phase = Phase::Closed;
                self.event = Some(Event::Closed);
            } else {
                self.phase = Phase::Idle;
                self.event = Some(Event::RoundDone { round: self.round });
                self.round += 1;
            }
        }
    }

    /// A chunk sent first at `order` is answered: every chunk whose last transmission is older was
    /// overtaken. Retransmitted chunks say nothing, by Karn's argument, unless even their first came later.
    fn count_overtaken(&mut self, order: u64) {
        let threshold = self.config.fast_threshold;
        if threshold == 0 {
            return;
        }
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if lane.state != LaneState::InFlight || lane.queued || lane.last_order >= order {
                continue;
            }
            lane.overtaken += 1;
            if lane.overtaken >= threshold && !lane.fast_retransmitted {
                lane.fast_retransmitted = true;
                self.counters.fast_retransmits += 1;
                self.enqueue_again(slot);
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called. May be early, never late.
    pub fn poll_timeout(&self) -> Option<u64> {
        match self.phase {
            Phase::Running | Phase::Closing => {
                Some(self.earliest_ns).filter(|earliest| *earliest != u64::MAX)
            }
            _ => None,
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if now_ns < self.earliest_ns || !matches!(self.phase, Phase::Running | Phase::Closing) {
            return;
        }
        let max_timeouts = match self.phase {
            Phase::Closing => self.config.max_closing_timeouts,
            _ => self.config.max_timeouts,
        };
        self.earliest_ns = u64::MAX;
        let mut exhausted: Option<u64> = None;
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if lane.state != LaneState::InFlight || lane.queued {
                continue;
            }
            if lane.deadline_ns > now_ns {
                self.earliest_ns = self.earliest_ns.min(lane.deadline_ns);
                continue;
            }
            lane.timeouts += 1;
            self.counters.timeouts += 1;
            self.rtt.timed_out(now_ns, lane.sent_at_ns);
            if lane.timeouts >= max_timeouts {
                let oldest = exhausted.map_or(lane.sequence, |other| other.min(lane.sequence));
                exhausted = Some(oldest);
            } else {
                self.send_anew(slot);
            }
        }
        if let Some(sequence) = exhausted {
            self.give_up(sequence, max_timeouts);
        }
    }

    fn give_up(&mut self, sequence: u64, timeouts: u32) {
        if self.phase == Phase::Closing {
            self.stop(Phase::Closed, Event::Closed);
            return;
        }
        let chunk = self.job.chunk(sequence);
        let position = self.position(sequence);
        self.fail(WorkerError::Unanswered {
            position,
            chunk,
            timeouts,
        });
    }

    fn fail(&mut self, error: WorkerError) {
        self.stop(Phase::Failed, Event::Failed(error));
    }

    fn stop(&mut self, phase: Phase, event: Event) {
        self.phase = phase;
        self.event = Some(event);
        self.queue.clear();
        self.in_flight = 0;
        for lane in &mut self.lanes {
            lane.state = LaneState::Idle;
            lane.queued = false;
        }
    }

    /// What has happened since the last call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }
}
