//! Ranks that gave different things to one operation: what they tell each other of it, and their end.
//!
//! Whoever sees it, by the sum of the digests (`terms.rs`) or by a sum that is none of its chunk, takes no sums from then on and
//! tells all others what it gave; whoever is told does the same. A rank ends when it knows of one that gave something else, or
//! after a while, with an error that names both. Words may be lost: it says its own again, and answers who does so.
//!
//! Behind the first operation in which they differ, chunks of one meet those of another, and which is seen first is chance. So
//! ranks tell of all operations that have no sums yet, and hold them against each other one by one.

use wire::{Flags, Kind, Packet, Repr};

use super::peers::Word;
use super::terms::Terms;
use super::{Rank, RankError, Received};
use crate::Destination;
use crate::job::{ChunkId, WorkerId};

/// So long a rank waits for one to say what else it gave.
const PATIENCE_NS: u64 = 200_000_000;
/// It tells all others anew so often meanwhile.
const TURNS: u64 = 4;
/// Of so many operations they tell each other; each takes a few words of a frame.
const TOLD: usize = 8;

/// What is known of it.
#[derive(Debug, Clone)]
pub struct Differing {
    /// Where it was seen.
    operation: u64,
    /// The oldest operation without sums, and what this rank gave to it and to those behind it.
    first: u64,
    given: Vec<Terms>,
    /// Who is told next.
    pub next: u16,
    /// All were told before: this rank wants an answer.
    pub again: bool,
    again_ns: u64,
    until_ns: u64,
}

impl Rank {
    /// The ranks gave different things to an operation.
    pub(super) fn differ(&mut self, now_ns: u64, operation: u64) {
        if self.failed || self.differing.is_some() {
            return;
        }
        self.lanes.clear_queue();
        let given = self.operations.iter().map(|given| given.terms);
        self.differing = Some(Differing {
            operation,
            first: self.operations.front().map_or(operation, |first| first.id),
            given: given.take(TOLD).collect(),
            next: 0,
            again: false,
            again_ns: now_ns.saturating_add(PATIENCE_NS / TURNS),
            until_ns: now_ns.saturating_add(PATIENCE_NS),
        });
        if self.peers.is_none() {
            self.fail_differing(operation, None);
        }
    }

    fn fail_differing(&mut self, operation: u64, other: Option<(WorkerId, Terms)>) {
        if let Some(differing) = &self.differing
            && !self.failed
        {
            let own = differing.given(operation);
            self.fail(RankError::Differs {
                operation,
                own,
                other,
            });
        }
    }

    /// When all are told anew.
    pub(super) fn differing_due_ns(&self) -> Option<u64> {
        Some(self.differing.as_ref()?.again_ns)
    }

    /// Time has passed.
    pub(super) fn check_differing(&mut self, now_ns: u64) {
        let Some(differing) = &mut self.differing else {
            return;
        };
        if now_ns < differing.again_ns {
            return;
        }
        differing.again = true;
        differing.again_ns = now_ns.saturating_add(PATIENCE_NS / TURNS);
        differing.next = 0;
        if differing.until_ns <= now_ns {
            let operation = differing.operation;
            self.fail_differing(operation, None);
        }
    }

    /// Another rank says what it gave.
    pub(super) fn receive_terms(&mut self, now_ns: u64, packet: &Packet<&[u8]>) -> Received {
        // It may be of an earlier use of the job.
        if ChunkId(packet.chunk()) != self.job.first_chunk() {
            return Received::NotOurs;
        }
        let (from, first) = (WorkerId(packet.worker()), packet.contributors());
        if from.0 >= self.job.workers() || from == self.rank {
            return Received::Malformed;
        }
        self.differ(now_ns, first);
        self.answer_terms(packet.flags(), from);
        let others = Terms::of_words(packet.payload());
        let mut others = (first..).zip(others);
        let otherwise = others.find_map(|(operation, other)| {
            let own = self.differing.as_ref()?.given(operation)?;
            Some((operation, other?)).filter(|(_, other)| *other != own)
        });
        if let Some((operation, other)) = otherwise {
            self.fail_differing(operation, Some((from, other)));
        }
        Received::Word
    }

    /// What a rank that has ended by it does with a frame.
    pub(super) fn receive_while_differing(&mut self, repr: &Repr) -> Received {
        match repr.kind {
            Kind::Ask => self.answer_terms(Flags::AGAIN, WorkerId(repr.worker)),
            Kind::Differ => self.answer_terms(repr.flags, WorkerId(repr.worker)),
            _ => return Received::NotOurs,
        }
        Received::Word
    }

    /// Who says its own again has not heard this one's.
    fn answer_terms(&mut self, flags: Flags, to: WorkerId) {
        if let Some(peers) = &mut self.peers
            && flags.contains(Flags::AGAIN)
        {
            peers.say(to, Word::Differ);
        }
    }

    /// The next that is told.
    pub(super) fn tell_differing(&mut self, buffer: &mut Vec<u8>) -> Option<Destination> {
        let (me, ranks) = (self.rank.0, self.job.workers());
        let differing = self.differing.as_mut().filter(|_| self.peers.is_some())?;
        differing.next += u16::from(differing.next == me);
        let to = WorkerId(differing.next);
        if to.0 >= ranks {
            return None;
        }
        differing.next += 1;
        let again = differing.again;
        self.write_terms(again, buffer)
            .then_some(Destination::Worker(to))
    }

    /// Writes what this rank gave.
    pub(super) fn write_terms(&self, again: bool, buffer: &mut Vec<u8>) -> bool {
        let Some(differing) = &self.differing else {
            return false;
        };
        let words = differing.given.iter().flat_map(|given| given.words());
        let words: Vec<i32> = words.map(|word| word as i32).collect();
        let mut repr = self.job.header(Kind::Differ, 0, true);
        repr.flags = Flags::NONE.with(Flags::AGAIN, again);
        repr.worker = self.rank.0;
        repr.contributors = differing.first;
        repr.count = words.len() as u16;
        buffer.clear();
        buffer.resize(repr.buffer_len(), 0);
        let mut packet = Packet::new_unchecked(&mut buffer[..]);
        repr.emit(&mut packet);
        packet.write_i32(words);
        true
    }
}

impl Differing {
    /// What this rank gave to an operation.
    fn given(&self, operation: u64) -> Option<Terms> {
        let at = operation.checked_sub(self.first)?;
        self.given.get(usize::try_from(at).ok()?).copied()
    }
}
