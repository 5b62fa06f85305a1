//! Evidence that needs several frames: departures of frames with the same bytes, and frames that overtook others.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use scenario::model::effect::Fate;
use scenario::replay::Passage;
use smallvec::SmallVec;

use super::STAMP_NS;
use super::frame::Identity;
use super::judge::{Share, are_due, deal};
use super::port::PortFrames;
use super::trace::{Arrival, Passed};

/// Time, in nanoseconds, by which a frame must be overtaken at least to show that a fault held it for `hold_ns`. After a
/// standstill a machine releases all frames at once, with little time between them.
pub fn held_if_overtaken_by(hold_ns: u64) -> u64 {
    (hold_ns / 2).max(STAMP_NS)
}

/// Number of equal frames, up to the last known one, that left otherwise than the model expects under a reading: `passages`, or
/// `later` for the frames after these, which is the same for all readings.
pub fn misfits_of_alike(
    port: PortFrames<'_>,
    passages: &BTreeMap<usize, Passage>,
    later: &BTreeMap<usize, Passage>,
) -> usize {
    let PortFrames { scene, queue, .. } = port;
    let mut alike: BTreeMap<(u32, Identity), Vec<Share>> = BTreeMap::new();
    for number in queue.first()..port.known {
        let arrival = &queue[number];
        if scene.passed.is_unique(arrival.identity) {
            continue;
        }
        let passage = passages.get(&number).or_else(|| later.get(&number));
        let fate = passage.map_or(Fate::UNTOUCHED, |passage| passage.ingress.fate);
        let leaves_as = passage.map_or(arrival.identity, |passage| {
            scene.leaves_as(arrival, &passage.ingress)
        });
        for (position, (exit, _)) in arrival.frame.exits.iter().enumerate() {
            let shares = alike.entry((*exit, leaves_as)).or_default();
            shares.push(Share {
                came_ns: arrival.at_ns,
                copies: passage.map_or(1, |passage| passage.leaving(position)),
                fate,
            });
        }
    }
    let misfits = alike.iter().map(|((exit, identity), shares)| {
        let dealt = deal(shares, scene.passed.left(*exit, *identity));
        let wrong = shares.iter().zip(&dealt).filter(|(share, left)| {
            left.len() != share.copies || !are_due(share.came_ns, share.fate, left)
        });
        wrong.count()
    });
    misfits.sum()
}

/// Number of frames that others overtook as if a fault had held them, though no fault held them by the model's `passages`.
pub fn misfits(port: PortFrames<'_>, passages: &BTreeMap<usize, Passage>) -> usize {
    let PortFrames { scene, queue, .. } = port;
    let Some(shortest_ns) = scene.engine.shortest_hold_ns() else {
        return 0;
    };
    let moves = (queue.first()..port.known).map(|number| {
        let fate = passages.get(&number).map(|passage| passage.ingress.fate);
        Move::of(scene.passed, &queue[number], number, fate)
    });
    let overtaken = Order::of(moves.flatten()).overtaken();
    let held = held_if_overtaken_by(shortest_ns);
    overtaken.into_values().filter(|by| *by >= held).count()
}

/// A frame's arrival at a switch, and its first departure by each expected egress port.
#[derive(Debug, Clone)]
pub struct Move {
    /// Number of the frame by which [`Order`] identifies it.
    pub index: usize,
    /// Time of the frame's arrival, in nanoseconds since 1970.
    pub came_ns: u64,
    /// Time for which faults had to hold the frame, in nanoseconds.
    pub delay_ns: u64,
    /// Egress port, and time of the first departure by it, in nanoseconds since 1970.
    pub left: SmallVec<[(u32, u64); 1]>,
}

impl Move {
    /// Arrival and departures of a frame that leaves unchanged; `None` if equal frames make its departures ambiguous.
    pub fn of(
        passed: &Passed,
        arrival: &Arrival,
        index: usize,
        fate: Option<Fate>,
    ) -> Option<Move> {
        let exits = arrival.frame.exits.iter();
        let left = exits
            .filter_map(|(exit, _)| Some((*exit, *passed.left(*exit, arrival.identity).first()?)));
        passed.is_unique(arrival.identity).then(|| Move {
            index,
            came_ns: arrival.at_ns,
            delay_ns: fate.unwrap_or(Fate::UNTOUCHED).held_ns(0),
            left: left.collect(),
        })
    }

    fn free_ns(&self) -> u64 {
        self.came_ns.saturating_add(self.delay_ns)
    }

    /// Time of the frame's first departure, and its wait until then beyond the faults' hold; `None` if it did not leave.
    fn waited(&self) -> Option<(u64, u64)> {
        let left_ns = self.left.iter().map(|(_, at_ns)| *at_ns).min()?;
        Some((left_ns, left_ns.saturating_sub(self.free_ns())))
    }
}

/// Frames of a switch in order of arrival, with their departures.
#[derive(Debug, Default)]
pub struct Order(Vec<Move>);

impl Order {
    /// Sorts frames that have no equal frames by time of arrival.
    pub fn of(moves: impl Iterator<Item = Move>) -> Order {
        let mut moves: Vec<Move> = moves.collect();
        moves.sort_by_key(|a| (a.came_ns, a.index));
        Order(moves)
    }

    /// Time in nanoseconds by which each frame was overtaken, by its `index`.
    ///
    /// One thread takes the frames of all ports, and frames leave a port in the order in which they were sent. If a later arrival
    /// left by the same port, this frame had been taken as well, so it may leave later only by the time for which faults had to
    /// hold it.
    pub fn overtaken(&self) -> BTreeMap<usize, u64> {
        let mut later: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        let mut overtaken = BTreeMap::new();
        for frame in self.0.iter().rev() {
            for (exit, at_ns) in &frame.left {
                let later = later.entry(*exit).or_default();
                let (free_ns, taken_ns) = (frame.free_ns(), at_ns.saturating_sub(frame.delay_ns));
                if let Some(first) = later.range(free_ns.min(taken_ns)..taken_ns).next() {
                    let by = overtaken.entry(frame.index).or_insert(0);
                    *by = (taken_ns - first).max(*by);
                }
                later.insert(*at_ns);
            }
        }
        overtaken
    }

    /// Whether other frames show that the machine stood still while frame `index` waited: they arrived meanwhile, left no
    /// earlier, and waited for a shorter time. Frames that a fault holds wait equally long.
    pub fn stood_still(&self, index: usize, came_ns: u64, hold_ns: u64) -> bool {
        let at = self
            .0
            .partition_point(|a| (a.came_ns, a.index) < (came_ns, index));
        let Some((left_ns, waited_ns)) = self.0.get(at).and_then(Move::waited) else {
            return false;
        };
        let notable_ns = (hold_ns / 4).max(STAMP_NS);
        let meanwhile = self.0[at + 1..].iter();
        let mut meanwhile = meanwhile.take_while(|other| other.came_ns < left_ns);
        meanwhile.any(|other| {
            other.waited().is_some_and(|(other_left_ns, wait_ns)| {
                other_left_ns >= left_ns
                    && wait_ns >= notable_ns
                    && wait_ns + notable_ns <= waited_ns
            })
        })
    }

    /// Whether a frame without a hold also waited while a late frame was in the switch: then the machine stood still.
    pub fn another_waited(&self, came_ns: u64, left_ns: u64, late_ns: u64) -> bool {
        let notable_ns = (late_ns / 4).max(STAMP_NS);
        let from = self
            .0
            .partition_point(|a| a.came_ns < came_ns.saturating_sub(late_ns));
        let mut meanwhile = self.0[from..]
            .iter()
            .take_while(|other| other.came_ns < left_ns);
        meanwhile.any(|other| {
            other.delay_ns == 0
                && other
                    .waited()
                    .is_some_and(|(_, wait_ns)| wait_ns >= notable_ns)
        })
    }
}

/// The order of a switch's frames, computed on first use, since most callers do not need it.
#[derive(Default)]
pub struct Lazy<'a> {
    find: Option<&'a dyn Fn() -> Order>,
    found: OnceCell<(Order, BTreeMap<usize, u64>)>,
}

impl<'a> Lazy<'a> {
    /// An order that `find` computes on first use.
    pub fn of(find: &'a dyn Fn() -> Order) -> Lazy<'a> {
        Lazy {
            find: Some(find),
            found: OnceCell::new(),
        }
    }

    fn found(&self) -> &(Order, BTreeMap<usize, u64>) {
        self.found.get_or_init(|| {
            let order = self.find.map(|find| find()).unwrap_or_default();
            let overtaken = order.overtaken();
            (order, overtaken)
        })
    }

    /// The order of the frames; the first call computes it.
    pub fn order(&self) -> &Order {
        &self.found().0
    }

    /// Time in nanoseconds by which frame `index` was overtaken by later arrivals; 0 if it was not.
    pub fn overtaken_ns(&self, index: usize) -> u64 {
        self.found().1.get(&index).copied().unwrap_or(0)
    }
}
