//! Simulated links between the switches of a two-level tree: from each rack's switch to the topmost switch, and back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aggregation::Destination;
use aggregation::job::WorkerId;
use rand_chacha::ChaCha8Rng;

use crate::Faults;
use crate::network::{Link, NetworkCounters, Rate};

/// Where a frame on a link between two switches goes: to the topmost switch, or to ranks of a rack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    /// Up to the topmost switch, even if the address in the frame names another destination.
    ToTop {
        /// Rank that sent the frame, or whose frame made the rack's switch send it.
        from: WorkerId,
        /// Destination in the frame's address.
        to: Destination,
    },
    /// To these ranks, through the switch of their common rack.
    ToRanks(Vec<WorkerId>),
}

/// A frame on a link: time of arrival in nanoseconds, sequence number of its transmission, destination, bytes.
type UnderWay = (u64, u64, Hop, Vec<u8>);

/// Links between the topmost switch and the racks' switches, with the frames on them.
#[derive(Debug, Clone)]
pub struct Between {
    /// Links of each rack, by rack number: up to the topmost switch, and down from it.
    links: Vec<[Link; 2]>,
    /// Frames on the links, ordered by time of arrival, then by order of transmission.
    under_way: BinaryHeap<Reverse<UnderWay>>,
    sent: u64,
    counters: NetworkCounters,
}

impl Between {
    pub fn new(racks: u16, faults: Faults, delay_ns: u64, rate: Rate) -> Self {
        let link = || Link::new(faults, delay_ns).with_rate(Some(rate));
        Self {
            links: (0..racks).map(|_| [link(), link()]).collect(),
            under_way: BinaryHeap::new(),
            sent: 0,
            counters: NetworkCounters::default(),
        }
    }

    /// Sends a frame over a rack's link, upwards or downwards as `hop` says.
    pub fn send(&mut self, now_ns: u64, rack: u16, hop: Hop, frame: &[u8], rng: &mut ChaCha8Rng) {
        let way = usize::from(matches!(hop, Hop::ToRanks(_)));
        let link = &mut self.links[usize::from(rack)][way];
        let (arrivals, _) = link.send(now_ns, frame.len(), rng, &mut self.counters);
        for at_ns in arrivals.into_iter().flatten() {
            let arrives = (at_ns, self.sent, hop.clone(), frame.to_vec());
            self.under_way.push(Reverse(arrives));
            self.sent += 1;
        }
    }

    /// Time at which the next frame arrives at the end of its link; `None` if no frame is under way.
    pub fn next_ns(&self) -> Option<u64> {
        self.under_way.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// Removes the first frame that has arrived by `now_ns`; `None` if there is none.
    pub fn take(&mut self, now_ns: u64) -> Option<(Hop, Vec<u8>)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        let Reverse((_, _, hop, frame)) = self.under_way.pop()?;
        Some((hop, frame))
    }
}
