//! What captures on both sides of a switch say of its faults: the proof.
//!
//! Decisions are a function of seed, fault, flow and ordinal. So the frames that came to a switch, replayed through the model
//! of its fault engine ([`scenario::replay`]), say *which* frames each fault had to hit; and the frames that left say what
//! became of each. Nothing here looks at the switch's state, and that a frame was late is never taken for a hit.
//!
//! trace (who came, who left) → epochs, ahead, choose (which step of the timeline met whom, replayed) → judge and order (what
//! differs) → [`Observation`]s; switch.rs leads from one to the next.

mod ahead;
mod became;
mod choose;
mod epochs;
mod flows;
mod hits;
mod judge;
mod loss;
mod order;
mod recovery;
mod switch;
#[cfg(test)]
mod tests;
mod throughput;
mod trace;

use std::collections::BTreeMap;

use scenario::Plan;
use scenario::model::Scenario;
use scenario::telling::Telling;
use testbeds::bed::PortRecording;

use super::fleet::{EpochWrite, TriggerCount};
pub use became::FlowCount;
pub use flows::MOST_FLOWS;
pub use hits::{Hit, Outcome};
pub use loss::{Loser, Loss};
pub use recovery::{Recovery, Teller};
use switch::Witness;
pub use throughput::{Carried, Throughput};

/// By how much stamps of two captures, and times that the controller reads, may be wrong against each other. A frame is stamped
/// before its switch gets it ([`testbeds::bed::Bed::record`]), so this is for clocks of processors, not for a busy machine.
const STAMP_NS: u64 = 100_000;

/// What a run left behind: all that its faults are proved by. It comes from the run, or from the folder where that kept it.
#[derive(Debug, Default)]
pub struct Evidence {
    /// What passed the switches' ports.
    pub recordings: Vec<PortRecording>,
    /// The writes of epochs, in the order in which they were sent.
    pub writes: Vec<EpochWrite>,
    /// What switches were told of RDMA connections.
    pub tellings: Vec<Telling>,
    /// What the switch counted for each injection of the plan.
    pub fired: Vec<u64>,
    /// What it counted for each of packets whose key had no cell.
    pub keyless: Vec<u64>,
    /// What it counted of each trigger of the scenario.
    pub triggers: Vec<TriggerCount>,
    /// What the switches say that they have lost.
    pub losses: Vec<Loss>,
    /// What the controller did to programs and switches.
    pub carried: Vec<super::disruption::Carried>,
    /// Whether the switches' programs have the very stamps of the frames that came that the recordings have.
    pub shares_stamps: bool,
}

impl Evidence {
    /// How many frames the captures hold.
    pub fn frames(&self) -> u64 {
        let recordings = self.recordings.iter();
        let frames = recordings.map(|port| port.recording.frames.len() as u64);
        frames.sum()
    }

    /// When the workload began: its first step was in force then.
    pub fn start_ns(&self) -> Option<u64> {
        let first = self.writes.iter().filter(|write| write.epoch == 1);
        first.map(|write| write.confirmed_ns).max()
    }
}

/// What the captures say.
#[derive(Debug)]
pub struct Proof {
    /// For each injection of the plan.
    pub observations: Vec<Observation>,
    /// For each trigger of the scenario.
    pub triggers: Vec<Turns>,
    /// Flows between their ends.
    pub flows: BTreeMap<String, FlowCount>,
    /// What declared flows carried over time, those first that faults act on: [`MOST_FLOWS`] of them.
    pub throughput: Vec<(String, Throughput)>,
    /// Why nothing may be concluded of some switches.
    pub losses: Vec<Loss>,
    /// By switch: what no fault of it explains.
    pub strays: BTreeMap<String, Strays>,
    /// Which frames were hit, switch by switch and port by port.
    pub hits: Vec<Hit>,
    /// How RDMA connections came back from what was taken from them, in the same order.
    pub recoveries: Vec<Recovery>,
}

/// Frames of a switch that no fault explains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strays {
    /// They came, and did not leave as they had to.
    pub unexplained: u64,
    /// They left, and had not come; or by a port that they were not for.
    pub foreign: u64,
}

/// What a fault did to a flow at a switch, seen from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observation {
    /// Frames that it looked at.
    pub met: u64,
    /// It had to hit them, and did.
    pub observed: u64,
    /// Of those, frames that another fault dropped: nothing of what this one did to them is to be seen.
    pub overridden: u64,
    /// Of those that it looked at, frames whose key had no cell: it had to spare them.
    pub keyless: u64,
    /// The same, frames that it took for those of another key.
    pub conflated: u64,
    /// It had to hit them, and nothing shows whether it did: the switch's entries forward them nowhere.
    pub unforwarded: u64,
    /// It had to hit them, and did not.
    pub missed: u64,
    /// It had to spare them, and hit them.
    pub collateral: u64,
    /// Data packets that came while the switch was being told of their RDMA connection, of all that came to it: either numbering may
    /// have met them. They are judged by the one before.
    pub in_doubt: u64,
    /// Frames that came while an epoch was being written: either epoch may have met them. They are judged by the one that fits.
    pub boundary: u64,
    /// It had to spare them, and they took as long as if it had not.
    pub slow: u64,
    /// Of those, frames of which no other shows that the machine stood still meanwhile.
    pub slow_alone: u64,
    /// It held them longer than the plan's bound allows.
    pub beyond: u64,
    /// How much later than asked the latest frame left that it held.
    pub latest_ns: u64,
    /// How much later than asked the most punctual frame left that it held, but for those that were late while the machine
    /// stood still. If that is too late, it holds for too long.
    pub soonest_ns: Option<u64>,
    /// Frames at a boundary fit two readings, which differ in what this fault had to hit.
    pub is_ambiguous: bool,
    /// Too many frames came while an epoch was being written to try all readings.
    pub is_crowded: bool,
}

impl Observation {
    /// What a fault did in both places.
    pub fn and(self, other: Observation) -> Observation {
        Observation {
            met: self.met + other.met,
            observed: self.observed + other.observed,
            overridden: self.overridden + other.overridden,
            keyless: self.keyless + other.keyless,
            conflated: self.conflated + other.conflated,
            unforwarded: self.unforwarded + other.unforwarded,
            missed: self.missed + other.missed,
            collateral: self.collateral + other.collateral,
            in_doubt: self.in_doubt + other.in_doubt,
            boundary: self.boundary + other.boundary,
            slow: self.slow + other.slow,
            slow_alone: self.slow_alone + other.slow_alone,
            beyond: self.beyond + other.beyond,
            latest_ns: self.latest_ns.max(other.latest_ns),
            soonest_ns: self.soonest_ns.into_iter().chain(other.soonest_ns).min(),
            is_ambiguous: self.is_ambiguous || other.is_ambiguous,
            is_crowded: self.is_crowded || other.is_crowded,
        }
    }
}

/// What a trigger of a switch did, seen from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turns {
    /// How often it had to come on, for all keys together.
    pub came_on: u64,
    /// Frames that it had to count, and whose key had no cell.
    pub keyless: u64,
    /// Frames that it took for those of another key.
    pub conflated: u64,
    /// Frames fit two readings, which differ in how often it came on.
    pub is_ambiguous: bool,
    /// Too much may have happened to try all readings.
    pub is_crowded: bool,
}

/// What was seen of the switches, while it is gathered.
#[derive(Debug, Default)]
struct Seen {
    /// By injection.
    observations: Vec<Observation>,
    /// By trigger of the scenario.
    triggers: Vec<Turns>,
    hits: Vec<Hit>,
    changed: became::Changed,
}

/// Holds what was seen against what had to be.
pub fn prove(scenario: &Scenario, plan: &Plan, evidence: &Evidence) -> Proof {
    let mut losses = loss::of_recordings(&evidence.recordings);
    losses.extend(evidence.losses.iter().cloned());
    let mut seen = Seen {
        observations: vec![Observation::default(); plan.injections.len()],
        triggers: vec![Turns::default(); scenario.triggers.len()],
        ..Seen::default()
    };
    // Triggers that no counter counts move none in the model either.
    let came_on = evidence.triggers.iter().map(|count| count.on);
    let mut counted: Vec<u64> = evidence.fired.iter().copied().chain(came_on).collect();
    counted.resize(plan.injections.len() + scenario.triggers.len(), 0);
    let mut strays = BTreeMap::new();
    for switch in plan
        .switches
        .iter()
        .filter(|switch| !switch.faulting().is_empty())
    {
        if let Some(witness) = Witness::new(scenario, plan, &switch.name, evidence) {
            strays.insert(switch.name.clone(), witness.testify(&counted, &mut seen));
        }
    }
    let (flows, throughput) = flows::count(scenario, evidence, &seen.changed);
    Proof {
        flows,
        throughput,
        observations: seen.observations,
        triggers: seen.triggers,
        losses,
        strays,
        recoveries: recovery::recoveries(scenario, plan, evidence, &seen.hits),
        hits: seen.hits,
    }
}
