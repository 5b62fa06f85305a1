//! Finds the epoch (step of the timeline) that applied to each frame.
//!
//! A switch takes the frames of a port in order, so a write of an epoch splits them in two. The captures narrow the position of
//! the split down to a few frames: those that arrived before the write was confirmed, and after the last frame known to have
//! been processed before the write was sent. Each position in between is tried ([`super::courses`]). Between two writes there
//! is one reading, and a frame is decided once all evidence about it is in.

use std::collections::{BTreeMap, HashMap, VecDeque};

use scenario::replay::{Classified, Engine, Passage, Triggered, Verdict};

use super::STAMP_NS;
use super::courses::{Courses, Reading};
use super::facts::EpochWrite;
use super::frame::Identity;
use super::judge::Scene;
use super::order;
use super::port::{Boundary, PortFrames};
use super::trace::{Arrival, Queue};

/// Maximum time, in nanoseconds, for which an arrived frame waits in front of its switch. A longer standstill fails the run.
pub const BACKLOG_NS: u64 = 1_000_000_000;
/// Delay, in nanoseconds, from a frame's departure to its replay: a second copy or an equal frame may appear in this time.
pub const AFTER_LEAVING_NS: u64 = 100_000_000;
/// Maximum number of recent arrivals searched for a frame that has left the switch.
const MOST_LOOKED_AT: usize = 256;
/// Maximum number of equally good readings that are compared by equal frames and by the order of departures.
const MAX_COMPARED: usize = 64;
/// Maximum number of later frames that the model replays to compare readings of undecided frames.
const MAX_LATER: usize = 4096;

/// The fate of a frame that the model expects under one reading of the frames' epochs.
#[derive(Debug)]
pub struct Judged {
    /// The frame's passage through the model: the faults that looked at it and hit it.
    pub passage: Passage,
    /// The epoch (step of the timeline) in force for the frame.
    pub epoch: u16,
    /// Identity (hash) with which the frame has to leave the switch.
    pub leaves_as: Identity,
}

/// A frame that the judge has replayed through the model.
#[derive(Debug)]
pub struct Decided {
    /// The captured arrival of the frame.
    pub arrival: Arrival,
    /// Expected fate of the frame: one, or one for each reading of the frames' epochs if several fit equally well.
    pub judged: Vec<Judged>,
}

/// Result of a call of [`Group::replay`].
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "almost all are the large one, and a box would be allocated for each"
)]
pub enum Replayed {
    /// One frame whose epoch and triggers are not in doubt, with its expected fate.
    One(Arrival, Judged),
    /// Several frames, some of which had a doubtful epoch or trigger.
    Stretch(Stretch),
}

/// Consecutive frames whose epochs and triggers one reading explains best, or several readings equally well.
#[derive(Debug)]
pub struct Stretch {
    /// The frames in order of arrival.
    pub frames: Vec<Decided>,
    /// The equally good readings of the frames' epochs, with their counters; empty if one reading is best.
    pub readings: Vec<Reading>,
    /// Whether too many frames or choices of epochs were open to follow all of them.
    pub is_crowded: bool,
}

/// Selects the frames that may be replayed: everything that can affect them is known.
#[derive(Debug, Clone, Copy)]
pub struct ReplayLimit {
    /// Every frame that arrived until this time, in nanoseconds since 1970, may be replayed.
    pub until_ns: u64,
    /// A frame with a lower number than this may also be replayed if it arrived until `taken_until_ns`.
    pub taken: usize,
    /// Latest time of arrival, in nanoseconds since 1970, of the frames that `taken` allows.
    pub taken_until_ns: u64,
}

impl ReplayLimit {
    /// Whether a frame with this number and this time of arrival may be replayed.
    fn allows(self, number: usize, from_ns: u64) -> bool {
        from_ns <= self.until_ns || (number < self.taken && from_ns <= self.taken_until_ns)
    }
}

/// Frames that are replayed in one sequence: those of one port, or all frames of a switch by timestamp.
#[derive(Debug)]
pub struct Group {
    /// Arrived frames that are not decided yet.
    pub queue: Queue,
    /// Number of the first frame that may not be replayed yet, because not all that affects it is known.
    pub known: usize,
    /// Number of the next frame to replay.
    next: usize,
    courses: Courses,
    boundaries: VecDeque<Boundary>,
    /// Number of epoch writes in effect for every frame that is not replayed yet.
    over: usize,
    /// For each fault unit (table) and register cell: numbers of the last frames that may be held until others have passed.
    waiting: HashMap<(usize, usize), VecDeque<usize>>,
}

impl Group {
    /// A group without frames; `counters` is the number of injections and triggers.
    pub fn new(engine: &Engine, counters: usize) -> Group {
        Group {
            queue: Queue::default(),
            known: 0,
            next: 0,
            courses: Courses::new(engine.start(), counters),
            boundaries: VecDeque::new(),
            over: 0,
            waiting: HashMap::new(),
        }
    }

    /// Time of arrival of the oldest undecided frame, in nanoseconds since 1970; `None` if there is none.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.queue.iter().next().map(|arrival| arrival.from_ns)
    }

    /// Notes when frame `number` arrived, for an earlier frame that a fault holds until so many frames have passed.
    pub fn tell_passed(&mut self, engine: &Engine, number: usize) {
        let arrival = &self.queue[number];
        let at_ns = arrival.at_ns;
        let met: Vec<_> = engine.waits(&arrival.frame).collect();
        for (unit, cell, distance) in met {
            let waiting = self.waiting.entry((unit, cell)).or_default();
            waiting.push_back(number);
            if waiting.len() > distance as usize
                && let Some(first) = waiting.pop_front()
                && let Some(arrival) = self.queue.get_mut(first)
            {
                arrival.passed_ns(engine)[unit] = at_ns;
            }
        }
    }

    /// Finds, for each new epoch write, the frames to which the old or the new epoch may apply. All
    /// frames that arrived until the confirmation of these writes are in.
    pub fn bound(&mut self, scene: Scene<'_>, writes: &[EpochWrite]) {
        let known = self.over + self.boundaries.len();
        for write in writes.get(known..).unwrap_or_default() {
            let until_ns = write.confirmed_ns.saturating_add(STAMP_NS);
            let first = self.queue.first();
            let after = (self.queue.iter()).rposition(|arrival| arrival.at_ns <= until_ns);
            let end = after.map_or(first, |last| first + last + 1);
            let oldest = write.sent_ns.saturating_sub(BACKLOG_NS);
            let was_done = |number: &usize| {
                let arrival = &self.queue[*number];
                arrival.at_ns < oldest || has_left(scene, arrival, write.sent_ns)
            };
            let done = (first..end).rfind(was_done);
            let start = done.map_or(first, |last| last + 1).max(self.next);
            // Writes are confirmed one after the other.
            let before = self.boundaries.back().map(|before| before.range.clone());
            let before = before.unwrap_or(self.next..self.next);
            self.boundaries.push_back(Boundary {
                range: start.max(before.start)..end.max(before.end).max(start),
                sent_ns: write.sent_ns,
            });
        }
    }

    /// Number after that of the last frame, among those that arrived until `until_ns`, that the switch is known to have taken.
    /// The switch takes the frames of a port in order, so a frame that left shows that all before it were taken.
    pub fn taken(&self, scene: Scene<'_>, until_ns: u64) -> usize {
        let end = self.queue.behind_time(until_ns);
        let lately = (self.next..end).rev().take(MOST_LOOKED_AT);
        let mut left = lately.filter(|number| has_left(scene, &self.queue[*number], u64::MAX));
        left.next().map_or(self.next, |last| last + 1)
    }

    /// Number of the next frame whose departure is not noted yet; `None` if the limit does not allow its replay.
    pub fn next_unknown(&self, limit: ReplayLimit) -> Option<usize> {
        let number = self.known;
        (number < self.queue.end() && limit.allows(number, self.queue[number].from_ns))
            .then_some(number)
    }

    /// Replays frames of the group until one frame or a stretch of frames is decided; `None` if the limit allows no more.
    pub fn replay(
        &mut self,
        scene: Scene<'_>,
        writes: &[EpochWrite],
        limit: ReplayLimit,
    ) -> Option<Replayed> {
        while self.next < self.known && limit.allows(self.next, self.queue[self.next].from_ns) {
            let number = self.next;
            self.next += 1;
            let is_over = |boundary: &Boundary| boundary.range.end <= number;
            while self.boundaries.front().is_some_and(is_over) {
                self.boundaries.pop_front();
                self.over += 1;
            }
            let begun = self.boundaries.iter();
            let begun = begun.take_while(|boundary| boundary.range.start <= number);
            let (must, may) = (self.over, self.over + begun.count());
            let port = PortFrames {
                scene,
                queue: &self.queue,
                known: self.known,
                writes,
                boundaries: &self.boundaries,
            };
            let is_watched = port.is_watched(number);
            let frame = &self.queue[number].frame;
            let passage = match is_watched {
                true => (self.courses.clear(port, number, (must, may)))
                    .map(|state| scene.engine.pass(state, frame, port.epoch(must))),
                // The epoch makes no difference to an unwatched frame.
                false => (!self.courses.have_parted()).then(|| untouched(frame)),
            };
            if let Some(passage) = passage {
                let epoch = port.epoch(must);
                let arrival = self.queue.pop()?;
                let judged = Judged {
                    leaves_as: scene.leaves_as(&arrival, &passage.ingress),
                    passage,
                    epoch,
                };
                return Some(Replayed::One(arrival, judged));
            }
            let arrival_ns = self.queue[number].at_ns.saturating_add(STAMP_NS);
            let mut begun = self.boundaries.iter();
            let is_at_boundary =
                begun.any(|at| at.range.contains(&number) && arrival_ns >= at.sent_ns);
            if is_watched {
                self.courses.take(port, number, must, may);
            }
            if let Some(arrival) = self.queue.get_mut(number) {
                arrival.is_at_boundary = is_at_boundary;
            }
            if must == may && self.courses.have_met(may) {
                return Some(Replayed::Stretch(self.close(scene, writes)));
            }
        }
        None
    }

    /// Decides the open frames, when all readings have reached one switch state or the run has ended.
    pub fn close(&mut self, scene: Scene<'_>, writes: &[EpochWrite]) -> Stretch {
        let (mut best, is_crowded) = self.courses.best();
        let port = PortFrames {
            scene,
            queue: &self.queue,
            known: self.known,
            writes,
            boundaries: &self.boundaries,
        };
        let mut passages: Vec<BTreeMap<usize, Passage>> = best
            .iter()
            .map(|reading| self.follow(port, reading))
            .collect();
        if (2..=MAX_COMPARED).contains(&best.len()) {
            let later = self.later(port);
            let misfits = passages.iter().map(|passages| {
                order::misfits_of_alike(port, passages, &later) + order::misfits(port, passages)
            });
            let misfits: Vec<usize> = misfits.collect();
            let least = misfits.iter().min().copied();
            let fits = |of: &mut dyn Iterator<Item = &usize>| of.next().copied() == least;
            let (mut a, mut b) = (misfits.iter(), misfits.iter());
            best.retain(|_| fits(&mut a));
            passages.retain(|_| fits(&mut b));
        }
        let numbers = self.queue.first()..self.next;
        let judged = numbers.map(|number| {
            let arrival = &self.queue[number];
            let readings = best.iter().zip(&mut passages);
            let judged = readings.map(|(reading, passages)| {
                let passage = passages.remove(&number);
                let passage = passage.unwrap_or_else(|| untouched(&arrival.frame));
                Judged {
                    leaves_as: scene.leaves_as(arrival, &passage.ingress),
                    epoch: port.epoch(self.courses.writes_done(&reading.begins, number)),
                    passage,
                }
            });
            judged.collect()
        });
        let judged: Vec<Vec<Judged>> = judged.collect();
        let mut frames = Vec::new();
        for judged in judged {
            frames.extend(self.queue.pop().map(|arrival| Decided { arrival, judged }));
        }
        self.courses.begin_anew();
        Stretch {
            frames,
            readings: best,
            is_crowded,
        }
    }

    /// The model's treatment of each frame after the open ones, by frame number; empty if the readings lead to several states.
    /// Such frames may leave with the bytes of open ones.
    fn later(&self, port: PortFrames<'_>) -> BTreeMap<usize, Passage> {
        let mut later = BTreeMap::new();
        let Some((state, mut done)) = self.courses.only() else {
            return later;
        };
        let mut state = state.clone();
        let engine = port.scene.engine;
        for number in (self.next..port.known).take(MAX_LATER) {
            let boundaries = port.boundaries.iter();
            let begun = boundaries.filter(|boundary| boundary.range.start <= number);
            done = done.max(self.over + begun.count());
            let frame = &port.queue[number].frame;
            let passage = match port.is_watched(number) {
                true => engine.pass(&mut state, frame, port.epoch(done)),
                false => untouched(frame),
            };
            later.insert(number, passage);
        }
        later
    }

    /// The model's treatment of each open frame under a reading, by frame number; without frames that no fault looks at.
    fn follow(&self, port: PortFrames<'_>, reading: &Reading) -> BTreeMap<usize, Passage> {
        let (first, mut state) = self.courses.start();
        let engine = port.scene.engine;
        let settled = reading.settled.in_order();
        let mut settled = settled.iter().peekable();
        let numbers = first..self.next;
        let passages = numbers
            .filter(|number| port.is_watched(*number))
            .map(|number| {
                let frame = &port.queue[number].frame;
                while let Some((_, doubt)) = settled.next_if(|(at, _)| *at == number) {
                    engine.settle(&mut state, *doubt, frame);
                }
                let done = self.courses.writes_done(&reading.begins, number);
                (number, engine.pass(&mut state, frame, port.epoch(done)))
            });
        passages.collect()
    }
}

/// Whether a frame left the switch before `before_ns`; `false` if it has equal frames that are undecided.
fn has_left(scene: Scene<'_>, arrival: &Arrival, before_ns: u64) -> bool {
    let passed = scene.passed;
    let exits = arrival.frame.exits.iter();
    let mut left = exits.filter_map(|(exit, _)| passed.left(*exit, arrival.identity).first());
    passed.is_unique(arrival.identity) && left.any(|at_ns| *at_ns < before_ns)
}

/// The model's treatment of a frame that no fault looks at: the switch forwards it unchanged.
fn untouched(frame: &Classified) -> Passage {
    Passage {
        ingress: Verdict::untouched(),
        exits: frame.untouched.clone(),
        triggered: Triggered::default(),
    }
}
