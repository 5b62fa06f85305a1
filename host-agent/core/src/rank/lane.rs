//! One slot of a rank's window.

use super::GUESS_ABOVE;
use crate::job::WorkerSet;
use crate::lanes;
use crate::quantise::Exponent;

/// How the exponent of a chunk of a short operation was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// From what the lane had before.
    Guess,
    /// The answer to the guess said it.
    Known,
}

/// One slot of a rank's window.
pub type Lane = lanes::Lane<RankLane>;

/// What a rank knows of a lane's item, beyond when it was sent.
#[derive(Debug, Clone)]
pub struct RankLane {
    pub attempt: Attempt,
    /// What the answer before said of the next item of a long operation.
    pub agreed: Exponent,
    /// The exponent that the lane's last chunk should have had.
    pub last: Exponent,
    /// Timeouts since the switch was last heard of this chunk.
    pub silences: u32,
    /// Whom the chunk misses, as the switch told last.
    pub misses: WorkerSet,
    /// How often the switch has told that others are missing.
    pub others_missing: u32,
    /// Its chunk goes to its host (`hosts.rs`).
    pub by_host: bool,
    /// The chunk may be closed, and its frames say so.
    pub is_timed: bool,
    /// From when on.
    pub closable_ns: u64,
    /// When it is asked whether it can be.
    pub closing_ns: u64,
    /// How often that was asked.
    pub asks: u32,
    /// The furthest chunk of this slot of which a sum has come that this rank was not there for.
    pub seen: u64,
}

impl Default for RankLane {
    fn default() -> Self {
        Self {
            attempt: Attempt::Guess,
            agreed: Exponent::ZERO,
            // Of numbers around 1 nothing is lost.
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

impl Lane {
    /// Whether its chunk waits for others, as far as the switch has told.
    pub fn waits(&self) -> bool {
        self.is_in_flight() && self.others_missing > 0
    }

    /// What a chunk is sent with of which no exponent is known.
    pub fn guess(&self) -> Exponent {
        Exponent::from_bits(self.last.bits().saturating_add(GUESS_ABOVE))
    }

    /// The item's chunk waits to be sent: to its host, or to the switch.
    pub fn begin(&mut self, scale: Exponent, by_host: bool) {
        self.start(scale);
        self.by_host = by_host;
        self.silences = 0;
        self.misses = WorkerSet::EMPTY;
        self.others_missing = 0;
        self.asks = 0;
    }

    /// The item is done.
    pub fn finish(&mut self, window: u64) {
        self.advance(window);
        self.attempt = Attempt::Guess;
    }

    /// The item once more, with the exponent that all ranks know of now.
    pub fn repeat(&mut self, window: u64, scale: Exponent, by_host: bool) {
        self.sequence += window;
        self.attempt = Attempt::Known;
        self.begin(scale, by_host);
    }
}
