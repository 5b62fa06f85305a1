//! Which epoch each frame met.
//!
//! A switch takes the frames of a port in order, so a write of an epoch splits them in two. The captures say where only up to
//! a few frames: those that came before the write was confirmed, and after the last that is known to have been processed
//! before it was sent. Each place in between is tried: a [`Reading`] says with which frame each write took effect. What the
//! switch was seen to do from there on tells the right one, because a split one frame off shifts the ordinals of all that
//! follow. Frames that cannot be told apart give no evidence at each step, only at the end.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use scenario::replay::{Classified, Doubt, Engine, Passage, State};

use super::super::fleet::EpochWrite;
use super::STAMP_NS;
use super::ahead::{self, Ahead};
use super::judge;
use super::order;
use super::trace::SwitchTrace;

/// No frame waits for its switch longer than this: a switch that was stopped for longer fails its run by other signs.
const BACKLOG_NS: u64 = 1_000_000_000;
/// States of a switch that are followed at once, and readings that lead to them. Beyond, what fits worst is given up; if that
/// may have been the truth, it is said.
const MAX_COURSES: usize = 2048;
const MAX_READINGS: usize = 8192;
/// So many frames are followed, all courses together; then one course alone. A proof takes seconds, and ends.
const MAX_FOLLOWED: u64 = 4_000_000;
/// A reading is given up when it explains so many frames less than the best.
const MAX_MISFITS_BEHIND: u32 = 16;
/// The same where triggers are in doubt: each frame that one turned for tells by itself.
const MAX_DOUBTFUL_BEHIND: u32 = 6;
/// The same of many courses. Random choices refute a wrong one in a few frames; where a step turns anew before that, there would be
/// as many courses as the product of all places where each may have turned.
fn most_behind(courses: usize) -> u32 {
    match courses {
        0..64 => MAX_MISFITS_BEHIND,
        64..256 => MAX_DOUBTFUL_BEHIND,
        _ => MAX_KEYED_BEHIND,
    }
}
/// The same of triggers that each key follows for itself: there are many of them, and one wrong guess shows in two frames of its
/// key at most.
const MAX_KEYED_BEHIND: u32 = 2;
/// From so many courses on, doubts of keys are decided by what comes next rather than followed; sooner if all that is in doubt
/// is when a time is over, where little else is in doubt.
const MANY_COURSES: usize = 16;
const MANY_IN_TIME: usize = 4;
/// Of so many readings that fit equally well frames that are alike, and the order in which frames left, are asked.
const MAX_COMPARED: usize = 64;

/// What is known of the frames of one port.
#[derive(Clone, Copy)]
pub struct PortFrames<'a> {
    /// What its faults do.
    pub engine: &'a Engine,
    /// What was seen.
    pub trace: &'a SwitchTrace<'a>,
    /// All frames of the trace.
    pub classified: &'a [Classified],
    /// Those that came by the port: indexes into the trace.
    pub range: (usize, usize),
    /// The epochs, in order.
    pub writes: &'a [EpochWrite],
}

/// A way to split the frames of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// For each write that took effect before the last frame, the frame with which it did: an index into the trace.
    pub begins: Vec<usize>,
    /// What was settled of triggers.
    pub settled: Trail,
    /// What it leaves in the counters: how often each injection hit, and behind them, how often each trigger came on.
    pub hits: Vec<u64>,
    /// Frames that were not seen to be treated as it says.
    pub misfits: u32,
    /// Frames that no fault held, if it is right, and that took as long as if one had. A slow machine explains those, too.
    pub waits: u32,
}

/// What was settled, and in front of which frames, the latest first. Readings share where they come from: there may be thousands
/// of them, and a doubt at each frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trail(Option<Arc<Settled>>);

#[derive(Debug, PartialEq, Eq)]
struct Settled {
    index: usize,
    doubt: Doubt,
    before: Trail,
}

/// The readings of a port that fit what was seen best.
#[derive(Debug, Default)]
pub struct Readings {
    /// Never empty.
    pub best: Vec<Reading>,
    /// So many frames came while an epoch was being written that not all readings could be followed.
    pub is_crowded: bool,
}

/// A port's frames between the sending and the confirmation of each write: either epoch may have met them.
pub fn boundaries(port: PortFrames<'_>) -> Vec<Range<usize>> {
    let PortFrames { trace, range, .. } = port;
    let arrivals = &trace.arrivals;
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for write in port.writes {
        let after = (range.0..range.1)
            .rfind(|i| arrivals[*i].at_ns <= write.confirmed_ns.saturating_add(STAMP_NS));
        let end = after.map_or(range.0, |last| last + 1);
        let oldest = write.sent_ns.saturating_sub(BACKLOG_NS);
        let was_done = |i: &usize| {
            let arrival = &arrivals[*i];
            let has_left = || {
                let exits = port.classified[*i].exits.iter();
                let left = exits
                    .filter_map(|(exit, _)| trace.left(*exit, arrival.identity).first())
                    .min();
                left.is_some_and(|at_ns| *at_ns < write.sent_ns)
            };
            arrival.at_ns < oldest || (trace.is_unique(arrival.identity) && has_left())
        };
        let done = (range.0..end).rfind(was_done);
        let start = done.map_or(range.0, |last| last + 1);
        // Writes are confirmed one after the other.
        let before = ranges.last().cloned().unwrap_or(range.0..range.0);
        ranges.push(start.max(before.start)..end.max(before.end));
    }
    ranges
}

/// All ways to split the frames of a port that fit what was seen best.
pub fn readings(port: PortFrames<'_>, boundaries: &[Range<usize>], injections: usize) -> Readings {
    let mut courses = Courses::new(port.engine.start(), injections, boundaries);
    for index in port.watched() {
        // Which writes must have been done when this frame was processed, and which may have been.
        let done_by = |edge: &dyn Fn(&Range<usize>) -> usize| {
            boundaries.iter().take_while(|r| edge(r) <= index).count()
        };
        let must = done_by(&|range| range.end);
        let may = done_by(&|range| range.start).max(must);
        courses.take(port, index, must, may);
    }
    let (mut best, is_crowded) = courses.best();
    if (2..=MAX_COMPARED).contains(&best.len()) {
        let misfits: Vec<usize> = best
            .iter()
            .map(|reading| {
                let passages = follow(port, reading);
                order::misfits_of_alike(port, &passages) + order::misfits(port, &passages)
            })
            .collect();
        let least = misfits.iter().min().copied();
        let mut misfits = misfits.into_iter();
        best.retain(|_| misfits.next() == least);
    }
    Readings { best, is_crowded }
}

/// What had to be done to each frame that a unit may look at, by its index in the trace, if a reading is right.
pub fn follow(port: PortFrames<'_>, reading: &Reading) -> BTreeMap<usize, Passage> {
    let mut state = port.engine.start();
    let settled = reading.settled.in_order();
    let mut settled = settled.iter().peekable();
    let passages = port.watched().map(|index| {
        let frame = &port.classified[index];
        while let Some((_, doubt)) = settled.next_if(|(at, _)| *at == index) {
            port.engine.settle(&mut state, *doubt, frame);
        }
        let epoch = port.epoch_at(index, &reading.begins);
        (index, port.engine.pass(&mut state, frame, epoch))
    });
    passages.collect()
}

impl PortFrames<'_> {
    /// Indexes of the frames that a unit may look at.
    fn watched(self) -> impl Iterator<Item = usize> {
        (self.range.0..self.range.1).filter(move |index| self.is_watched(*index))
    }

    /// Whether a unit may look at a frame, or a trigger.
    pub fn is_watched(self, index: usize) -> bool {
        !self.engine.ignores(&self.classified[index])
    }

    /// The epoch that a frame met, if a reading is right.
    pub fn epoch_at(&self, index: usize, begins: &[usize]) -> u16 {
        self.epoch(begins.iter().take_while(|begin| **begin <= index).count())
    }

    fn epoch(&self, writes_done: usize) -> u16 {
        writes_done
            .checked_sub(1)
            .map_or(0, |write| self.writes[write].epoch)
    }
}

/// Readings that have led the switch to one state: what comes next is the same for all of them.
#[derive(Debug, Clone)]
struct Course {
    writes_done: usize,
    state: State,
    /// By their hits, which alone a counter can tell apart: of several with the same hits the one that fits best. What stands
    /// here is without [`Course::since`].
    readings: BTreeMap<Vec<u64>, Reading>,
    /// What all of them have in common since they were last gathered.
    since: Reading,
    /// The least misfits of any reading, without `since`.
    least: u32,
}

/// Whether all that is in doubt are triggers of single keys.
#[derive(Debug, Clone, Copy)]
struct OfKey(bool);

/// All courses that a switch may have taken so far.
struct Courses {
    courses: Vec<Course>,
    /// The least misfits of a reading that was given up for want of room.
    given_up: Option<u32>,
    /// How many frames were followed, all courses together.
    followed: u64,
    /// With which frames each write may take effect.
    boundaries: Vec<Range<usize>>,
}

impl Reading {
    fn new(injections: usize) -> Reading {
        Reading {
            begins: Vec::new(),
            settled: Trail::default(),
            hits: vec![0; injections],
            misfits: 0,
            waits: 0,
        }
    }
}

impl Trail {
    fn push(&mut self, index: usize, doubt: Doubt) {
        let before = std::mem::take(self);
        self.0 = Some(Arc::new(Settled {
            index,
            doubt,
            before,
        }));
    }

    fn in_order(&self) -> Vec<(usize, Doubt)> {
        let latest = self.0.as_deref();
        let all = std::iter::successors(latest, |settled| settled.before.0.as_deref());
        let mut all: Vec<_> = all.map(|settled| (settled.index, settled.doubt)).collect();
        all.reverse();
        all
    }
}

/// Goes back step by step: a long trail dropped by itself would need as deep a stack.
impl Drop for Trail {
    fn drop(&mut self) {
        let mut rest = self.0.take();
        while let Some(mut settled) = rest.and_then(Arc::into_inner) {
            rest = settled.before.0.take();
        }
    }
}

impl Course {
    fn misfits(&self) -> u32 {
        self.least + self.since.misfits
    }

    /// Takes a frame through the switch while an epoch is in force.
    fn take(&mut self, port: PortFrames<'_>, index: usize) {
        let PortFrames { engine, trace, .. } = port;
        let epoch = port.epoch(self.writes_done);
        let passage = engine.pass(&mut self.state, &port.classified[index], epoch);
        let arrival = &trace.arrivals[index];
        let leaves_as = judge::leaves_as(engine, trace, arrival, &passage.ingress);
        if judge::is_telling(trace, arrival, leaves_as) {
            if !judge::is_as_expected(trace, arrival, &passage, leaves_as) {
                self.since.misfits += 1;
            } else if judge::took_as_long_as_held(engine, trace, arrival, &passage, leaves_as) {
                self.since.waits += 1;
            }
        }
        for counter in engine.counted(&passage) {
            self.since.hits[counter] += 1;
        }
    }

    /// Hands what all have in common to each.
    fn gather(&mut self) {
        let none = Reading::new(self.since.hits.len());
        let since = std::mem::replace(&mut self.since, none);
        let readings = std::mem::take(&mut self.readings).into_values();
        for mut reading in readings {
            for (hits, more) in reading.hits.iter_mut().zip(&since.hits) {
                *hits += more;
            }
            reading.misfits += since.misfits;
            reading.waits += since.waits;
            self.readings.insert(reading.hits.clone(), reading);
        }
        self.least += since.misfits;
    }

    /// Both gathered.
    fn absorb(&mut self, other: Course) {
        self.least = self.least.min(other.least);
        for (hits, reading) in other.readings {
            let fit = |reading: &Reading| (reading.misfits, reading.waits);
            match self.readings.get_mut(&hits) {
                Some(own) if fit(own) <= fit(&reading) => {}
                Some(own) => *own = reading,
                None => {
                    self.readings.insert(hits, reading);
                }
            }
        }
    }

    /// Keeps the readings that fit best, which are gathered; the least misfits of one that had to go.
    fn trim(&mut self, max: usize) -> Option<u32> {
        if self.readings.len() <= max {
            return None;
        }
        let mut readings: Vec<_> = std::mem::take(&mut self.readings).into_iter().collect();
        readings.sort_by_key(|(_, reading)| (reading.misfits, reading.waits));
        let gone = readings.split_off(max);
        self.readings = readings.into_iter().collect();
        gone.iter().map(|(_, reading)| reading.misfits).min()
    }

    /// The same, with a doubt settled in front of a frame.
    fn settled(&self, port: PortFrames<'_>, index: usize, doubt: Doubt) -> Course {
        let mut course = self.clone();
        let frame = &port.classified[index];
        port.engine.settle(&mut course.state, doubt, frame);
        for reading in course.readings.values_mut() {
            reading.settled.push(index, doubt);
        }
        course
    }

    /// The same, after writes up to `done` took effect with the frame at `index`.
    fn after(&self, done: usize, index: usize) -> Course {
        let mut course = self.clone();
        course.writes_done = done;
        for reading in course.readings.values_mut() {
            reading.begins.resize(done, index);
        }
        course
    }
}

impl Courses {
    fn new(state: State, injections: usize, boundaries: &[Range<usize>]) -> Courses {
        let first = Reading::new(injections);
        Courses {
            courses: vec![Course {
                writes_done: 0,
                state,
                readings: BTreeMap::from([(first.hits.clone(), first)]),
                since: Reading::new(injections),
                least: 0,
            }],
            given_up: None,
            followed: 0,
            boundaries: boundaries.to_vec(),
        }
    }

    /// Behind a frame, the first with which a write may take effect.
    fn next_write(&self, index: usize) -> usize {
        let later = self.boundaries.iter().filter(|range| range.end > index + 1);
        later
            .map(|range| range.start.max(index + 1))
            .min()
            .unwrap_or(usize::MAX)
    }

    /// Takes a frame on every course, after at least `must` and at most `may` writes.
    fn take(&mut self, port: PortFrames<'_>, index: usize, must: usize, may: usize) {
        let is_settled = self.courses.iter().all(|course| course.writes_done == may);
        if !is_settled {
            self.split(index, must, may);
        }
        let doubtful = self.doubt(port, index);
        if self.followed > MAX_FOLLOWED {
            self.follow_one();
        }
        self.followed += self.courses.len() as u64;
        for course in &mut self.courses {
            course.take(port, index);
        }
        let least = self.courses.iter().map(Course::misfits).min().unwrap_or(0);
        let behind = match doubtful {
            None => MAX_MISFITS_BEHIND,
            Some(OfKey(false)) => MAX_DOUBTFUL_BEHIND,
            Some(OfKey(true)) => MAX_KEYED_BEHIND,
        };
        let bar = least + behind.min(most_behind(self.courses.len()));
        self.courses.retain(|course| course.misfits() <= bar);
        if !is_settled || doubtful.is_some() {
            self.merge();
        }
    }

    /// Takes both ways where a trigger may have ended before a frame or behind it, if any may.
    fn doubt(&mut self, port: PortFrames<'_>, index: usize) -> Option<OfKey> {
        let frame = &port.classified[index];
        // What was assumed and did not come is no course that the switch can have taken.
        if self
            .courses
            .iter()
            .any(|course| !port.engine.is_refuted(&course.state, frame))
        {
            self.courses
                .retain(|course| !port.engine.is_refuted(&course.state, frame));
        }
        let doubts_of = |course: &Course| port.engine.doubts(&course.state, frame);
        if self
            .courses
            .iter()
            .all(|course| doubts_of(course).is_empty())
        {
            return None;
        }
        let mut of_key = true;
        let courses = self.courses.len();
        let mut split = Vec::new();
        for mut course in std::mem::take(&mut self.courses) {
            course.gather();
            let doubts = doubts_of(&course);
            let is_of_key = doubts.iter().flatten().all(|doubt| doubt.is_of_key);
            of_key &= is_of_key;
            let mut ways = vec![course];
            for either in &doubts {
                let both = ways
                    .into_iter()
                    .flat_map(|course| either.map(|doubt| course.settled(port, index, doubt)));
                ways = both.collect();
            }
            if is_of_key {
                let done = ways.first().map_or(0, |way| way.writes_done);
                let ahead = Ahead {
                    port,
                    epoch: port.epoch(done),
                    until: self.next_write(index),
                };
                let is_of_time = doubts.iter().flatten().all(Doubt::is_of_time);
                let is_crowded = courses
                    >= if is_of_time {
                        MANY_IN_TIME
                    } else {
                        MANY_COURSES
                    };
                // With as many keys as there may be, what is left open adds up.
                let far = [1, ahead::FAR]
                    .into_iter()
                    .take(1 + usize::from(is_crowded));
                for frames in far {
                    if ways.len() > 1 && self.followed <= MAX_FOLLOWED {
                        let states = ways.iter().map(|way| way.state.clone()).collect();
                        let (likely, followed) = ahead.likely(index, frames, states);
                        self.followed += followed;
                        let mut likely = likely.into_iter();
                        ways.retain(|_| likely.next().unwrap_or(true));
                    }
                }
            }
            split.extend(ways);
        }
        self.courses = split;
        Some(OfKey(of_key))
    }

    /// Gives all courses up but one that fits best.
    fn follow_one(&mut self) {
        self.courses.sort_by_key(Course::misfits);
        let gone = self.courses.split_off(1.min(self.courses.len()));
        let gone = gone.iter().map(Course::misfits).min();
        self.given_up = self.given_up.into_iter().chain(gone).min();
    }

    fn split(&mut self, index: usize, must: usize, may: usize) {
        let mut split = Vec::new();
        for mut course in std::mem::take(&mut self.courses) {
            course.gather();
            let first = course.writes_done.max(must);
            split.extend((first..=may.max(first)).map(|done| course.after(done, index)));
        }
        self.courses = split;
    }

    /// Courses that have come to the same state become one, and what there is no room for is given up.
    fn merge(&mut self) {
        let mut merged: Vec<Course> = Vec::new();
        // Which of those may be alike, by a hash. No order hangs on it.
        let hashes = RandomState::new();
        let mut alike: HashMap<u64, Vec<usize>> = HashMap::new();
        for mut course in std::mem::take(&mut self.courses) {
            course.gather();
            let hash = hashes.hash_one((course.writes_done, &course.state));
            let alike = alike.entry(hash).or_default();
            let same = alike.iter().find(|other| {
                let other = &merged[**other];
                other.writes_done == course.writes_done && other.state == course.state
            });
            match same {
                Some(other) => merged[*other].absorb(course),
                None => {
                    alike.push(merged.len());
                    merged.push(course);
                }
            }
        }
        merged.sort_by_key(Course::misfits);
        let mut room = MAX_READINGS;
        for (rank, mut course) in merged.into_iter().enumerate() {
            let max = if rank < MAX_COURSES { room } else { 0 };
            if let Some(misfits) = course.trim(max) {
                let least = self.given_up.unwrap_or(u32::MAX);
                self.given_up = Some(least.min(misfits));
            }
            room -= course.readings.len();
            if !course.readings.is_empty() {
                self.courses.push(course);
            }
        }
    }

    /// The readings that fit best, and whether one that was given up may have fitted as well.
    fn best(mut self) -> (Vec<Reading>, bool) {
        self.courses.iter_mut().for_each(Course::gather);
        let readings = self.courses.into_iter();
        let mut best: Vec<Reading> = readings
            .flat_map(|course| course.readings.into_values())
            .collect();
        let least = best.iter().map(|reading| reading.misfits).min();
        best.retain(|reading| Some(reading.misfits) == least);
        let is_crowded = self.given_up.is_some_and(|misfits| Some(misfits) <= least);
        (best, is_crowded)
    }
}
