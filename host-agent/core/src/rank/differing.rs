//! Failure of ranks that submitted different operations, once they have exchanged the operations' terms (type, length, …).
//!
//! A rank notices a difference by a wrong sum of the terms' digests (`terms.rs`), or by a sum that does not fit its chunk. From
//! then on it takes no sums and sends DIFFER with its own terms to all others; a rank that receives DIFFER does the same. A
//! rank fails when it knows of a rank with other terms, or after a timeout, with an error that names both. DIFFER may be lost:
//! it is sent again, and the repetition is answered by DIFFER.
//!
//! After the first operation that differs, chunks of different operations are summed with each other, so a rank may notice a
//! later difference first. So ranks exchange the terms of all operations without sums, and compare them one by one.

use wire::{Flags, Kind, Repr};

use super::peers::Word;
use super::sending::Payload;
use super::terms::Terms;
use super::{Rank, RankError, RankFrame};
use crate::job::{ChunkId, WorkerId};

/// How long a rank waits for another rank's terms (description of its operations), in nanoseconds.
const PATIENCE_NS: u64 = 200_000_000;
/// How many times a rank sends its terms (description of its operations) to all others while it waits for theirs.
const TURNS: u64 = 4;
/// Maximum number of operations described in a DIFFER frame; each takes three words.
const TOLD: usize = 8;

/// State of the exchange of terms (descriptions of operations) between ranks that submitted different operations.
#[derive(Debug, Clone)]
pub struct Differing {
    /// Number of the operation at which the difference was noticed.
    operation: u64,
    /// Number of the oldest operation without sums (`first`), and this rank's terms for it and for later ones (`given`).
    first: u64,
    given: Vec<Terms>,
    /// The words of a DIFFER frame: `given`.
    pub words: Vec<i32>,
    /// The rank to which DIFFER is sent next.
    pub next: u16,
    /// Whether DIFFER was sent to all ranks once: further DIFFER frames request a reply.
    pub again: bool,
    again_ns: u64,
    until_ns: u64,
}

impl Rank {
    /// Starts the exchange of terms, because ranks submitted different operations under the number `operation`.
    pub(super) fn differ(&mut self, now_ns: u64, operation: u64) {
        if self.failed || self.differing.is_some() {
            return;
        }
        self.lanes.clear_queue();
        let given = self.operations.iter().map(|given| given.terms).take(TOLD);
        let words = given.clone().flat_map(Terms::words);
        self.differing = Some(Differing {
            operation,
            first: self.operations.front().map_or(operation, |first| first.id),
            words: words.map(|word| word as i32).collect(),
            given: given.collect(),
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

    /// Time at which DIFFER is sent to all other ranks again; `None` if no exchange is in progress.
    pub(super) fn differing_due_ns(&self) -> Option<u64> {
        Some(self.differing.as_ref()?.again_ns)
    }

    /// Sends DIFFER again if it is due at `now_ns`; fails this rank if its wait is over.
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

    /// Processes a DIFFER frame, with which another rank describes its operations (their terms).
    pub(super) fn receive_terms(&mut self, now_ns: u64, repr: &Repr, payload: &[u8]) -> RankFrame {
        // The frame may belong to an earlier use of the job.
        if ChunkId(repr.chunk) != self.job.first_chunk() {
            return RankFrame::NotOurs;
        }
        let (from, first) = (WorkerId(repr.worker), repr.contributors);
        if from.0 >= self.job.workers() || from == self.rank {
            return RankFrame::Malformed;
        }
        self.differ(now_ns, first);
        self.answer_terms(repr.flags, from);
        let others = Terms::of_words(payload);
        let mut others = (first..).zip(others);
        let otherwise = others.find_map(|(operation, other)| {
            let own = self.differing.as_ref()?.given(operation)?;
            Some((operation, other?)).filter(|(_, other)| *other != own)
        });
        if let Some((operation, other)) = otherwise {
            self.fail_differing(operation, Some((from, other)));
        }
        RankFrame::Word
    }

    /// Replies to a frame after this rank has failed because of differing operations.
    pub(super) fn receive_while_differing(&mut self, repr: &Repr) -> RankFrame {
        match repr.kind {
            Kind::Ask => self.answer_terms(Flags::AGAIN, WorkerId(repr.worker)),
            Kind::Differ => self.answer_terms(repr.flags, WorkerId(repr.worker)),
            _ => return RankFrame::NotOurs,
        }
        RankFrame::Word
    }

    /// Sends this rank's terms (description of its operations) to a rank that has not received them: its frame has `AGAIN` set.
    fn answer_terms(&mut self, flags: Flags, to: WorkerId) {
        if let Some(peers) = &mut self.peers
            && flags.contains(Flags::AGAIN)
        {
            peers.queue(to, Word::Differ);
        }
    }

    /// The DIFFER frame for the next rank; `None` if all ranks have been sent one.
    pub(super) fn poll_differing(&mut self) -> Option<(WorkerId, (Repr, Payload))> {
        let (me, ranks) = (self.rank.0, self.job.workers());
        let differing = self.differing.as_mut().filter(|_| self.peers.is_some())?;
        differing.next += u16::from(differing.next == me);
        let to = WorkerId(differing.next);
        if to.0 >= ranks {
            return None;
        }
        differing.next += 1;
        let again = differing.again;
        Some((to, self.terms_frame(again)?))
    }

    /// A DIFFER frame with this rank's terms (what it submitted); `None` if no exchange of terms is in progress.
    pub(super) fn terms_frame(&self, again: bool) -> Option<(Repr, Payload)> {
        let differing = self.differing.as_ref()?;
        let repr = Repr {
            flags: Flags::NONE.with(Flags::AGAIN, again),
            worker: self.rank.0,
            contributors: differing.first,
            count: differing.words.len() as u16,
            ..self.job.header(Kind::Differ, 0, true)
        };
        Some((repr, Payload::Terms))
    }
}

impl Differing {
    /// This rank's terms (type, length, …) for an operation; `None` if it has none for it.
    fn given(&self, operation: u64) -> Option<Terms> {
        let at = operation.checked_sub(self.first)?;
        self.given.get(usize::try_from(at).ok()?).copied()
    }
}
