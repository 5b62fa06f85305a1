//! Follows a switch while several readings of its frames are open (which epoch and trigger state applied to each frame).
//!
//! Readings that have led the switch to the same state share one [`Course`], because they agree on all that follows. The
//! observed departures select the right reading: an epoch that begins one frame off shifts the ordinals of all later frames.
//! Equal frames give no evidence one by one, only once all readings have reached the same state.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use scenario::replay::{Doubt, State};

use super::ahead::{self, Ahead};
use super::port::PortFrames;

/// Maximum number of switch states, and of readings (choices of each frame's epoch) that lead to them, followed at once. Beyond
/// it, the worst fits are given up, and the result says so if one of them may have been right.
const MAX_COURSES: usize = 2048;
const MAX_READINGS: usize = 8192;
/// Maximum number of frames followed over all courses (possible states of the switch); beyond it, only the best is followed.
const MAX_FOLLOWED: u64 = 4_000_000;
/// A reading is given up if it has over this many more misfits (unexplained frames) than the best reading.
const MAX_MISFITS_BEHIND: u32 = 16;
/// Like [`MAX_MISFITS_BEHIND`], but for doubts about triggers: each frame at which a trigger changed is evidence by itself.
const MAX_DOUBTFUL_BEHIND: u32 = 6;
/// Maximum number of misfits (unexplained frames) above the best reading, by number of courses. Random fault decisions refute a
/// wrong course within a few frames. If the next epoch begins before that, the courses would multiply.
fn most_behind(courses: usize) -> u32 {
    match courses {
        0..64 => MAX_MISFITS_BEHIND,
        64..256 => MAX_DOUBTFUL_BEHIND,
        _ => MAX_KEYED_BEHIND,
    }
}
/// Like [`MAX_MISFITS_BEHIND`], but for triggers with a state per key: a wrong guess shows in two frames of its key.
const MAX_KEYED_BEHIND: u32 = 2;
/// From this number of courses (possible switch states) on, a doubt about a trigger with a state per key is decided by the next
/// frames, instead of followed. The lower number applies if only the end of a trigger's time is in doubt.
const MANY_COURSES: usize = 16;
const MANY_IN_TIME: usize = 4;
/// Maximum number of undecided frames while several switch states are followed; beyond it, only the best state is followed.
const MAX_OPEN: usize = 1 << 17;

/// A reading of a port's frames: with which frame each epoch began, and how doubts about triggers were settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// First frame number under the new epoch (step of the timeline), for each epoch write since the readings began to differ.
    pub begins: Vec<usize>,
    /// How this reading settles doubts about triggers: whether each was on at frames that do not show it.
    pub settled: Trail,
    /// Number of hits of each injection (fault on a flow), then of activations of each trigger, under this reading.
    pub hits: Vec<u64>,
    /// Number of frames that did not leave as expected under this reading (choice of each frame's epoch and trigger states).
    pub misfits: u32,
    /// Number of frames that stayed as long as held frames, though no fault had to hold them: the machine may be slow.
    pub waits: u32,
}

/// Settled doubts about triggers, the latest first, each with the number of the frame before which it was settled. Readings
/// share their common past: there may be thousands of readings, and a doubt at each frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trail(Option<Arc<Settled>>);

#[derive(Debug, PartialEq, Eq)]
struct Settled {
    index: usize,
    doubt: Doubt,
    before: Trail,
}

/// Readings of the frames that have led the switch to the same state, and therefore agree on all that follows.
#[derive(Debug, Clone)]
struct Course {
    writes_done: usize,
    state: State,
    /// Best-fitting reading of the frames for each combination of hit counts. The values here exclude [`Course::since`].
    readings: BTreeMap<Vec<u64>, Reading>,
    /// Common part of all readings of the course, since [`Course::gather`] last added it to them.
    since: Reading,
    /// Smallest number of misfits (unexplained frames) of any reading of the course, without `since`.
    least: u32,
}

/// Whether all triggers of uncertain state are triggers with a state per key (such as a connection).
#[derive(Debug, Clone, Copy)]
struct OfKey(bool);

/// All courses (sequences of states) that a switch may have taken since the last frame at which only one was possible.
#[derive(Debug)]
pub struct Courses {
    /// Number of the frame at which the readings began to differ, the switch's state before it, and
    /// the number of epoch writes in effect then; `None` while there is one reading.
    parted: Option<(usize, State, usize)>,
    courses: Vec<Course>,
    /// Smallest number of unexplained frames of a reading that was given up for lack of capacity; `None` if none was given up.
    given_up: Option<u32>,
    /// Number of frames followed since several switch states are possible, summed over these states.
    followed: u64,
    /// Number of frames taken since several switch states are possible.
    taken: usize,
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

    pub fn in_order(&self) -> Vec<(usize, Doubt)> {
        let latest = self.0.as_deref();
        let all = std::iter::successors(latest, |settled| settled.before.0.as_deref());
        let mut all: Vec<_> = all.map(|settled| (settled.index, settled.doubt)).collect();
        all.reverse();
        all
    }
}

/// Drops the trail iteratively: recursion over a long trail would overflow the stack.
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

    /// Replays a frame through the model under the epoch in force on this course.
    fn take(&mut self, port: PortFrames<'_>, number: usize) {
        let scene = port.scene;
        let arrival = &port.queue[number];
        let epoch = port.epoch(self.writes_done);
        let passage = scene.engine.pass(&mut self.state, &arrival.frame, epoch);
        let leaves_as = scene.leaves_as(arrival, &passage.ingress);
        if scene.is_telling(arrival, leaves_as) {
            if !scene.is_as_expected(arrival, &passage, leaves_as) {
                self.since.misfits += 1;
            } else if scene.took_as_long_as_held(arrival, &passage, leaves_as) {
                self.since.waits += 1;
            }
        }
        for counter in scene.engine.counted(&passage) {
            self.since.hits[counter] += 1;
        }
    }

    /// Adds the common part `since` to each reading of the frames on this course, and clears it.
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

    /// Merges into this course another course with the same state; `gather` must have been called on both.
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

    /// Keeps the `max` best readings. Returns the fewest unexplained frames of a removed reading; `None` if none was removed.
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

    /// A copy of the course in which a doubt about a trigger is settled before the frame at `index`.
    fn settled(&self, port: PortFrames<'_>, index: usize, doubt: Doubt) -> Course {
        let mut course = self.clone();
        let frame = &port.queue[index].frame;
        port.scene.engine.settle(&mut course.state, doubt, frame);
        for reading in course.readings.values_mut() {
            reading.settled.push(index, doubt);
        }
        course
    }

    /// A copy of the course in which the epoch writes up to number `done` take effect with the frame at `index`.
    fn after(&self, done: usize, index: usize) -> Course {
        let mut course = self.clone();
        let more = done - course.writes_done;
        course.writes_done = done;
        for reading in course.readings.values_mut() {
            let begun = reading.begins.len();
            reading.begins.resize(begun + more, index);
        }
        course
    }
}

impl Courses {
    /// A single course that starts in `state`, before the first frame; `counters` is the number of injections and triggers.
    pub fn new(state: State, counters: usize) -> Courses {
        let first = Reading::new(counters);
        Courses {
            courses: vec![Course {
                writes_done: 0,
                state,
                readings: BTreeMap::from([(first.hits.clone(), first)]),
                since: Reading::new(counters),
                least: 0,
            }],
            parted: None,
            given_up: None,
            followed: 0,
            taken: 0,
        }
    }

    /// State of the switch, if there is one reading and frame `number` leaves no doubt, with at
    /// least `must` and at most `may` epoch writes in effect; otherwise `None`.
    pub fn clear(
        &mut self,
        port: PortFrames<'_>,
        number: usize,
        (must, may): (usize, usize),
    ) -> Option<&mut State> {
        let ([course], None) = (&mut self.courses[..], &self.parted) else {
            return None;
        };
        let (engine, frame) = (port.scene.engine, &port.queue[number].frame);
        let is_clear = must == may
            && !engine.is_refuted(&course.state, frame)
            && engine.doubts(&course.state, frame).is_empty();
        course.writes_done = must;
        is_clear.then_some(&mut course.state)
    }

    /// The switch's state and the number of epoch writes in effect; `None` if readings of the frames lead to several states.
    pub fn only(&self) -> Option<(&State, usize)> {
        match &self.courses[..] {
            [course] => Some((&course.state, course.writes_done)),
            _ => None,
        }
    }

    /// Whether several readings of the frames (choices of their epochs and trigger states) are open since the last decision.
    pub fn have_parted(&self) -> bool {
        self.parted.is_some()
    }

    /// Whether all readings have reached one state of the switch, with `writes` epoch writes in effect.
    pub fn have_met(&self, writes: usize) -> bool {
        matches!(&self.courses[..], [course] if course.writes_done == writes)
    }

    /// Number of the frame at which the readings began to differ (`usize::MAX`: nowhere), and the switch's state before it.
    pub fn start(&self) -> (usize, State) {
        match &self.parted {
            Some((first, state, _)) => (*first, state.clone()),
            None => (usize::MAX, self.courses[0].state.clone()),
        }
    }

    /// Number of epoch writes in effect for frame `number` under a reading in which epochs begin at the frames `begins`.
    pub fn writes_done(&self, begins: &[usize], number: usize) -> usize {
        let before = self.parted.as_ref().map_or(0, |parted| parted.2);
        before + begins.iter().take_while(|begin| **begin <= number).count()
    }

    /// Restarts with one course (state of the switch), after the caller has decided the undecided frames.
    pub fn begin_anew(&mut self) {
        self.courses.truncate(1);
        for course in &mut self.courses {
            let first = Reading::new(course.since.hits.len());
            course.readings = BTreeMap::from([(first.hits.clone(), first)]);
            course.least = 0;
        }
        self.parted = None;
        self.given_up = None;
        (self.followed, self.taken) = (0, 0);
    }

    /// Replays a frame on every course, with at least `must` and at most `may` epoch writes in effect.
    pub fn take(&mut self, port: PortFrames<'_>, index: usize, must: usize, may: usize) {
        if let ([course], None) = (&self.courses[..], &self.parted) {
            self.parted = Some((index, course.state.clone(), course.writes_done));
        }
        let is_settled = self.courses.iter().all(|course| course.writes_done == may);
        if !is_settled {
            self.split(index, must, may);
        }
        let doubtful = self.doubt(port, index);
        self.taken += 1;
        if self.followed > MAX_FOLLOWED || self.taken > MAX_OPEN {
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

    /// Splits each course in which a trigger may have ended either before or after a frame. `None`: no trigger is in doubt.
    fn doubt(&mut self, port: PortFrames<'_>, index: usize) -> Option<OfKey> {
        let frame = &port.queue[index].frame;
        // The frame refutes an assumption of these courses, so the switch cannot have taken them.
        if self
            .courses
            .iter()
            .any(|course| !port.scene.engine.is_refuted(&course.state, frame))
        {
            self.courses
                .retain(|course| !port.scene.engine.is_refuted(&course.state, frame));
        }
        let doubts_of = |course: &Course| port.scene.engine.doubts(&course.state, frame);
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
                    until: port.next_write(index),
                };
                let is_of_time = doubts.iter().flatten().all(Doubt::is_of_time);
                let is_crowded = courses
                    >= if is_of_time {
                        MANY_IN_TIME
                    } else {
                        MANY_COURSES
                    };
                // With many keys, doubts that stay open add up.
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

    /// Gives up all courses (possible states of the switch) except one of the best.
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

    /// Merges courses that have reached the same switch state, and gives up the worst courses beyond the limits.
    fn merge(&mut self) {
        let mut merged: Vec<Course> = Vec::new();
        // Candidates for equality, by hash. The result does not depend on the hash's order.
        let hashes = FixedState::default();
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

    /// The readings that fit the captures best, and whether a reading that was given up may have fitted as well.
    pub fn best(&mut self) -> (Vec<Reading>, bool) {
        self.courses.iter_mut().for_each(Course::gather);
        let readings = self.courses.iter();
        let mut best: Vec<Reading> = readings
            .flat_map(|course| course.readings.values().cloned())
            .collect();
        let least = best.iter().map(|reading| reading.misfits).min();
        best.retain(|reading| Some(reading.misfits) == least);
        let is_crowded = self.given_up.is_some_and(|misfits| Some(misfits) <= least);
        (best, is_crowded)
    }
}
