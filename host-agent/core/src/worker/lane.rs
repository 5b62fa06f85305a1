//! One slot of a worker's window.

use crate::quantise::Exponent;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneState {
    /// Nothing to send before the next round.
    Idle,
    /// The chunk waits for its first transmission, or, timed out, for another.
    Waiting,
    /// The chunk was sent and not answered.
    InFlight,
}

/// One slot's chunk.
#[derive(Debug, Clone)]
pub struct Lane {
    pub state: LaneState,
    pub sequence: u64,
    pub scale: Exponent,
    /// Whether the chunk is in the transmit queue.
    pub queued: bool,
    pub transmissions: u32,
    pub timeouts: u32,
    pub sent_at_ns: u64,
    /// When the chunk was sent for the first time.
    pub first_sent_ns: u64,
    pub deadline_ns: u64,
    /// Positions of the first and the last transmission among all of this worker's.
    pub first_order: u64,
    pub last_order: u64,
    /// Chunks sent after the last transmission and answered before this one.
    pub overtaken: u32,
    pub fast_retransmitted: bool,
}

impl Lane {
    pub fn idle() -> Self {
        Self::waiting(0, Exponent::ZERO, LaneState::Idle)
    }

    pub fn waiting(sequence: u64, scale: Exponent, state: LaneState) -> Self {
        Self {
            state,
            sequence,
            scale,
            queued: false,
            transmissions: 0,
            timeouts: 0,
            sent_at_ns: 0,
            first_sent_ns: 0,
            deadline_ns: u64::MAX,
            first_order: 0,
            last_order: 0,
            overtaken: 0,
            fast_retransmitted: false,
        }
    }
}
