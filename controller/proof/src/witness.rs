//! What is seen of one faulting switch, held against its model while it passes.
//!
//! A frame is replayed a horizon after it came: by then all that may leave of it has left. Mostly it is decided by that. What
//! is odd of it (it has its like, it left otherwise than it had to, two readings are open) waits for a second horizon, until
//! it is known what its neighbours met.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use parser_gen::psn::Packet;
use parser_gen::{Headers, Library};
use scenario::model::{Direction, Scenario};
use scenario::plan::{Plan, PortLatency, port_latencies, triggers_join_ports};
use scenario::replay::{Engine, Passage};
use scenario::selection::Selection;
use scenario::telling::{Telling, Told};

use super::became::Outcome;
use super::choose::{self, Candidate};
use super::epochs::{BACKLOG_NS, Decided, Group, Judged, Replayed, Stretch};
use super::facts::EpochWrite;
use super::frame::{Digest, Identity, Sight, Way};
use super::hits::{self, Found, Ordinals};
use super::judge::{self, Errors, Scene, Share};
use super::order::{Move, Order};
use super::recovery::may_be_roce;
use super::tally::{self, Left, Tally};
use super::trace::{Arrival, Passed};
use super::{Hit, STAMP_NS};

/// Several readings that explain a stretch equally well.
#[derive(Debug)]
struct Tie {
    candidates: Vec<Candidate>,
    /// What each of them says of the stretch.
    tallies: Vec<Tally>,
}

/// A frame that is replayed and not decided.
#[derive(Debug)]
struct Odd {
    frame: Decided,
    /// By reading, its number at each injection.
    ordinals: Vec<Vec<(usize, u64)>>,
    /// In which of [`Witness::ties`] it is.
    tie: Option<usize>,
}

impl Odd {
    /// What had to become of it by a reading of its tie.
    fn judged(&self, reading: usize) -> &Judged {
        self.frame
            .judged
            .get(reading)
            .unwrap_or(&self.frame.judged[0])
    }
}

/// When copies of frames left, for each frame and exit.
type Dealt = Vec<Vec<Vec<u64>>>;

/// What a fault made of a frame.
pub struct Change {
    /// Which frame.
    pub came: Identity,
    /// When it came.
    pub at_ns: u64,
    /// As what it had to leave.
    pub outcome: Outcome,
}

/// A faulting switch: its model, and what was seen of it.
pub struct Witness<'a> {
    name: &'a str,
    plan: &'a Plan,
    library: &'a Library,
    digest: Digest,
    engine: Engine,
    latencies: Vec<PortLatency>,
    /// After so long all that may leave of a frame has left.
    horizon_ns: u64,
    /// No fault looks at frames in egress.
    has_ingress_alone: bool,
    /// Some fault lets frames wait: then the order in which they left says something.
    is_timed: bool,
    passed: Passed,
    groups: Vec<Group>,
    /// The group of each port, and how many frames came by it.
    ports: BTreeMap<u32, (usize, u64)>,
    writes: Vec<EpochWrite>,
    told: Told,
    /// Injections of faults that ask for that.
    places: Vec<usize>,
    /// Some fault takes packets: it is told how RDMA connections come back from that.
    takes: bool,
    ordinals: Ordinals,
    odd: Vec<Odd>,
    /// When those were looked at last.
    looked_ns: u64,
    swept_ns: u64,
    /// Frames that are decided, where [`Witness::is_timed`].
    moves: VecDeque<Move>,
    ties: Vec<Tie>,
    tally: Tally,
    /// How many of its hits were asked for.
    told_hits: usize,
    /// What the model counted, of frames that one reading explains.
    counts: Vec<u64>,
    /// What faults made of frames since it was asked.
    pub changes: Vec<Change>,
}

impl<'a> Witness<'a> {
    /// Of a switch that the plan names; `ports` are those that are recorded.
    pub fn new(
        scenario: &'a Scenario,
        plan: &'a Plan,
        name: &'a str,
        ports: impl Iterator<Item = u32>,
        (digest, shares_stamps): (Digest, bool),
    ) -> Option<Witness<'a>> {
        let latencies = port_latencies(&scenario.topology, name);
        let engine = Engine::new(scenario, plan, name)?;
        // Ports that hold frames for the latency of their links give them another time.
        let engine = match shares_stamps && latencies.is_empty() {
            true => engine.with_shared_clock(),
            false => engine,
        };
        let counters = plan.injections.len() + scenario.triggers.len();
        let is_joined = triggers_join_ports(scenario, plan, name);
        let ports: BTreeSet<u32> = ports.collect();
        let ports: BTreeMap<u32, (usize, u64)> = ports
            .into_iter()
            .enumerate()
            .map(|(group, port)| (port, (if is_joined { 0 } else { group }, 0)))
            .collect();
        let groups = ports
            .values()
            .map(|(group, _)| group + 1)
            .max()
            .unwrap_or(0);
        let held = scenario
            .faults
            .iter()
            .map(|fault| fault.effect.longest_stay_ns());
        let held = held.fold(BACKLOG_NS, u64::saturating_add);
        let latest = latencies
            .iter()
            .map(|latency| latency.in_ns.max(latency.out_ns))
            .max();
        let places = plan.injections.iter().enumerate().filter(|(_, injection)| {
            let mut faults = scenario.faults.iter();
            let fault = faults.find(|fault| fault.id == injection.fault);
            injection.switch == name
                && fault.is_some_and(|fault| matches!(fault.selection, Selection::Psn(_)))
        });
        Some(Witness {
            name,
            plan,
            library: &scenario.protocols,
            digest,
            horizon_ns: held.saturating_add(latest.unwrap_or(0)),
            is_timed: engine.is_timed(),
            has_ingress_alone: plan.switch(name)?.faulting() == [Direction::Ingress],
            passed: Passed::default(),
            groups: (0..groups).map(|_| Group::new(&engine, counters)).collect(),
            ports,
            latencies,
            writes: Vec::new(),
            told: Told::default(),
            places: places.map(|(index, _)| index).collect(),
            takes: scenario.faults.iter().any(|fault| fault.effect.takes()),
            ordinals: Ordinals::default(),
            odd: Vec::new(),
            looked_ns: 0,
            swept_ns: 0,
            moves: VecDeque::new(),
            ties: Vec::new(),
            tally: Tally::new(plan.injections.len(), scenario.triggers.len()),
            told_hits: 0,
            counts: vec![0; counters],
            changes: Vec::new(),
            engine,
        })
    }

    /// An epoch was put in force.
    pub fn write(&mut self, write: EpochWrite) {
        self.writes.push(write);
    }

    /// It was told of an RDMA connection.
    pub fn tell(&mut self, telling: &Telling) {
        self.told.add(telling);
    }

    /// After so long all that may leave of a frame has left.
    pub fn horizon_ns(&self) -> u64 {
        self.horizon_ns
    }

    /// All that came before this is replayed.
    pub fn until_ns(&self) -> u64 {
        let waiting = self.groups.iter().filter_map(Group::oldest_ns);
        waiting.min().unwrap_or(u64::MAX)
    }

    /// A frame passed a port. Frames of a port come in their order.
    pub fn see(&mut self, port: u32, sight: &Sight<'_>, headers: &Headers) {
        let latency = self.latencies.iter().find(|latency| latency.port == port);
        let (in_ns, out_ns) = latency.map_or((0, 0), |held| (held.in_ns, held.out_ns));
        if sight.way == Way::Out {
            let left_ns = sight.at_ns.saturating_sub(out_ns);
            self.passed.leaves(sight.identity, port, left_ns);
            return;
        }
        let Some((group, count)) = self.ports.get_mut(&port) else {
            return;
        };
        *count += 1;
        let at_ns = sight.at_ns.saturating_add(in_ns);
        let mut frame = self.engine.classify_parsed(sight.bytes, headers, port);
        frame.at_ns = at_ns;
        let is_data = (self.takes || frame.data.is_some()) && may_be_roce(sight.bytes);
        let arrival = Arrival {
            port,
            number: *count,
            at_ns,
            from_ns: at_ns,
            is_at_boundary: false,
            wire_len: sight.wire_len,
            identity: sight.identity,
            bytes: match self.engine.may_rewrite(&frame) {
                true => sight.bytes.into(),
                false => Box::default(),
            },
            packet: is_data
                .then(|| Packet::of(self.library, sight.bytes))
                .flatten(),
            frame,
        };
        self.passed.comes(sight.identity);
        let group = &mut self.groups[*group];
        let number = match self.engine.has_triggers() {
            true => group.queue.insert_by_time(arrival),
            false => group.queue.push(arrival),
        };
        group.tell_passed(&self.engine, number);
    }

    /// All frames until a time are there: replays and decides what can be.
    pub fn advance(&mut self, now_ns: u64) {
        let known_ns = now_ns.saturating_sub(self.horizon_ns);
        // What comes next may tell what a frame has left open of a trigger.
        let ahead_ns = match self.engine.has_triggers() {
            true => self.horizon_ns,
            false => 0,
        };
        let is_over = |write: &&EpochWrite| write.confirmed_ns.saturating_add(STAMP_NS) <= now_ns;
        let over = self.writes.iter().take_while(is_over).count();
        let next_ns = self.writes.get(over).map_or(u64::MAX, |write| {
            write.sent_ns.saturating_sub(BACKLOG_NS).saturating_sub(1)
        });
        let until_ns = known_ns.saturating_sub(ahead_ns).min(next_ns);
        let mut groups = std::mem::take(&mut self.groups);
        for group in &mut groups {
            group.bound(self.scene(), &self.writes[..over]);
            self.note(group, known_ns);
            while let Some(replayed) = group.replay(self.scene(), &self.writes[..over], until_ns) {
                match replayed {
                    Replayed::One(arrival, judged) => self.take_one(arrival, judged),
                    Replayed::Stretch(stretch) => self.take(stretch),
                }
            }
        }
        self.groups = groups;
        if now_ns.saturating_sub(self.looked_ns) >= self.horizon_ns / 2 {
            self.looked_ns = now_ns;
            self.decide(until_ns.saturating_sub(self.horizon_ns));
        }
        if now_ns.saturating_sub(self.swept_ns) >= self.horizon_ns {
            self.swept_ns = now_ns;
            self.sweep(until_ns.saturating_sub(self.horizon_ns));
        }
    }

    /// Nothing comes any more: decides all.
    pub fn end(&mut self) {
        // What is odd is looked at when all is replayed.
        (self.looked_ns, self.swept_ns) = (u64::MAX, u64::MAX);
        self.advance(u64::MAX);
        let mut groups = std::mem::take(&mut self.groups);
        for group in &mut groups {
            if group.oldest_ns().is_some() {
                let stretch = group.close(self.scene(), &self.writes);
                self.take(stretch);
            }
        }
        self.decide(u64::MAX);
        self.sweep(u64::MAX);
    }

    /// What was seen, when all is decided. `counted` is what the switches counted: of injections, and behind them of triggers. It
    /// says which of several readings is right, and `then_hit` gets what those hit.
    pub fn conclude(mut self, counted: &[u64], mut then_hit: impl FnMut(&Hit)) -> Tally {
        let decided = vec![Candidate {
            hits: std::mem::take(&mut self.counts),
            waits: 0,
        }];
        let candidates = self.ties.iter().map(|tie| tie.candidates.clone());
        let candidates: Vec<_> = std::iter::once(decided).chain(candidates).collect();
        let (chosen, ambiguous) = choose::choose(&candidates, counted);
        for (tie, chosen) in self.ties.into_iter().zip(&chosen[1..]) {
            let mut tallies = tie.tallies.into_iter();
            let tally = tallies.nth(*chosen).unwrap_or_default();
            tally.hits.iter().for_each(&mut then_hit);
            self.tally.add(tally);
        }
        let injections = self.tally.observations.len();
        for counter in ambiguous {
            match counter.checked_sub(injections) {
                None => self.tally.observations[counter].is_ambiguous = true,
                Some(trigger) => self.tally.triggers[trigger].is_ambiguous = true,
            }
        }
        (self.tally.hits).sort_by_key(|hit| (hit.at_ns, hit.port, hit.frame));
        self.tally
    }

    /// What faults hit since it was asked.
    pub fn new_hits(&mut self) -> &[Hit] {
        let told = std::mem::replace(&mut self.told_hits, self.tally.hits.len());
        &self.tally.hits[told..]
    }

    /// Whether some fault takes packets.
    pub fn takes(&self) -> bool {
        self.takes
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            engine: &self.engine,
            passed: &self.passed,
            digest: self.digest,
        }
    }

    /// Frames that came before the first write, or after the last one, met no fault; and captures start and end one after
    /// the other.
    fn is_under_watch(&self, at_ns: u64) -> bool {
        let (Some(first), Some(last)) = (self.writes.first(), self.writes.last()) else {
            return false;
        };
        let is_over = last.epoch == 0 && at_ns > last.confirmed_ns;
        at_ns >= first.sent_ns && !is_over
    }

    /// Notes of frames that came by a time what was seen to become of them.
    fn note(&mut self, group: &mut Group, known_ns: u64) {
        while group.known < group.queue.end() && group.queue[group.known].from_ns <= known_ns {
            let arrival = &group.queue[group.known];
            let exits = arrival.frame.exits.iter();
            let left = exits
                .filter_map(|(port, _)| self.passed.left(*port, arrival.identity).first().copied());
            let left_ns = left.min();
            let is_unique = self.passed.is_unique(arrival.identity);
            let packet = arrival
                .packet
                .as_ref()
                .filter(|_| arrival.frame.data.is_some());
            let told = packet.and_then(|packet| self.told.begun(packet, arrival.at_ns));
            if packet.is_some_and(|packet| self.told.is_in_doubt(packet, arrival.at_ns)) {
                for injection in &self.places {
                    self.tally.observations[*injection].in_doubt += 1;
                }
            }
            if let Some(arrival) = group.queue.get_mut(group.known) {
                let frame = &mut arrival.frame;
                frame.told = told;
                frame.seen_to_leave = is_unique.then_some(left_ns.is_some());
                frame.left_ns = left_ns.filter(|_| is_unique);
            }
            if self.engine.has_triggers() {
                let frame = &group.queue[group.known].frame;
                let behind = group
                    .queue
                    .behind(group.known)
                    .map(|arrival| &arrival.frame);
                let may_turn = self.engine.may_turn(frame, behind);
                if let Some(arrival) = group.queue.get_mut(group.known) {
                    arrival.frame.may_turn = may_turn;
                }
            }
            group.known += 1;
        }
    }

    /// Takes a frame that is replayed: decides it if nothing is odd of it.
    fn take_one(&mut self, arrival: Arrival, judged: Judged) {
        if self.is_plain(&arrival, &judged) {
            let verdict = &judged.passage.ingress;
            for injection in &verdict.met {
                self.tally.observations[*injection].met += 1;
                self.ordinals
                    .count(&self.engine, &arrival.frame, *injection);
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
        self.take(stretch);
    }

    /// Whether no fault hit a frame, it left once as it came, at once, and has no like: then that is all there is to say of it,
    /// and it is forgotten here. So most frames are.
    fn is_plain(&mut self, arrival: &Arrival, judged: &Judged) -> bool {
        let Passage {
            ingress,
            exits,
            triggered,
        } = &judged.passage;
        let ([(exit, _)], true) = (&exits[..], self.has_ingress_alone) else {
            return false;
        };
        let is_untouched = ingress.hits.is_empty()
            && ingress.keyless.is_empty()
            && ingress.conflated.is_empty()
            && triggered.is_empty()
            && !arrival.is_at_boundary;
        if !is_untouched || !self.is_under_watch(arrival.at_ns) {
            return false;
        }
        let Some(left_ns) = self.passed.left_once(arrival.identity, *exit) else {
            return false;
        };
        let is_slow = || {
            let mut acts = self.engine.ingress_acts(ingress);
            acts.any(|act| judge::is_held_for(ingress, arrival.at_ns, left_ns, act.hold_ns()))
        };
        if self.is_timed && is_slow() {
            return false;
        }
        self.passed.forget(arrival.identity);
        if self.is_timed {
            self.moves.push_back(Move {
                index: number_of(arrival),
                came_ns: arrival.at_ns,
                delay_ns: 0,
                left: vec![(*exit, left_ns)],
            });
        }
        true
    }

    /// Takes frames that are replayed: decides those of which nothing is odd.
    fn take(&mut self, stretch: Stretch) {
        let Stretch {
            frames,
            readings,
            is_crowded,
        } = stretch;
        if is_crowded {
            let injections = self
                .plan
                .injections
                .iter()
                .zip(&mut self.tally.observations);
            let here = injections.filter(|(injection, _)| injection.switch == self.name);
            here.for_each(|(_, seen)| seen.is_crowded = true);
            let planned = self.plan.switch(self.name).into_iter();
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
                self.passed.expect(frame.arrival.identity, judged.leaves_as);
            }
        }
        for frame in frames {
            let numbered = std::iter::once(&mut self.ordinals).chain(&mut others);
            let ordinals = numbered.zip(&frame.judged).map(|(ordinals, judged)| {
                ordinals.of(&self.engine, &judged.passage, &frame.arrival.frame)
            });
            let ordinals = ordinals.collect();
            let odd = Odd {
                frame,
                ordinals,
                tie,
            };
            if tie.is_none() {
                let passage = &odd.frame.judged[0].passage;
                self.tally.turn(passage);
                for counter in self.engine.counted(passage) {
                    self.counts[counter] += 1;
                }
            }
            self.tell_change(&odd.frame);
            match self.plainly(&odd) {
                Some(left) => {
                    let mut tally = std::mem::take(&mut self.tally);
                    self.count(&odd, 0, &left, &Lazy::none(), &mut tally);
                    self.tally = tally;
                    self.is_decided(odd, &left);
                }
                None => self.odd.push(odd),
            }
        }
    }

    /// When what had to leave of a frame left, if nothing is odd of that.
    fn plainly(&self, odd: &Odd) -> Option<Vec<Vec<u64>>> {
        let ([judged], arrival) = (&odd.frame.judged[..], &odd.frame.arrival) else {
            return None;
        };
        let (scene, passage) = (self.scene(), &judged.passage);
        let is_plain = scene.is_telling(arrival, judged.leaves_as)
            && (judged.leaves_as == arrival.identity
                || self.passed.is_expected_once(judged.leaves_as))
            && scene.is_as_expected(arrival, passage, judged.leaves_as)
            && !(self.is_timed && scene.took_as_long_as_held(arrival, passage, judged.leaves_as));
        let exits = passage.exits.iter();
        let left = exits.map(|(exit, _)| self.passed.left(*exit, judged.leaves_as).to_vec());
        let left: Vec<Vec<u64>> = if is_plain {
            left.collect()
        } else {
            return None;
        };
        let is_late = self.is_timed
            && tally::is_beyond((&self.engine, self.plan), passage, arrival.at_ns, &left);
        (!is_late).then_some(left)
    }

    /// Adds what faults made of a frame, where it is not plain from its bytes.
    fn tell_change(&mut self, frame: &Decided) {
        let (arrival, judged) = (&frame.arrival, &frame.judged[0]);
        if judged.leaves_as == arrival.identity && self.passed.is_unique(arrival.identity) {
            return;
        }
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

    /// Counts what became of a frame by a reading. As which other frame it left.
    fn count(
        &self,
        odd: &Odd,
        reading: usize,
        left: &[Vec<u64>],
        order: &Lazy<'_>,
        tally: &mut Tally,
    ) -> Option<Identity> {
        let (arrival, judged) = (&odd.frame.arrival, odd.judged(reading));
        let passage = &judged.passage;
        let was_hit = passage.verdicts().any(|verdict| !verdict.hits.is_empty());
        if !was_hit && !self.is_under_watch(arrival.at_ns) {
            return None;
        }
        let errors = judge::explain(self.scene(), arrival, passage, judged.leaves_as, left);
        tally.strays.unexplained += u64::from(errors.stray);
        let found = Found {
            switch: self.name,
            arrival,
            judged,
            ordinals: odd.ordinals.get(reading).map_or(&[], Vec::as_slice),
            left,
            errors: &errors,
        };
        tally.hits.extend(hits::of_frame(&self.engine, &found));
        let seen = Left {
            index: number_of(arrival),
            came_ns: arrival.at_ns,
            left,
            errors: &errors,
            is_at_boundary: arrival.is_at_boundary,
        };
        tally.count(judged, seen);
        if self.is_timed {
            tally.count_held((&self.engine, self.plan), passage, seen, order);
            tally.count_spared(&self.engine, passage, seen, order);
        }
        let Errors { seen_as, .. } = errors;
        seen_as
    }

    /// A frame is decided.
    fn is_decided(&mut self, odd: Odd, left: &[Vec<u64>]) {
        let arrival = &odd.frame.arrival;
        let judged = &odd.frame.judged[0];
        let exits = judged.passage.exits.iter().zip(left);
        let left: Vec<(u32, &[u64])> = exits
            .map(|((port, _), times)| (*port, &times[..]))
            .collect();
        if self.is_timed && self.passed.is_unique(arrival.identity) {
            let exits = left.iter();
            let exits = exits.filter_map(|(port, times)| Some((*port, *times.first()?)));
            self.moves.push_back(Move {
                index: number_of(arrival),
                came_ns: arrival.at_ns,
                delay_ns: judged.passage.ingress.fate.held_ns(0),
                left: exits.collect(),
            });
        }
        self.passed
            .decide(arrival.identity, judged.leaves_as, &left);
        for other in &odd.frame.judged[1..] {
            self.passed.decide_other(arrival.identity, other.leaves_as);
        }
    }

    /// Decides odd frames that came by a time: what may be like them, and what passed meanwhile, is replayed.
    fn decide(&mut self, until_ns: u64) {
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
        if let Some(first) = self.writes.first() {
            let begin_ns = first.sent_ns;
            let mut came: BTreeMap<Identity, u64> = BTreeMap::new();
            for odd in &self.odd {
                let arrival = &odd.frame.arrival;
                let first_ns = came.entry(arrival.identity).or_insert(u64::MAX);
                *first_ns = arrival.at_ns.min(*first_ns);
            }
            let waiting = self.groups.iter().flat_map(|group| group.queue.iter());
            for arrival in waiting {
                if let Some(first_ns) = came.get_mut(&arrival.identity) {
                    *first_ns = arrival.at_ns.min(*first_ns);
                }
            }
            for (identity, came_ns) in came {
                self.passed.forget_before(identity, begin_ns, came_ns);
            }
        }
        let ties: BTreeSet<usize> = (self.odd.iter().zip(&ready))
            .filter_map(|(odd, ready)| odd.tie.filter(|_| *ready))
            .collect();
        // What other readings say of a stretch.
        for tie in ties {
            for reading in 1..self.ties[tie].candidates.len() {
                let dealt = self.dealt(|odd| if odd.tie == Some(tie) { reading } else { 0 });
                let mut tally = std::mem::take(&mut self.ties[tie].tallies[reading]);
                let order = Lazy::of(self, &dealt);
                for (odd, left) in self.odd.iter().zip(&dealt) {
                    if odd.tie == Some(tie) {
                        self.count(odd, reading, left, &order, &mut tally);
                    }
                }
                self.ties[tie].tallies[reading] = tally;
            }
        }
        let dealt = self.dealt(|_| 0);
        let mut tally = std::mem::take(&mut self.tally);
        let mut of_ties: Vec<Tally> = (self.ties.iter_mut())
            .map(|tie| std::mem::take(&mut tie.tallies[0]))
            .collect();
        let order = Lazy::of(self, &dealt);
        let mut seen_as = Vec::new();
        for ((odd, left), _) in self
            .odd
            .iter()
            .zip(&dealt)
            .zip(&ready)
            .filter(|(_, ready)| **ready)
        {
            let own = odd.tie.map_or(&mut tally, |tie| &mut of_ties[tie]);
            seen_as.extend(self.count(odd, 0, left, &order, own));
        }
        drop(order);
        self.tally = tally;
        for (tie, tally) in self.ties.iter_mut().zip(of_ties) {
            tie.tallies[0] = tally;
        }
        seen_as
            .into_iter()
            .for_each(|identity| self.passed.account(identity));
        let all = std::mem::take(&mut self.odd);
        for ((odd, left), ready) in all.into_iter().zip(dealt).zip(ready) {
            match ready {
                true => self.is_decided(odd, &left),
                false => self.odd.push(odd),
            }
        }
    }

    /// For each odd frame and each of its exits, when its copies left, if a reading of each is right.
    fn dealt(&self, reading: impl Fn(&Odd) -> usize) -> Dealt {
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
            let shares: Vec<Share> = frames
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
            let times = judge::deal(&shares, self.passed.left(port, identity));
            for ((index, exit), times) in frames.into_iter().zip(times) {
                dealt[index][exit] = times;
            }
        }
        dealt
    }

    /// Forgets what left and that nothing accounts for: changed, made up, or sent to where it does not belong.
    fn sweep(&mut self, until_ns: u64) {
        let waiting = self.groups.iter().filter_map(Group::oldest_ns);
        let odd = self.odd.iter().map(|odd| odd.frame.arrival.at_ns);
        let oldest_ns = waiting.chain(odd).min().unwrap_or(u64::MAX).min(until_ns);
        let before_ns = match oldest_ns {
            u64::MAX => u64::MAX,
            oldest_ns => oldest_ns.saturating_sub(STAMP_NS),
        };
        let mut passed = std::mem::take(&mut self.passed);
        self.tally.strays.foreign += passed.sweep(before_ns, |at_ns| self.is_under_watch(at_ns));
        self.passed = passed;
        let long_ago_ns = before_ns.saturating_sub(self.horizon_ns);
        while self
            .moves
            .front()
            .is_some_and(|frame| frame.came_ns < long_ago_ns)
        {
            self.moves.pop_front();
        }
    }
}

/// What the order knows a frame by.
fn number_of(arrival: &Arrival) -> usize {
    (arrival.port as usize) << 40 | arrival.number as usize
}

/// In which order frames came and left, found when it is asked for: mostly it is not.
pub struct Lazy<'a> {
    from: Option<(&'a Witness<'a>, &'a Dealt)>,
    found: OnceCell<(Order, BTreeMap<usize, u64>)>,
}

impl<'a> Lazy<'a> {
    fn none() -> Lazy<'a> {
        Lazy {
            from: None,
            found: OnceCell::new(),
        }
    }

    fn of(witness: &'a Witness<'_>, dealt: &'a Dealt) -> Lazy<'a> {
        Lazy {
            from: Some((witness, dealt)),
            found: OnceCell::new(),
        }
    }

    fn found(&self) -> &(Order, BTreeMap<usize, u64>) {
        self.found.get_or_init(|| {
            let Some((witness, dealt)) = self.from else {
                return Default::default();
            };
            let passed = &witness.passed;
            let odd = witness.odd.iter().zip(dealt);
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
            let waiting = witness.groups.iter().flat_map(|group| group.queue.iter());
            let waiting =
                waiting.filter_map(|arrival| Move::of(passed, arrival, number_of(arrival), None));
            let order = Order::of(witness.moves.iter().cloned().chain(odd).chain(waiting));
            let overtaken = order.overtaken();
            (order, overtaken)
        })
    }

    /// The order.
    pub fn order(&self) -> &Order {
        &self.found().0
    }

    /// By how much a frame was overtaken.
    pub fn overtaken_ns(&self, index: usize) -> u64 {
        self.found().1.get(&index).copied().unwrap_or(0)
    }
}
