//! Links that lose, duplicate and reorder frames.

use aggregation::Mark;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

/// Faults of a link, per direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Share of frames that are lost.
    pub loss: f64,
    /// Share of frames that arrive twice, each copy with its own delay.
    pub duplicate: f64,
    /// Share of frames that are delayed by up to `reorder_ns`.
    pub reorder: f64,
    /// Maximum additional delay.
    pub reorder_ns: u64,
}

impl Faults {
    /// A network without faults.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        reorder_ns: 0,
    };
}

/// Counters of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetworkCounters {
    /// Frames sent over a link.
    pub sent: u64,
    /// Frames lost.
    pub dropped: u64,
    /// Frames dropped by a link's queue or a policer that was full.
    pub overflowed: u64,
    /// Frames marked by a queue or a policer.
    pub marked: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames that overtook an earlier frame on the same link.
    pub reordered: u64,
    /// Frames that arrived at a dead node.
    pub at_the_dead: u64,
}

impl NetworkCounters {
    /// Adds the counters of another run.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.dropped += other.dropped;
        self.overflowed += other.overflowed;
        self.marked += other.marked;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.at_the_dead += other.at_the_dead;
    }
}

/// Rate of a link, and the limits of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Rate for whole frames, from the Ethernet header to the last value.
    pub bits_per_s: u64,
    /// Queue length in bytes above which an arriving frame is lost.
    pub queue_bytes: u64,
    /// Queue length in bytes above which an arriving frame is marked; `None`: no frame is marked.
    pub mark_bytes: Option<u64>,
}

impl Rate {
    fn takes_ns(self, bytes: u64) -> u64 {
        bytes * 8_000_000_000 / self.bits_per_s
    }
}

/// Limit of a switch on all frames of a job together: a meter with two buckets (RFC 2698) before the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policer {
    /// Rate for whole frames.
    pub bytes_per_s: u64,
    /// Maximum burst in bytes; the excess is lost.
    pub burst_bytes: u64,
    /// Maximum unmarked burst in bytes; `None`: no frame is marked.
    pub unmarked_bytes: Option<u64>,
}

/// Fill levels of a policer's buckets, in billionths of bytes.
#[derive(Debug, Clone)]
pub struct Buckets {
    policer: Policer,
    levels: [u128; 2],
    filled_ns: u64,
}

impl Buckets {
    pub fn full(policer: Policer) -> Self {
        Self {
            policer,
            levels: Self::sizes(policer),
            filled_ns: 0,
        }
    }

    fn sizes(policer: Policer) -> [u128; 2] {
        let unmarked = policer.unmarked_bytes.unwrap_or(policer.burst_bytes);
        [policer.burst_bytes, unmarked].map(|bytes| u128::from(bytes) * 1_000_000_000)
    }

    /// The mark of a frame that passes; `None` if it is lost.
    pub fn take(&mut self, now_ns: u64, bytes: u64) -> Option<Mark> {
        let passed_ns = now_ns - self.filled_ns;
        self.filled_ns = now_ns;
        let filled = u128::from(passed_ns) * u128::from(self.policer.bytes_per_s);
        for (level, size) in self.levels.iter_mut().zip(Self::sizes(self.policer)) {
            *level = (*level + filled).min(size);
        }
        let wanted = u128::from(bytes) * 1_000_000_000;
        let [all, unmarked] = &mut self.levels;
        *all = all.checked_sub(wanted)?;
        match unmarked.checked_sub(wanted) {
            Some(left) => {
                *unmarked = left;
                Some(Mark::None)
            }
            None if self.policer.unmarked_bytes.is_some() => Some(Mark::Congested),
            None => Some(Mark::None),
        }
    }
}

/// Length of the headers before the aggregation header: Ethernet, IPv4 and UDP.
pub const HEADERS: u64 = 14 + 20 + 8;

/// One direction of one link.
#[derive(Debug, Clone)]
pub struct Link {
    faults: Faults,
    delay_ns: u64,
    rate: Option<Rate>,
    /// Burst, as its transmission time at the rate.
    burst_ns: u64,
    /// Time at which all frames so far would have left without the burst.
    free_ns: u64,
    /// Time at which the last frame leaves.
    left_ns: u64,
    /// Latest arrival so far.
    latest_ns: u64,
}

impl Link {
    pub fn new(faults: Faults, delay_ns: u64) -> Self {
        Self {
            faults,
            delay_ns,
            rate: None,
            burst_ns: 0,
            free_ns: 0,
            left_ns: 0,
            latest_ns: 0,
        }
    }

    pub fn with_rate(self, rate: Option<Rate>) -> Self {
        Self { rate, ..self }
    }

    /// Adds a token bucket of this size, full at first: after a pause, a burst of this size leaves at once. Call it after
    /// [`with_rate`](Self::with_rate).
    pub fn with_burst(self, bytes: u64) -> Self {
        let burst_ns = self.rate.map_or(0, |rate| rate.takes_ns(bytes));
        Self { burst_ns, ..self }
    }

    /// Sends a frame with `length` bytes of aggregation header and values. Returns the arrival times of its copies (none, one
    /// or two), and whether the link's queue has marked it.
    pub fn send(
        &mut self,
        now_ns: u64,
        length: usize,
        rng: &mut ChaCha8Rng,
        counters: &mut NetworkCounters,
    ) -> ([Option<u64>; 2], Mark) {
        counters.sent += 1;
        let mark = self.mark(now_ns);
        counters.marked += u64::from(mark == Mark::Congested);
        let Some(now_ns) = self.serialise(now_ns, length as u64 + HEADERS) else {
            counters.overflowed += 1;
            return ([None, None], mark);
        };
        let Some(first) = self.arrives(now_ns, rng, counters) else {
            return ([None, None], mark);
        };
        let copy = chance(rng, self.faults.duplicate).then(|| {
            counters.duplicated += 1;
            self.arrival(now_ns, rng, counters)
        });
        ([Some(first), copy], mark)
    }

    /// Time that the queued frames still need, from now on.
    fn backlog_ns(&self, now_ns: u64) -> u64 {
        self.free_ns
            .saturating_sub(now_ns.saturating_add(self.burst_ns))
    }

    /// The mark for a frame that enters the queue now.
    fn mark(&self, now_ns: u64) -> Mark {
        let marking = |rate: Rate| Some((rate, rate.mark_bytes?));
        match self.rate.and_then(marking) {
            Some((rate, mark_bytes)) if self.backlog_ns(now_ns) > rate.takes_ns(mark_bytes) => {
                Mark::Congested
            }
            _ => Mark::None,
        }
    }

    /// Time at which a frame's last bit has left; `None` if the queue was full.
    ///
    /// A bucket is a rate that may run ahead of time by the bucket's size (RFC 2698's buckets as ITU-T I.371's virtual schedule).
    pub fn serialise(&mut self, now_ns: u64, bytes: u64) -> Option<u64> {
        let Some(rate) = self.rate else {
            return Some(now_ns);
        };
        if self.backlog_ns(now_ns) > rate.takes_ns(rate.queue_bytes) {
            return None;
        }
        self.free_ns = self.free_ns.max(now_ns) + rate.takes_ns(bytes);
        let paid_ns = self.free_ns.saturating_sub(self.burst_ns);
        self.left_ns = self.left_ns.max(now_ns).max(paid_ns);
        Some(self.left_ns)
    }

    /// Time at which a frame that left at `left_ns` arrives; `None` if it is lost.
    pub fn arrives(
        &mut self,
        left_ns: u64,
        rng: &mut ChaCha8Rng,
        counters: &mut NetworkCounters,
    ) -> Option<u64> {
        if chance(rng, self.faults.loss) {
            counters.dropped += 1;
            return None;
        }
        Some(self.arrival(left_ns, rng, counters))
    }

    fn arrival(
        &mut self,
        now_ns: u64,
        rng: &mut ChaCha8Rng,
        counters: &mut NetworkCounters,
    ) -> u64 {
        let mut arrival = now_ns + self.delay_ns;
        if chance(rng, self.faults.reorder) {
            arrival += below(rng, self.faults.reorder_ns);
        }
        if arrival < self.latest_ns {
            counters.reordered += 1;
        }
        self.latest_ns = self.latest_ns.max(arrival);
        arrival
    }
}

/// True with probability `p`; draws nothing if `p` is 0.
pub fn chance(rng: &mut ChaCha8Rng, p: f64) -> bool {
    p > 0.0 && f64::from(rng.next_u32()) < p * 2f64.powi(32)
}

/// A random number up to and including `max`.
pub fn below(rng: &mut ChaCha8Rng, max: u64) -> u64 {
    if max == 0 {
        0
    } else {
        rng.next_u64() % (max + 1)
    }
}
