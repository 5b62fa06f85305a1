//! One slot of a rank's window.

use super::GUESS_ABOVE;
use crate::job::WorkerSet;
use crate::lanes;
use crate::quantise::Exponent;

/// Source of the exponent of a chunk in a short operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// Guessed from the lane's earlier exponents.
    Guess,
    /// Agreed on in the answer to the guess.
    Known,
}

/// One slot of a rank's window.
pub type RankLane = lanes::Lane<RankLaneFields>;

/// A rank's state of a lane's item, in addition to the transmission state.
#[derive(Debug, Clone)]
pub struct RankLaneFields {
    pub attempt: Attempt,
    /// In a long operation: the exponent that the last answer gave for the lane's next item.
    pub agreed: Exponent,
    /// The exponent that the lane's last chunk needed.
    pub last: Exponent,
    /// Number of timeouts since the switch last answered about this chunk.
    pub silences: u32,
    /// Ranks that the chunk misses, by the switch's last answer.
    pub misses: WorkerSet,
    /// Number of answers that said that others are missing.
    pub others_missing: u32,
    /// Whether the chunk goes to its host (`hosts.rs`).
    pub by_host: bool,
    /// Whether the chunk may be closed, which its frames announce.
    pub is_timed: bool,
    /// Time from which the chunk may be closed.
    pub closable_ns: u64,
    /// Time of the next probe that asks whether the chunk can be closed.
    pub closing_ns: u64,
    /// Number of those probes.
    pub asks: u32,
    /// The furthest chunk of this slot whose sum arrived before this rank had reached the chunk.
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
    /// Whether the chunk waits for other ranks, by the switch's answers.
    pub fn waits(&self) -> bool {
        self.is_in_flight() && self.others_missing > 0
    }

    /// The guessed exponent of a chunk whose exponent was not agreed on.
    pub fn guess(&self) -> Exponent {
        Exponent::from_bits(self.last.bits().saturating_add(GUESS_ABOVE))
    }

    /// Makes the item's chunk wait for its transmission, to its host or to the switch.
    pub fn begin(&mut self, scale: Exponent, by_host: bool) {
        self.start(scale);
        self.by_host = by_host;
        self.silences = 0;
        self.misses = WorkerSet::EMPTY;
        self.others_missing = 0;
        self.asks = 0;
    }

    /// Moves to the lane's next item.
    pub fn finish(&mut self, window: u64) {
        self.advance(window);
        self.attempt = Attempt::Guess;
    }

    /// Sends the item again under the slot's next number, with the exponent that all ranks agreed on.
    pub fn repeat(&mut self, window: u64, scale: Exponent, by_host: bool) {
        self.sequence += window;
        self.attempt = Attempt::Known;
        self.begin(scale, by_host);
    }
}
