//! What a rank waits for, for people who ask.

use super::Rank;
use super::lane::LaneState;
use crate::UnderWay;

impl Rank {
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
}
