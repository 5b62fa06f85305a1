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

/// The rule by which a port chooses the next packet to send among its classes of service with waiting packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduler {
    /// Sends from the highest class (the greatest number) first: lower classes wait as long as it has packets.
    #[default]
    StrictPriority,
    /// Sends from each class in proportion to its weight, in bytes (start-time fair queueing); a weight of 0 counts as 1.
    Weighted([u32; CLASSES]),
}

/// Configuration of the queues between ingress and egress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressQueues {
    /// Maximum number of packets that wait in one class of one port; the switch drops and counts packets beyond it.
    pub depth: usize,
    /// Rule by which every port chooses among its classes of service.
    pub scheduler: Scheduler,
    /// Rate of ports without an entry in `port_rates_bps`, in bits of frames per second, without FCS and preamble;
    /// `None`: unlimited.
    pub rate_bps: Option<u64>,
    /// Rates of individual ports by port number, in bits per second.
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

/// Times and queue lengths of a packet's stay in an egress queue, for intrinsic metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waited {
    /// Time at which the packet joined its queue, in nanoseconds.
    pub enqueued_ns: u64,
    /// Number of packets that waited for the port when this packet joined its queue.
    pub enqueue_depth: u64,
    /// Number of packets that waited for the port when this packet left its queue.
    pub dequeue_depth: u64,
    /// Length of the packet's queue when the packet joined it, in cells of [`CELL`] bytes.
    pub enqueue_cells: u64,
    /// Length of the packet's queue when the packet left it, in cells of [`CELL`] bytes.
    pub dequeue_cells: u64,
}

impl Waited {
    /// The queueing data of a packet that passes at `now_ns` without waiting in a queue.
    pub(crate) fn not(now_ns: u64) -> Waited {
        Waited {
            enqueued_ns: now_ns,
            ..Waited::default()
        }
    }
}

/// Size of a buffer cell of a Tofino's packet buffer, in bytes.
const CELL: usize = 80;

/// The decision on whether a packet waits before egress of its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The packet passes egress now, without a queue.
    Straight,
    /// The packet joins the queue of its port and class.
    Queue,
    /// The switch drops the packet because the queue of its port and class is full.
    Full,
}

/// The queues of all ports.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    config: EgressQueues,
    /// Whether no port has a limited rate, so that no packet waits.
    unlimited: bool,
    ports: BTreeMap<u32, Port>,
    /// Time of the current event, in nanoseconds. A packet that is transmitted now makes its port busy from this time on.
    clock_ns: u64,
}

#[derive(Debug, Default)]
struct Port {
    /// Time until which the port sends the previous packet, in nanoseconds.
    free_ns: u64,
    classes: [Class; CLASSES],
    /// Number of packets that wait for the port, in all its classes.
    waiting: usize,
    /// Start-time fair queueing: start tag (a virtual time) of the packet that the port sent last.
    virtual_time: u64,
}

#[derive(Debug, Default)]
struct Class {
    queue: VecDeque<Queued>,
    /// Number of packet buffer cells that the waiting packets of the class take.
    cells: u64,
    /// Start-time fair queueing: finish tag (a virtual time) of the last packet sent from this class.
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

/// Maximum number of ports whose state is kept although no packet waits for them.
const IDLE_PORTS: usize = 1024;
/// Virtual time that a byte of a class of weight 1 takes, in the unit of start and finish tags.
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

    /// Sets the time of the current event, in nanoseconds.
    pub(crate) fn set_now(&mut self, now_ns: u64) {
        self.clock_ns = now_ns;
    }

    /// Decides whether a packet that ingress or a clone session sends to a port passes, waits in a queue, or is dropped.
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

    /// Appends a packet to its queue, to which [`Self::admit`] admitted it.
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

    /// Number of packet buffer cells that the waiting packets of one class of a port take.
    pub(crate) fn cells(&self, port: u32, class: u64) -> u64 {
        let port = self.ports.get(&port);
        port.map_or(0, |port| port.classes[class_of(class)].cells)
    }

    /// Makes a port busy for as long as its link takes to send a packet of this many bytes.
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

    /// Time at which the next packet may leave its queue, in nanoseconds; `None` if no packet waits.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.next().map(|(free_ns, _)| free_ns)
    }

    /// Number of packets that wait in the queues of all ports.
    pub(crate) fn waiting(&self) -> usize {
        self.ports.values().map(|port| port.waiting).sum()
    }

    /// Time in nanoseconds at which the next packet may leave its queue, and the port; `None` if no packet waits.
    fn next(&self) -> Option<(u64, u32)> {
        let waiting = self.ports.iter().filter(|(_, port)| port.waiting > 0);
        waiting.map(|(number, port)| (port.free_ns, *number)).min()
    }

    /// Takes the next packet whose port is free by now out of its queue, in the order in which the ports became free.
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

/// Time in nanoseconds that a link of this rate takes to send a packet of this many bytes.
pub(crate) fn sending_ns(bytes: usize, rate_bps: u64) -> u64 {
    let bits = bytes as u128 * 8;
    u64::try_from((bits * 1_000_000_000).div_ceil(u128::from(rate_bps.max(1)))).unwrap_or(u64::MAX)
}
