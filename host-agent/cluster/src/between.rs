//! Links between the switches of a tree that take time: each rack has one to the topmost switch, and one from it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aggregation::Destination;
use aggregation::job::WorkerId;
use rand_chacha::ChaCha8Rng;

use crate::Faults;
use crate::network::{Link, NetworkCounters, Rate};

/// Where a frame between switches is going.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    /// Up, whoever it is addressed to; what it is about was sent by a rank.
    ToTop {
        /// Which.
        from: WorkerId,
        /// Whom its frame was addressed to.
        to: Destination,
    },
    /// Down, to ranks of one rack.
    ToRanks(Vec<WorkerId>),
}

/// A frame: when it arrives, its number among all that were sent, where it is going, its bytes.
type UnderWay = (u64, u64, Hop, Vec<u8>);

/// The links, and what is on them.
#[derive(Debug, Clone)]
pub struct Between {
    /// By rack: up, and down.
    links: Vec<[Link; 2]>,
    /// By arrival, and of one time in the order in which they were sent.
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

    /// Gives a frame to a rack's link.
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

    /// When the next frame arrives.
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
