//! Egress queues: what waits between ingress and egress for a port whose rate is limited.
//!
//! A port has eight classes of service, each with a queue of its own. While the port sends, packets for it wait; when it is
//! free, the scheduler says which of them passes egress and is sent. How long the port is busy follows from the length of
//! what leaves egress. A packet whose queue is full is dropped and counted (tail drop).
//!
//! A port without a rate has no queue: its packets pass straight on, at no cost. So do those for the CPU port and the
//! recirculation port, whose link has a queue of its own.
//!
//! Time is virtual and exact: a packet that is dequeued late (its caller was busy) makes the port busy from when it should
//! have been, so the rate holds on average.

use crate::job::Job;
use std::collections::{BTreeMap, VecDeque};

/// Classes of service of a port. Those of a packet beyond are the highest.
pub const CLASSES: usize = 8;

/// Which of several classes that wait is sent from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduler {
    /// The highest class (the greatest number): lower ones wait as long as it has packets.
    #[default]
    StrictPriority,
    /// Each in proportion to its weight, by bytes (start-time fair queueing); a weight of 0 counts as 1.
    Weighted([u32; CLASSES]),
}

/// Queues between ingress and egress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressQueues {
    /// Packets that wait in one class of one port at most; more are dropped and counted.
    pub depth: usize,
    /// Of every port.
    pub scheduler: Scheduler,
    /// Of ports that are not named in `port_rates_bps`; `None`: unlimited. Bits of frames, without FCS and preamble.
    pub rate_bps: Option<u64>,
    /// Of these ports.
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

/// How a packet had to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Waited {
    /// When it joined its queue.
    pub enqueued_ns: u64,
    /// Packets that waited for the port then.
    pub enqueue_depth: u64,
    /// Packets that wait for the port now.
    pub dequeue_depth: u64,
    /// The same of its queue, in cells of [`CELL`] bytes.
    pub enqueue_cells: u64,
    /// The same.
    pub dequeue_cells: u64,
}

impl Waited {
    /// Not at all.
    pub(crate) fn not(now_ns: u64) -> Waited {
        Waited {
            enqueued_ns: now_ns,
            ..Waited::default()
        }
    }
}

/// Bytes of a cell of a Tofino's packet buffer.
const CELL: usize = 80;

/// What becomes of a packet for a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Egress, now.
    Straight,
    /// It waits.
    Queue,
    /// Its queue is full.
    Full,
}

/// The queues of all ports.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    config: EgressQueues,
    /// No port has a rate.
    unlimited: bool,
    ports: BTreeMap<u32, Port>,
    /// From when on what is transmitted makes its port busy.
    clock_ns: u64,
}

#[derive(Debug, Default)]
struct Port {
    /// It sends until then.
    free_ns: u64,
    classes: [Class; CLASSES],
    /// Packets in all classes.
    waiting: usize,
    /// Start tag of the packet that was sent last.
    virtual_time: u64,
}

#[derive(Debug, Default)]
struct Class {
    queue: VecDeque<Queued>,
    /// What they take of the packet buffer.
    cells: u64,
    /// Finish tag of its last packet that was sent.
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

/// Ports that are remembered although nothing waits for them.
const IDLE_PORTS: usize = 1024;
/// Of virtual time for a byte of weight 1.
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

    /// An event happens now.
    pub(crate) fn set_now(&mut self, now_ns: u64) {
        self.clock_ns = now_ns;
    }

    /// Asked of each packet that ingress, or a clone session, sends to a port.
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

    /// Lets a packet wait that was admitted to a queue.
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

    /// Cells that wait in one class of a port.
    pub(crate) fn cells(&self, port: u32, class: u64) -> u64 {
        let port = self.ports.get(&port);
        port.map_or(0, |port| port.classes[class_of(class)].cells)
    }

    /// A packet leaves for a port, which is busy for its length.
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

    /// When the next packet may leave its queue.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.next().map(|(free_ns, _)| free_ns)
    }

    /// Packets that wait for any port.
    pub(crate) fn waiting(&self) -> usize {
        self.ports.values().map(|port| port.waiting).sum()
    }

    /// And for which port: the one that is free first.
    fn next(&self) -> Option<(u64, u32)> {
        let waiting = self.ports.iter().filter(|(_, port)| port.waiting > 0);
        waiting.map(|(number, port)| (port.free_ns, *number)).min()
    }

    /// The next packet whose port is free by now, in order of when it became free.
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
        // The port is not free before the packet came.
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
            // Of equal tags the lowest class.
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

/// How long a link sends.
pub(crate) fn sending_ns(bytes: usize, rate_bps: u64) -> u64 {
    let bits = bytes as u128 * 8;
    u64::try_from((bits * 1_000_000_000).div_ceil(u128::from(rate_bps.max(1)))).unwrap_or(u64::MAX)
}
