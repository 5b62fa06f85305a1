//! The docket of a switch: counts the replayed frames that are decided, and holds those that wait for a decision.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use scenario::replay::Passage;
use smallvec::smallvec;

use super::Hit;
use super::became::Outcome;
use super::choose::{self, Candidate};
use super::epochs::{Decided, Judged, Stretch};
use super::frame::Identity;
use super::hits::Ordinals;
use super::judge::{self, Share};
use super::odd::{Ground, Odd, count, number_of, plainly};
use super::order::{Lazy, Move, Order};
use super::tally::Tally;
use super::trace::{Arrival, Passed, TOLD_BYTES};

/// A stretch of frames that several readings (choices of epoch and trigger state) explain equally well.
#[derive(Debug)]
struct Tie {
    candidates: Vec<Candidate>,
    /// Counts of the frames in the stretch under each candidate reading of their epochs.
    tallies: Vec<Tally>,
}

/// Maximum number of empty buffers that are kept for later frames.
const MOST_SPARE: usize = 1 << 10;

/// Departure times of the copies of frames, by frame and egress port, in nanoseconds since 1970.
type Dealt = Vec<Vec<Vec<u64>>>;

/// Expected departures of arrived frames, by egress port and by identity (hash) of the departing frame.
type Shares = HashMap<(u32, Identity), Vec<Share>>;

/// Announces, to the counts of flows, the outcome of a frame that a fault changed or that has equal frames.
pub struct Change {
    /// Identity of the frame on arrival.
    pub came: Identity,
    /// Time of arrival, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The frame that had to leave.
    pub outcome: Outcome,
}

/// Counts a switch's decided frames, and holds the undecided ones.
pub struct Docket {
    ordinals: Ordinals,
    /// Frames whose copies may still leave the switch. Key: time of arrival in nanoseconds since 1970, and a serial number.
    open: BTreeMap<(u64, u64), Odd>,
    taken: u64,
    /// Frames whose departures do not match the model, or may belong to an equal frame.
    odd: Vec<Odd>,
    /// Arrivals and departures of decided frames, in order of decision; empty if no fault delays frames.
    moves: VecDeque<Move>,
    ties: Vec<Tie>,
    pub tally: Tally,
    /// Hits of each injection (fault on a flow), and activations of each trigger, by the frames that only one reading explains.
    counts: Vec<u64>,
    /// Announcements of changed and equal frames since the caller last took them.
    pub changes: Vec<Change>,
    /// Empty buffers of decided frames that were kept whole, for the next such frames: the allocator is slow for blocks of that
    /// length.
    pub spare: Vec<Vec<u8>>,
}

impl Docket {
    /// An empty docket for a switch's plan with this number of fault injections and triggers.
    pub fn new(injections: usize, triggers: usize) -> Docket {
        Docket {
            ordinals: Ordinals::default(),
            open: BTreeMap::new(),
            taken: 0,
            odd: Vec::new(),
            moves: VecDeque::new(),
            ties: Vec::new(),
            tally: Tally::new(injections, triggers),
            counts: vec![0; injections + triggers],
            changes: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Time of arrival of the oldest undecided frame, in nanoseconds since 1970; `None` if all are decided.
    pub fn oldest_ns(&self) -> Option<u64> {
        let odd = self.odd.iter().map(|odd| odd.frame.arrival.at_ns);
        odd.chain(self.oldest_open_ns()).min()
    }

    /// Time of arrival of the oldest frame that may still leave the switch, in nanoseconds since 1970; `None` if there is none.
    pub fn oldest_open_ns(&self) -> Option<u64> {
        self.open.first_key_value().map(|((at_ns, _), _)| *at_ns)
    }

    /// Forgets the undecided frames.
    pub fn forget_undecided(&mut self) {
        self.open.clear();
        self.odd.clear();
    }

    /// Forgets the arrivals and departures of decided frames that arrived before `at_ns`.
    pub fn forget_before(&mut self, at_ns: u64) {
        while self
            .moves
            .front()
            .is_some_and(|frame| frame.came_ns < at_ns)
        {
            self.moves.pop_front();
        }
    }

    /// Takes one replayed frame, and decides it unless its departures do not match the model or are ambiguous.
    pub fn take_one(
        &mut self,
        ground: &Ground<'_>,
        passed: &mut Passed,
        arrival: Arrival,
        judged: Judged,
    ) {
        if self.is_plain(ground, passed, &arrival, &judged) {
            let verdict = &judged.passage.ingress;
            for injection in &verdict.met {
                self.tally.observations[*injection].met += 1;
                self.ordinals
                    .count(&ground.engine, &arrival.frame, *injection);
            }
            let mut bytes = arrival.bytes;
            if bytes.len() > TOLD_BYTES && self.spare.len() < MOST_SPARE {
                bytes.clear();
                self.spare.push(bytes);
            }
            return;
        }
        let stretch = Stretch {
            frames: vec![Decided {
                arrival,
                judged: vec![judged],
            }],
            readings: Vec::new(),
            is_crowded: false,
        };
        self.take(ground, passed, stretch);
    }

    /// Whether no fault hit a frame with unique bytes, and it left once, unchanged and without
    /// delay. Most frames are of this kind: they are decided and forgotten here.
    fn is_plain(
        &mut self,
        ground: &Ground<'_>,
        passed: &mut Passed,
        arrival: &Arrival,
        judged: &Judged,
    ) -> bool {
        let Passage {
            ingress,
            exits,
            triggered,
        } = &judged.passage;
        let ([(exit, _)], true) = (&exits[..], ground.has_ingress_alone) else {
            return false;
        };
        let is_untouched = ingress.hits.is_empty()
            && ingress.keyless.is_empty()
            && ingress.conflated.is_empty()
            && triggered.is_empty()
            && !arrival.is_at_boundary;
        if !is_untouched || !ground.is_under_watch(arrival.at_ns) {
            return false;
        }
        let Some(left_ns) = passed.left_once(arrival.identity, *exit) else {
            return false;
        };
        let is_slow = || {
            let mut acts = ground.engine.ingress_acts(ingress);
            acts.any(|act| judge::is_held_for(ingress, arrival.at_ns, left_ns, act.hold_ns()))
        };
        if ground.is_timed && is_slow() {
            return false;
        }
        passed.forget(arrival.identity);
        if ground.is_timed {
            self.moves.push_back(Move {
                index: number_of(arrival),
                came_ns: arrival.at_ns,
                delay_ns: 0,
                left: smallvec![(*exit, left_ns)],
            });
        }
        true
    }

    /// Takes replayed frames: decides those that have left as the model expects, and keeps the others for [`Docket::settle`].
    pub fn take(&mut self, ground: &Ground<'_>, passed: &mut Passed, stretch: Stretch) {
        let Stretch {
            frames,
            readings,
            is_crowded,
        } = stretch;
        if is_crowded {
            let injections = ground
                .plan
                .injections
                .iter()
                .zip(&mut self.tally.observations);
            let here = injections.filter(|(injection, _)| injection.switch == ground.name);
            here.for_each(|(_, seen)| seen.is_crowded = true);
            let planned = ground.plan.switch(ground.name).into_iter();
            for named in planned.flat_map(|switch| &switch.triggers) {
                self.tally.triggers[named.index].is_crowded = true;
            }
        }
        let tie = (readings.len() > 1).then(|| {
            let candidates = readings.iter().map(|reading| Candidate {
                hits: reading.hits.clone(),
                waits: reading.waits,
            });
            let (injections, triggers) = (self.tally.observations.len(), self.tally.triggers.len());
            let mut tallies = vec![Tally::new(injections, triggers); readings.len()];
            for (reading, tally) in tallies.iter_mut().enumerate() {
                for frame in &frames {
                    tally.turn(&frame.judged[reading].passage);
                }
            }
            self.ties.push(Tie {
                candidates: candidates.collect(),
                tallies,
            });
            self.ties.len() - 1
        });
        let mut others = vec![self.ordinals.clone(); readings.len().saturating_sub(1)];
        for frame in &frames {
            for judged in &frame.judged {
                passed.expect(frame.arrival.identity, judged.leaves_as);
            }
        }
        for frame in frames {
            let numbered = std::iter::once(&mut self.ordinals).chain(&mut others);
            let ordinals = numbered.zip(&frame.judged).map(|(ordinals, judged)| {
                ordinals.of(&ground.engine, &judged.passage, &frame.arrival.frame)
            });
            let ordinals = ordinals.collect();
            let odd = Odd {
                frame,
                ordinals,
                tie,
            };
            if odd.frame.judged[0].leaves_as != odd.frame.arrival.identity {
                self.tell_change(&odd.frame);
            }
            let has_left = |left: &Vec<Vec<u64>>| left.iter().all(|times| !times.is_empty());
            match plainly(ground, passed, &odd).filter(|left| !left.is_empty() && has_left(left)) {
                Some(left) => self.look_at(ground, passed, odd, Some(left)),
                None => {
                    self.taken += 1;
                    self.open.insert((odd.frame.arrival.at_ns, self.taken), odd);
                }
            }
        }
    }

    /// Decides each frame that arrived until `until_ns` and left as the model expects; all its copies have left by now.
    pub fn settle(&mut self, ground: &Ground<'_>, passed: &mut Passed, until_ns: u64) {
        while let Some(first) = self.open.first_entry()
            && first.key().0 <= until_ns
        {
            let odd = first.remove();
            let left = plainly(ground, passed, &odd);
            self.look_at(ground, passed, odd, left);
        }
    }

    /// Counts a frame. `left`: departure times of its copies, by egress port; `None` if they do not match the model.
    fn look_at(
        &mut self,
        ground: &Ground<'_>,
        passed: &mut Passed,
        odd: Odd,
        left: Option<Vec<Vec<u64>>>,
    ) {
        if odd.tie.is_none() {
            let passage = &odd.frame.judged[0].passage;
            self.tally.turn(passage);
            for counter in ground.engine.counted(passage) {
                self.counts[counter] += 1;
            }
        }
        // A frame that leaves with other bytes was announced when it was taken.
        let identity = odd.frame.arrival.identity;
        if odd.frame.judged[0].leaves_as == identity && !passed.is_unique(identity) {
            self.tell_change(&odd.frame);
        }
        match left {
            Some(left) => {
                let found = (&odd, &left[..]);
                count(ground, passed, found, 0, &Lazy::default(), &mut self.tally);
                self.is_decided(ground, passed, odd, &left);
            }
            None => self.odd.push(odd),
        }
    }

    /// Announces the expected outcome of a frame whose bytes alone do not show it.
    fn tell_change(&mut self, frame: &Decided) {
        let (arrival, judged) = (&frame.arrival, &frame.judged[0]);
        let passage = &judged.passage;
        let exits = 0..passage.exits.len();
        let copies = exits.map(|exit| passage.leaving(exit)).max().unwrap_or(0);
        let held_ns = (0..copies).map(|copy| passage.ingress.fate.held_ns(copy));
        self.changes.push(Change {
            came: arrival.identity,
            at_ns: arrival.at_ns,
            outcome: Outcome {
                leaves_as: judged.leaves_as,
                held_ns: held_ns.collect(),
            },
        });
    }

    /// Removes a decided frame and its departures from `passed`, and notes its order if faults delay frames.
    fn is_decided(
        &mut self,
        ground: &Ground<'_>,
        passed: &mut Passed,
        odd: Odd,
        left: &[Vec<u64>],
    ) {
        let arrival = &odd.frame.arrival;
        let judged = &odd.frame.judged[0];
        let exits = judged.passage.exits.iter().zip(left);
        let left: Vec<(u32, &[u64])> = exits
            .map(|((port, _), times)| (*port, &times[..]))
            .collect();
        if ground.is_timed && passed.is_unique(arrival.identity) {
            let exits = left.iter();
            let exits = exits.filter_map(|(port, times)| Some((*port, *times.first()?)));
            self.moves.push_back(Move {
                index: number_of(arrival),
                came_ns: arrival.at_ns,
                delay_ns: judged.passage.ingress.fate.held_ns(0),
                left: exits.collect(),
            });
        }
        passed.decide(arrival.identity, judged.leaves_as, &left);
        for other in &odd.frame.judged[1..] {
            passed.decide_other(arrival.identity, other.leaves_as);
        }
    }

    /// Decides the odd frames (not as expected, or ambiguous) that arrived until `until_ns`. All frames before `replayed_ns`,
    /// which is later by a frame's longest stay in the switch, are replayed.
    pub fn decide<'w>(
        &mut self,
        ground: &Ground<'_>,
        passed: &mut Passed,
        waiting: impl Iterator<Item = &'w Arrival> + Clone,
        (until_ns, replayed_ns): (u64, u64),
    ) {
        let open = std::mem::take(&mut self.open);
        let others = self.alike(open.values());
        let arrivals = open.values().map(|odd| &odd.frame.arrival);
        #[expect(
            clippy::map_identity,
            reason = "the references of `waiting` live longer than those of `open`"
        )]
        let waiting = waiting.map(|arrival| arrival).chain(arrivals);
        let claims = (&others, replayed_ns);
        self.decide_among(ground, passed, (waiting, claims), until_ns);
        self.open = open;
    }

    /// Expected departures of frames that may still leave the switch, but only those that have the bytes of an odd frame.
    fn alike<'o>(&self, open: impl Iterator<Item = &'o Odd>) -> Shares {
        let odd = self.odd.iter().flat_map(|odd| &odd.frame.judged);
        let wanted: HashSet<Identity> = odd.map(|judged| judged.leaves_as).collect();
        let mut shares = Shares::new();
        for odd in open.filter(|odd| wanted.contains(&odd.judged(0).leaves_as)) {
            let judged = odd.judged(0);
            let passage = &judged.passage;
            for (exit, (port, _)) in passage.exits.iter().enumerate() {
                let share = Share {
                    came_ns: odd.frame.arrival.at_ns,
                    copies: passage.leaving(exit),
                    fate: passage.ingress.fate,
                };
                let key = (*port, judged.leaves_as);
                shares.entry(key).or_default().push(share);
            }
        }
        shares
    }

    fn decide_among<'w>(
        &mut self,
        ground: &Ground<'_>,
        passed: &mut Passed,
        (waiting, claims): (impl Iterator<Item = &'w Arrival> + Clone, (&Shares, u64)),
        until_ns: u64,
    ) {
        let mut open: BTreeSet<usize> = BTreeSet::new();
        for odd in self
            .odd
            .iter()
            .filter(|odd| odd.frame.arrival.at_ns > until_ns)
        {
            open.extend(odd.tie);
        }
        let is_ready = |odd: &Odd| {
            odd.frame.arrival.at_ns <= until_ns && odd.tie.is_none_or(|tie| !open.contains(&tie))
        };
        let ready: Vec<bool> = self.odd.iter().map(is_ready).collect();
        if !ready.contains(&true) {
            return;
        }
        if let Some(first) = ground.writes.first() {
            let begin_ns = first.sent_ns;
            let mut came: BTreeMap<Identity, u64> = BTreeMap::new();
            for odd in &self.odd {
                let arrival = &odd.frame.arrival;
                let first_ns = came.entry(arrival.identity).or_insert(u64::MAX);
                *first_ns = arrival.at_ns.min(*first_ns);
            }
            for arrival in waiting.clone() {
                if let Some(first_ns) = came.get_mut(&arrival.identity) {
                    *first_ns = arrival.at_ns.min(*first_ns);
                }
            }
            for (identity, came_ns) in came {
                passed.forget_before(identity, begin_ns, came_ns);
            }
        }
        let ties: BTreeSet<usize> = (self.odd.iter().zip(&ready))
            .filter_map(|(odd, ready)| odd.tie.filter(|_| *ready))
            .collect();
        // Tallies of each tie's other readings.
        for tie in ties {
            for reading in 1..self.ties[tie].candidates.len() {
                let of_tie = |odd: &Odd| if odd.tie == Some(tie) { reading } else { 0 };
                let dealt = self.dealt(passed, claims, of_tie);
                let mut tally = std::mem::take(&mut self.ties[tie].tallies[reading]);
                let made = || self.order(passed, &dealt, waiting.clone());
                let order = Lazy::of(&made);
                for (odd, left) in self.odd.iter().zip(&dealt) {
                    if odd.tie == Some(tie) {
                        count(ground, passed, (odd, left), reading, &order, &mut tally);
                    }
                }
                self.ties[tie].tallies[reading] = tally;
            }
        }
        let dealt = self.dealt(passed, claims, |_| 0);
        let mut tally = std::mem::take(&mut self.tally);
        let mut of_ties: Vec<Tally> = (self.ties.iter_mut())
            .map(|tie| std::mem::take(&mut tie.tallies[0]))
            .collect();
        let made = || self.order(passed, &dealt, waiting.clone());
        let order = Lazy::of(&made);
        let mut seen_as = Vec::new();
        for ((odd, left), _) in self
            .odd
            .iter()
            .zip(&dealt)
            .zip(&ready)
            .filter(|(_, ready)| **ready)
        {
            let own = odd.tie.map_or(&mut tally, |tie| &mut of_ties[tie]);
            seen_as.extend(count(ground, passed, (odd, left), 0, &order, own));
        }
        drop(order);
        self.tally = tally;
        for (tie, tally) in self.ties.iter_mut().zip(of_ties) {
            tie.tallies[0] = tally;
        }
        seen_as
            .into_iter()
            .for_each(|identity| passed.account(identity));
        let all = std::mem::take(&mut self.odd);
        for ((odd, left), ready) in all.into_iter().zip(dealt).zip(ready) {
            match ready {
                true => self.is_decided(ground, passed, odd, &left),
                false => self.odd.push(odd),
            }
        }
    }

    /// Departure times of the copies of each odd frame, by egress port, if `reading` gives the right reading of each frame.
    fn dealt(
        &self,
        passed: &Passed,
        (others, replayed_ns): (&Shares, u64),
        reading: impl Fn(&Odd) -> usize,
    ) -> Dealt {
        let mut alike: BTreeMap<(u32, Identity), Vec<(usize, usize)>> = BTreeMap::new();
        let mut dealt: Dealt = Vec::new();
        for (index, odd) in self.odd.iter().enumerate() {
            let judged = odd.judged(reading(odd));
            for (exit, (port, _)) in judged.passage.exits.iter().enumerate() {
                let alike = alike.entry((*port, judged.leaves_as)).or_default();
                alike.push((index, exit));
            }
            dealt.push(vec![Vec::new(); judged.passage.exits.len()]);
        }
        for ((port, identity), frames) in alike {
            let mut shares: Vec<Share> = frames
                .iter()
                .map(|(index, exit)| {
                    let odd = &self.odd[*index];
                    let passage = &odd.judged(reading(odd)).passage;
                    Share {
                        came_ns: odd.frame.arrival.at_ns,
                        copies: passage.leaving(*exit),
                        fate: passage.ingress.fate,
                    }
                })
                .collect();
            let others = others.get(&(port, identity));
            shares.extend(others.into_iter().flatten());
            // A later departure may belong to a frame that was not replayed yet.
            let left = passed.left(port, identity);
            let left = &left[..left.partition_point(|at_ns| *at_ns < replayed_ns)];
            let times = judge::deal(&shares, left);
            for ((index, exit), times) in frames.into_iter().zip(times) {
                dealt[index][exit] = times;
            }
        }
        dealt
    }

    /// Arrivals and departures, in order of arrival, of decided frames, of odd frames, and of frames that wait for replay.
    fn order<'w>(
        &self,
        passed: &Passed,
        dealt: &Dealt,
        waiting: impl Iterator<Item = &'w Arrival>,
    ) -> Order {
        let odd = self.odd.iter().zip(dealt);
        let odd = odd.filter(|(odd, _)| passed.is_unique(odd.frame.arrival.identity));
        let odd = odd.map(|(odd, left)| {
            let passage = &odd.frame.judged[0].passage;
            let exits = passage.exits.iter().zip(left);
            let exits = exits.filter_map(|((port, _), times)| Some((*port, *times.first()?)));
            Move {
                index: number_of(&odd.frame.arrival),
                came_ns: odd.frame.arrival.at_ns,
                delay_ns: passage.ingress.fate.held_ns(0),
                left: exits.collect(),
            }
        });
        let waiting =
            waiting.filter_map(|arrival| Move::of(passed, arrival, number_of(arrival), None));
        Order::of(self.moves.iter().cloned().chain(odd).chain(waiting))
    }

    /// The final counts, after all frames are decided. `counted` has the switches' own counts of injections, followed by those
    /// of triggers; they select one of several readings. `then_hit` gets the hits of the selected readings.
    pub fn conclude(mut self, counted: &[u64], mut then_hit: impl FnMut(Hit)) -> Tally {
        let decided = vec![Candidate {
            hits: std::mem::take(&mut self.counts),
            waits: 0,
        }];
        let candidates = self.ties.iter().map(|tie| tie.candidates.clone());
        let candidates: Vec<_> = std::iter::once(decided).chain(candidates).collect();
        let (chosen, ambiguous) = choose::choose(&candidates, counted);
        for (tie, chosen) in self.ties.into_iter().zip(&chosen[1..]) {
            let mut tallies = tie.tallies.into_iter();
            let mut tally = tallies.nth(*chosen).unwrap_or_default();
            tally.hits.drain(..).for_each(&mut then_hit);
            self.tally.add(tally);
        }
        let injections = self.tally.observations.len();
        for counter in ambiguous {
            match counter.checked_sub(injections) {
                None => self.tally.observations[counter].is_ambiguous = true,
                Some(trigger) => self.tally.triggers[trigger].is_ambiguous = true,
            }
        }
        self.tally
    }

    /// Removes and returns the hits found since the previous call.
    pub fn take_hits(&mut self) -> Vec<Hit> {
        std::mem::take(&mut self.tally.hits)
    }
}
