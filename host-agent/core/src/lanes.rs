//! The lanes of a window: each is at one item, which it sends, and sends again until it is answered. A worker and a rank have the
//! same lanes; what a lane knows beyond sending is its owner's.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use crate::UnderWay;
use crate::congestion::{Answered, CongestionWindow, Mark, SendQueue};
use crate::job::{Job, WorkerSet};
use crate::quantise::Exponent;
use crate::rto::{Retransmission, RttEstimator};
use crate::state::Put;

/// How many times at most the number of chunks that must overtake one doubles.
const MOST_DOUBLINGS: u32 = 6;
/// Transmissions that are remembered for each lane: the one under way, and one that is answered or repeated.
const SENT_PER_LANE: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LaneState {
    /// Nothing to send before the next item.
    #[default]
    Idle,
    /// The item waits for its first transmission, or, withdrawn, for another.
    Waiting,
    /// The item was sent and not answered.
    InFlight,
}

/// A lane's entry in the transmit queue. The greater of two includes the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Send {
    /// Who is missing?
    Probe,
    /// My values again, to have the sum again, which is complete.
    Fetch,
    /// My values.
    Values,
    /// My values, and nobody is waited for any longer.
    Close,
}

/// One lane, and what its owner knows of it.
#[derive(Debug, Clone, Default)]
pub struct Lane<Own> {
    pub state: LaneState,
    /// The item that the lane is at, or that comes next, among all of its owner's. Lower items are sent first.
    pub item: u64,
    /// The number of the item's chunk, from the job's first.
    pub sequence: u64,
    pub scale: Exponent,
    pub sends: Option<Send>,
    pub transmissions: u32,
    pub timeouts: u32,
    pub sent_at_ns: u64,
    /// When the item's chunk was sent for the first time.
    pub first_sent_ns: u64,
    /// When the lane times out, if its item is under way.
    pub deadline_ns: u64,
    /// Positions of the first and the last transmission among all of the owner's.
    pub first_order: u64,
    pub last_order: u64,
    /// Chunks sent after the last transmission and answered before this one.
    overtaken: u32,
    /// How many times the item was sent ahead of its timeout. Each time doubles the number of chunks that must overtake it.
    pub sent_early: u32,
    own: Own,
}

impl<Own> Lane<Own> {
    /// The item's chunk waits to be sent.
    pub fn start(&mut self, scale: Exponent) {
        self.state = LaneState::Waiting;
        self.scale = scale;
        self.sends = None;
        self.transmissions = 0;
        self.timeouts = 0;
        self.sent_early = 0;
    }

    /// The item is answered: the next one has the next number of the slot.
    pub fn advance(&mut self, window: u64) {
        self.item += window;
        self.sequence += window;
        self.state = LaneState::Idle;
        self.sends = None;
    }

    pub fn is_in_flight(&self) -> bool {
        self.state == LaneState::InFlight
    }

    /// Whether the lane waits for an answer and has nothing to send meanwhile.
    pub fn is_quiet(&self) -> bool {
        self.is_in_flight() && self.sends.is_none()
    }

    /// The lane as one that waits for an answer, and for these.
    pub fn under_way(&self, job: &Job, misses: WorkerSet) -> UnderWay {
        UnderWay {
            chunk: job.chunk(self.sequence),
            since_ns: self.first_sent_ns,
            misses,
        }
    }

    /// Appends what decides what the lane does from now on (`state.rs` of this crate), and gives the owner's part of it.
    pub fn state(&self, out: &mut Vec<u8>) -> &Own {
        let Self {
            state,
            item,
            sequence,
            scale,
            sends,
            // The frame carries this number, and no receiver reads it.
            transmissions: _,
            timeouts: _,
            sent_at_ns: _,
            first_sent_ns: _,
            deadline_ns: _,
            first_order: _,
            last_order: _,
            overtaken: _,
            sent_early: _,
            own,
        } = self;
        let sends = sends.map_or(0, |sends| sends as u8 + 1);
        out.put(&[*state as u8, sends, scale.bits()]);
        out.put_u64(*item);
        out.put_u64(*sequence);
        own
    }
}

impl<Own> Deref for Lane<Own> {
    type Target = Own;

    fn deref(&self) -> &Own {
        &self.own
    }
}

impl<Own> DerefMut for Lane<Own> {
    fn deref_mut(&mut self) -> &mut Own {
        &mut self.own
    }
}

/// All lanes of a window. Item g goes through lane g mod W.
#[derive(Debug, Clone)]
pub struct Lanes<Own> {
    lanes: Vec<Lane<Own>>,
    /// Lanes whose item was sent and not answered.
    in_flight: usize,
    /// Lanes that have something to send.
    queue: SendQueue,
    pub window: CongestionWindow,
    pub rtt: RttEstimator,
    fast_threshold: u32,
    next_order: u64,
    /// Transmissions in their order, and by which lane. One that is no lane's last any more, or was answered, is removed when it
    /// is at the front: whether any lane was overtaken is seen there.
    sent: VecDeque<(u64, u16)>,
    /// No lane is due before.
    earliest_ns: u64,
}

/// Whether a transmission is its lane's last, and not answered.
fn is_last<Own>(lanes: &[Lane<Own>], (order, slot): (u64, u16)) -> bool {
    let lane = &lanes[usize::from(slot)];
    lane.is_in_flight() && lane.last_order == order
}

impl<Own: Default> Lanes<Own> {
    pub fn new(job: &Job, window: CongestionWindow, config: Retransmission) -> Self {
        let count = job.window() as usize;
        let lanes = (0..count as u64).map(|index| Lane {
            item: index,
            sequence: index,
            ..Lane::default()
        });
        Self {
            lanes: lanes.collect(),
            in_flight: 0,
            queue: SendQueue::new(count),
            window,
            rtt: RttEstimator::new(config),
            fast_threshold: config.fast_threshold,
            next_order: 0,
            sent: VecDeque::with_capacity(SENT_PER_LANE * count),
            earliest_ns: u64::MAX,
        }
    }

    /// The lanes that wait for an answer.
    pub fn in_flight(&self) -> impl Iterator<Item = &Lane<Own>> {
        self.iter().filter(|lane| lane.is_in_flight())
    }

    /// The position that the next transmission has among all.
    pub fn next_order(&self) -> u64 {
        self.next_order
    }

    /// Queues a transmission of a lane's item.
    pub fn enqueue(&mut self, slot: usize, what: Send) {
        let lane = &mut self.lanes[slot];
        // One entry is enough: values include all that a probe asks.
        if lane.sends.is_none() {
            match lane.state {
                LaneState::InFlight => self.queue.push_again(slot, lane.item),
                LaneState::Waiting | LaneState::Idle => self.queue.push_first(slot, lane.item),
            }
        }
        lane.sends = Some(lane.sends.map_or(what, |queued| queued.max(what)));
    }

    /// A lane's item is under way no more. It is sent again as far as the window lets it.
    pub fn withdraw(&mut self, slot: usize) {
        let lane = &mut self.lanes[slot];
        lane.state = LaneState::Waiting;
        lane.sends = None;
        self.in_flight -= 1;
        self.enqueue(slot, Send::Values);
    }

    /// The lane that sends next, as far as the window lets it, and what it sends.
    pub fn next_send(&mut self) -> Option<(usize, Send)> {
        let has_room = self.in_flight < self.window.chunks();
        loop {
            let lanes = &self.lanes;
            let next = self.queue.pop(has_room, |item| {
                let lane = &lanes[(item % lanes.len() as u64) as usize];
                lane.item == item && lane.is_in_flight()
            })?;
            let lane = &mut self.lanes[next.slot];
            let is_so = match lane.state {
                // Answered while its retransmission was queued.
                LaneState::Idle => false,
                LaneState::Waiting => next.is_first,
                LaneState::InFlight => !next.is_first,
            };
            if next.item == lane.item
                && is_so
                && let Some(what) = lane.sends.take()
            {
                return Some((next.slot, what));
            }
        }
    }

    /// A lane sends its item now, and waits until then. Returns the number of transmissions before.
    pub fn sent(&mut self, slot: usize, now_ns: u64, deadline_ns: u64) -> u32 {
        let order = self.next_order;
        let lane = &mut self.lanes[slot];
        let previous = lane.transmissions;
        self.in_flight += usize::from(!lane.is_in_flight());
        lane.state = LaneState::InFlight;
        lane.transmissions = previous.saturating_add(1);
        lane.sent_at_ns = now_ns;
        lane.last_order = order;
        if previous == 0 {
            lane.first_order = order;
            lane.first_sent_ns = now_ns;
        }
        lane.overtaken = 0;
        self.wait_until(slot, deadline_ns);
        // A lane that waits for long holds back at the front what others sent since.
        if self.sent.len() == SENT_PER_LANE * self.lanes.len() {
            let lanes = &self.lanes;
            self.sent.retain(|sent| is_last(lanes, *sent));
        }
        self.sent.push_back((order, slot as u16));
        self.next_order += 1;
        previous
    }

    /// A lane's item is answered. `order` is the position of the transmission that is taken as the one answered.
    pub fn answered(&mut self, slot: usize, now_ns: u64, order: u64, mark: Mark) {
        let lane = &self.lanes[slot];
        let rtt_ns = now_ns.saturating_sub(lane.sent_at_ns);
        // Karn's rule.
        let rtt_ns = (lane.transmissions == 1).then_some(rtt_ns);
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.sample(rtt_ns);
        }
        let answered = Answered {
            order,
            rtt_ns,
            mark,
        };
        let refused = self.queue.refused();
        self.window
            .answered(now_ns, answered, self.next_order, refused);
        self.in_flight -= usize::from(lane.is_in_flight());
    }

    /// An item sent first at `order` is answered: every item whose last transmission is older was overtaken. Retransmitted items
    /// say nothing, by Karn's argument, unless even their first came later.
    ///
    /// A lane that was overtaken by enough sends `what`, `limit` times at most. Returns the number of lanes that do so now.
    pub fn count_overtaken(&mut self, order: u64, what: Send, limit: u32) -> u64 {
        let threshold = self.fast_threshold;
        if threshold == 0 {
            return 0;
        }
        while let Some(sent) = self.sent.front() {
            if is_last(&self.lanes, *sent) {
                break;
            }
            self.sent.pop_front();
        }
        if self.sent.front().is_none_or(|(oldest, _)| *oldest >= order) {
            return 0;
        }
        let mut count = 0;
        for slot in 0..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if !lane.is_quiet() || lane.last_order >= order {
                continue;
            }
            lane.overtaken += 1;
            let needed = threshold.saturating_mul(1 << lane.sent_early.min(MOST_DOUBLINGS));
            if lane.overtaken >= needed && lane.sent_early < limit {
                lane.sent_early += 1;
                count += 1;
                self.enqueue(slot, what);
            }
        }
        count
    }

    /// A lane times out at that time.
    pub fn wait_until(&mut self, slot: usize, deadline_ns: u64) {
        self.lanes[slot].deadline_ns = deadline_ns;
        self.wake_at(deadline_ns);
    }

    /// Some lane is due at that time.
    pub fn wake_at(&mut self, due_ns: u64) {
        self.earliest_ns = self.earliest_ns.min(due_ns);
    }

    /// When the first lane is due. May be early, never late.
    pub fn due_ns(&self) -> u64 {
        self.earliest_ns
    }

    /// Whether some lane may be due. If so, all of them are to be looked at: each that is not due says anew when it is.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.earliest_ns;
        if is_due {
            self.earliest_ns = u64::MAX;
        }
        is_due
    }

    /// The first lane from `from` on that has timed out, which is counted.
    pub fn next_timed_out(&mut self, now_ns: u64, from: usize) -> Option<usize> {
        for slot in from..self.lanes.len() {
            let lane = &mut self.lanes[slot];
            if !lane.is_quiet() {
                continue;
            }
            if lane.deadline_ns > now_ns {
                self.earliest_ns = self.earliest_ns.min(lane.deadline_ns);
                continue;
            }
            lane.timeouts += 1;
            self.rtt.timed_out(now_ns, lane.sent_at_ns);
            return Some(slot);
        }
        None
    }

    /// No lane sends what it has queued.
    pub fn clear_queue(&mut self) {
        self.queue.clear();
    }

    /// No lane has anything to send or to wait for.
    pub fn stop(&mut self) {
        self.queue.clear();
        self.in_flight = 0;
        for lane in &mut self.lanes {
            lane.state = LaneState::Idle;
            lane.sends = None;
        }
    }

    /// Appends what decides what the lanes do from now on, without time and statistics (`state.rs` of this crate).
    pub fn state(&self, out: &mut Vec<u8>, put_own: impl Fn(&Lane<Own>, &Own, &mut Vec<u8>)) {
        let Self {
            lanes,
            // Decides how soon is sent.
            in_flight: _,
            // The lanes say which of them have something to send; of two, the one with the lower item sends first.
            queue: _,
            // What it holds back is sent in the end (`congestion/queue.rs`), so it decides *when*.
            window: _,
            rtt: _,
            fast_threshold: _,
            next_order: _,
            sent: _,
            earliest_ns: _,
        } = self;
        for lane in lanes {
            let own = lane.state(out);
            put_own(lane, own, out);
        }
    }
}

impl<Own> Deref for Lanes<Own> {
    type Target = [Lane<Own>];

    fn deref(&self) -> &[Lane<Own>] {
        &self.lanes
    }
}

impl<Own> DerefMut for Lanes<Own> {
    fn deref_mut(&mut self) -> &mut [Lane<Own>] {
        &mut self.lanes
    }
}
