//! The parameter server: applies each chunk once, and answers each request for its result.
//!
//! Chunk k can complete only if every worker holds the answer to k − W, and the answer to k is needed only until k + W is
//! complete. So a store of 2·W answers, one per cell, is enough; and a frame whose predecessor has not been answered does not
//! belong to this job, whatever its number is.

mod marks;
mod outcome;
mod parts;
mod receiving;
mod state;

use std::collections::VecDeque;

use wire::{Flags, Kind, Packet, Repr};

use crate::job::{CellIndex, ChunkId, Job, RoundPart, WorkerId, WorkerSet};
use crate::quantise::Exponent;
use crate::rto::Retransmission;
use crate::slot::SlotTable;
use crate::{Destination, Mark, UnderWay};
use marks::Marks;
use parts::{Between, Children};

pub use outcome::{ServerCounters, ServerError, ServerEvent, ServerFrame};
pub use parts::{Part, PartsError};

/// Where contributions are summed: by a switch or by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A switch sums: SUMs arrive at the server, and its first answer to a chunk goes to all workers.
    Switch,
    /// The server sums: UPDATEs arrive at it, and it answers each worker separately.
    Direct,
}

/// A chunk to which every worker has contributed, as the server applies it.
#[derive(Debug, Clone, Copy)]
pub struct Completed<'a> {
    /// The training round, from 0.
    pub round: u64,
    /// Index of the chunk within the round, from 0.
    pub index: u32,
    /// The sums over all workers, one per value of the packet.
    pub sums: &'a [i32],
    /// Exponent with which the values were quantised.
    pub exponent: Exponent,
    /// The contributors: every worker of the job.
    pub contributors: WorkerSet,
}

/// The server's use of completed sums, such as a step of the optimizer.
pub trait Apply {
    /// Applies a completed chunk, once, and writes the answer: one word per value.
    fn apply(&mut self, chunk: Completed<'_>, answer: &mut [u32]);
}

impl<F: FnMut(Completed<'_>, &mut [u32])> Apply for F {
    fn apply(&mut self, chunk: Completed<'_>, answer: &mut [u32]) {
        self(chunk, answer);
    }
}

/// Answer to the chunk that owned the register cell last.
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

/// The parameter server of one job.
#[derive(Debug, Clone)]
pub struct Server<A> {
    job: Job,
    config: Retransmission,
    rounds: Option<u64>,
    apply: A,
    /// Slots in which the server sums updates of workers or parts; `None` if a switch sums the whole job.
    slots: Option<SlotTable>,
    /// The contributors whose updates the server sums (parts, and workers in no part); `None` in a job without parts.
    children: Option<Children>,
    /// Chunks that were in flight when the division into parts last changed; `None` if it never did.
    between: Option<Between>,
    /// Buffer in which the sum of a part is rewritten as an UPDATE.
    update: Vec<u8>,
    /// A switch's latest report of an incomplete sum: sequence number of its chunk, and contributors; `None` without a report.
    reported: Option<(u64, WorkerSet)>,
    answers: Vec<Answer>,
    marks: Marks,
    sums: Vec<i32>,
    words: Vec<u32>,
    queue: VecDeque<Outgoing>,
    /// Sequence number of the newest answered chunk.
    newest: u64,
    progress_ns: u64,
    ended: bool,
    event: Option<ServerEvent>,
    counters: ServerCounters,
}

impl<A: Apply> Server<A> {
    /// Creates a server that waits for frames from `now_ns` on. With the number of `rounds`, it can detect the end of the job.
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
            children: None,
            between: None,
            update: Vec::new(),
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

    /// Creates a server of a job whose parts (sets of workers) switches sum. Its first answer to a chunk goes to all workers.
    pub fn of_parts(
        job: Job,
        parts: Vec<Part>,
        config: Retransmission,
        rounds: Option<u64>,
        apply: A,
        now_ns: u64,
    ) -> Result<Self, PartsError> {
        let children = Children::new(&job, parts)?;
        // There are at most 64.
        let slots = SlotTable::with_children(job, children.len() as u8);
        Ok(Self {
            slots: Some(slots),
            children: Some(children),
            ..Self::new(job, Mode::Switch, config, rounds, apply, now_ns)
        })
    }

    /// Installs a new division into parts, each summed by a switch. The job numbers of the parts must not have been used
    /// before. Contributions to incomplete chunks are discarded.
    ///
    /// Returns the first chunk that the new parts sum. Workers may have sent any earlier chunk by the old paths, and must
    /// send those to the server directly ([`Worker::move_to`](crate::worker::Worker::move_to)).
    pub fn replan(&mut self, now_ns: u64, parts: Vec<Part>) -> Result<ChunkId, PartsError> {
        let children = Children::new(&self.job, parts)?;
        // A worker that sends a chunk holds the answer to the one a window before.
        let until = self.newest + u64::from(self.job.window()) + 1;
        let until = match &self.between {
            Some(between) => until.max(between.until),
            None => until,
        };
        // A long job may exceed the range of serial arithmetic, so the cells begin where they are first used.
        let oldest = self.job.chunk(self.oldest_incomplete());
        self.between = Some(Between {
            until,
            slots: SlotTable::new(self.job).beginning_at(oldest),
        });
        let slots = SlotTable::with_children(self.job, children.len() as u8);
        self.slots = Some(slots.beginning_at(self.job.chunk(until)));
        self.children = Some(children);
        self.progress_ns = now_ns;
        Ok(self.job.chunk(until))
    }

    /// Whether any chunk that the parts of the last [`replan`](Self::replan) sum is complete.
    pub fn has_sum_of_new_parts(&self) -> bool {
        let between = self.between.as_ref();
        between.is_some_and(|between| self.newest >= between.until)
    }

    /// Counters of the server since its start.
    pub fn counters(&self) -> ServerCounters {
        self.counters
    }

    /// The user of the sums, which applies them.
    pub fn application(&self) -> &A {
        &self.apply
    }

    /// Applies a chunk whose sums are in `self.sums`, and stores the answer.
    fn complete(&mut self, now_ns: u64, cell: CellIndex, sequence: u64, sum: &Repr) {
        let position = self.job.position(sequence);
        let non_finite = sum.flags.contains(Flags::NON_FINITE);
        let mut repr = self.job.header(
            Kind::Result,
            sequence,
            matches!(position.part, RoundPart::ScaleOnly(_)),
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
        } else if let RoundPart::Values(index) = position.part {
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
        // Includes this chunk, which the caller counts.
        if self
            .last_sequence()
            .is_some_and(|last| self.counters.completed == last)
        {
            self.end(ServerEvent::Finished);
        }
    }

    /// Sequence number of the job's last chunk, at the end of the closing window; `None` if the number of rounds is unknown.
    fn last_sequence(&self) -> Option<u64> {
        let numbers = self.rounds? * self.job.numbers_per_round();
        Some(numbers + u64::from(self.job.window()) - 1)
    }

    fn answer_again(&mut self, cell: CellIndex, sequence: u64, worker: WorkerId) {
        self.send(cell, sequence, Destination::Worker(worker), true);
    }

    fn send(&mut self, cell: CellIndex, sequence: u64, to: Destination, again: bool) {
        // Each worker may miss every answer, and request it twice.
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

    /// Writes the next frame to `buffer`, replacing its content, and returns the destination; `None`: nothing to send.
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
            self.marks.select(cell, to);
            return Some(to);
        }
        None
    }

    /// Congestion mark (ECN) for the IP header of the frame that [`poll_transmit`](Self::poll_transmit) returned last: that of
    /// the contribution that the frame answers.
    pub fn mark(&self) -> Mark {
        self.marks.selected()
    }

    /// Time at which the driver must call [`handle_timeout`](Self::handle_timeout); `None` if never.
    pub fn poll_timeout(&self) -> Option<u64> {
        (!self.ended).then(|| self.progress_ns.saturating_add(self.patience_ns()))
    }

    /// How long the server waits for progress: one timeout longer than a worker, so that the workers report the failure first.
    fn patience_ns(&self) -> u64 {
        self.config
            .patience_ns()
            .saturating_add(self.config.ceiling_ns)
    }

    /// Whether the sums of all rounds are applied, so that only closing frames can still arrive.
    pub fn is_closing(&self) -> bool {
        let oldest = self.job.position(self.oldest_incomplete());
        self.rounds.is_some_and(|rounds| oldest.round >= rounds)
    }

    /// Handles all timeouts that are due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.poll_timeout().is_none_or(|deadline| now_ns < deadline) {
            return;
        }
        if self.is_closing() {
            // A worker that still missed an answer would have asked for it.
            self.end(ServerEvent::Finished);
            return;
        }
        let oldest = self.oldest_incomplete();
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

    /// The workers known to have contributed to a chunk; `None` if this server does not know them.
    fn contributors(&self, sequence: u64) -> Option<WorkerSet> {
        let chunk = self.job.chunk(sequence);
        let slots = match &self.between {
            Some(between) if sequence < between.until => Some(&between.slots),
            _ => self.slots.as_ref(),
        };
        match slots {
            Some(slots) => slots
                .cell(self.job.cell(chunk))
                .filter(|cell| cell.owner == chunk)
                .map(|cell| self.whose(sequence, cell.contributors)),
            None => self
                .reported
                .filter(|(reported, _)| *reported == sequence)
                .map(|(_, known)| known),
        }
    }

    /// The workers whose values these `contributors` have added to a chunk. A part has added those of all its workers.
    fn whose(&self, sequence: u64, contributors: WorkerSet) -> WorkerSet {
        let is_between = self.between.as_ref();
        let is_between = is_between.is_some_and(|between| sequence < between.until);
        match &self.children {
            Some(children) if !is_between => children.workers(contributors),
            _ => contributors,
        }
    }

    /// Whether a chunk was in flight when the division into parts last changed, or is older.
    fn is_between(&self, chunk: ChunkId) -> bool {
        let sequence = self.job.sequence_near(self.newest, chunk);
        let between = self.between.as_ref().zip(sequence);
        between.is_some_and(|(between, sequence)| sequence < between.until)
    }

    /// The oldest incomplete chunk, waiting since the last chunk was completed; `None` if the job has ended.
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

    /// Sequence number of the oldest incomplete chunk. Each slot waits for the chunk one window after its last answered one.
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
        self.end(ServerEvent::Failed(error));
    }

    fn end(&mut self, event: ServerEvent) {
        if !self.ended {
            self.ended = true;
            self.event = Some(event);
        }
    }

    /// Takes the latest event of the server; `None` if there is no new event.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.event.take()
    }
}
