//! One slot of a rank's window.

use super::GUESS_ABOVE;
use crate::job::WorkerSet;
use crate::quantise::Exponent;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneState {
    /// Nothing to send before the next operation.
    Idle,
    /// The item waits for its first transmission.
    Waiting,
    /// It was sent and not answered.
    InFlight,
}

/// What a lane has in the transmit queue. Of two, the greater says all that the other does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Send {
    /// Who is missing?
    Probe,
    /// My values again, to have the sum again, which is complete.
    Fetch,
    /// My values.
    Values,
    /// My values, and nobody is waited for any longer.
    Close,
}

/// How the exponent of a chunk of a short operation was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// From what the lane had before.
    Guess,
    /// The answer to the guess said it.
    Known,
}

/// One slot's item.
#[derive(Debug, Clone)]
pub struct Lane {
    pub state: LaneState,
    /// The item that it is at, or that comes next, among all that the rank was given.
    pub item: u64,
    /// The number of its chunk, from the job's first.
    pub sequence: u64,
    pub scale: Exponent,
    pub attempt: Attempt,
    /// What the answer before said of the next item of a long operation.
    pub agreed: Exponent,
    /// The exponent that the lane's last chunk should have had.
    pub last: Exponent,
    pub sends: Option<Send>,
    pub transmissions: u32,
    pub timeouts: u32,
    /// Timeouts since the switch was last heard of this chunk.
    pub silences: u32,
    pub sent_at_ns: u64,
    /// When the item's chunk was sent for the first time.
    pub first_sent_ns: u64,
    pub deadline_ns: u64,
    /// Positions of the first and the last transmission among all of this rank's.
    pub first_order: u64,
    pub last_order: u64,
    /// Chunks sent after the last transmission and answered before this one.
    pub overtaken: u32,
    /// How often was asked for that reason, since this rank sent anything of its own: each time waits for twice as many.
    pub asked_early: u32,
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

impl Lane {
    /// That of a slot, before any item.
    pub fn first(slot: u64) -> Self {
        Self {
            state: LaneState::Idle,
            item: slot,
            sequence: slot,
            scale: Exponent::ZERO,
            attempt: Attempt::Guess,
            agreed: Exponent::ZERO,
            // Of numbers around 1 nothing is lost.
            last: Exponent::from_bits(Exponent::BIAS as u8),
            sends: None,
            transmissions: 0,
            timeouts: 0,
            silences: 0,
            sent_at_ns: 0,
            first_sent_ns: 0,
            deadline_ns: u64::MAX,
            first_order: 0,
            last_order: 0,
            overtaken: 0,
            asked_early: 0,
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

    /// Whether its chunk waits for others, as far as the switch has told.
    pub fn waits(&self) -> bool {
        self.state == LaneState::InFlight && self.others_missing > 0
    }

    /// What a chunk is sent with of which no exponent is known.
    pub fn guess(&self) -> Exponent {
        Exponent::from_bits(self.last.bits().saturating_add(GUESS_ABOVE))
    }

    /// The item's chunk waits to be sent: to its host, or to the switch.
    pub fn start(&mut self, scale: Exponent, by_host: bool) {
        self.by_host = by_host;
        self.state = LaneState::Waiting;
        self.scale = scale;
        self.sends = None;
        self.transmissions = 0;
        self.timeouts = 0;
        self.silences = 0;
        self.asked_early = 0;
        self.misses = WorkerSet::EMPTY;
        self.others_missing = 0;
        self.asks = 0;
    }

    /// The item is done: the next one has the next number of the slot.
    pub fn advance(&mut self, window: u64) {
        self.item += window;
        self.sequence += window;
        self.attempt = Attempt::Guess;
        self.state = LaneState::Idle;
        self.sends = None;
    }

    /// The item once more, with the exponent that all ranks know of now.
    pub fn repeat(&mut self, window: u64, scale: Exponent, by_host: bool) {
        self.sequence += window;
        self.attempt = Attempt::Known;
        self.start(scale, by_host);
    }
}
