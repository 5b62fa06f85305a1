//! Links with a delay between the switches of a tree: one from each rack to the topmost switch, and one back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aggregation::Destination;
use aggregation::job::WorkerId;
use rand_chacha::ChaCha8Rng;

use crate::Faults;
use crate::network::{Link, NetworkCounters, Rate};

/// Destination of a frame between switches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    /// Up to the topmost switch, whatever the frame's address; it originates from a rank.
    ToTop {
        /// The originating rank.
        from: WorkerId,
        /// Destination of the rank's frame.
        to: Destination,
    },
    /// Down to ranks of one rack.
    ToRanks(Vec<WorkerId>),
}

/// A frame in flight: time of arrival, sequence number of transmission, destination, bytes.
type UnderWay = (u64, u64, Hop, Vec<u8>);

/// The links between switches, with the frames on them.
#[derive(Debug, Clone)]
pub struct Between {
    /// Links by rack: up, down.
    links: Vec<[Link; 2]>,
    /// Frames by time of arrival, then by order of transmission.
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

    /// Sends a frame over a rack's link.
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

    /// Time at which the next frame arrives.
    pub fn next_ns(&self) -> Option<u64> {
        self.under_way.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// The next frame that has arrived by now.
    pub fn take(&mut self, now_ns: u64) -> Option<(Hop, Vec<u8>)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        let Reverse((_, _, hop, frame)) = self.under_way.pop()?;
        Some((hop, frame))
    }
}
