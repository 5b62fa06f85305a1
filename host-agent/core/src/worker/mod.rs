//! A worker that trains with a parameter server: it sends its values by UPDATE and receives the answers by RESULT.
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

mod moving;
mod outcome;
mod state;

use wire::{Flags, Kind, Packet, Repr};

use crate::congestion::{CongestionWindow, Mark};
use crate::job::{ChunkId, Job, JobId, Position, RoundPart, WorkerId, WorkerSet};
use crate::lanes::{LaneState, Lanes, Send};
use crate::quantise::{Exponent, block};
use crate::rto::Retransmission;
use crate::{Destination, UnderWay};

pub use outcome::{StartError, WorkerCounters, WorkerError, WorkerEvent, WorkerFrame};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Running,
    Closing,
    Closed,
    Failed,
}

/// A worker of a job with a parameter server.
#[derive(Debug, Clone)]
pub struct Worker {
    job: Job,
    rank: WorkerId,
    /// Job and worker number in frames of chunks from `sent_so_from` on: those of a part, if the worker is in one.
    sent_as: (JobId, WorkerId),
    sent_so_from: u64,
    /// Whether the frame sent last belongs to a chunk before `sent_so_from`.
    is_before_move: bool,
    config: Retransmission,
    phase: Phase,
    /// The training round in progress, or the next one if the worker is idle.
    round: u64,
    /// Sequence numbers of the round's chunks: scale-only chunks from `start`, values from `start + W`, up to `end` (excluded).
    start: u64,
    end: u64,
    unanswered: u64,
    values: Vec<f32>,
    /// Exponent of each chunk's values; `None` if a value is NaN or infinite.
    exponents: Vec<Option<Exponent>>,
    results: Vec<u32>,
    lanes: Lanes<()>,
    /// Order number of the next transmission when timeouts last reduced the congestion window; a timeout of an earlier
    /// transmission does not reduce it again.
    timed_out_before: u64,
    event: Option<WorkerEvent>,
    counters: WorkerCounters,
}

impl Worker {
    /// A worker that has not started. `rank` must be below the job's number of workers.
    pub fn new(job: Job, rank: WorkerId, config: Retransmission) -> Self {
        debug_assert!(rank.0 < job.workers());
        let congestion_window = CongestionWindow::to_one_server(job.window());
        Self {
            job,
            rank,
            sent_as: (job.id(), rank),
            sent_so_from: 0,
            is_before_move: false,
            config,
            phase: Phase::Idle,
            round: 0,
            start: 0,
            end: 0,
            unanswered: 0,
            values: Vec::new(),
            exponents: Vec::new(),
            results: vec![0; job.values_per_round()],
            lanes: Lanes::new(&job, congestion_window, config),
            timed_out_before: 0,
            event: None,
            counters: WorkerCounters::default(),
        }
    }

    /// Makes the worker a member of a part ([`server::Part`](crate::server::Part)), whose switch knows it by the number
    /// `child`.
    #[must_use]
    pub fn in_part(mut self, number: JobId, child: WorkerId) -> Self {
        self.sent_as = (number, child);
        self
    }

    /// This worker's rank.
    pub fn rank(&self) -> WorkerId {
        self.rank
    }

    /// Fixes the congestion window at the number of slots, whatever congestion signals arrive: for comparison.
    pub fn fix_window(&mut self) {
        self.lanes.window.fix();
    }

    /// Counters of the worker since its start.
    pub fn counters(&self) -> WorkerCounters {
        WorkerCounters {
            congestion: self.lanes.window.signals(),
            ..self.counters
        }
    }

    /// The unanswered chunk that was sent first; `None` if there is none. Its missing workers are unknown here.
    pub fn under_way(&self) -> Option<UnderWay> {
        let oldest = self.lanes.in_flight().min_by_key(|lane| lane.first_order)?;
        Some(oldest.under_way(&self.job, WorkerSet::EMPTY))
    }

    /// The server's answers of the last finished round, one word per value; for training, binary32.
    pub fn results(&self) -> &[u32] {
        &self.results
    }

    /// Starts a round. The values are copied; nothing is sent before [`poll_transmit`](Self::poll_transmit).
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
                .map(Exponent::bounding),
        );
        self.phase = Phase::Running;
        self.open_window();
        Ok(())
    }

    /// Ends the job with one last window of scale-only chunks. Once they complete, the server knows that all workers have all
    /// answers. If they do not, that is no error.
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

    /// Queues the first transmission of a chunk.
    fn begin(&mut self, sequence: u64, scale: Exponent) {
        let slot = self.job.lane(self.job.chunk(sequence));
        let lane = &mut self.lanes[slot];
        (lane.item, lane.sequence) = (sequence, sequence);
        lane.start(scale);
        self.lanes.enqueue(slot, Send::Values);
    }

    /// Withdraws a chunk that timed out, and sends it again when the congestion window allows. If all workers retransmitted at
    /// once what the server's queue had dropped, the queue would drop it again.
    fn send_anew(&mut self, slot: usize) {
        if self.lanes[slot].last_order >= self.timed_out_before {
            self.timed_out_before = self.lanes.next_order();
            self.lanes.window.timed_out();
        }
        self.lanes.withdraw(slot);
    }

    /// The chunk's index among the round's chunks with values; `None` for a scale-only chunk.
    fn index_in_round(&self, sequence: u64) -> Option<usize> {
        (sequence - self.start)
            .checked_sub(u64::from(self.job.window()))
            .map(|index| index as usize)
    }

    /// The exponent that this worker requests for a chunk; zero for a chunk beyond the round.
    fn wanted(&self, sequence: u64) -> Exponent {
        self.index_in_round(sequence)
            .and_then(|index| *self.exponents.get(index)?)
            .unwrap_or_default()
    }

    fn position(&self, sequence: u64) -> Position {
        let part = match self.index_in_round(sequence) {
            None => RoundPart::ScaleOnly((sequence - self.start) as u32),
            Some(index) => RoundPart::Values(index as u32),
        };
        Position {
            round: self.round,
            part,
        }
    }

    /// Writes the next frame to `buffer`, replacing its content, and returns the destination; `None`: nothing to send.
    pub fn poll_transmit(&mut self, now_ns: u64, buffer: &mut Vec<u8>) -> Option<Destination> {
        let (slot, _) = self.lanes.next_send()?;
        let timeout_ns = self.lanes.rtt.timeout_ns(self.lanes[slot].timeouts);
        let deadline_ns = now_ns.saturating_add(timeout_ns);
        let previous = self.lanes.sent(slot, now_ns, deadline_ns);

        self.is_before_move = self.lanes[slot].sequence < self.sent_so_from;
        self.write_update(slot, previous, buffer);
        self.counters.sent.count(buffer.len(), previous > 0);
        Some(Destination::Server)
    }

    fn write_update(&self, slot: usize, previous: u32, buffer: &mut Vec<u8>) {
        let lane = &self.lanes[slot];
        let (sequence, scale) = (lane.sequence, lane.scale);
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
            // The last chunk is padded with zeros.
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

    /// Processes a frame, from the aggregation header on, with the congestion mark of its IP header.
    pub fn handle_packet(&mut self, now_ns: u64, mark: Mark, bytes: &[u8]) -> WorkerFrame {
        let received = match Packet::new_checked(bytes) {
            Ok(packet) => self.receive(now_ns, mark, &packet),
            Err(_) => WorkerFrame::Malformed,
        };
        match received {
            WorkerFrame::Answer => {}
            WorkerFrame::Duplicate => self.counters.duplicates += 1,
            WorkerFrame::NotOurs => self.counters.not_ours += 1,
            WorkerFrame::Malformed => self.counters.malformed += 1,
        }
        received
    }

    fn receive(&mut self, now_ns: u64, mark: Mark, packet: &Packet<&[u8]>) -> WorkerFrame {
        let repr = Repr::parse(packet);
        let for_us = repr.worker == self.rank.0 || repr.worker == wire::ALL_WORKERS;
        if repr.kind != Kind::Result || repr.job != self.job.id().0 || !for_us {
            return WorkerFrame::NotOurs;
        }
        let chunk = ChunkId(repr.chunk);
        let slot = self.job.lane(chunk);
        let lane = &self.lanes[slot];
        let Some(sequence) = self.job.sequence_near(lane.sequence, chunk) else {
            return WorkerFrame::Malformed;
        };
        if sequence < lane.sequence || sequence == lane.sequence && lane.state == LaneState::Idle {
            return WorkerFrame::Duplicate;
        }
        // No chunk can complete before this worker has sent it.
        if sequence > lane.sequence || lane.transmissions == 0 {
            return WorkerFrame::Malformed;
        }
        let index = self.index_in_round(sequence);
        let non_finite = index.is_some() && repr.flags.contains(Flags::NON_FINITE);
        let next = sequence + u64::from(self.job.window());
        let next_scale = Exponent::from_bits(repr.next_scale);
        let is_answer = repr.slot == self.job.slot(chunk).0
            && repr.flags.contains(Flags::VERSION) == self.job.version(chunk).0
            && repr.flags.contains(Flags::SCALE_ONLY) == index.is_none()
            && (non_finite
                || usize::from(repr.count) == index.map_or(0, |_| self.job.values_per_packet()))
            && repr.scale == lane.scale.bits()
            && next_scale >= self.wanted(next);
        if !is_answer {
            return WorkerFrame::Malformed;
        }

        if lane.transmissions > 1 {
            // The chunk was sent more than once: a frame or its answer was lost, or was late by a timeout.
            self.lanes.window.lost();
        }
        let lane = &self.lanes[slot];
        let (first_order, last_order) = (lane.first_order, lane.last_order);
        self.lanes.answered(slot, now_ns, last_order, mark);
        if non_finite {
            let position = self.position(sequence);
            self.fail(WorkerError::NonFinite { position, chunk });
            return WorkerFrame::Answer;
        }
        if let Some(index) = index {
            let from = index * self.job.values_per_packet();
            self.results[from..]
                .iter_mut()
                .zip(packet.values_u32())
                .for_each(|(r, v)| *r = v);
        }
        self.advance(slot, next, next_scale);
        // Overtaken chunks are sent once ahead of their timeout.
        self.counters.fast_retransmits += self.lanes.count_overtaken(first_order, Send::Values, 1);
        WorkerFrame::Answer
    }

    /// Moves a lane to its next chunk after an answer.
    fn advance(&mut self, slot: usize, next: u64, next_scale: Exponent) {
        let lane = &mut self.lanes[slot];
        lane.state = LaneState::Idle;
        lane.sends = None;
        if next < self.end {
            self.begin(next, next_scale);
        }
        self.unanswered -= 1;
        if self.unanswered == 0 {
            if self.phase == Phase::Closing {
                self.phase = Phase::Closed;
                self.event = Some(WorkerEvent::Closed);
            } else {
                self.phase = Phase::Idle;
                self.event = Some(WorkerEvent::RoundDone { round: self.round });
                self.round += 1;
            }
        }
    }

    /// Time at which the driver must call [`handle_timeout`](Self::handle_timeout): possibly too early, never too late.
    pub fn poll_timeout(&self) -> Option<u64> {
        match self.phase {
            Phase::Running | Phase::Closing => {
                Some(self.lanes.due_ns()).filter(|due_ns| *due_ns != u64::MAX)
            }
            _ => None,
        }
    }

    /// Handles all timeouts that are due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if !matches!(self.phase, Phase::Running | Phase::Closing) || !self.lanes.is_due(now_ns) {
            return;
        }
        let max_timeouts = match self.phase {
            Phase::Closing => self.config.max_closing_timeouts,
            _ => self.config.max_timeouts,
        };
        let (mut exhausted, mut from): (Option<u64>, _) = (None, 0);
        while let Some(slot) = self.lanes.next_timed_out(now_ns, from) {
            from = slot + 1;
            self.counters.timeouts += 1;
            let lane = &self.lanes[slot];
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
            self.stop(Phase::Closed, WorkerEvent::Closed);
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
        self.stop(Phase::Failed, WorkerEvent::Failed(error));
    }

    fn stop(&mut self, phase: Phase, event: WorkerEvent) {
        self.phase = phase;
        self.event = Some(event);
        self.lanes.stop();
    }

    /// Takes the latest event of the worker; `None` if there is no new event.
    pub fn poll_event(&mut self) -> Option<WorkerEvent> {
        self.event.take()
    }
}
