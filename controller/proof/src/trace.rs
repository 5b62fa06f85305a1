//! Recently captured frames of one switch: arrivals in order, and departures.

use std::collections::{HashMap, VecDeque};
use std::ops::Index;
use std::sync::Arc;

use parser_gen::psn::Packet;
use scenario::replay::{Classified, Engine, Recorded};

use super::STAMP_NS;
use super::frame::{Identity, Plainly};

/// Number of leading bytes kept of a frame of a fault's flow, for the report of a hit.
pub const TOLD_BYTES: usize = 128;

/// A frame that arrived at a switch.
#[derive(Debug)]
pub struct Arrival {
    /// Ingress port.
    pub port: u32,
    /// Number of the frame among that port's arrivals, from 1.
    pub number: u64,
    /// Time of the recorder's timestamp plus the time for which the port holds each frame for its link's latency, in nanoseconds
    /// since 1970.
    pub at_ns: u64,
    /// Lower bound on the times of this arrival and all later ones: timestamps may be slightly out of order.
    pub from_ns: u64,
    /// Either of two epochs may have applied to the frame.
    pub is_at_boundary: bool,
    /// Length on the link in bytes, without FCS.
    pub wire_len: u32,
    /// Identity of the frame.
    pub identity: Identity,
    /// Its bytes, where an effect may have to change them.
    pub bytes: Vec<u8>,
    /// The RDMA packet, if the frame belongs to a connection that is announced to the switch.
    pub packet: Option<Packet>,
    /// The frame as input of the model.
    pub frame: Classified,
}

impl Arrival {
    /// For each ingress unit, the time at which as many other frames had passed as the unit makes this frame wait for.
    pub fn passed_ns(&mut self, engine: &Engine) -> &mut [u64] {
        if self.frame.passed_ns.is_empty() {
            self.frame.passed_ns = vec![u64::MAX; engine.units()].into();
        }
        Arc::make_mut(&mut self.frame.passed_ns)
    }

    /// The recorded bytes as input of an effect.
    pub fn recorded(&self) -> Recorded<'_> {
        Recorded {
            bytes: &self.bytes,
            wire_len: self.wire_len,
        }
    }
}

/// Undecided arrivals in the order in which the switch took them, which is the order of a port's capture: the sender's end fills
/// both the switch's ring and the capture's when it hands over a frame. Each frame has a number, which it keeps.
#[derive(Debug, Default)]
pub struct Queue {
    first: usize,
    arrivals: VecDeque<Arrival>,
}

impl Queue {
    /// Number of the first frame in the queue.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Number after that of the last frame in the queue.
    pub fn end(&self) -> usize {
        self.first + self.arrivals.len()
    }

    /// Number of the first frame that arrived after a time.
    pub fn behind_time(&self, until_ns: u64) -> usize {
        let by_time = |arrival: &Arrival| arrival.from_ns <= until_ns;
        self.first + self.arrivals.partition_point(by_time)
    }

    /// Inserts an arrival by timestamp, behind those with the same time, and returns its number. Frames of several ports are in
    /// the order of their timestamps. A packet always precedes the packets sent in response to it. If two packets arrive by
    /// different ports within a few microseconds, the switch may have taken them in the other order.
    pub fn insert_by_time(&mut self, arrival: Arrival) -> usize {
        let mut at = self.arrivals.len();
        while at > 0 && self.arrivals[at - 1].at_ns > arrival.at_ns {
            at -= 1;
        }
        self.arrivals.insert(at, arrival);
        self.first + at
    }

    /// Appends the next arrival of a port and returns its number.
    pub fn push(&mut self, arrival: Arrival) -> usize {
        let from_ns = arrival.at_ns;
        for before in self.arrivals.iter_mut().rev() {
            if before.from_ns <= from_ns {
                break;
            }
            before.from_ns = from_ns;
        }
        if self.arrivals.len() == self.arrivals.capacity() {
            // Growth by a quarter instead of doubling: the queue is a large part of the judge's memory.
            let more = (self.arrivals.len() / 4).max(64);
            self.arrivals.reserve_exact(more);
        }
        self.arrivals.push_back(arrival);
        self.end() - 1
    }

    /// The arrival with this number, if it is not decided.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut Arrival> {
        self.arrivals.get_mut(number.checked_sub(self.first)?)
    }

    /// Removes the oldest arrival, which is now decided.
    pub fn pop(&mut self) -> Option<Arrival> {
        let arrival = self.arrivals.pop_front()?;
        self.first += 1;
        Some(arrival)
    }

    /// Arrivals after the one with this number.
    pub fn behind(&self, number: usize) -> impl Iterator<Item = &Arrival> + Clone {
        self.arrivals.range(number + 1 - self.first..)
    }

    /// All undecided arrivals.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arrival> + ExactSizeIterator + Clone {
        self.arrivals.iter()
    }
}

impl Index<usize> for Queue {
    type Output = Arrival;

    fn index(&self, number: usize) -> &Arrival {
        &self.arrivals[number - self.first]
    }
}

/// Counts and departures of frames with the same bytes.
#[derive(Debug, Default)]
struct Equal {
    /// Number of undecided arrivals.
    came: u32,
    /// Number of undecided arrivals with other bytes that had to leave with these bytes.
    expected: u32,
    left: Left,
}

/// Departure times in nanoseconds since 1970, by port. Usually there is one departure by one port.
#[derive(Debug, Default)]
enum Left {
    #[default]
    Nowhere,
    Once(u32, u64),
    /// In ascending order.
    By(Vec<(u32, Vec<u64>)>),
}

impl Left {
    fn by(&self, port: u32) -> &[u64] {
        match self {
            Left::Once(by, at_ns) if *by == port => std::slice::from_ref(at_ns),
            Left::By(ports) => {
                let mut ports = ports.iter();
                ports.find(|by| by.0 == port).map_or(&[], |by| &by.1)
            }
            _ => &[],
        }
    }

    fn push(&mut self, port: u32, at_ns: u64) {
        match self {
            Left::Nowhere => *self = Left::Once(port, at_ns),
            Left::Once(by, first_ns) => {
                *self = Left::By(vec![(*by, vec![*first_ns])]);
                self.push(port, at_ns);
            }
            Left::By(ports) => match ports.iter_mut().find(|by| by.0 == port) {
                Some((_, times)) => {
                    let behind = times.partition_point(|time| *time <= at_ns);
                    times.insert(behind, at_ns);
                }
                None => ports.push((port, vec![at_ns])),
            },
        }
    }

    fn retain(&mut self, keeps: impl Fn(u32, u64) -> bool) {
        match self {
            Left::Nowhere => {}
            Left::Once(port, at_ns) => {
                if !keeps(*port, *at_ns) {
                    *self = Left::Nowhere;
                }
            }
            Left::By(ports) => {
                for (port, times) in ports.iter_mut() {
                    times.retain(|at_ns| keeps(*port, *at_ns));
                }
                ports.retain(|(_, times)| !times.is_empty());
                if ports.is_empty() {
                    *self = Left::Nowhere;
                }
            }
        }
    }

    fn times(&self) -> impl Iterator<Item = u64> {
        let (once, by) = match self {
            Left::Nowhere => (None, &[][..]),
            Left::Once(_, at_ns) => (Some(*at_ns), &[][..]),
            Left::By(ports) => (None, &ports[..]),
        };
        once.into_iter()
            .chain(by.iter().flat_map(|(_, times)| times.iter().copied()))
    }

    fn is_empty(&self) -> bool {
        matches!(self, Left::Nowhere)
    }
}

/// Arrivals and departures by frame identity.
#[derive(Debug, Default)]
pub struct Passed(HashMap<Identity, Equal, Plainly>);

impl Passed {
    /// Adds an arrival.
    pub fn comes(&mut self, identity: Identity) {
        self.0.entry(identity).or_default().came += 1;
    }

    /// Adds a departure.
    pub fn leaves(&mut self, identity: Identity, port: u32, at_ns: u64) {
        self.0.entry(identity).or_default().left.push(port, at_ns);
    }

    /// Records that an arrived frame has to leave with another identity.
    pub fn expect(&mut self, came: Identity, leaves_as: Identity) {
        if leaves_as != came {
            self.0.entry(leaves_as).or_default().expected += 1;
        }
    }

    /// Departure time of a frame that arrived once and left once, by this port.
    pub fn left_once(&self, identity: Identity, port: u32) -> Option<u64> {
        match self.0.get(&identity)? {
            Equal {
                came: 1,
                expected: 0,
                left: Left::Once(by, at_ns),
            } if *by == port => Some(*at_ns),
            _ => None,
        }
    }

    /// Forgets an identity whose arrivals and departures are all decided.
    pub fn forget(&mut self, identity: Identity) {
        self.0.remove(&identity);
    }

    /// Whether an undecided arrival has this identity.
    pub fn has_come(&self, identity: Identity) -> bool {
        self.0.get(&identity).is_some_and(|equal| equal.came > 0)
    }

    /// Whether exactly one undecided arrival has this identity.
    pub fn is_unique(&self, identity: Identity) -> bool {
        self.0.get(&identity).is_some_and(|equal| equal.came == 1)
    }

    /// Whether exactly one known arrival with another identity has to leave with this identity.
    pub fn is_expected_once(&self, identity: Identity) -> bool {
        let equal = self.0.get(&identity);
        equal.is_some_and(|equal| equal.expected == 1)
    }

    /// Times at which frames of this identity left by a port, in ascending order.
    pub fn left(&self, port: u32, identity: Identity) -> &[u64] {
        self.0
            .get(&identity)
            .map_or(&[], |equal| equal.left.by(port))
    }

    /// Removes a decided arrival and its departures: with identity `left_as`, by these ports at these times.
    pub fn decide(&mut self, came: Identity, left_as: Identity, left: &[(u32, &[u64])]) {
        if let Some(equal) = self.0.get_mut(&left_as) {
            if left_as != came {
                equal.expected = equal.expected.saturating_sub(1);
            }
            equal.left.retain(|port, at_ns| {
                let mut exits = left.iter();
                !exits.any(|(by, times)| *by == port && times.contains(&at_ns))
            });
        }
        if let Some(equal) = self.0.get_mut(&came) {
            equal.came = equal.came.saturating_sub(1);
        }
        for identity in [came, left_as] {
            let is_over =
                |equal: &Equal| equal.came == 0 && equal.expected == 0 && equal.left.is_empty();
            if self.0.get(&identity).is_some_and(is_over) {
                self.0.remove(&identity);
            }
        }
    }

    /// Removes the expectation of another reading, by which a decided frame would have left with this identity.
    pub fn decide_other(&mut self, came: Identity, left_as: Identity) {
        if left_as != came
            && let Some(equal) = self.0.get_mut(&left_as)
        {
            equal.expected = equal.expected.saturating_sub(1);
        }
    }

    /// Removes all departures with this identity: they are accounted for.
    pub fn account(&mut self, identity: Identity) {
        if let Some(equal) = self.0.get_mut(&identity) {
            equal.left = Left::Nowhere;
        }
    }

    /// Forgets departures before `begin_ns` without an arrival. Captures start one after the other, so of a frame that passed
    /// meanwhile only the departure may be recorded. That departure would be attributed to a later arrival with the same bytes;
    /// hosts repeat their own announcements bit for bit.
    pub fn forget_before(&mut self, identity: Identity, begin_ns: u64, came_ns: u64) {
        if let Some(equal) = self.0.get_mut(&identity) {
            equal.left.retain(|_, left_ns| {
                left_ns >= begin_ns || came_ns <= left_ns.saturating_add(STAMP_NS)
            });
        }
    }

    /// Forgets departures before `before_ns`: all earlier arrivals are decided, so nothing accounts for them. Returns how many
    /// of the forgotten departures have a time that satisfies `counts`.
    pub fn sweep(&mut self, before_ns: u64, counts: impl Fn(u64) -> bool) -> u64 {
        let mut foreign = 0;
        self.0.retain(|_, equal| {
            let old = equal.left.times().filter(|at_ns| *at_ns < before_ns);
            foreign += old.filter(|at_ns| counts(*at_ns)).count() as u64;
            equal.left.retain(|_, at_ns| at_ns >= before_ns);
            equal.came > 0 || equal.expected > 0 || !equal.left.is_empty()
        });
        foreign
    }
}
