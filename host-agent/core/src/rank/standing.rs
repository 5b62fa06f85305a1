//! Progress reports of a rank, for its user.

use super::Rank;
use crate::UnderWay;

impl Rank {
    /// The first chunk in flight whose missing ranks are known; if there is none, the chunk that was sent first.
    pub fn under_way(&self) -> Option<UnderWay> {
        let sent = self.lanes.in_flight();
        let first = sent.min_by_key(|lane| (lane.misses.is_empty(), lane.first_order))?;
        Some(first.under_way(&self.job, first.misses))
    }

    /// Time at which the oldest chunk in flight was first sent.
    pub fn oldest_since_ns(&self) -> Option<u64> {
        let sent = self.lanes.in_flight();
        sent.map(|lane| lane.first_sent_ns).min()
    }

    /// The first timeout of a chunk that is sent now.
    pub fn timeout_now_ns(&self) -> u64 {
        self.lanes.rtt.timeout_ns(0)
    }
}
