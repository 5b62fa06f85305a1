//! Communication of a rank with other ranks: questions, replies, and the sums kept for ranks that missed them.
//!
//! A switch that restarts forgets its cells. A rank that has a chunk's sum does not send the chunk again, so a rank that
//! missed the sum would ask the switch in vain. It asks the others, some of which have the sum. A rank that does not answer
//! at all is declared dead.

use std::collections::VecDeque;

use wire::Repr;

use crate::job::{CellIndex, ChunkId, WorkerId};

/// Number of questions sent to a silent rank within [`Setup::dead_after_ns`](super::Setup::dead_after_ns): at 20 % loss on each
/// of four links, a live rank is declared dead once in 10⁴·⁵ times.
const ASKS: u64 = 20;

/// A message from this rank to another rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// ASK: do you have the sum of this chunk?
    Ask(ChunkId),
    /// HERE: this rank is alive.
    Here(ChunkId),
    /// SUM: the sum that this rank has kept at this index.
    Sum(usize),
    /// DIFFER: this rank's description of its operations (terms), since ranks submitted different ones.
    Differ,
    /// GIVEN: this rank's answer as the host that sums a chunk, from the register cell with this index.
    Given(Repr, CellIndex),
}

/// A question to another rank that has not been answered.
#[derive(Debug, Clone, Copy)]
struct Asked {
    chunk: ChunkId,
    first_ns: u64,
    last_ns: u64,
    times: u64,
}

/// State of the communication with other ranks: unanswered questions, and messages to be sent.
#[derive(Debug, Clone)]
pub struct Peers {
    me: WorkerId,
    dead_after_ns: u64,
    asked: Vec<Option<Asked>>,
    /// The rank that was asked last in a tree of switches, where the missing ranks are unknown.
    next: u16,
    words: VecDeque<(WorkerId, Word)>,
    limit: usize,
}

impl Peers {
    /// State of communication among `ranks` ranks, with a queue of at most `limit` messages.
    pub fn new(me: WorkerId, ranks: u16, dead_after_ns: u64, limit: usize) -> Self {
        Self {
            me,
            dead_after_ns,
            asked: vec![None; usize::from(ranks)],
            next: me.0,
            words: VecDeque::new(),
            limit,
        }
    }

    /// Queues a message to another rank; drops it if the queue is full, since a rank that needs the message asks again.
    pub fn queue(&mut self, to: WorkerId, word: Word) {
        if self.words.len() < self.limit && to != self.me && to.0 < self.asked.len() as u16 {
            self.words.push_back((to, word));
        }
    }

    pub fn next_word(&mut self) -> Option<(WorkerId, Word)> {
        self.words.pop_front()
    }

    /// The queued messages. They alone determine what this rank sends to others next; the other fields only determine when.
    pub fn words(&self) -> &VecDeque<(WorkerId, Word)> {
        let Self {
            me: _,
            dead_after_ns: _,
            asked: _,
            next: _,
            words,
            limit: _,
        } = self;
        words
    }

    /// Asks a rank whether it has the sum of a chunk.
    pub fn ask(&mut self, now_ns: u64, to: WorkerId, chunk: ChunkId) {
        let Some(asked) = self.asked.get_mut(usize::from(to.0)) else {
            return;
        };
        if to == self.me {
            return;
        }
        let known = asked.get_or_insert(Asked {
            chunk,
            first_ns: now_ns,
            last_ns: now_ns,
            times: 0,
        });
        known.chunk = chunk;
        known.last_ns = now_ns;
        known.times += 1;
        self.queue(to, Word::Ask(chunk));
    }

    /// Whether this rank has asked another rank and received no answer.
    pub fn is_asked(&self, rank: WorkerId) -> bool {
        let asked = self.asked.get(usize::from(rank.0));
        asked.is_some_and(Option::is_some)
    }

    /// The rank to ask next if the missing ranks are unknown.
    pub fn in_turn(&mut self) -> WorkerId {
        let ranks = self.asked.len() as u16;
        self.next = (self.next + 1) % ranks;
        if self.next == self.me.0 {
            self.next = (self.next + 1) % ranks;
        }
        WorkerId(self.next)
    }

    /// Records a frame from another rank, which is therefore alive.
    pub fn note_reply(&mut self, from: WorkerId) {
        if let Some(asked) = self.asked.get_mut(usize::from(from.0)) {
            *asked = None;
        }
    }

    /// Discards all unanswered questions.
    pub fn forget(&mut self) {
        self.asked.fill(None);
    }

    fn pace_ns(&self) -> u64 {
        self.dead_after_ns / ASKS
    }

    /// Time at which [`check`](Self::check) must be called next; `None` without unanswered questions.
    pub fn due_ns(&self) -> Option<u64> {
        let asked = self.asked.iter().flatten();
        asked
            .map(|asked| {
                let again_ns = asked.last_ns.saturating_add(self.pace_ns());
                again_ns.min(asked.first_ns.saturating_add(self.dead_after_ns))
            })
            .min()
    }

    /// Repeats unanswered questions that are due. Returns a rank that did not answer for too long, and the chunk in question.
    pub fn check(&mut self, now_ns: u64) -> Option<(WorkerId, ChunkId)> {
        for peer in 0..self.asked.len() {
            let Some(asked) = self.asked[peer] else {
                continue;
            };
            let silent_ns = now_ns.saturating_sub(asked.first_ns);
            if silent_ns >= self.dead_after_ns {
                return Some((WorkerId(peer as u16), asked.chunk));
            }
            if now_ns >= asked.last_ns.saturating_add(self.pace_ns()) {
                self.ask(now_ns, WorkerId(peer as u16), asked.chunk);
            }
        }
        None
    }
}

/// A sum that a rank has kept, for ranks that missed it.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Position of the sum's chunk in the job, from 0; `None` before the first sum.
    pub sequence: Option<u64>,
    pub contributors: u64,
    pub flags: u8,
    pub scale: u8,
    pub next_scale: u8,
    pub values: Vec<i32>,
}
