//! What a rank waits for, for people who ask.

use super::Rank;
use crate::UnderWay;

impl Rank {
    /// The chunk under way that was sent first, or, if the switch has told whom a chunk misses, the first of those.
    pub fn under_way(&self) -> Option<UnderWay> {
        let sent = self.lanes.in_flight();
        let first = sent.min_by_key(|lane| (lane.misses.is_empty(), lane.first_order))?;
        Some(first.under_way(&self.job, first.misses))
    }

    /// When the first of the chunks under way was sent for the first time.
    pub fn oldest_since_ns(&self) -> Option<u64> {
        let sent = self.lanes.in_flight();
        sent.map(|lane| lane.first_sent_ns).min()
    }

    /// How long a chunk that is sent now would wait for its first timeout.
    pub fn timeout_now_ns(&self) -> u64 {
        self.lanes.rtt.timeout_ns(0)
    }
}
