//! What captures saw of one switch lately: the frames that came to it, in order, and when frames left it.

use std::collections::{HashMap, VecDeque};
use std::ops::Index;
use std::sync::Arc;

use parser_gen::psn::Packet;
use scenario::replay::{Classified, Engine, Recorded};

use super::STAMP_NS;
use super::frame::{Identity, Plainly};

/// A frame that came to a switch.
#[derive(Debug)]
pub struct Arrival {
    /// By which port.
    pub port: u32,
    /// Which one of that port's, from 1.
    pub number: u64,
    /// When the recorder got it, in nanoseconds since 1970; later by what its port holds each frame for the latency of its
    /// link.
    pub at_ns: u64,
    /// Neither it nor any that came behind it is of an earlier time: stamps may be a little out of order.
    pub from_ns: u64,
    /// Either of two epochs may have met it.
    pub is_at_boundary: bool,
    /// How long it was.
    pub wire_len: u32,
    /// Which frame it is.
    pub identity: Identity,
    /// Its bytes, where an effect may have to change them.
    pub bytes: Box<[u8]>,
    /// What it is of an RDMA connection of which the switch is told.
    pub packet: Option<Packet>,
    /// As the model takes it.
    pub frame: Classified,
}

impl Arrival {
    /// By unit of ingress, when as many others had passed as it makes this one wait for.
    pub fn passed_ns(&mut self, engine: &Engine) -> &mut [u64] {
        if self.frame.passed_ns.is_empty() {
            self.frame.passed_ns = vec![u64::MAX; engine.units()].into();
        }
        Arc::make_mut(&mut self.frame.passed_ns)
    }

    /// As an effect takes it.
    pub fn recorded(&self) -> Recorded<'_> {
        Recorded {
            bytes: &self.bytes,
            wire_len: self.wire_len,
        }
    }
}

/// Frames that came and are not decided, in the order in which the switch took them: that of a port's capture, because both the
/// switch's ring and the capture's are filled where the sender's end hands a frame over. Each has a number, which it keeps.
#[derive(Debug, Default)]
pub struct Queue {
    first: usize,
    arrivals: VecDeque<Arrival>,
}

impl Queue {
    /// The number of the first.
    pub fn first(&self) -> usize {
        self.first
    }

    /// The number behind the last.
    pub fn end(&self) -> usize {
        self.first + self.arrivals.len()
    }

    /// Number of the first frame that arrived after a time.
    pub fn behind_time(&self, until_ns: u64) -> usize {
        let by_time = |arrival: &Arrival| arrival.from_ns <= until_ns;
        self.first + self.arrivals.partition_point(by_time)
    }

    /// One that came behind those of its time: frames of several ports are in the order of their stamps. What one packet brings
    /// another to be sent for comes after it in any case; of two that come within a few microseconds by different ports the switch
    /// may have taken the other one first. Its number.
    pub fn insert_by_time(&mut self, arrival: Arrival) -> usize {
        let mut at = self.arrivals.len();
        while at > 0 && self.arrivals[at - 1].at_ns > arrival.at_ns {
            at -= 1;
        }
        self.arrivals.insert(at, arrival);
        self.first + at
    }

    /// The next of a port. Its number.
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

    /// One by its number, if it is not decided.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut Arrival> {
        self.arrivals.get_mut(number.checked_sub(self.first)?)
    }

    /// The oldest, which is decided.
    pub fn pop(&mut self) -> Option<Arrival> {
        let arrival = self.arrivals.pop_front()?;
        self.first += 1;
        Some(arrival)
    }

    /// Those behind one.
    pub fn behind(&self, number: usize) -> impl Iterator<Item = &Arrival> + Clone {
        self.arrivals.range(number + 1 - self.first..)
    }

    /// All.
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

/// What is known of frames that are equal.
#[derive(Debug, Default)]
struct Equal {
    /// How many came that are not decided.
    came: u32,
    /// How many others that came, and are not decided, had to leave as such a frame.
    expected: u32,
    left: Left,
}

/// When frames left, by port: mostly one, by one.
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

/// What came and left, by what it was.
#[derive(Debug, Default)]
pub struct Passed(HashMap<Identity, Equal, Plainly>);

impl Passed {
    /// A frame came.
    pub fn comes(&mut self, identity: Identity) {
        self.0.entry(identity).or_default().came += 1;
    }

    /// A frame left.
    pub fn leaves(&mut self, identity: Identity, port: u32, at_ns: u64) {
        self.0.entry(identity).or_default().left.push(port, at_ns);
    }

    /// A frame that came has to leave as another.
    pub fn expect(&mut self, came: Identity, leaves_as: Identity) {
        if leaves_as != came {
            self.0.entry(leaves_as).or_default().expected += 1;
        }
    }

    /// When a frame left that came once and left once, by this port and no other.
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

    /// All that is known of an identity is decided.
    pub fn forget(&mut self, identity: Identity) {
        self.0.remove(&identity);
    }

    /// Whether a frame like this one came, and is not decided.
    pub fn has_come(&self, identity: Identity) -> bool {
        self.0.get(&identity).is_some_and(|equal| equal.came > 0)
    }

    /// Whether no other frame like this one came of those that are not decided.
    pub fn is_unique(&self, identity: Identity) -> bool {
        self.0.get(&identity).is_some_and(|equal| equal.came == 1)
    }

    /// Whether only one that came has to leave so, as far as is known.
    pub fn is_expected_once(&self, identity: Identity) -> bool {
        let equal = self.0.get(&identity);
        equal.is_some_and(|equal| equal.expected == 1)
    }

    /// When frames of this identity left by a port, in ascending order.
    pub fn left(&self, port: u32, identity: Identity) -> &[u64] {
        self.0
            .get(&identity)
            .map_or(&[], |equal| equal.left.by(port))
    }

    /// A frame that came is decided, and so is what left of it: as `left_as`, by these ports at these times.
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

    /// A frame is decided that would have left so by another reading.
    pub fn decide_other(&mut self, came: Identity, left_as: Identity) {
        if left_as != came
            && let Some(equal) = self.0.get_mut(&left_as)
        {
            equal.expected = equal.expected.saturating_sub(1);
        }
    }

    /// What is known to have left so is accounted for.
    pub fn account(&mut self, identity: Identity) {
        if let Some(equal) = self.0.get_mut(&identity) {
            equal.left = Left::Nowhere;
        }
    }

    /// Forgets frames that left before this time and are none of those that came, since captures begin one after the other: of a
    /// frame that passed meanwhile its departure alone may have been seen. It would be taken for that of one with the same bytes
    /// that came later; hosts repeat what they say of themselves bit for bit.
    pub fn forget_before(&mut self, identity: Identity, begin_ns: u64, came_ns: u64) {
        if let Some(equal) = self.0.get_mut(&identity) {
            equal.left.retain(|_, left_ns| {
                left_ns >= begin_ns || came_ns <= left_ns.saturating_add(STAMP_NS)
            });
        }
    }

    /// Forgets what left before a time: all that came before is decided, so nothing accounts for it. How many of them were told
    /// as `counts` asks.
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
