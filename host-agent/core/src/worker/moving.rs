//! Move of a worker to another summing switch, from a given chunk on: docs/protocol.md, "Another plan".

use super::Worker;
use crate::job::{ChunkId, JobId, WorkerId};

impl Worker {
    /// Makes another switch sum this worker's values from chunk `from` on. `part`: job number of that switch's part, and
    /// worker's number in it; with `None`, no switch sums them. Chunks in flight are sent again at once; those before `from` go
    /// to the server alone ([`Server::replan`](crate::server::Server::replan)).
    pub fn move_to(&mut self, part: Option<(JobId, WorkerId)>, from: ChunkId) {
        self.sent_as = part.unwrap_or((self.job.id(), self.rank));
        // No chunk of a round is 2³¹ away from the round's first.
        let from = self.job.sequence_near(self.start, from);
        self.sent_so_from = from.unwrap_or(0);
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            // Losses on the former path say nothing about the new one.
            lane.timeouts = 0;
            lane.sent_early = 0;
            if lane.is_in_flight() {
                self.lanes.withdraw(slot);
            }
        }
    }

    /// Whether the frame that [`poll_transmit`](Self::poll_transmit) returned last goes to the server alone, because its chunk
    /// precedes the one at which the worker moved.
    pub fn is_before_move(&self) -> bool {
        self.is_before_move
    }

    /// Job and worker number in a chunk's frames: before the last move's chunk, the job's own number and the rank.
    pub(super) fn sent_as(&self, sequence: u64) -> (JobId, WorkerId) {
        match sequence < self.sent_so_from {
            true => (self.job.id(), self.rank),
            false => self.sent_as,
        }
    }
}
