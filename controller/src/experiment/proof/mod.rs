//! What captures on both sides of a switch say of its faults: the proof.
//!
//! Decisions are a function of seed, fault, flow and ordinal. So the frames that came to a switch, replayed through the model
//! of its fault engine ([`scenario::replay`]), say *which* frames each fault had to hit; and the frames that left say what
//! became of each. Nothing here looks at the switch's state, and no frame is judged by how late it was.
//!
//! trace (who came, who left) → epochs (which step of the timeline met whom, replayed) → judge (what differs) → [`Proof`].

mod epochs;
mod flows;
mod hits;
mod judge;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;
use std::fmt;

use scenario::Plan;
use scenario::model::Scenario;
use scenario::plan::port_latencies;
use scenario::replay::{Classified, Engine, Passage, Verdict};
use testbeds::bed::PortRecording;

pub use flows::FlowCount;
pub use hits::Hit;
use super::fleet::EpochWrite;
use judge::{Errors, Share};
use trace::SwitchTrace;

/// By how much stamps of two captures, and times that the controller reads, may be wrong against each other. A frame is stamped
/// before its switch gets it ([`testbeds::bed::Bed::record`]), so this is for clocks of processors, not for a busy machine.
const STAMP_NS: u64 = 100_000;

/// What a run left behind.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What passed the switches' ports.
    pub recordings: &'a [PortRecording],
    /// The writes of epochs, in the order in which they were sent.
    pub writes: &'a [EpochWrite],
    /// What the switch counted for each injection of the plan.
    pub fired: &'a [u64],
    /// Frames that a switch lost in the receive rings of its ports: switch, port, number.
    pub ring_losses: &'a [(String, u32, u64)],
}

/// What the captures say.
#[derive(Debug)]
pub struct Proof {
    /// For each injection of the plan.
    pub observations: Vec<Observation>,
    /// Flows between their ends.
    pub flows: BTreeMap<String, FlowCount>,
    /// Why nothing may be concluded of some switches.
    pub losses: Vec<Loss>,
    /// Frames that did not leave a switch as they had to, and no fault of it explains that.
    pub strays: BTreeMap<String, u64>,
    /// Which frames were hit, switch by switch and port by port.
    pub hits: Vec<Hit>,
}

/// What a fault did to a flow at a switch, seen from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observation {
    /// Frames that it looked at.
    pub met: u64,
    /// It had to hit them, and did.
    pub observed: u64,
    /// It had to hit them, and did not.
    pub missed: u64,
    /// It had not to hit them, and did.
    pub collateral: u64,
    /// Frames that came while an epoch was being written: either epoch may have met them. They are judged by the one that fits.
    pub boundary: u64,
    /// It had to spare them, and they took as long as if it had not.
    pub slow: u64,
    /// It held them longer than the plan's bound allows.
    pub beyond: u64,
    /// How much later than asked the latest frame left that it held.
    pub latest_ns: u64,
    /// Frames at a boundary fit two readings, which differ in what this fault had to hit.
    pub ambiguous: bool,
}

impl Observation {
    /// What a fault did in both places.
    pub fn and(self, other: Observation) -> Observation {
        Observation {
            met: self.met + other.met,
            observed: self.observed + other.observed,
            missed: self.missed + other.missed,
            collateral: self.collateral + other.collateral,
            boundary: self.boundary + other.boundary,
            slow: self.slow + other.slow,
            beyond: self.beyond + other.beyond,
            latest_ns: self.latest_ns.max(other.latest_ns),
            ambiguous: self.ambiguous || other.ambiguous,
        }
    }
}

/// Frames that passed and are not in the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Where.
    pub switch: String,
    /// Where.
    pub port: u32,
    /// How many.
    pub frames: u64,
    /// Who lost them.
    pub by: Loser,
}

/// Who lost frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loser {
    /// The recorder was too slow.
    Recorder,
    /// The recording was full.
    Limit,
    /// The link, on their way to the switch.
    Link,
    /// The switch did not take them from the receive ring of its port.
    Ring,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss {
            switch,
            port,
            frames,
            by,
        } = self;
        let frames = match frames {
            1 => "1 frame".to_owned(),
            frames => format!("{frames} frames"),
        };
        match by {
            Loser::Recorder => write!(
                f,
                "the capture at port {port} of switch {switch} lost {frames}: the recorder was too slow"
            ),
            Loser::Limit => write!(
                f,
                "the capture at port {port} of switch {switch} lacks {frames}: it was full"
            ),
            Loser::Link => write!(
                f,
                "the link to port {port} of switch {switch} lost {frames}: the switch was too slow"
            ),
            Loser::Ring => write!(
                f,
                "switch {switch} lost {frames} in the receive ring of port {port}: it was too slow"
            ),
        }
    }
}

/// Holds what was seen against what had to be.
pub fn prove(
    scenario: &Scenario,
    plan: &Plan,
    evidence: Evidence<'_>,
    aggregator: Option<&str>,
) -> Proof {
    let mut proof = Proof {
        observations: vec![Observation::default(); plan.injections.len()],
        flows: flows::count(scenario, evidence.recordings, aggregator),
        losses: losses(&evidence),
        strays: BTreeMap::new(),
        hits: Vec::new(),
    };
    for switch in &plan.switches {
        let acts = |point: &scenario::plan::Injection| point.switch == switch.name;
        let recordings = evidence.recordings.iter();
        let recordings = recordings.filter(|recording| recording.switch == switch.name);
        if !plan.injections.iter().any(acts) {
            continue;
        }
        if let Some(engine) = Engine::new(scenario, plan, &switch.name) {
            let writes = evidence.writes.iter();
            let writes = writes.filter(|write| write.switch == switch.name);
            let at = Bench {
                plan,
                engine,
                trace: SwitchTrace::new(
                    recordings,
                    &port_latencies(&scenario.topology, &switch.name),
                ),
                writes: writes.cloned().collect(),
            };
            let hits = &mut proof.hits;
            let strays = at.judge(&switch.name, evidence.fired, &mut proof.observations, hits);
            if strays > 0 {
                proof.strays.insert(switch.name.clone(), strays);
            }
        }
    }
    proof
}

fn losses(evidence: &Evidence<'_>) -> Vec<Loss> {
    let mut losses = Vec::new();
    for PortRecording {
        switch,
        port,
        recording,
        undelivered,
    } in evidence.recordings
    {
        for (frames, by) in [
            (recording.lost, Loser::Recorder),
            (recording.over_limit, Loser::Limit),
            (*undelivered, Loser::Link),
        ] {
            if frames > 0 {
                losses.push(Loss {
                    switch: switch.clone(),
                    port: *port,
                    frames,
                    by,
                });
            }
        }
    }
    let rings = evidence.ring_losses.iter().filter(|loss| loss.2 > 0);
    losses.extend(rings.map(|(switch, port, frames)| Loss {
        switch: switch.clone(),
        port: *port,
        frames: *frames,
        by: Loser::Ring,
    }));
    losses
}

/// A faulting switch: its model, and what was seen of it.
struct Bench<'a> {
    plan: &'a Plan,
    engine: Engine,
    trace: SwitchTrace<'a>,
    writes: Vec<EpochWrite>,
}

/// A frame, with what it met.
struct Judged {
    passage: Passage,
    /// It came while an epoch was being written.
    at_boundary: bool,
}

impl Bench<'_> {
    /// Adds what was seen to the observations; the number of frames that nothing explains.
    fn judge(
        &self,
        switch: &str,
        fired: &[u64],
        observations: &mut [Observation],
        hits: &mut Vec<Hit>,
    ) -> u64 {
        let arrivals = self.trace.arrivals.iter();
        let classified: Vec<Classified> = arrivals
            .map(|arrival| self.engine.classify(arrival.bytes, arrival.port))
            .collect();
        let frames = self.replay(&classified, fired, observations);
        let left = self.dealt(&frames);
        let overtaken = self.overtaken(&frames, &left);
        let mut strays = 0;
        for (index, frame) in frames.iter().enumerate() {
            let was_hit = frame
                .passage
                .verdicts()
                .any(|verdict| !verdict.hits.is_empty());
            if !was_hit && !self.is_under_watch(self.trace.arrivals[index].at_ns) {
                continue;
            }
            let came_ns = self.trace.arrivals[index].at_ns;
            let errors = judge::explain(&self.engine, came_ns, &frame.passage, &left[index]);
            strays += u64::from(errors.stray);
            let passage = &frame.passage;
            hits.extend(hits::of_frame(switch, &self.trace, index, passage, &errors));
            self.tally(came_ns, frame, &left[index], &errors, observations);
            self.tally_slow(
                came_ns,
                frame,
                &left[index],
                overtaken[index],
                &errors,
                observations,
            );
        }
        strays
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
    fn replay(
        &self,
        classified: &[Classified],
        fired: &[u64],
        observations: &mut [Observation],
    ) -> Vec<Judged> {
        let exits = |index: usize| -> Vec<u32> {
            let exits = classified[index].exits.iter();
            exits.map(|(port, _)| *port).collect()
        };
        let mut frames: Vec<Judged> = classified
            .iter()
            .map(|frame| Judged {
                passage: untouched(frame),
                at_boundary: false,
            })
            .collect();
        let mut candidates = Vec::new();
        for port in &self.trace.ports {
            let boundaries = epochs::boundaries(&self.trace, port, &exits, &self.writes);
            for (range, write) in boundaries.iter().zip(&self.writes) {
                for index in range.clone() {
                    let at_ns = self.trace.arrivals[index].at_ns;
                    frames[index].at_boundary |= at_ns.saturating_add(STAMP_NS) >= write.sent_ns;
                }
            }
            candidates.push(epochs::replays(
                &self.engine,
                &self.trace,
                classified,
                port,
                &boundaries,
                &self.writes,
                self.plan.injections.len(),
            ));
        }
        let (replays, ambiguous) = epochs::choose(candidates, fired);
        for (index, passage) in replays.into_iter().flat_map(|replay| replay.passages) {
            frames[index].passage = passage;
        }
        for injection in ambiguous {
            observations[injection].ambiguous = true;
        }
        frames
    }

    /// For each frame and each of its exits, when its copies left.
    fn dealt(&self, frames: &[Judged]) -> Vec<Vec<Vec<u64>>> {
        let mut alike: BTreeMap<(u32, trace::Identity), Vec<(usize, usize)>> = BTreeMap::new();
        for (index, frame) in frames.iter().enumerate() {
            for (exit, (port, _)) in frame.passage.exits.iter().enumerate() {
                let identity = self.trace.arrivals[index].identity;
                alike
                    .entry((*port, identity))
                    .or_default()
                    .push((index, exit));
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
                    let (passage, came_ns) =
                        (&frames[*index].passage, self.trace.arrivals[*index].at_ns);
                    Share {
                        came_ns,
                        copies: passage.leaving(*exit),
                        due_ns: judge::due_ns(came_ns, passage.ingress.fate),
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

    /// By how much each frame was overtaken: a later one of the same port, that no fault touched, left by the same port so
    /// much earlier. A switch that is slow is slow for both.
    fn overtaken(&self, frames: &[Judged], left: &[Vec<Vec<u64>>]) -> Vec<u64> {
        let mut overtaken = vec![0; frames.len()];
        for port in &self.trace.ports {
            let mut earliest_later: BTreeMap<u32, u64> = BTreeMap::new();
            for index in port.clone().rev() {
                // Which of several that are alike left when is not known.
                if !self.trace.is_unique(self.trace.arrivals[index].identity) {
                    continue;
                }
                let passage = &frames[index].passage;
                for ((exit, _), times) in passage.exits.iter().zip(&left[index]) {
                    let earliest = earliest_later.get(exit).copied();
                    let by = times.first().zip(earliest);
                    let by = by.map_or(0, |(at, earliest)| at.saturating_sub(earliest));
                    overtaken[index] = by.max(overtaken[index]);
                    if let ([at], true) = (&times[..], passage.ingress.hits.is_empty()) {
                        earliest_later.insert(*exit, earliest.map_or(*at, |other| other.min(*at)));
                    }
                }
            }
        }
        overtaken
    }

    fn tally(
        &self,
        came_ns: u64,
        frame: &Judged,
        left: &[Vec<u64>],
        errors: &Errors,
        observations: &mut [Observation],
    ) {
        let mut count = |verdict: &Verdict| {
            for injection in &verdict.met {
                observations[*injection].met += 1;
                observations[*injection].boundary += u64::from(frame.at_boundary);
            }
            for injection in &verdict.hits {
                observations[*injection].observed += 1;
            }
        };
        frame.passage.verdicts().for_each(&mut count);
        for injection in &errors.missed {
            let seen = &mut observations[*injection];
            seen.missed += 1;
            seen.observed = seen.observed.saturating_sub(1);
        }
        for injection in &errors.collateral {
            observations[*injection].collateral += 1;
        }
        // Nothing is known of what a frame's faults did that did not leave as it had to for another reason.
        let verdict = &frame.passage.ingress;
        if errors.stray {
            for injection in &verdict.hits {
                let seen = &mut observations[*injection];
                seen.missed += 1;
                seen.observed = seen.observed.saturating_sub(1);
            }
            return;
        }
        let Some(last) = left.iter().flatten().max() else {
            return;
        };
        let late_ns = last.saturating_sub(came_ns.saturating_add(verdict.fate.delay_ns));
        let acts = self.engine.ingress_acts(verdict);
        for act in acts.filter(|act| act.hit && act.effect.hold_ns() > 0) {
            let seen = &mut observations[act.injection];
            seen.latest_ns = seen.latest_ns.max(late_ns);
            let bound = self.plan.injections[act.injection].lateness_bound_ns;
            seen.beyond += u64::from(bound.is_some_and(|bound| late_ns > bound));
        }
    }

    /// Frames that a fault had to spare and that took as long as if it had not. They were slow; but a frame that others of its
    /// way overtook meanwhile was held.
    fn tally_slow(
        &self,
        came_ns: u64,
        frame: &Judged,
        left: &[Vec<u64>],
        overtaken_ns: u64,
        errors: &Errors,
        observations: &mut [Observation],
    ) {
        let verdict = &frame.passage.ingress;
        let Some(first) = left.iter().flatten().min().filter(|_| !errors.stray) else {
            return;
        };
        let waited_ns = first.saturating_sub(came_ns.saturating_add(verdict.fate.delay_ns));
        let acts = self.engine.ingress_acts(verdict);
        for act in acts.filter(|act| !act.hit && act.effect.hold_ns() > 0) {
            let hold_ns = act.effect.hold_ns();
            if waited_ns.saturating_add(STAMP_NS.min(hold_ns / 10)) < hold_ns {
                continue;
            }
            let seen = &mut observations[act.injection];
            if verdict.hits.is_empty() && overtaken_ns >= hold_ns / 2 {
                seen.collateral += 1;
            } else {
                seen.slow += u64::from(act.met);
            }
        }
    }
}

/// What becomes of a frame that no unit looks at.
fn untouched(frame: &Classified) -> Passage {
    let verdict = || Verdict {
        met: Vec::new(),
        hits: Vec::new(),
        fate: scenario::effect::Fate::UNTOUCHED,
    };
    Passage {
        ingress: verdict(),
        exits: frame
            .exits
            .iter()
            .map(|(port, _)| (*port, vec![verdict()]))
            .collect(),
    }
}
