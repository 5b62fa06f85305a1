//! A worker whose values another switch sums from a chunk on: docs/protocol.md, "Another plan".

use super::Worker;
use crate::job::{ChunkId, JobId, WorkerId};

impl Worker {
    /// From chunk `from` on another switch sums its values, with those of another part, or none does. What is under way is sent
    /// again at once; of chunks before `from`, to the server alone ([`Server::replan`](crate::server::Server::replan)).
    pub fn move_to(&mut self, part: Option<(JobId, WorkerId)>, from: ChunkId) {
        self.sent_as = part.unwrap_or((self.job.id(), self.rank));
        // No chunk of a round is 2³¹ from its first.
        let from = self.job.sequence_near(self.start, from);
        self.sent_so_from = from.unwrap_or(0);
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            // What was lost on the former way is no sign of this one.
            lane.timeouts = 0;
            lane.sent_early = 0;
            if lane.is_in_flight() {
                self.lanes.withdraw(slot);
            }
        }
    }

    /// Whether the frame that [`poll_transmit`](Self::poll_transmit) gave last goes to the server alone because its chunk is before
    /// the first that the plan of now sums.
    pub fn is_before_move(&self) -> bool {
        self.is_before_move
    }

    /// What a chunk's frames say as their job and worker.
    pub(super) fn sent_as(&self, sequence: u64) -> (JobId, WorkerId) {
        match sequence < self.sent_so_from {
            true => (self.job.id(), self.rank),
            false => self.sent_as,
        }
    }
}
