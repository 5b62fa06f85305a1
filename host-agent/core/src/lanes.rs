//! The lanes of a worker or rank. Of W lanes, each sends every W-th item (chunk): it retransmits an item until it is answered,
//! then moves to its next one. `Own` is the state that a worker or rank adds to each lane.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use crate::UnderWay;
use crate::congestion::{Answered, CongestionWindow, Mark, SendQueue};
use crate::job::{Job, WorkerSet};
use crate::quantise::Exponent;
use crate::rto::{Retransmission, RttEstimator};
use crate::state::Put;

/// A lane retransmits early if enough later chunks were answered. That number doubles each time, at most this many times.
const MOST_DOUBLINGS: u32 = 6;
/// Maximum number of remembered transmissions per lane, on average; at this limit, those that are out of date are removed.
const SENT_PER_LANE: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LaneState {
    /// The lane has nothing to send before its next item.
    #[default]
    Idle,
    /// The item waits for its first transmission, or for another one after it was withdrawn (`Lanes::withdraw`).
    Waiting,
    /// The item was sent and has no answer yet.
    InFlight,
}

/// Kind of transmission that a lane has queued. A greater kind does all that the lesser kinds do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Send {
    /// A probe, which asks the switch which contributors are missing.
    Probe,
    /// The lane's values again, to request the sum that the switch has completed.
    Fetch,
    /// The lane's values.
    Values,
    /// The lane's values, with the request to close the chunk: nothing is added to its sum afterwards.
    Close,
}

/// One lane: it sends the chunks of one slot, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Lane<Own> {
    pub state: LaneState,
    /// The lane's current or next item, numbered over all items of the worker or rank. Lower items are sent first.
    pub item: u64,
    /// Position of the item's chunk, counted from 0 at the job's first chunk.
    pub sequence: u64,
    pub scale: Exponent,
    pub sends: Option<Send>,
    pub transmissions: u32,
    pub timeouts: u32,
    pub sent_at_ns: u64,
    /// Time at which the item's chunk was first sent.
    pub first_sent_ns: u64,
    /// Time at which the lane times out, if its item is in flight.
    pub deadline_ns: u64,
    /// Order numbers, counted over all lanes, of the first and the last transmission of the item.
    pub first_order: u64,
    pub last_order: u64,
    /// Number of chunks that were sent after this lane's last transmission, but answered earlier.
    overtaken: u32,
    /// Number of early retransmissions, before the timeout. Each doubles the number of overtaking chunks that the next needs.
    pub sent_early: u32,
    own: Own,
}

impl<Own> Lane<Own> {
    /// Makes the item's chunk wait for its first transmission.
    pub fn start(&mut self, scale: Exponent) {
        self.state = LaneState::Waiting;
        self.scale = scale;
        self.sends = None;
        self.transmissions = 0;
        self.timeouts = 0;
        self.sent_early = 0;
    }

    /// Moves the lane to the next item after an answer: the next chunk of the same slot.
    pub fn advance(&mut self, window: u64) {
        self.item += window;
        self.sequence += window;
        self.state = LaneState::Idle;
        self.sends = None;
    }

    pub fn is_in_flight(&self) -> bool {
        self.state == LaneState::InFlight
    }

    /// Whether the lane waits for an answer and has nothing queued to send.
    pub fn is_quiet(&self) -> bool {
        self.is_in_flight() && self.sends.is_none()
    }

    /// Progress report on the lane's unfinished chunk; `misses` are the workers whose contribution is missing.
    pub fn under_way(&self, job: &Job, misses: WorkerSet) -> UnderWay {
        UnderWay {
            chunk: job.chunk(self.sequence),
            since_ns: self.first_sent_ns,
            misses,
        }
    }

    /// Appends the fields that determine the lane's further behavior (`state.rs` of this crate). Returns the owner's fields.
    pub fn state(&self, out: &mut Vec<u8>) -> &Own {
        let Self {
            state,
            item,
            sequence,
            scale,
            sends,
            // The frame carries this number, but no receiver reads it.
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

/// All lanes of a worker or rank with a window of W chunks. Item g uses lane g mod W.
#[derive(Debug, Clone)]
pub struct Lanes<Own> {
    lanes: Vec<Lane<Own>>,
    /// Number of lanes whose item was sent and has no answer yet.
    in_flight: usize,
    /// The lanes that have a transmission to send.
    queue: SendQueue,
    pub window: CongestionWindow,
    pub rtt: RttEstimator,
    fast_threshold: u32,
    next_order: u64,
    /// Transmissions as (order number, lane index), ascending. An entry that was answered, or repeated since, is removed when
    /// it reaches the front. Then the front is the oldest unanswered transmission.
    sent: VecDeque<(u64, u16)>,
    /// Lower bound of the times at which lanes time out.
    earliest_ns: u64,
}

/// Whether a transmission, as (order number, lane), is the last one of its lane and has no answer yet.
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

    /// The lanes whose item was sent and has no answer yet.
    pub fn in_flight(&self) -> impl Iterator<Item = &Lane<Own>> {
        self.iter().filter(|lane| lane.is_in_flight())
    }

    /// Order number of the next transmission.
    pub fn next_order(&self) -> u64 {
        self.next_order
    }

    /// Queues a transmission of the lane's item; `what` is its kind.
    pub fn enqueue(&mut self, slot: usize, what: Send) {
        let lane = &mut self.lanes[slot];
        // One entry is enough: a transmission of values serves as a probe, too.
        if lane.sends.is_none() {
            match lane.state {
                LaneState::InFlight => self.queue.push_again(slot, lane.item),
                LaneState::Waiting | LaneState::Idle => self.queue.push_first(slot, lane.item),
            }
        }
        lane.sends = Some(lane.sends.map_or(what, |queued| queued.max(what)));
    }

    /// Takes back a lane's unanswered item: it is no longer in flight, and is sent again when the congestion window allows.
    pub fn withdraw(&mut self, slot: usize) {
        let lane = &mut self.lanes[slot];
        lane.state = LaneState::Waiting;
        lane.sends = None;
        self.in_flight -= 1;
        self.enqueue(slot, Send::Values);
    }

    /// The next lane that may send within the window, and the kind of its transmission.
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
                // The item was answered while its retransmission was queued.
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

    /// Records that a lane sends its item now and times out at `deadline_ns`. Returns how often the item was sent before.
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
        // One lane that waits for long keeps newer transmissions behind it at the front: remove their outdated entries.
        if self.sent.len() == SENT_PER_LANE * self.lanes.len() {
            let lanes = &self.lanes;
            self.sent.retain(|sent| is_last(lanes, *sent));
        }
        self.sent.push_back((order, slot as u16));
        self.next_order += 1;
        previous
    }

    /// Records the answer to a lane's item. `order` is the order number of the transmission that counts as answered.
    pub fn answered(&mut self, slot: usize, now_ns: u64, order: u64, mark: Mark) {
        let lane = &self.lanes[slot];
        let rtt_ns = now_ns.saturating_sub(lane.sent_at_ns);
        // Karn's rule: a retransmitted chunk gives no sample.
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

    /// Records the answer to an item that was first sent as transmission `order`. The item has overtaken every lane whose last
    /// transmission is older than that. (The item's own retransmissions do not count: any of them may be the one answered.)
    ///
    /// A lane that enough chunks have overtaken queues a transmission of kind `what`, at most `limit` times per item. Returns
    /// the number of such lanes.
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

    /// Sets the time at which a lane times out to `deadline_ns`.
    pub fn wait_until(&mut self, slot: usize, deadline_ns: u64) {
        self.lanes[slot].deadline_ns = deadline_ns;
        self.wake_at(deadline_ns);
    }

    /// Has the lanes checked for timeouts at `due_ns` at the latest.
    pub fn wake_at(&mut self, due_ns: u64) {
        self.earliest_ns = self.earliest_ns.min(due_ns);
    }

    /// Time at which some lane times out first: possibly too early, never too late.
    pub fn due_ns(&self) -> u64 {
        self.earliest_ns
    }

    /// Whether some lane may have timed out. If so, the due time is reset: the caller must check all lanes, and set it again
    /// (`wake_at`) for those that have not timed out.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.earliest_ns;
        if is_due {
            self.earliest_ns = u64::MAX;
        }
        is_due
    }

    /// The first lane with index `from` or higher that has timed out; also counts its timeout.
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

    /// Discards all queued transmissions.
    pub fn clear_queue(&mut self) {
        self.queue.clear();
    }

    /// Makes all lanes idle: no transmission is queued, and no item awaits an answer.
    pub fn stop(&mut self) {
        self.queue.clear();
        self.in_flight = 0;
        for lane in &mut self.lanes {
            lane.state = LaneState::Idle;
            lane.sends = None;
        }
    }

    /// Appends the fields that determine the lanes' further behavior, without times and statistics (`state.rs` of this crate).
    pub fn state(&self, out: &mut Vec<u8>, put_own: impl Fn(&Lane<Own>, &Own, &mut Vec<u8>)) {
        let Self {
            lanes,
            // Only decides when a lane sends.
            in_flight: _,
            // The lanes know which of them have something to send; the lower item goes first.
            queue: _,
            // The window only delays transmissions (`congestion/queue.rs`), so it decides *when*.
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
