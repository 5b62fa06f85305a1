//! Reception of frames by the server: SUMs of a switch, UPDATEs of workers, and sums of parts of the job.

use wire::{Flags, Kind, Packet, Repr};

use super::parts::Children;
use super::{Answer, Apply, Server, ServerFrame};
use crate::job::{CellIndex, ChunkId, RoundPart, WorkerId, WorkerSet};
use crate::slot::Outcome;
use crate::{Destination, Mark};

impl<A: Apply> Server<A> {
    /// Processes a frame, from the aggregation header on, with the congestion mark of its IP header.
    pub fn handle_packet(&mut self, now_ns: u64, mark: Mark, bytes: &[u8]) -> ServerFrame {
        let received = match Packet::new_checked(bytes) {
            Ok(packet) if self.children.is_some() => self.receive_of_part(now_ns, mark, &packet),
            Ok(packet) => self.receive(now_ns, mark, &packet),
            Err(_) => ServerFrame::Malformed,
        };
        match received {
            ServerFrame::Applied => self.counters.completed += 1,
            ServerFrame::Absorbed => {}
            ServerFrame::Again => self.counters.again += 1,
            ServerFrame::Duplicate => self.counters.duplicates += 1,
            ServerFrame::Stale => self.counters.stale += 1,
            ServerFrame::NotOurs => self.counters.not_ours += 1,
            ServerFrame::Malformed => self.counters.malformed += 1,
        }
        if received.is_repeated() {
            self.counters.repeated_bytes += bytes.len() as u64;
        }
        received
    }

    /// Processes the sum of a part, or the update of a worker in no part, as the update of a child. For chunks that were in
    /// flight when the parts changed, it accepts only updates of workers.
    fn receive_of_part(&mut self, now_ns: u64, mark: Mark, packet: &Packet<&[u8]>) -> ServerFrame {
        let Some(children) = &self.children else {
            return ServerFrame::NotOurs;
        };
        let update = match self.is_between(ChunkId(packet.chunk())) {
            true => Children::update_alone(&self.job, packet),
            false => children.update(&self.job, packet),
        };
        let Some(update) = update else {
            return ServerFrame::NotOurs;
        };
        let mut frame = std::mem::take(&mut self.update);
        Children::rewrite(&self.job, update, packet.as_bytes(), &mut frame);
        let asker = update.asks.then_some(update.sender);
        let received = match Packet::new_checked(&frame[..]) {
            Ok(update) => self.receive_contribution(now_ns, mark, &update, asker),
            Err(_) => ServerFrame::Malformed,
        };
        self.update = frame;
        received
    }

    fn receive(&mut self, now_ns: u64, mark: Mark, packet: &Packet<&[u8]>) -> ServerFrame {
        let kind = if self.slots.is_some() {
            Kind::Update
        } else {
            Kind::Sum
        };
        if packet.kind() != kind || packet.job() != self.job.id().0 {
            return ServerFrame::NotOurs;
        }
        if packet.worker() >= self.job.workers() {
            return ServerFrame::Malformed;
        }
        let sender = WorkerId(packet.worker());
        self.receive_contribution(now_ns, mark, packet, Some(sender))
    }

    /// Processes an update of a worker or part, or a complete sum. `asker`: the worker that requests the answer, if any.
    fn receive_contribution(
        &mut self,
        now_ns: u64,
        mark: Mark,
        packet: &Packet<&[u8]>,
        asker: Option<WorkerId>,
    ) -> ServerFrame {
        let repr = Repr::parse(packet);
        if !self.job.is_well_formed(&repr) {
            return ServerFrame::Malformed;
        }
        let Some(sequence) = self.job.sequence_near(self.newest, ChunkId(repr.chunk)) else {
            return ServerFrame::Stale;
        };
        let cell = self.job.cell(ChunkId(repr.chunk));
        let answered = self.answers[cell.index()].sequence;
        if answered.is_some_and(|answered| sequence < answered) {
            return ServerFrame::Stale;
        }
        if answered != Some(sequence) && !self.can_follow(sequence, &repr) {
            return ServerFrame::Malformed;
        }
        if mark == Mark::Congested && answered != Some(sequence) {
            // A complete sum has contributions of all workers.
            let whose = match self.slots {
                Some(_) => self.whose(sequence, WorkerSet::only(WorkerId(repr.worker))),
                None => self.job.everyone(),
            };
            self.marks.note(cell, whose);
        }
        if self.slots.is_some() {
            // The slots may differ from those that summed this chunk: its parts may have been replaced.
            if answered == Some(sequence) {
                return self.ask_again(cell, sequence, asker);
            }
            self.receive_update(now_ns, sequence, packet, asker)
        } else {
            self.receive_sum(now_ns, sequence, answered == Some(sequence), packet)
        }
    }

    /// Whether a frame of an unanswered chunk is plausible: the chunk one window earlier must be answered, and the frame must
    /// have the exponent that this answer set.
    fn can_follow(&self, sequence: u64, repr: &Repr) -> bool {
        let scale_only = matches!(self.job.position(sequence).part, RoundPart::ScaleOnly(_));
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

    fn receive_update(
        &mut self,
        now_ns: u64,
        sequence: u64,
        packet: &Packet<&[u8]>,
        asker: Option<WorkerId>,
    ) -> ServerFrame {
        let slots = match &mut self.between {
            Some(between) if sequence < between.until => Some(&mut between.slots),
            _ => self.slots.as_mut(),
        };
        let Some(slots) = slots else {
            return ServerFrame::NotOurs;
        };
        match slots.update(packet) {
            Outcome::Refused(_) => ServerFrame::Malformed,
            Outcome::Stale | Outcome::ProbedStale(_) => ServerFrame::Stale,
            // Jobs with a server have no deadlines.
            Outcome::Closed(_) | Outcome::Late(_) | Outcome::Forgotten => ServerFrame::NotOurs,
            Outcome::TakenOver(_) | Outcome::Absorbed(_) => ServerFrame::Absorbed,
            Outcome::DuplicateIncomplete(_) | Outcome::Probed(_) => ServerFrame::Duplicate,
            Outcome::Again(cell) => self.ask_again(cell, sequence, asker),
            Outcome::Completed(index) => {
                let (contributors, flags, next_scale) = match slots.cell(index) {
                    Some(cell) => {
                        self.sums.copy_from_slice(cell.values);
                        (cell.contributors, cell.flags, cell.next_scale)
                    }
                    None => return ServerFrame::Malformed,
                };
                let repr = Repr {
                    contributors: self.whose(sequence, contributors).0,
                    flags,
                    next_scale,
                    ..Repr::parse(packet)
                };
                self.complete(now_ns, index, sequence, &repr);
                if self.children.is_some() {
                    self.send(index, sequence, Destination::All, false);
                    return ServerFrame::Applied;
                }
                for worker in self.job.everyone().iter() {
                    self.send(index, sequence, Destination::Worker(worker), false);
                }
                ServerFrame::Applied
            }
        }
    }

    /// Handles a repeated frame of an answered chunk: answers `asker` again, or nobody if a part's sum was duplicated (`None`).
    fn ask_again(
        &mut self,
        cell: CellIndex,
        sequence: u64,
        asker: Option<WorkerId>,
    ) -> ServerFrame {
        match asker {
            Some(asker) => {
                self.answer_again(cell, sequence, asker);
                ServerFrame::Again
            }
            // The network has duplicated a part's first sum.
            None => ServerFrame::Duplicate,
        }
    }

    fn receive_sum(
        &mut self,
        now_ns: u64,
        sequence: u64,
        answered: bool,
        packet: &Packet<&[u8]>,
    ) -> ServerFrame {
        let repr = Repr::parse(packet);
        let contributors = WorkerSet(repr.contributors);
        let cell = self.job.cell(ChunkId(repr.chunk));
        if contributors != self.job.everyone() {
            // A switch may report the contributors so far.
            if !contributors.without(self.job.everyone()).is_empty() {
                return ServerFrame::Malformed;
            }
            self.reported = Some((sequence, contributors));
            return ServerFrame::Duplicate;
        }
        if !answered {
            for (sum, value) in self.sums.iter_mut().zip(packet.values_i32()) {
                *sum = value;
            }
            self.complete(now_ns, cell, sequence, &repr);
            self.send(cell, sequence, Destination::All, false);
            return ServerFrame::Applied;
        }
        if repr.flags.contains(Flags::AGAIN) {
            self.answer_again(cell, sequence, WorkerId(repr.worker));
            return ServerFrame::Again;
        }
        // The network has duplicated the first sum. A worker that misses the answer will ask for it.
        ServerFrame::Duplicate
    }
}
