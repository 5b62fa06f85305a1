//! Progress reports of a rank: which chunks wait, for whom, and since when.

use super::Rank;
use crate::UnderWay;

impl Rank {
    /// The oldest chunk in flight whose missing ranks are known, otherwise the oldest one of all; `None` if none is in flight.
    pub fn under_way(&self) -> Option<UnderWay> {
        let sent = self.lanes.in_flight();
        let first = sent.min_by_key(|lane| (lane.misses.is_empty(), lane.first_order))?;
        Some(first.under_way(&self.job, first.misses))
    }

    /// Time at which the oldest chunk in flight was first sent; `None` if no chunk is in flight.
    pub fn oldest_since_ns(&self) -> Option<u64> {
        let sent = self.lanes.in_flight();
        sent.map(|lane| lane.first_sent_ns).min()
    }

    /// The first timeout, in nanoseconds, of a chunk that is sent now.
    pub fn timeout_now_ns(&self) -> u64 {
        self.lanes.rtt.timeout_ns(0)
    }
}
