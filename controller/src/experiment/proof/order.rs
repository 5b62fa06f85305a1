//! What frames say together: those that are alike, and those that overtook others.

use std::collections::{BTreeMap, BTreeSet};

use scenario::effect::Fate;
use scenario::replay::Passage;

use super::STAMP_NS;
use super::epochs::PortFrames;
use super::judge::{self, Share, are_due, deal};
use super::trace::{Identity, SwitchTrace};

/// A frame that was overtaken by this much was held, by a fault that holds for `hold_ns`. A machine that stood still lets all
/// go at once, so that little lies between them.
pub fn held_if_overtaken_by(hold_ns: u64) -> u64 {
    (hold_ns / 2).max(STAMP_NS)
}

/// How many of the frames that have their like did not leave as passages say, if all of them are to be explained.
pub fn misfits_of_alike(port: PortFrames<'_>, passages: &BTreeMap<usize, Passage>) -> usize {
    let trace = port.trace;
    let mut alike: BTreeMap<(u32, Identity), Vec<Share>> = BTreeMap::new();
    // They had to leave as something that was never seen.
    let mut unseen = 0;
    for index in port.range.0..port.range.1 {
        let arrival = &trace.arrivals[index];
        if trace.is_unique(arrival.identity) {
            continue;
        }
        let passage = passages.get(&index);
        let fate = passage.map_or(Fate::UNTOUCHED, |passage| passage.ingress.fate);
        let leaves_as = passage.map_or(Some(arrival.identity), |passage| {
            judge::leaves_as(port.engine, trace, arrival, &passage.ingress)
        });
        let Some(identity) = leaves_as else {
            unseen += 1;
            continue;
        };
        for (position, (exit, _)) in port.classified[index].exits.iter().enumerate() {
            let shares = alike.entry((*exit, identity)).or_default();
            shares.push(Share {
                came_ns: arrival.at_ns,
                copies: passage.map_or(1, |passage| passage.leaving(position)),
                fate,
            });
        }
    }
    let misfits = alike.iter().map(|((exit, identity), shares)| {
        let dealt = deal(shares, trace.left(*exit, *identity));
        let wrong = shares.iter().zip(&dealt).filter(|(share, left)| {
            left.len() != share.copies || !are_due(share.came_ns, share.fate, left)
        });
        wrong.count()
    });
    misfits.sum::<usize>() + unseen
}

/// How many frames that no fault hit, if passages are right, were overtaken as if one had held them.
pub fn misfits(port: PortFrames<'_>, passages: &BTreeMap<usize, Passage>) -> usize {
    let Some(shortest_ns) = port.engine.shortest_hold_ns() else {
        return 0;
    };
    let moves = (port.range.0..port.range.1).map(|index| {
        let fate = passages.get(&index).map(|passage| passage.ingress.fate);
        let exits = port.classified[index].exits.iter();
        let left = exits.filter_map(|(exit, _)| {
            let left = port.trace.left(*exit, port.trace.arrivals[index].identity);
            Some((*exit, *left.first()?))
        });
        Move {
            index,
            came_ns: port.trace.arrivals[index].at_ns,
            delay_ns: fate.unwrap_or(Fate::UNTOUCHED).held_ns(0),
            left: left.collect(),
        }
    });
    let overtaken = Order::of(port.trace, moves).overtaken();
    let held = held_if_overtaken_by(shortest_ns);
    overtaken.into_values().filter(|by| *by >= held).count()
}

/// A frame, and when it first left by each port that it had to.
#[derive(Debug, Clone)]
pub struct Move {
    /// Its index in the trace.
    pub index: usize,
    /// When it came.
    pub came_ns: u64,
    /// For how long faults had to hold it.
    pub delay_ns: u64,
    /// By port.
    pub left: Vec<(u32, u64)>,
}

impl Move {
    fn free_ns(&self) -> u64 {
        self.came_ns.saturating_add(self.delay_ns)
    }

    /// When it first left, and how long it waited until then beyond what faults held it for.
    fn waited(&self) -> Option<(u64, u64)> {
        let left_ns = self.left.iter().map(|(_, at_ns)| *at_ns).min()?;
        Some((left_ns, left_ns.saturating_sub(self.free_ns())))
    }
}

/// Frames in the order in which they came. Those that have their like are left out: which of them left when is not known.
#[derive(Debug)]
pub struct Order(Vec<Move>);

impl Order {
    /// Of frames of a trace.
    pub fn of(trace: &SwitchTrace<'_>, moves: impl Iterator<Item = Move>) -> Order {
        let unique = |a: &Move| trace.is_unique(trace.arrivals[a.index].identity);
        let mut moves: Vec<Move> = moves.filter(unique).collect();
        moves.sort_by_key(|a| (a.came_ns, a.index));
        Order(moves)
    }

    /// By how much each frame was overtaken, by its index in the trace.
    ///
    /// One thread takes the frames of all ports, and what leaves by a port leaves in the order in which it was sent. So when a
    /// frame that came later left by the same port, this one had been taken as well, and what faults had to hold it for is
    /// the most that it may leave later.
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

    /// Whether others show that the machine stood still while this frame waited: they came meanwhile, left no earlier, and had
    /// not waited as long. What a fault holds waits equally long.
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

    /// Whether a frame that no fault held waited while this one was under way: then the machine stood still.
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
