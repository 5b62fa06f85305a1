//! Recently captured frames of one switch: those that arrived, in order, and when frames with their bytes left.

use std::collections::{HashMap, VecDeque};
use std::ops::Index;
use std::sync::Arc;

use parser_gen::psn::Packet;
use scenario::replay::{Classified, Engine, Recorded};

use super::STAMP_NS;
use super::frame::{Identity, Plainly};

/// Number of leading bytes kept of each frame of a faulty flow, for the report of hits.
pub const TOLD_BYTES: usize = 128;

/// A frame that arrived at a switch.
#[derive(Debug)]
pub struct Arrival {
    /// Port of the switch by which the frame arrived.
    pub port: u32,
    /// Number of the frame among the arrivals by its port, from 1.
    pub number: u64,
    /// Time of arrival: the recorder's timestamp plus the link latency that the port simulates, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Lower bound on the arrival times of this frame and all later ones, since timestamps may be slightly out of order.
    pub from_ns: u64,
    /// Whether the frame arrived while an epoch was being written, so that the old or the new epoch may have applied to it.
    pub is_at_boundary: bool,
    /// Length of the frame on the link in bytes, without FCS.
    pub wire_len: u32,
    /// Identity of the frame: a hash of its bytes.
    pub identity: Identity,
    /// The frame's recorded bytes, if a fault's effect may have to change them; otherwise empty.
    pub bytes: Vec<u8>,
    /// The RDMA packet, if the frame belongs to a connection that is announced to the switch.
    pub packet: Option<Packet>,
    /// The frame's ports and flows, as input of the model.
    pub frame: Classified,
}

impl Arrival {
    /// For each fault unit that holds this frame until some others have passed: when they had, in nanoseconds; else `u64::MAX`.
    pub fn passed_ns(&mut self, engine: &Engine) -> &mut [u64] {
        if self.frame.passed_ns.is_empty() {
            self.frame.passed_ns = vec![u64::MAX; engine.units()].into();
        }
        Arc::make_mut(&mut self.frame.passed_ns)
    }

    /// The frame's recorded bytes as input of a fault's effect.
    pub fn recorded(&self) -> Recorded<'_> {
        Recorded {
            bytes: &self.bytes,
            wire_len: self.wire_len,
        }
    }
}

/// Undecided arrivals in the order in which the switch took them, which is the order of a port's capture: the sending side of a
/// link fills the rings of the switch and of the capture together. Each frame keeps its number.
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

    /// Number that the next appended frame will get: the last frame's number plus 1.
    pub fn end(&self) -> usize {
        self.first + self.arrivals.len()
    }

    /// Number of the first frame that arrived after `until_ns`.
    pub fn behind_time(&self, until_ns: u64) -> usize {
        let by_time = |arrival: &Arrival| arrival.from_ns <= until_ns;
        self.first + self.arrivals.partition_point(by_time)
    }

    /// Inserts an arrival after those with the same or an earlier timestamp, and returns its number: the queue has frames of
    /// several ports. A packet always precedes the packets sent in response to it. If two packets arrive by different ports
    /// within a few microseconds, the switch may have taken them in the other order.
    pub fn insert_by_time(&mut self, arrival: Arrival) -> usize {
        let mut at = self.arrivals.len();
        while at > 0 && self.arrivals[at - 1].at_ns > arrival.at_ns {
            at -= 1;
        }
        self.arrivals.insert(at, arrival);
        self.first + at
    }

    /// Appends the next arrival of a port and returns the number that the queue gives it.
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

    /// The arrival with this number; `None` if it is decided and removed.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut Arrival> {
        self.arrivals.get_mut(number.checked_sub(self.first)?)
    }

    /// Removes the oldest arrival, which is now decided.
    pub fn pop(&mut self) -> Option<Arrival> {
        let arrival = self.arrivals.pop_front()?;
        self.first += 1;
        Some(arrival)
    }

    /// The undecided arrivals after the one with this number.
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

/// Counts of undecided arrivals, and departures, of frames with the same bytes.
#[derive(Debug, Default)]
struct Equal {
    /// Number of undecided arrivals with these bytes.
    came: u32,
    /// Number of undecided arrivals that had other bytes and have to leave with these bytes.
    expected: u32,
    left: Left,
}

/// Departure times of equal frames in nanoseconds since 1970, by egress port. Usually there is one departure by one port.
#[derive(Debug, Default)]
enum Left {
    #[default]
    Nowhere,
    Once(u32, u64),
    /// Several departures: ports in ascending order, each with its times.
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

/// Captured arrivals and departures of a switch's undecided frames, by identity.
#[derive(Debug, Default)]
pub struct Passed(HashMap<Identity, Equal, Plainly>);

impl Passed {
    /// Adds an arrival of a frame with this identity.
    pub fn comes(&mut self, identity: Identity) {
        self.0.entry(identity).or_default().came += 1;
    }

    /// Adds a departure of a frame with this identity by `port`.
    pub fn leaves(&mut self, identity: Identity, port: u32, at_ns: u64) {
        self.0.entry(identity).or_default().left.push(port, at_ns);
    }

    /// Records that an arrived frame has to leave with another identity.
    pub fn expect(&mut self, came: Identity, leaves_as: Identity) {
        if leaves_as != came {
            self.0.entry(leaves_as).or_default().expected += 1;
        }
    }

    /// Departure time of a frame that arrived once and left once, by this port; otherwise `None`.
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

    /// Forgets an identity if all arrivals and departures with it are decided.
    pub fn forget(&mut self, identity: Identity) {
        self.0.remove(&identity);
    }

    /// Whether a frame with this identity has arrived and is undecided.
    pub fn has_come(&self, identity: Identity) -> bool {
        self.0.get(&identity).is_some_and(|equal| equal.came > 0)
    }

    /// Whether exactly one undecided frame has arrived with this identity.
    pub fn is_unique(&self, identity: Identity) -> bool {
        self.0.get(&identity).is_some_and(|equal| equal.came == 1)
    }

    /// Whether exactly one undecided frame arrived with another identity and has to leave with this one.
    pub fn is_expected_once(&self, identity: Identity) -> bool {
        let equal = self.0.get(&identity);
        equal.is_some_and(|equal| equal.expected == 1)
    }

    /// Times at which frames with this identity left by a port, in ascending order, in nanoseconds since 1970.
    pub fn left(&self, port: u32, identity: Identity) -> &[u64] {
        self.0
            .get(&identity)
            .map_or(&[], |equal| equal.left.by(port))
    }

    /// Removes a decided arrival and its departures: `left` has, by egress port, the times of those with identity `left_as`.
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

    /// Removes the expectation that a decided frame leaves as `leaves_as`, since the reading that expects it was not chosen.
    pub fn decide_other(&mut self, came: Identity, left_as: Identity) {
        if left_as != came
            && let Some(equal) = self.0.get_mut(&left_as)
        {
            equal.expected = equal.expected.saturating_sub(1);
        }
    }

    /// Removes all departures with this identity, because the judge has explained them.
    pub fn account(&mut self, identity: Identity) {
        if let Some(equal) = self.0.get_mut(&identity) {
            equal.left = Left::Nowhere;
        }
    }

    /// Forgets departures before `begin_ns` that precede the first arrival at `came_ns`. Captures of ports start one after the
    /// other, so of a frame that passed meanwhile only the departure may be recorded. It would be attributed to a later arrival
    /// with the same bytes; hosts repeat their own announcements bit for bit.
    pub fn forget_before(&mut self, identity: Identity, begin_ns: u64, came_ns: u64) {
        if let Some(equal) = self.0.get_mut(&identity) {
            equal.left.retain(|_, left_ns| {
                left_ns >= begin_ns || came_ns <= left_ns.saturating_add(STAMP_NS)
            });
        }
    }

    /// Forgets departures before `before_ns`: all earlier arrivals are decided, so none explains
    /// them. Returns the number of forgotten departures whose time satisfies `counts`.
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
