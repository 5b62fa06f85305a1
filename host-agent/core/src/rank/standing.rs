//! What a rank waits for: for people who ask, and for whoever drives it.

use super::Rank;
use super::lane::LaneState;
use crate::UnderWay;

/// With fewer chunks under way each answer is waited for.
const MANY_IN_FLIGHT: usize = 16;
/// Answers gather for this part of a round trip, in which this part of the window comes.
const GATHERED_PART: u64 = 8;
/// They gather no longer than that.
const LONGEST_GATHERED_NS: u64 = 500_000;

impl Rank {
    /// For how long answers may gather before they are looked at. To be woken by each costs more than the answer; a part of the
    /// window that comes together leaves the rest of it under way, so no link falls idle. 0 where somebody waits for a few.
    pub fn gathers_ns(&self) -> u64 {
        match self.in_flight >= MANY_IN_FLIGHT {
            true => (self.rtt.smoothed_ns() / GATHERED_PART).min(LONGEST_GATHERED_NS),
            false => 0,
        }
    }

    /// The chunk under way that was sent first, or, if the switch has told whom a chunk misses, the first of those.
    pub fn under_way(&self) -> Option<UnderWay> {
        let sent = self.lanes.iter();
        let sent = sent.filter(|lane| lane.state == LaneState::InFlight);
        let first = sent.min_by_key(|lane| (lane.misses.is_empty(), lane.first_order))?;
        Some(UnderWay {
            chunk: self.job.chunk(first.sequence),
            since_ns: first.first_sent_ns,
            misses: first.misses,
        })
    }

    /// When the first of the chunks under way was sent for the first time.
    pub fn oldest_since_ns(&self) -> Option<u64> {
        let sent = self.lanes.iter();
        let sent = sent.filter(|lane| lane.state == LaneState::InFlight);
        sent.map(|lane| lane.first_sent_ns).min()
    }

    /// How long a chunk that is sent now would wait for its first timeout.
    pub fn timeout_now_ns(&self) -> u64 {
        self.rtt.timeout_ns(0)
    }
}
