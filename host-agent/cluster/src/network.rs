//! Simulated links with a rate and a queue, which lose, duplicate and reorder frames; and a switch's policer (rate limit).

use aggregation::Mark;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

/// Random faults of a link in each direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Share of frames that are lost, 0 to 1.
    pub loss: f64,
    /// Share of frames that arrive twice (0 to 1); each copy has its own delay.
    pub duplicate: f64,
    /// Share of frames that are delayed by up to `reorder_ns`, 0 to 1.
    pub reorder: f64,
    /// Maximum additional delay of a reordered frame, in nanoseconds.
    pub reorder_ns: u64,
}

impl Faults {
    /// No faults: every frame arrives once, after the link's delay.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        reorder_ns: 0,
    };
}

/// Counters of all links and policers of a simulated network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetworkCounters {
    /// Frames that nodes have sent over a link.
    pub sent: u64,
    /// Frames that a link has lost by a random fault.
    pub dropped: u64,
    /// Frames dropped by a full queue of a link, or by a policer whose burst was used up.
    pub overflowed: u64,
    /// Frames that a link's queue or a policer has marked as congested.
    pub marked: u64,
    /// Frames of which a link has delivered two copies.
    pub duplicated: u64,
    /// Frames that overtook an earlier frame on the same link.
    pub reordered: u64,
    /// Frames that arrived at a node after its death.
    pub at_the_dead: u64,
}

impl NetworkCounters {
    /// Adds the values of `other`, the counters of another run, to these counters.
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

/// Rate of a link, and the limits of the queue in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Rate in bits per second; frames count from the Ethernet header to the last value.
    pub bits_per_s: u64,
    /// Queue length in bytes; a frame that arrives at a longer queue is lost.
    pub queue_bytes: u64,
    /// Queue length in bytes above which an arriving frame is marked as congested; `None`: no frame is marked.
    pub mark_bytes: Option<u64>,
}

impl Rate {
    fn takes_ns(self, bytes: u64) -> u64 {
        bytes * 8_000_000_000 / self.bits_per_s
    }
}

/// Rate limit of a switch, by a meter with two token buckets (RFC 2698), for all frames of a job before they are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policer {
    /// Rate of whole frames in bytes per second.
    pub bytes_per_s: u64,
    /// Maximum burst in bytes; frames beyond it are lost.
    pub burst_bytes: u64,
    /// Maximum burst in bytes without a congestion mark; `None`: no frame is marked.
    pub unmarked_bytes: Option<u64>,
}

/// State of a policer: fill levels of its two token buckets, in billionths of bytes.
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

    /// Takes a frame's bytes from the buckets. Returns whether the policer marks the frame as congested; `None` if it is lost.
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

/// Length in bytes of the Ethernet, IPv4 and UDP headers, before the aggregation header.
pub const HEADERS: u64 = 14 + 20 + 8;

/// One direction of a simulated link.
#[derive(Debug, Clone)]
pub struct Link {
    faults: Faults,
    delay_ns: u64,
    rate: Option<Rate>,
    /// Size of the link's token bucket: the time in nanoseconds in which the link sends a full bucket at its rate.
    burst_ns: u64,
    /// Time at which the last frame so far would leave the link if the link had no token bucket.
    free_ns: u64,
    /// Time at which the last frame so far leaves.
    left_ns: u64,
    /// Latest time at which any frame so far arrives.
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

    /// Adds a token bucket of this many bytes, full at first: after a pause, a burst of this size leaves at once. Call it after
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

    /// Time in nanoseconds, from `now_ns` on, until all queued frames have left.
    fn backlog_ns(&self, now_ns: u64) -> u64 {
        self.free_ns
            .saturating_sub(now_ns.saturating_add(self.burst_ns))
    }

    /// Congestion mark for a frame that enters the link's queue at `now_ns`.
    fn mark(&self, now_ns: u64) -> Mark {
        let marking = |rate: Rate| Some((rate, rate.mark_bytes?));
        match self.rate.and_then(marking) {
            Some((rate, mark_bytes)) if self.backlog_ns(now_ns) > rate.takes_ns(mark_bytes) => {
                Mark::Congested
            }
            _ => Mark::None,
        }
    }

    /// Queues a frame; returns when its last bit leaves the queue, or `None` if the queue was full.
    ///
    /// With a token bucket, the computed time of sending may be ahead of the clock by as much as the bucket holds (RFC 2698's
    /// bucket as the virtual scheduling algorithm of ITU-T I.371).
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

    /// Time at which a frame that left the queue at `left_ns` arrives; `None` if a random fault loses it.
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

/// True with probability `p` (0 to 1); draws no random number if `p` is 0.
pub fn chance(rng: &mut ChaCha8Rng, p: f64) -> bool {
    p > 0.0 && f64::from(rng.next_u32()) < p * 2f64.powi(32)
}

/// A random number from 0 to `max`, inclusive.
pub fn below(rng: &mut ChaCha8Rng, max: u64) -> u64 {
    if max == 0 {
        0
    } else {
        rng.next_u64() % (max + 1)
    }
}
