//! One direction of a simulated link: a queue, a token bucket and a delay.

use std::collections::VecDeque;

use aggregation::Mark;
use rand_chacha::ChaCha8Rng;

use super::outcome::Direction;
use super::setup::LinkSpec;
use crate::Faults;
use crate::network::{HEADERS, Link, NetworkCounters};

/// Kernel memory of a frame besides its bytes: space in front, `struct skb_shared_info` at the end, and `struct sk_buff`.
const HEADROOM: u64 = 16;
const SHARED_INFO: u64 = 320;
const BUFFER_HEAD: u64 = 256;

/// A frame that is still in the queue.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    leaves_ns: u64,
    memory: u64,
}

/// One direction of a simulated link, with a queue, a rate and a delay.
#[derive(Debug)]
pub struct Cable {
    /// Where frames arrive: index of the node, and the node's port.
    pub to: (usize, super::PortId),
    link: Link,
    mark_at: Option<usize>,
    waiting: VecDeque<Waiting>,
    memory: u64,
    counted: Direction,
    network: NetworkCounters,
}

/// Result of sending a frame over a cable.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Time of arrival in nanoseconds; `None` if the frame is lost.
    pub arrives_ns: Option<u64>,
    /// Congestion mark that the cable's queue gives the frame.
    pub mark: Mark,
}

impl Cable {
    /// Creates a cable to a node's port. `marks` says whether its queue marks frames: only queues of switches do.
    pub fn new(spec: &LinkSpec, to: (usize, super::PortId), marks: bool) -> Self {
        let faults = Faults {
            loss: spec.loss,
            ..Faults::NONE
        };
        let link = Link::new(faults, spec.delay_ns).with_rate(Some(spec.rate));
        Self {
            to,
            link: link.with_burst(spec.burst_bytes),
            mark_at: spec.mark_at.filter(|_| marks),
            waiting: VecDeque::new(),
            memory: 0,
            counted: Direction::default(),
            network: NetworkCounters::default(),
        }
    }

    /// Sends a frame with `length` bytes of aggregation header and values. Calls must be in the order of time.
    pub fn send(&mut self, now_ns: u64, length: usize, rng: &mut ChaCha8Rng) -> Sent {
        self.forget_left(now_ns);
        let bytes = length as u64 + HEADERS;
        let mark = match self.mark_at {
            Some(most) if self.waiting.len() >= most => Mark::Congested,
            _ => Mark::None,
        };
        let Some(leaves_ns) = self.link.serialise(now_ns, bytes) else {
            self.counted.overflowed += 1;
            let arrives_ns = None;
            return Sent { arrives_ns, mark };
        };
        self.counted.frames += 1;
        self.counted.bytes += bytes;
        self.counted.marked += u64::from(mark == Mark::Congested);
        let memory = memory_of(bytes);
        self.memory += memory;
        self.waiting.push_back(Waiting { leaves_ns, memory });
        self.counted.longest = self.counted.longest.max(self.waiting.len() as u64);
        let arrives_ns = self.link.arrives(leaves_ns, rng, &mut self.network);
        self.counted.lost += u64::from(arrives_ns.is_none());
        Sent { arrives_ns, mark }
    }

    /// Earliest time at which the queued frames occupy less than `most` bytes of kernel memory.
    pub fn has_room_ns(&mut self, now_ns: u64, most: u64) -> u64 {
        self.forget_left(now_ns);
        let (mut memory, mut at_ns) = (self.memory, now_ns);
        for frame in &self.waiting {
            if memory < most {
                break;
            }
            memory -= frame.memory;
            at_ns = frame.leaves_ns;
        }
        at_ns
    }

    fn forget_left(&mut self, now_ns: u64) {
        while let Some(frame) = self.waiting.front()
            && frame.leaves_ns <= now_ns
        {
            self.memory -= frame.memory;
            self.waiting.pop_front();
        }
    }

    /// Counters of the frames that the cable carried.
    pub fn counted(&self) -> Direction {
        self.counted
    }
}

/// Size of a frame's buffer in Linux, in bytes (`skb->truesize`): the allocator rounds up to powers of two.
fn memory_of(bytes: u64) -> u64 {
    (bytes + HEADROOM + SHARED_INFO).next_power_of_two() + BUFFER_HEAD
}
