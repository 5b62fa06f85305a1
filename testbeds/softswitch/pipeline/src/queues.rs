//! Egress queues: packets that wait between ingress and egress for a port with a limited rate.
//!
//! A port has eight classes of service, each with its own queue. While the port sends, packets for it wait; when it is
//! free, the scheduler chooses the one that passes egress and is sent. The length of the packet that leaves egress
//! determines how long the port is busy. A packet whose queue is full is dropped and counted (tail drop).
//!
//! A port without a rate has no queue: its packets pass directly, at no cost. So do packets for the CPU port and the
//! recirculation port, whose link has its own queue.
//!
//! Time is virtual and exact: a packet that is dequeued late (because its caller was busy) makes the port busy from the
//! time at which it was due, so the rate holds on average.

use crate::job::Job;
use std::collections::{BTreeMap, VecDeque};

/// Number of classes of service of a port. A packet with a higher class gets the highest one.
pub const CLASSES: usize = 8;

/// The choice among classes with waiting packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduler {
    /// The highest class (the greatest number) first: lower ones wait as long as it has packets.
    #[default]
    StrictPriority,
    /// Each class in proportion to its weight, in bytes (start-time fair queueing); a weight of 0 counts as 1.
    Weighted([u32; CLASSES]),
}

/// Queues between ingress and egress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressQueues {
    /// Maximum number of packets that wait in one class of one port; further ones are dropped and counted.
    pub depth: usize,
    /// Scheduler of every port.
    pub scheduler: Scheduler,
    /// Rate of ports without an entry in `port_rates_bps`, in bits of frames per second, without FCS and preamble;
    /// `None`: unlimited.
    pub rate_bps: Option<u64>,
    /// Rates of individual ports, in bits per second.
    pub port_rates_bps: BTreeMap<u32, u64>,
}

impl Default for EgressQueues {
    fn default() -> Self {
        EgressQueues {
            depth: 1000,
            scheduler: Scheduler::default(),
            rate_bps: None,
            port_rates_bps: BTreeMap::new(),
        }
    }
}

impl EgressQueues {
    fn rate_bps(&self, port: u32) -> Option<u64> {
        self.port_rates_bps.get(&port).copied().or(self.rate_bps)
    }
}

/// Data about a packet's time in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waited {
    /// Time at which the packet joined its queue, in nanoseconds.
    pub enqueued_ns: u64,
    /// Number of packets that waited for the port when it joined.
    pub enqueue_depth: u64,
    /// Number of packets that wait for the port when it leaves.
    pub dequeue_depth: u64,
    /// Length of its queue when it joined, in cells of [`CELL`] bytes.
    pub enqueue_cells: u64,
    /// Length of its queue when it leaves, in cells.
    pub dequeue_cells: u64,
}

impl Waited {
    /// The data of a packet that did not wait.
    pub(crate) fn not(now_ns: u64) -> Waited {
        Waited {
            enqueued_ns: now_ns,
            ..Waited::default()
        }
    }
}

/// Size of a cell of a Tofino's packet buffer, in bytes.
const CELL: usize = 80;

/// The admission of a packet for a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The packet passes egress now.
    Straight,
    /// The packet joins its queue.
    Queue,
    /// The packet is dropped because its queue is full.
    Full,
}

/// The queues of all ports.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    config: EgressQueues,
    /// Whether no port has a rate.
    unlimited: bool,
    ports: BTreeMap<u32, Port>,
    /// Time from which on a transmitted packet makes its port busy, in nanoseconds.
    clock_ns: u64,
}

#[derive(Debug, Default)]
struct Port {
    /// Time until which the port sends, in nanoseconds.
    free_ns: u64,
    classes: [Class; CLASSES],
    /// Number of packets in all classes.
    waiting: usize,
    /// Start tag of the packet sent last.
    virtual_time: u64,
}

#[derive(Debug, Default)]
struct Class {
    queue: VecDeque<Queued>,
    /// Cells of the packet buffer that the waiting packets take.
    cells: u64,
    /// Finish tag of the last packet sent from this class.
    finish: u64,
}

#[derive(Debug)]
struct Queued {
    job: Job,
    enqueued_ns: u64,
    enqueue_depth: u64,
    enqueue_cells: u64,
}

impl Queued {
    fn cells(&self) -> u64 {
        self.job.bytes.len().div_ceil(CELL) as u64
    }
}

/// Maximum number of ports that are remembered without waiting packets.
const IDLE_PORTS: usize = 1024;
/// Virtual time of a byte at weight 1.
const TAG_SCALE: u64 = 1 << 16;

fn class_of(class: u64) -> usize {
    usize::try_from(class)
        .unwrap_or(usize::MAX)
        .min(CLASSES - 1)
}

impl Queues {
    pub(crate) fn new(config: EgressQueues) -> Queues {
        Queues {
            unlimited: config.rate_bps.is_none() && config.port_rates_bps.is_empty(),
            config,
            ..Queues::default()
        }
    }

    /// Sets the time of the current event.
    pub(crate) fn set_now(&mut self, now_ns: u64) {
        self.clock_ns = now_ns;
    }

    /// Decides about a packet that ingress, or a clone session, sends to a port.
    #[inline]
    pub(crate) fn admit(&self, now_ns: u64, port: u32, class: u64) -> Admission {
        if self.unlimited {
            return Admission::Straight;
        }
        self.admit_limited(now_ns, port, class)
    }

    fn admit_limited(&self, now_ns: u64, port: u32, class: u64) -> Admission {
        match self.ports.get(&port) {
            None => Admission::Straight,
            Some(port) if port.waiting == 0 && port.free_ns <= now_ns => Admission::Straight,
            Some(port) if port.classes[class_of(class)].queue.len() >= self.config.depth => {
                Admission::Full
            }
            Some(_) => Admission::Queue,
        }
    }

    /// Enqueues a packet that was admitted to a queue.
    pub(crate) fn push(&mut self, now_ns: u64, job: Job) {
        let port = self.ports.entry(job.port).or_default();
        let class = &mut port.classes[class_of(job.class)];
        let queued = Queued {
            enqueued_ns: now_ns,
            enqueue_depth: port.waiting as u64,
            enqueue_cells: class.cells,
            job,
        };
        port.waiting += 1;
        class.cells += queued.cells();
        class.queue.push_back(queued);
    }

    /// Number of cells that wait in one class of a port.
    pub(crate) fn cells(&self, port: u32, class: u64) -> u64 {
        let port = self.ports.get(&port);
        port.map_or(0, |port| port.classes[class_of(class)].cells)
    }

    /// Makes a port busy for the length of a packet that leaves.
    #[inline]
    pub(crate) fn sent(&mut self, port: u32, bytes: usize) {
        if !self.unlimited {
            self.sent_limited(port, bytes);
        }
    }

    fn sent_limited(&mut self, number: u32, bytes: usize) {
        let Some(rate) = self.config.rate_bps(number) else {
            return;
        };
        if self.ports.len() >= IDLE_PORTS && !self.ports.contains_key(&number) {
            let now_ns = self.clock_ns;
            self.ports
                .retain(|_, port| port.waiting > 0 || port.free_ns > now_ns);
        }
        let port = self.ports.entry(number).or_default();
        let start = port.free_ns.max(self.clock_ns);
        port.free_ns = start.saturating_add(sending_ns(bytes, rate));
    }

    /// Time at which the next packet may leave its queue, in nanoseconds.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.next().map(|(free_ns, _)| free_ns)
    }

    /// Number of packets that wait for any port.
    pub(crate) fn waiting(&self) -> usize {
        self.ports.values().map(|port| port.waiting).sum()
    }

    /// Time at which the next packet may leave, and its port.
    fn next(&self) -> Option<(u64, u32)> {
        let waiting = self.ports.iter().filter(|(_, port)| port.waiting > 0);
        waiting.map(|(number, port)| (port.free_ns, *number)).min()
    }

    /// The next packet whose port is free by now, in the order in which the ports became free.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<(Job, Waited)> {
        if self.unlimited {
            return None;
        }
        let (free_ns, number) = self.next().filter(|(free_ns, _)| *free_ns <= now_ns)?;
        let port = self.ports.get_mut(&number)?;
        let Queued {
            job,
            enqueued_ns,
            enqueue_depth,
            enqueue_cells,
        } = port.pop(self.config.scheduler)?;
        // The port does not send before the packet came.
        self.clock_ns = free_ns.max(enqueued_ns);
        let waited = Waited {
            enqueued_ns,
            enqueue_depth,
            dequeue_depth: port.waiting as u64,
            enqueue_cells,
            dequeue_cells: port.classes[class_of(job.class)].cells,
        };
        Some((job, waited))
    }
}

impl Port {
    fn pop(&mut self, scheduler: Scheduler) -> Option<Queued> {
        let backlogged = || (0..CLASSES).filter(|class| !self.classes[*class].queue.is_empty());
        let class = match scheduler {
            Scheduler::StrictPriority => backlogged().next_back()?,
            // If tags are equal, the lowest class comes first.
            Scheduler::Weighted(_) => backlogged().min_by_key(|class| self.start_tag(*class))?,
        };
        let start = self.start_tag(class);
        let queued = self.classes[class].queue.pop_front()?;
        self.waiting -= 1;
        self.classes[class].cells -= queued.cells();
        if let Scheduler::Weighted(weights) = scheduler {
            let bytes = queued.job.bytes.len().max(1) as u64;
            let cost = bytes.saturating_mul(TAG_SCALE) / u64::from(weights[class].max(1));
            self.virtual_time = start;
            self.classes[class].finish = start.saturating_add(cost);
        }
        Some(queued)
    }

    fn start_tag(&self, class: usize) -> u64 {
        self.classes[class].finish.max(self.virtual_time)
    }
}

/// Time in nanoseconds that a link takes to send a packet.
pub(crate) fn sending_ns(bytes: usize, rate_bps: u64) -> u64 {
    let bits = bytes as u128 * 8;
    u64::try_from((bits * 1_000_000_000).div_ceil(u128::from(rate_bps.max(1)))).unwrap_or(u64::MAX)
}
