//! State of one lane of a rank: the rank sends the chunks of one slot through it, one after the other.

use super::GUESS_ABOVE;
use crate::job::WorkerSet;
use crate::lanes;
use crate::quantise::Exponent;

/// How a rank knows the exponent for a chunk of a short operation (no longer than the window).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The rank guessed the exponent from the lane's earlier exponents.
    Guess,
    /// The ranks agreed on the exponent by the answer to an earlier transmission of the values, whose guess did not fit.
    Known,
}

/// A lane of a rank: the sender of the chunks of one slot.
pub type RankLane = lanes::Lane<RankLaneFields>;

/// A rank's state of a lane, in addition to the transmission state in `lanes.rs`.
#[derive(Debug, Clone)]
pub struct RankLaneFields {
    pub attempt: Attempt,
    /// In an operation longer than the window: the exponent for the lane's next item, on which the last answer settled.
    pub agreed: Exponent,
    /// The exponent that the values of the lane's last chunk needed.
    pub last: Exponent,
    /// Number of timeouts since the switch (or host) last answered about the current chunk.
    pub silences: u32,
    /// Ranks that have not contributed to the chunk, by the switch's last answer.
    pub misses: WorkerSet,
    /// Number of the switch's answers that contributions of other ranks are missing.
    pub others_missing: u32,
    /// Whether the chunk goes to the rank that hosts (sums) it instead of the switch (`hosts.rs`).
    pub by_host: bool,
    /// Whether the chunk may be closed at its deadline, which its frames announce.
    pub is_timed: bool,
    /// Time from which the chunk may be closed: its deadline.
    pub closable_ns: u64,
    /// Time of the next probe by which this rank learns whether the chunk can be closed.
    pub closing_ns: u64,
    /// Number of probes sent to learn whether the chunk can be closed.
    pub asks: u32,
    /// Sequence number of the furthest chunk of this slot whose sum arrived before this rank had reached that chunk.
    pub seen: u64,
}

impl Default for RankLaneFields {
    fn default() -> Self {
        Self {
            attempt: Attempt::Guess,
            agreed: Exponent::ZERO,
            // With this exponent, numbers around 1 lose nothing.
            last: Exponent::from_bits(Exponent::BIAS as u8),
            silences: 0,
            misses: WorkerSet::EMPTY,
            others_missing: 0,
            by_host: false,
            is_timed: false,
            closable_ns: u64::MAX,
            closing_ns: u64::MAX,
            asks: 0,
            seen: 0,
        }
    }
}

impl RankLane {
    /// Whether the chunk waits for contributions of other ranks, by the switch's answers.
    pub fn waits(&self) -> bool {
        self.is_in_flight() && self.others_missing > 0
    }

    /// The guessed exponent of a chunk whose exponent the ranks have not agreed on.
    pub fn guess(&self) -> Exponent {
        Exponent::from_bits(self.last.bits().saturating_add(GUESS_ABOVE))
    }

    /// Makes the item's chunk wait for its first transmission, to its host (`by_host`) or to the switch.
    pub fn begin(&mut self, scale: Exponent, by_host: bool) {
        self.start(scale);
        self.by_host = by_host;
        self.silences = 0;
        self.misses = WorkerSet::EMPTY;
        self.others_missing = 0;
        self.asks = 0;
    }

    /// Moves the lane to its next item.
    pub fn finish(&mut self, window: u64) {
        self.advance(window);
        self.attempt = Attempt::Guess;
    }

    /// Sends the item again as the slot's next chunk, with the exponent that all ranks agreed on.
    pub fn repeat(&mut self, window: u64, scale: Exponent, by_host: bool) {
        self.sequence += window;
        self.attempt = Attempt::Known;
        self.begin(scale, by_host);
    }
}
