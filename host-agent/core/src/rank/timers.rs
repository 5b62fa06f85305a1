//! When a rank asks: when chunks that it sent later have overtaken one, and when one has waited for too long.

use super::hosts::Hosts;
use super::lane::{Lane, LaneState, Send};
use super::peers::Peers;
use super::{Rank, RankError};

/// So many of the lowest items under way wait for no more than two timeouts. They have few behind them that could overtake them, or
/// hold up a window that is full; and as many that ask often are no load.
const HURRIED: usize = 8;
/// So often the number of chunks is doubled that have to overtake one before it is asked for again.
const MOST_DOUBLINGS: u32 = 6;
/// Transmissions that are remembered: one under way for each lane, and as many that are over.
pub(super) const SENT_PER_LANE: usize = 2;

/// Whether a transmission is its lane's last, and not answered.
fn is_under_way(lanes: &[Lane], (order, slot): (u64, u16)) -> bool {
    let lane = &lanes[usize::from(slot)];
    lane.state == LaneState::InFlight && lane.last_order == order
}

impl Rank {
    /// A lane has sent. One that waits for long may hold back at the front what others sent since: then that is sorted out, so
    /// that no more is kept than the window allows.
    pub(super) fn remember_sent(&mut self, slot: usize) {
        if self.sent.len() == SENT_PER_LANE * self.lanes.len() {
            let lanes = &self.lanes;
            self.sent.retain(|sent| is_under_way(lanes, *sent));
        }
        self.sent.push_back((self.next_order, slot as u16));
    }

    /// A chunk sent first at `order` is answered: every chunk whose last transmission is older was overtaken. Retransmitted
    /// chunks say nothing, by Karn's argument, unless even their first came later.
    pub(super) fn count_overtaken(&mut self, order: u64) {
        let threshold = self.config.fast_threshold;
        if threshold == 0 {
            return;
        }
        while let Some(sent) = self.sent.front().copied() {
            if is_under_way(&self.lanes, sent) {
                break;
            }
            self.sent.pop_front();
        }
        if self.sent.front().is_none_or(|(oldest, _)| *oldest >= order) {
            return;
        }
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if lane.state != LaneState::InFlight || lane.sends.is_some() || lane.last_order >= order
            {
                continue;
            }
            lane.overtaken += 1;
            // What was asked may be lost as well, and what was answered: a timeout is many windows long. Whoever waits
            // for others asks ever less often.
            if lane.overtaken >= threshold.saturating_mul(1 << lane.asked_early.min(MOST_DOUBLINGS))
            {
                lane.asked_early += 1;
                self.counters.early_probes += 1;
                self.enqueue(slot, Send::Probe);
            }
        }
    }

    /// How long a lane's chunk waits.
    pub(super) fn timeout_ns(&mut self, slot: usize) -> u64 {
        let Lane { item, timeouts, .. } = self.lanes[slot];
        if timeouts <= 1 || item <= self.last_hurried() {
            return self.rtt.timeout_ns(timeouts.min(1));
        }
        self.is_backed_off = true;
        self.rtt.timeout_ns(timeouts)
    }

    /// A chunk is answered. Those that have waited for others for long, and are now among the lowest, ask soon.
    pub(super) fn hurry_lowest(&mut self) {
        if !self.is_backed_off {
            return;
        }
        self.is_backed_off = false;
        let (last, longest_ns) = (self.last_hurried(), self.rtt.timeout_ns(1));
        for lane in &mut self.lanes {
            if lane.state != LaneState::InFlight || lane.timeouts <= 1 {
                continue;
            }
            if lane.item > last {
                self.is_backed_off = true;
                continue;
            }
            let latest_ns = lane.sent_at_ns.saturating_add(longest_ns);
            lane.deadline_ns = lane.deadline_ns.min(latest_ns);
            self.earliest_ns = self.earliest_ns.min(lane.deadline_ns);
        }
    }

    /// The highest of the lowest items under way.
    fn last_hurried(&self) -> u64 {
        let mut lowest = [u64::MAX; HURRIED];
        let under_way = self.lanes.iter();
        for lane in under_way.filter(|lane| lane.state == LaneState::InFlight) {
            let at = lowest.partition_point(|item| *item < lane.item);
            if at < HURRIED {
                lowest.copy_within(at..HURRIED - 1, at + 1);
                lowest[at] = lane.item;
            }
        }
        lowest[HURRIED - 1]
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called. May be early, never late.
    pub fn poll_timeout(&self) -> Option<u64> {
        let peers_ns = self.peers.as_ref().and_then(Peers::due_ns);
        let hosts_ns = self.hosts.as_ref().and_then(Hosts::due_ns);
        let others_ns = peers_ns.into_iter().chain(hosts_ns).min();
        let due_ns = self.earliest_ns.min(others_ns.unwrap_or(u64::MAX));
        let due_ns = self.differing_due_ns().unwrap_or(due_ns);
        (!self.failed && due_ns != u64::MAX).then_some(due_ns)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.failed {
            return;
        }
        if self.differing.is_some() {
            return self.check_differing(now_ns);
        }
        self.check_peers(now_ns);
        self.retry_switch(now_ns);
        if now_ns < self.earliest_ns || self.failed {
            return;
        }
        self.earliest_ns = u64::MAX;
        self.check_closing(now_ns);
        let mut silent: Option<u64> = None;
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if lane.state != LaneState::InFlight || lane.sends.is_some() {
                continue;
            }
            if lane.deadline_ns > now_ns {
                self.earliest_ns = self.earliest_ns.min(lane.deadline_ns);
                continue;
            }
            lane.timeouts += 1;
            lane.silences += 1;
            self.counters.timeouts += 1;
            self.rtt.timed_out(now_ns, lane.sent_at_ns);
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
                self.enqueue(slot, Send::Probe);
            }
        }
        if let Some(sequence) = silent {
            let chunk = self.job.chunk(sequence);
            let timeouts = self.config.max_timeouts;
            self.fail(RankError::Silent { chunk, timeouts });
        }
    }
}
