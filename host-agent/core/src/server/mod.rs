//! The parameter server: applies each chunk once, and answers as often as it is asked.
//!
//! Chunk k can be complete only if every worker holds the answer to k − W, and an answer to k is wanted
//! only until k + W is complete. So a store of 2·W answers, one per cell, is enough; and a frame whose predecessor
//! has not been answered is not of this job, whatever its number says.

mod marks;
mod outcome;
mod state;

use std::collections::VecDeque;

use wire::{Flags, Kind, Packet, Repr};

use crate::job::{CellIndex, ChunkId, Job, Part, WorkerId, WorkerSet};
use crate::quantise::Exponent;
use crate::rto::Retransmission;
use crate::slot::{Outcome, SlotTable};
use crate::{Destination, Mark, UnderWay};
use marks::Marks;

pub use outcome::{Event, Received, ServerCounters, ServerError};

/// Who sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A switch: SUMs arrive, the first answer to a chunk goes to all.
    Switch,
    /// The server: UPDATEs arrive, each worker is answered alone.
    Direct,
}

/// A chunk to which every worker has contributed.
#[derive(Debug, Clone, Copy)]
pub struct Completed<'a> {
    /// The round, from 0.
    pub round: u64,
    /// The chunk within the round, from 0.
    pub index: u32,
    /// The sums, one per value of a packet.
    pub sums: &'a [i32],
    /// What they were quantised with.
    pub exponent: Exponent,
    /// Who contributed: everyone.
    pub contributors: WorkerSet,
}

/// What a server does with a sum.
pub trait Apply {
    /// Applies a completed chunk, once, and writes the answer: one word per value.
    fn apply(&mut self, chunk: Completed<'_>, answer: &mut [u32]);
}

impl<F: FnMut(Completed<'_>, &mut [u32])> Apply for F {
    fn apply(&mut self, chunk: Completed<'_>, answer: &mut [u32]) {
        self(chunk, answer);
    }
}

/// The answer to the chunk that owned the cell last.
#[derive(Debug, Clone, Default)]
struct Answer {
    sequence: Option<u64>,
    next_scale: u8,
    transmissions: u8,
    frame: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Outgoing {
    cell: CellIndex,
    sequence: u64,
    to: Destination,
    again: bool,
}

/// The server of one job.
#[derive(Debug, Clone)]
pub struct Server<A> {
    job: Job,
    config: Retransmission,
    rounds: Option<u64>,
    apply: A,
    /// In [`Mode::Direct`].
    slots: Option<SlotTable>,
    /// What incomplete sums of a switch have told: the chunk, and who contributed.
    reported: Option<(u64, WorkerSet)>,
    answers: Vec<Answer>,
    marks: Marks,
    sums: Vec<i32>,
    words: Vec<u32>,
    queue: VecDeque<Outgoing>,
    /// The newest chunk answered.
    newest: u64,
    progress_ns: u64,
    ended: bool,
    event: Option<Event>,
    counters: ServerCounters,
}

impl<A: Apply> Server<A> {
    /// A server that waits from `now_ns` on. With `rounds`, it knows when the job is over.
    pub fn new(
        job: Job,
        mode: Mode,
        config: Retransmission,
        rounds: Option<u64>,
        apply: A,
        now_ns: u64,
    ) -> Self {
        Self {
            job,
            config,
            rounds,
            apply,
            slots: (mode == Mode::Direct).then(|| SlotTable::new(job)),
            reported: None,
            answers: vec![Answer::default(); job.cells()],
            marks: Marks::new(job.cells()),
            sums: vec![0; job.values_per_packet()],
            words: vec![0; job.values_per_packet()],
            queue: VecDeque::new(),
            newest: 0,
            progress_ns: now_ns,
            ended: false,
            event: None,
            counters: ServerCounters::default(),
        }
    }

    /// What was counted so far.
    pub fn counters(&self) -> ServerCounters {
        self.counters
    }

    /// What applies the sums.
    pub fn application(&self) -> &A {
        &self.apply
    }

    /// Takes a frame in, from the aggregation header on, and what its IP header says of queues.
    pub fn handle_packet(&mut self, now_ns: u64, mark: Mark, bytes: &[u8]) -> Received {
        let received = match Packet::new_checked(bytes) {
            Ok(packet) => self.receive(now_ns, mark, &packet),
            Err(_) => Received::Malformed,
        };
        match received {
            Received::Applied => self.counters.completed += 1,
            Received::Absorbed => {}
            Received::Again => self.counters.again += 1,
            Received::Duplicate => self.counters.duplicates += 1,
            Received::Stale => self.counters.stale += 1,
            Received::NotOurs => self.counters.not_ours += 1,
            Received::Malformed => self.counters.malformed += 1,
        }
        if received.is_repeated() {
            self.counters.repeated_bytes += bytes.len() as u64;
        }
        received
    }

    fn receive(&mut self, now_ns: u64, mark: Mark, packet: &Packet<&[u8]>) -> Received {
        let repr = Repr::parse(packet);
        let kind = if self.slots.is_some() {
            Kind::Update
        } else {
            Kind::Sum
        };
        if repr.kind != kind || repr.job != self.job.id().0 {
            return Received::NotOurs;
        }
        if repr.worker >= self.job.workers() || !self.job.is_well_formed(packet) {
            return Received::Malformed;
        }
        let Some(sequence) = self.job.sequence_near(self.newest, ChunkId(repr.chunk)) else {
            return Received::Stale;
        };
        let cell = self.job.cell(ChunkId(repr.chunk));
        let answered = self.answers[cell.index()].sequence;
        if answered.is_some_and(|answered| sequence < answered) {
            return Received::Stale;
        }
        if answered != Some(sequence) && !self.can_follow(sequence, &repr) {
            return Received::Malformed;
        }
        if mark == Mark::Congested && answered != Some(sequence) {
            // A sum is everybody's.
            let whose = match self.slots {
                Some(_) => WorkerSet::only(WorkerId(repr.worker)),
                None => self.job.everyone(),
            };
            self.marks.note(cell, whose);
        }
        if self.slots.is_some() {
            self.receive_update(now_ns, sequence, packet)
        } else {
            self.receive_sum(now_ns, sequence, answered == Some(sequence), packet)
        }
    }

    /// Whether a chunk that has not been answered is the next of its slot: its predecessor is the last that
    /// the slot's other cell answered, and it uses the exponent agreed on there.
    fn can_follow(&self, sequence: u64, repr: &Repr) -> bool {
        let scale_only = matches!(self.job.position(sequence).part, Part::ScaleOnly(_));
        if scale_only != repr.flags.contains(Flags::SCALE_ONLY) {
            return false;
        }
        let Some(before) = sequence.checked_sub(u64::from(self.job.window())) else {
            return repr.scale == 0;
        };
        let before_cell = self.job.cell(self.job.chunk(before));
        let Answer {
            sequence,
            next_scale,
            ..
        } = self.answers[before_cell.index()];
        let scale = if scale_only { 0 } else { next_scale };
        sequence == Some(before) && repr.scale == scale
    }

    fn receive_update(&mut self, now_ns: u64, sequence: u64, packet: &Packet<&[u8]>) -> Received {
        let Some(slots) = &mut self.slots else {
            return Received::NotOurs;
        };
        match slots.update(packet) {
            Outcome::Refused(_) => Received::Malformed,
            Outcome::Stale | Outcome::ProbedStale(_) => Received::Stale,
            // A job with a server has no deadlines.
            Outcome::Closed(_) | Outcome::Late(_) | Outcome::Forgotten => Received::NotOurs,
            Outcome::TakenOver(_) | Outcome::Absorbed(_) => Received::Absorbed,
            Outcome::DuplicateIncomplete(_) | Outcome::Probed(_) => Received::Duplicate,
            Outcome::Again(cell) => {
                self.answer_again(cell, sequence, WorkerId(packet.worker()));
                Received::Again
            }
            Outcome::Completed(index) => {
                let (contributors, flags, next_scale) = match slots.cell(index) {
                    Some(cell) => {
                        self.sums.copy_from_slice(cell.values);
                        (cell.contributors, cell.flags, cell.next_scale)
                    }
                    None => return Received::Malformed,
                };
                let repr = Repr {
                    contributors: contributors.0,
                    flags,
                    next_scale,
                    ..Repr::parse(packet)
                };
                self.complete(now_ns, index, sequence, &repr);
                for worker in self.job.everyone().iter() {
                    self.send(index, sequence, Destination::Worker(worker), false);
                }
                Received::Applied
            }
        }
    }

    fn receive_sum(
        &mut self,
        now_ns: u64,
        sequence: u64,
        answered: bool,
        packet: &Packet<&[u8]>,
    ) -> Received {
        let repr = Repr::parse(packet);
        let contributors = WorkerSet(repr.contributors);
        let cell = self.job.cell(ChunkId(repr.chunk));
        if contributors != self.job.everyone() {
            // A switch may tell who has contributed so far.
            if !contributors.without(self.job.everyone()).is_empty() {
                return Received::Malformed;
            }
            self.reported = Some((sequence, contributors));
            return Received::Duplicate;
        }
        if !answered {
            for (sum, value) in self.sums.iter_mut().zip(packet.values_i32()) {
                *sum = value;
            }
            self.complete(now_ns, cell, sequence, &repr);
            self.send(cell, sequence, Destination::All, false);
            return Received::Applied;
        }
        if repr.flags.contains(Flags::AGAIN) {
            self.answer_again(cell, sequence, WorkerId(repr.worker));
            return Received::Again;
        }
        // The network's copy of the first sum. Who misses the answer will ask.
        Received::Duplicate
    }

    /// Applies a chunk, whose sums are in `self.sums`, and stores the answer.
    fn complete(&mut self, now_ns: u64, cell: CellIndex, sequence: u64, sum: &Repr) {
        let position = self.job.position(sequence);
        let non_finite = sum.flags.contains(Flags::NON_FINITE);
        let mut repr = self.job.header(
            Kind::Result,
            sequence,
            matches!(position.part, Part::ScaleOnly(_)),
        );
        repr.flags = repr.flags.with(Flags::NON_FINITE, non_finite);
        repr.contributors = sum.contributors;
        repr.scale = sum.scale;
        repr.next_scale = sum.next_scale;
        if non_finite {
            repr.count = 0;
        }

        let answer = &mut self.answers[cell.index()];
        answer.sequence = Some(sequence);
        answer.next_scale = sum.next_scale;
        answer.transmissions = 0;
        self.marks.complete(cell);
        answer.frame.clear();
        answer.frame.resize(repr.buffer_len(), 0);
        let mut packet = Packet::new_unchecked(&mut answer.frame[..]);
        repr.emit(&mut packet);

        if non_finite {
            let chunk = self.job.chunk(sequence);
            self.fail(ServerError::NonFinite { position, chunk });
        } else if let Part::Values(index) = position.part {
            let chunk = Completed {
                round: position.round,
                index,
                sums: &self.sums,
                exponent: Exponent::from_bits(sum.scale),
                contributors: WorkerSet(sum.contributors),
            };
            self.apply.apply(chunk, &mut self.words);
            packet.write_u32(self.words.iter().copied());
        }
        self.newest = self.newest.max(sequence);
        self.progress_ns = now_ns;
        // Includes this one, which the caller counts.
        if self
            .last_sequence()
            .is_some_and(|last| self.counters.completed == last)
        {
            self.end(Event::Finished);
        }
    }

    /// The last chunk of the job: one window closes the last round.
    fn last_sequence(&self) -> Option<u64> {
        let numbers = self.rounds? * self.job.numbers_per_round();
        Some(numbers + u64::from(self.job.window()) - 1)
    }

    fn answer_again(&mut self, cell: CellIndex, sequence: u64, worker: WorkerId) {
        self.send(cell, sequence, Destination::Worker(worker), true);
    }

    fn send(&mut self, cell: CellIndex, sequence: u64, to: Destination, again: bool) {
        // Every worker may miss every answer, and ask twice.
        let limit = 2 * self.job.cells() * usize::from(self.job.workers());
        if self.queue.len() >= limit {
            self.counters.dropped += 1;
            return;
        }
        self.queue.push_back(Outgoing {
            cell,
            sequence,
            to,
            again,
        });
    }

    /// The next frame, written to `buffer` (whose former content is dropped), and whom it goes to.
    pub fn poll_transmit(&mut self, _now_ns: u64, buffer: &mut Vec<u8>) -> Option<Destination> {
        while let Some(Outgoing {
            cell,
            sequence,
            to,
            again,
        }) = self.queue.pop_front()
        {
            let answer = &mut self.answers[cell.index()];
            if answer.sequence != Some(sequence) {
                continue; // the cell has moved on, so everybody has this answer
            }
            buffer.clear();
            buffer.extend_from_slice(&answer.frame);
            let mut packet = Packet::new_unchecked(&mut buffer[..]);
            packet.set_worker(match to {
                Destination::Worker(worker) => worker.0,
                _ => wire::ALL_WORKERS,
            });
            packet.set_flags(packet.flags().with(Flags::AGAIN, again));
            packet.set_transmission(answer.transmissions);
            answer.transmissions = answer.transmissions.saturating_add(1);
            self.counters.sent.count(buffer.len(), again);
            self.marks.tell(cell, to);
            return Some(to);
        }
        None
    }

    /// What the IP header is to say of the frame that [`poll_transmit`](Self::poll_transmit) gave last: the mark of what it answers, as
    /// a switch passes it on that sums.
    pub fn mark(&self) -> Mark {
        self.marks.told()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub fn poll_timeout(&self) -> Option<u64> {
        (!self.ended).then(|| self.progress_ns.saturating_add(self.patience_ns()))
    }

    /// One timeout more than a worker's patience, so that the workers speak first.
    fn patience_ns(&self) -> u64 {
        self.config
            .patience_ns()
            .saturating_add(self.config.ceiling_ns)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.poll_timeout().is_none_or(|deadline| now_ns < deadline) {
            return;
        }
        let oldest = self.oldest_incomplete();
        let closing = self
            .rounds
            .is_some_and(|rounds| self.job.position(oldest).round >= rounds);
        if closing {
            // All is applied; a worker that still missed an answer would have asked.
            self.end(Event::Finished);
            return;
        }
        let contributors = self.contributors(oldest);
        let (position, chunk) = (self.job.position(oldest), self.job.chunk(oldest));
        self.fail(match contributors.filter(|known| !known.is_empty()) {
            Some(known) => ServerError::Incomplete {
                position,
                chunk,
                missing: self.job.everyone().without(known),
            },
            None => ServerError::Silent {
                position,
                chunk,
                waited_ns: now_ns - self.progress_ns,
            },
        });
    }

    /// Who has contributed to a chunk, as far as this server knows.
    fn contributors(&self, sequence: u64) -> Option<WorkerSet> {
        let chunk = self.job.chunk(sequence);
        match &self.slots {
            Some(slots) => slots
                .cell(self.job.cell(chunk))
                .filter(|cell| cell.owner == chunk)
                .map(|cell| cell.contributors),
            None => self
                .reported
                .filter(|(reported, _)| *reported == sequence)
                .map(|(_, known)| known),
        }
    }

    /// The oldest chunk that has not completed, and since when none has.
    pub fn under_way(&self) -> Option<UnderWay> {
        let oldest = self.oldest_incomplete();
        let known = self.contributors(oldest);
        let missing = |known: WorkerSet| self.job.everyone().without(known);
        (!self.ended).then(|| UnderWay {
            chunk: self.job.chunk(oldest),
            since_ns: self.progress_ns,
            misses: known
                .filter(|known| !known.is_empty())
                .map_or(WorkerSet::EMPTY, missing),
        })
    }

    /// The oldest chunk that has not completed. Slots advance alone: each waits for the chunk one window
    /// after its newest answer.
    fn oldest_incomplete(&self) -> u64 {
        let window = u64::from(self.job.window());
        (0..window)
            .map(|sequence| {
                let first = self.job.chunk(sequence);
                let cells =
                    [first, first.plus(self.job.window())].map(|chunk| self.job.cell(chunk));
                let newest = cells
                    .iter()
                    .filter_map(|cell| self.answers[cell.index()].sequence)
                    .max();
                newest.map_or(sequence, |newest| newest + window)
            })
            .min()
            .unwrap_or(0)
    }

    fn fail(&mut self, error: ServerError) {
        self.end(Event::Failed(error));
    }

    fn end(&mut self, event: Event) {
        if !self.ended {
            self.ended = true;
            self.event = Some(event);
        }
    }

    /// What has happened since the last call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }
}
