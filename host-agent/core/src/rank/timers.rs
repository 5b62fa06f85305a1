//! Times at which a rank probes for a chunk: when later chunks were answered before it, and when it has timed out.

use super::hosts::Hosts;
use super::peers::Peers;
use super::{Rank, RankError};
use crate::lanes::Send;

/// Number of the oldest items in flight, whose timeout doubles at most once. Few later chunks can overtake them, or a full
/// window waits for them; frequent probes for so few are no load.
const HURRIED: usize = 8;
impl Rank {
    /// Timeout of a lane's current chunk, in nanoseconds.
    pub(super) fn timeout_ns(&mut self, slot: usize) -> u64 {
        let lane = &self.lanes[slot];
        let (item, timeouts) = (lane.item, lane.timeouts);
        if timeouts <= 1 || item <= self.last_hurried() {
            return self.lanes.rtt.timeout_ns(timeouts.min(1));
        }
        self.is_backed_off = true;
        self.lanes.rtt.timeout_ns(timeouts)
    }

    /// After an answer: shortens the doubled timeouts of chunks that are now among the oldest in flight.
    pub(super) fn hurry_lowest(&mut self) {
        if !self.is_backed_off {
            return;
        }
        self.is_backed_off = false;
        let (last, longest_ns) = (self.last_hurried(), self.lanes.rtt.timeout_ns(1));
        for slot in 0..self.lanes.len() {
            let lane = &self.lanes[slot];
            if !lane.is_in_flight() || lane.timeouts <= 1 {
                continue;
            }
            if lane.item > last {
                self.is_backed_off = true;
                continue;
            }
            let latest_ns = lane.sent_at_ns.saturating_add(longest_ns);
            let deadline_ns = lane.deadline_ns.min(latest_ns);
            self.lanes.wait_until(slot, deadline_ns);
        }
    }

    /// Number of the newest among the [`HURRIED`] oldest items in flight; `u64::MAX` if fewer are in flight.
    fn last_hurried(&self) -> u64 {
        let mut lowest = [u64::MAX; HURRIED];
        for lane in self.lanes.in_flight() {
            let at = lowest.partition_point(|item| *item < lane.item);
            if at < HURRIED {
                lowest.copy_within(at..HURRIED - 1, at + 1);
                lowest[at] = lane.item;
            }
        }
        lowest[HURRIED - 1]
    }

    /// Time at which the driver must call [`handle_timeout`](Self::handle_timeout): possibly too early, never too late.
    pub fn poll_timeout(&self) -> Option<u64> {
        let peers_ns = self.peers.as_ref().and_then(Peers::due_ns);
        let hosts_ns = self.hosts.as_ref().and_then(Hosts::due_ns);
        let others_ns = peers_ns.into_iter().chain(hosts_ns).min();
        let due_ns = self.lanes.due_ns().min(others_ns.unwrap_or(u64::MAX));
        let due_ns = self.differing_due_ns().unwrap_or(due_ns);
        (!self.failed && due_ns != u64::MAX).then_some(due_ns)
    }

    /// Handles all timeouts that are due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.failed {
            return;
        }
        if self.differing.is_some() {
            return self.check_differing(now_ns);
        }
        self.check_peers(now_ns);
        self.retry_switch(now_ns);
        if self.failed || !self.lanes.is_due(now_ns) {
            return;
        }
        self.check_closing(now_ns);
        let (mut silent, mut from): (Option<u64>, _) = (None, 0);
        while let Some(slot) = self.lanes.next_timed_out(now_ns, from) {
            from = slot + 1;
            self.counters.timeouts += 1;
            let lane = &mut self.lanes[slot];
            lane.silences += 1;
            let (by_host, silences, sequence) = (lane.by_host, lane.silences, lane.sequence);
            if self.falls_back(now_ns, slot) {
                continue;
            }
            if by_host {
                self.doubt_host(now_ns, slot, silences);
            }
            if !by_host && silences > self.config.max_timeouts {
                silent = Some(silent.map_or(sequence, |other: u64| other.min(sequence)));
            } else {
                self.lanes.enqueue(slot, Send::Probe);
            }
        }
        if let Some(sequence) = silent {
            let chunk = self.job.chunk(sequence);
            let timeouts = self.config.max_timeouts;
            self.fail(RankError::Silent { chunk, timeouts });
        }
    }
}
