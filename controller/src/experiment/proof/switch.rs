//! What was seen of one faulting switch, held against its model.

use std::collections::{BTreeMap, BTreeSet};

use parser_gen::Library;
use parser_gen::psn::Packet;
use scenario::model::Scenario;
use scenario::plan::{Plan, port_latencies, triggers_join_ports};
use scenario::replay::{Classified, Engine, Passage, Triggered, Verdict};
use scenario::selection::Selection;
use scenario::telling::Told;

use super::super::fleet::EpochWrite;
use super::became::{Changed, FrameKey, Outcome};
use super::choose;
use super::epochs::{self, PortFrames};
use super::hits;
use super::judge::{self, Errors, Share};
use super::order::{self, Move, Order};
use super::trace::{Identity, SwitchTrace};
use super::{Evidence, Observation, STAMP_NS, Seen, Strays};

/// A faulting switch: its model, and what was seen of it.
pub struct Witness<'a> {
    name: &'a str,
    plan: &'a Plan,
    engine: Engine,
    trace: SwitchTrace<'a>,
    writes: Vec<EpochWrite>,
    library: &'a Library,
    /// Of connections.
    told: Told,
    /// Faults that ask for that.
    places: BTreeSet<String>,
}

/// A frame, with what it met.
struct Judged {
    passage: Passage,
    /// The step that was in force.
    epoch: u16,
    /// It came while an epoch was being written.
    is_at_boundary: bool,
    /// Which frame leaves of it.
    leaves_as: Option<Identity>,
}

/// What was seen of a frame.
#[derive(Clone, Copy)]
struct Left<'a> {
    index: usize,
    came_ns: u64,
    /// By exit, when its copies left.
    left: &'a [Vec<u64>],
    /// A later frame left so much earlier.
    overtaken_ns: u64,
    errors: &'a Errors,
}

impl<'a> Witness<'a> {
    /// Of a switch that the plan names.
    pub fn new(
        scenario: &'a Scenario,
        plan: &'a Plan,
        name: &'a str,
        evidence: &'a Evidence,
    ) -> Option<Witness<'a>> {
        let recordings = evidence.recordings.iter();
        let recordings = recordings.filter(|recording| recording.switch == name);
        let writes = evidence.writes.iter();
        let writes = writes.filter(|write| write.switch == name);
        let latencies = port_latencies(&scenario.topology, name);
        let mut trace = SwitchTrace::new(recordings, &latencies);
        if triggers_join_ports(scenario, plan, name) {
            trace.join();
        }
        let writes: Vec<EpochWrite> = writes.cloned().collect();
        if let Some(first) = writes.first() {
            trace.forget_before(first.sent_ns);
        }
        let engine = Engine::new(scenario, plan, name)?;
        // Ports that hold frames for the latency of their links give them another time.
        let shares_stamps = evidence.shares_stamps && latencies.is_empty();
        Some(Witness {
            name,
            plan,
            engine: match shares_stamps {
                true => engine.with_shared_clock(),
                false => engine,
            },
            trace,
            writes,
            library: &scenario.protocols,
            told: Told::at(name, &evidence.tellings),
            places: (scenario.faults.iter())
                .filter(|fault| matches!(fault.selection, Selection::Psn(_)))
                .map(|fault| fault.id.clone())
                .collect(),
        })
    }

    /// Adds what was seen of the switch; what nothing explains. `counted` is what the switches counted: of injections, and
    /// behind them of triggers.
    pub fn testify(&self, counted: &[u64], all: &mut Seen) -> Strays {
        let arrivals = self.trace.arrivals.iter();
        let mut doubtful = 0;
        let mut classified: Vec<Classified> = arrivals
            .map(|arrival| {
                let frame = self.engine.classify(arrival.bytes, arrival.port);
                let exits = frame.exits.iter();
                let left = exits.filter_map(|(port, _)| {
                    self.trace.left(*port, arrival.identity).first().copied()
                });
                let left_ns = left.min();
                let is_unique = self.trace.is_unique(arrival.identity);
                let data = frame.data.filter(|_| !self.told.is_empty());
                let data = data.and_then(|_| Packet::of(self.library, arrival.bytes));
                let told = data.and_then(|packet| self.told.begun(&packet, arrival.at_ns));
                let is_in_doubt = |packet: &Packet| self.told.is_in_doubt(packet, arrival.at_ns);
                doubtful += u64::from(data.as_ref().is_some_and(is_in_doubt));
                Classified {
                    at_ns: arrival.at_ns,
                    told,
                    seen_to_leave: is_unique.then_some(left_ns.is_some()),
                    left_ns: left_ns.filter(|_| is_unique),
                    ..frame
                }
            })
            .collect();
        let injections = self.plan.injections.iter().zip(&mut all.observations);
        for (injection, seen) in injections {
            if injection.switch == self.name && self.places.contains(&injection.fault) {
                seen.in_doubt += doubtful;
            }
        }
        self.engine.tell_passed(&mut classified);
        if self.trace.ports.len() == 1 {
            self.engine.tell_races(&mut classified);
        }
        let frames = self.replay(&classified, counted, all);
        let Seen {
            observations,
            triggers,
            hits,
            changed,
        } = all;
        let left = self.dealt(&frames);
        let order = self.order(&frames, &left);
        let overtaken = order.overtaken();
        let mut strays = Strays::default();
        let mut seen_as: BTreeSet<Identity> = BTreeSet::new();
        let mut ordinals = hits::Ordinals::default();
        for (index, frame) in frames.iter().enumerate() {
            let came_ns = self.trace.arrivals[index].at_ns;
            let passage = &frame.passage;
            let triggered = &passage.triggered;
            triggered
                .came_on
                .iter()
                .for_each(|index| triggers[*index].came_on += 1);
            triggered
                .keyless
                .iter()
                .for_each(|index| triggers[*index].keyless += 1);
            triggered
                .conflated
                .iter()
                .for_each(|index| triggers[*index].conflated += 1);
            let numbers = ordinals.of(&self.engine, passage, &classified[index]);
            let was_hit = passage.verdicts().any(|verdict| !verdict.hits.is_empty());
            if !was_hit && !self.is_under_watch(came_ns) {
                continue;
            }
            let (arrival, leaves_as) = (&self.trace.arrivals[index], frame.leaves_as);
            let errors = judge::explain(
                &self.engine,
                &self.trace,
                arrival,
                passage,
                leaves_as,
                &left[index],
            );
            seen_as.extend(errors.seen_as);
            strays.unexplained += u64::from(errors.stray);
            hits.extend(hits::of_frame(
                &self.engine,
                &self.trace,
                &hits::Judged {
                    switch: self.name,
                    index,
                    epoch: frame.epoch,
                    passage,
                    ordinals: &numbers,
                    left: &left[index],
                    errors: &errors,
                    is_told: classified[index].told.is_some(),
                },
            ));
            let seen = Left {
                index,
                came_ns,
                left: &left[index],
                overtaken_ns: overtaken.get(&index).copied().unwrap_or(0),
                errors: &errors,
            };
            tally(frame, seen, observations);
            self.tally_held(passage, seen, &order, observations);
            self.tally_spared(passage, seen, &order, observations);
        }
        strays.foreign = self.foreign(&frames, &seen_as);
        self.tell_changed(&frames, changed);
        strays
    }

    /// Adds what faults made of frames.
    fn tell_changed(&self, frames: &[Judged], changed: &mut Changed) {
        let rewrites = self.engine.rewrites();
        for (frame, arrival) in frames.iter().zip(&self.trace.arrivals) {
            let passage = &frame.passage;
            let leaves_as = rewrites
                .then(|| self.engine.leaves_as(&passage.ingress, arrival.recorded()))
                .flatten();
            if leaves_as.is_none() && self.trace.is_unique(arrival.identity) {
                continue;
            }
            let came: FrameKey = (arrival.bytes.into(), arrival.wire_len);
            let key = match leaves_as {
                Some(changed) => (changed.bytes.into(), changed.wire_len),
                None => came.clone(),
            };
            let exits = 0..passage.exits.len();
            let copies = exits.map(|exit| passage.leaving(exit)).max().unwrap_or(0);
            let held_ns = (0..copies).map(|copy| passage.ingress.fate.held_ns(copy));
            let outcome = Outcome {
                key,
                held_ns: held_ns.collect(),
            };
            changed.push(self.name, came, arrival.at_ns, outcome);
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

    /// What had to be done to each frame.
    fn replay(&self, classified: &[Classified], counted: &[u64], seen: &mut Seen) -> Vec<Judged> {
        let mut frames: Vec<Judged> = classified
            .iter()
            .map(|frame| Judged {
                passage: untouched(frame),
                epoch: 0,
                is_at_boundary: false,
                leaves_as: None,
            })
            .collect();
        let ports = self.trace.ports.iter().map(|range| PortFrames {
            engine: &self.engine,
            trace: &self.trace,
            classified,
            range: (range.start, range.end),
            writes: &self.writes,
        });
        let ports: Vec<PortFrames<'_>> = ports.collect();
        let mut candidates = Vec::new();
        for port in &ports {
            let boundaries = epochs::boundaries(*port);
            for (range, write) in boundaries.iter().zip(&self.writes) {
                for index in range.clone() {
                    let at_ns = self.trace.arrivals[index].at_ns;
                    frames[index].is_at_boundary |= at_ns.saturating_add(STAMP_NS) >= write.sent_ns;
                }
            }
            let readings = epochs::readings(*port, &boundaries, counted.len());
            if readings.is_crowded {
                let acting = self.acting_on(&mut seen.observations);
                acting.for_each(|seen| seen.is_crowded = true);
                let planned = self.plan.switch(self.name).into_iter();
                for named in planned.flat_map(|switch| &switch.triggers) {
                    seen.triggers[named.index].is_crowded = true;
                }
            }
            candidates.push(readings.best);
        }
        let (chosen, ambiguous) = choose::choose(&candidates, counted);
        for ((port, readings), chosen) in ports.iter().zip(&candidates).zip(chosen) {
            let reading = &readings[chosen];
            for (index, passage) in epochs::follow(*port, reading) {
                frames[index].passage = passage;
                frames[index].epoch = port.epoch_at(index, &reading.begins);
            }
        }
        for counter in ambiguous {
            match counter.checked_sub(seen.observations.len()) {
                None => seen.observations[counter].is_ambiguous = true,
                Some(trigger) => seen.triggers[trigger].is_ambiguous = true,
            }
        }
        for (frame, arrival) in frames.iter_mut().zip(&self.trace.arrivals) {
            let verdict = &frame.passage.ingress;
            frame.leaves_as = judge::leaves_as(&self.engine, &self.trace, arrival, verdict);
        }
        frames
    }

    /// What is observed of this switch's injections.
    fn acting_on<'o>(
        &'o self,
        observations: &'o mut [Observation],
    ) -> impl Iterator<Item = &'o mut Observation> {
        let injections = self.plan.injections.iter().zip(observations);
        let here = injections.filter(|(injection, _)| injection.switch == self.name);
        here.map(|(_, seen)| seen)
    }

    /// For each frame and each of its exits, when its copies left.
    fn dealt(&self, frames: &[Judged]) -> Vec<Vec<Vec<u64>>> {
        let mut alike: BTreeMap<(u32, Identity), Vec<(usize, usize)>> = BTreeMap::new();
        for (index, frame) in frames.iter().enumerate() {
            let Some(identity) = frame.leaves_as else {
                continue;
            };
            for (exit, (port, _)) in frame.passage.exits.iter().enumerate() {
                let alike = alike.entry((*port, identity)).or_default();
                alike.push((index, exit));
            }
        }
        let mut left: Vec<Vec<Vec<u64>>> = frames
            .iter()
            .map(|frame| vec![Vec::new(); frame.passage.exits.len()])
            .collect();
        for ((port, identity), frames_alike) in alike {
            let shares: Vec<Share> = frames_alike
                .iter()
                .map(|(index, exit)| {
                    let passage = &frames[*index].passage;
                    let came_ns = self.trace.arrivals[*index].at_ns;
                    Share {
                        came_ns,
                        copies: passage.leaving(*exit),
                        fate: passage.ingress.fate,
                    }
                })
                .collect();
            let dealt = judge::deal(&shares, self.trace.left(port, identity));
            for ((index, exit), times) in frames_alike.into_iter().zip(dealt) {
                left[index][exit] = times;
            }
        }
        left
    }

    /// Frames that left and that no frame which came accounts for: changed, made up, or sent to where they do not belong.
    fn foreign(&self, frames: &[Judged], seen_as: &BTreeSet<Identity>) -> u64 {
        let exits = frames.iter().flat_map(|frame| {
            let exits = frame.passage.exits.iter();
            exits.filter_map(|(port, _)| Some((*port, frame.leaves_as?)))
        });
        let known: BTreeSet<(u32, Identity)> = exits.collect();
        let departures = self.trace.departures();
        let foreign = departures.filter(|(port, identity, _)| {
            !known.contains(&(*port, *identity)) && !seen_as.contains(identity)
        });
        let times = foreign.flat_map(|(_, _, times)| times);
        times.filter(|at_ns| self.is_under_watch(**at_ns)).count() as u64
    }

    /// In which order frames came and left.
    fn order(&self, frames: &[Judged], left: &[Vec<Vec<u64>>]) -> Order {
        let frames = frames.iter().zip(left).enumerate();
        let moves = frames.map(|(index, (frame, left))| {
            let exits = frame.passage.exits.iter().zip(left);
            let exits = exits.filter_map(|((port, _), times)| Some((*port, *times.first()?)));
            Move {
                index,
                came_ns: self.trace.arrivals[index].at_ns,
                delay_ns: frame.passage.ingress.fate.held_ns(0),
                left: exits.collect(),
            }
        });
        Order::of(&self.trace, moves)
    }

    /// How late frames left that faults held, or let pass at a rate.
    fn tally_held(
        &self,
        passage: &Passage,
        seen: Left<'_>,
        order: &Order,
        observations: &mut [Observation],
    ) {
        let verdict = &passage.ingress;
        let Some(last) = seen.left.iter().flatten().max() else {
            return;
        };
        if seen.errors.stray {
            return;
        }
        let due_ns = seen.came_ns.saturating_add(verdict.fate.longest_ns());
        let late_ns = last.saturating_sub(due_ns);
        let acts = self.engine.ingress_acts(verdict);
        let erred = |injection| seen.errors.missed.contains(&injection);
        let held = acts.filter(|act| act.hit && act.effect.is_timed() && !erred(act.injection));
        for act in held {
            let observed = &mut observations[act.injection];
            observed.latest_ns = observed.latest_ns.max(late_ns);
            let bound = self.plan.injections[act.injection].lateness_bound_ns;
            let is_beyond = bound.is_some_and(|bound| late_ns > bound);
            observed.beyond += u64::from(is_beyond);
            let is_sooner = observed.soonest_ns.is_none_or(|soonest| late_ns < soonest);
            let is_explained = || {
                order.stood_still(seen.index, seen.came_ns, late_ns)
                    || order.another_waited(seen.came_ns, *last, late_ns)
            };
            if is_sooner && !(is_beyond && is_explained()) {
                observed.soonest_ns = Some(late_ns);
            }
        }
    }

    /// Frames that a fault had to spare and that took as long as if it had not. They were slow; but a frame that others
    /// overtook meanwhile was held.
    fn tally_spared(
        &self,
        passage: &Passage,
        seen: Left<'_>,
        order: &Order,
        observations: &mut [Observation],
    ) {
        let verdict = &passage.ingress;
        let Some(first) = seen.left.iter().flatten().min() else {
            return;
        };
        if seen.errors.stray {
            return;
        }
        let as_long: Vec<_> = self
            .engine
            .ingress_acts(verdict)
            .filter(|act| {
                !act.hit && judge::is_held_for(verdict, seen.came_ns, *first, act.hold_ns())
            })
            .collect();
        let is_held = |hold_ns| seen.overtaken_ns >= order::held_if_overtaken_by(hold_ns);
        // A fault that looked at the frame is suspected before one that did not; then the one that explains most.
        let suspect = as_long.iter().max_by_key(|act| (act.met, act.hold_ns()));
        match suspect {
            Some(act) if is_held(act.hold_ns()) => {
                observations[act.injection].collateral += 1;
            }
            _ => {
                for act in as_long.iter().filter(|act| act.met) {
                    let observed = &mut observations[act.injection];
                    observed.slow += 1;
                    let hold_ns = act.hold_ns();
                    let is_explained = order.stood_still(seen.index, seen.came_ns, hold_ns);
                    observed.slow_alone += u64::from(!is_explained);
                }
            }
        }
    }
}

/// Who met the frame, and what was done to it.
fn tally(frame: &Judged, seen: Left<'_>, observations: &mut [Observation]) {
    for verdict in frame.passage.verdicts() {
        for injection in &verdict.met {
            observations[*injection].met += 1;
            observations[*injection].boundary += u64::from(frame.is_at_boundary);
        }
        for injection in &verdict.hits {
            let observed = &mut observations[*injection];
            match frame.passage.has_exit() {
                true => observed.observed += 1,
                false => observed.unforwarded += 1,
            }
        }
        for injection in &verdict.overridden {
            observations[*injection].overridden += 1;
        }
        for injection in &verdict.keyless {
            observations[*injection].keyless += 1;
        }
        for injection in &verdict.conflated {
            observations[*injection].conflated += 1;
        }
    }
    let mut miss = |injection: usize| {
        let observed = &mut observations[injection];
        observed.missed += 1;
        observed.observed = observed.observed.saturating_sub(1);
    };
    seen.errors.missed.iter().for_each(|i| miss(*i));
    // Nothing is known of what a frame's faults did that did not leave as it had to for another reason.
    if seen.errors.stray {
        frame.passage.ingress.hits.iter().for_each(|i| miss(*i));
    }
    for injection in &seen.errors.collateral {
        observations[*injection].collateral += 1;
    }
}

/// What becomes of a frame that no unit looks at.
fn untouched(frame: &Classified) -> Passage {
    let exits = frame.exits.iter();
    Passage {
        ingress: Verdict::untouched(),
        exits: exits
            .map(|(port, _)| (*port, vec![Verdict::untouched()]))
            .collect(),
        triggered: Triggered::default(),
    }
}
