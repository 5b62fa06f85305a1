//! What frames on both sides of switches say of their faults: the proof, told while they pass.
//!
//! Decisions are a function of seed, fault, flow and ordinal. So the frames that came to a switch, replayed through the model
//! of its fault engine ([`scenario::replay`]), say *which* frames each fault had to hit; and the frames that left say what
//! became of each. Nothing here looks at the switch's state, and that a frame was late is never taken for a hit.
//!
//! [`Judge`] takes frames in the order of their ports, and forgets each when it is decided: its memory grows with what is under
//! way, not with the run. It does no I/O and reads no clock.
//!
//! frame (what a recorder hands over) → trace (who came, who left) → epochs, courses, ahead, choose (which step of the timeline
//! met whom, replayed) → judge and order (what differs) → docket (what is decided, what waits) → tally; witness leads from one to
//! the next for each switch. flows and
//! became follow frames from end to end, recovery those of RDMA connections.
//! downtime counts what a switch let through while it was down.

mod ahead;
mod became;
mod choose;
mod courses;
mod docket;
mod downtime;
mod epochs;
mod facts;
mod flows;
mod frame;
mod hits;
mod judge;
mod loss;
mod odd;
mod order;
mod port;
mod recovery;
mod tally;
#[cfg(test)]
mod tests;
mod throughput;
mod trace;
mod witness;

use std::collections::BTreeMap;

use parser_gen::Headers;
use scenario::model::Scenario;
use scenario::plan::Plan;
use scenario::telling::Telling;

pub use became::FlowCount;
use downtime::Downtime;
pub use downtime::{Outage, OutageCount};
pub use facts::{EpochWrite, TriggerCount};
use flows::Flows;
pub use flows::MOST_FLOWS;
pub use frame::{Digest, Identity, Sight, Way};
pub use hits::{Hit, Outcome};
pub use loss::{Loser, Loss};
use recovery::Connections;
pub use recovery::{Recovery, Teller};
pub use throughput::{Carried, Throughput};
use witness::Witness;

/// [`Judge::advance`] is told of multiples of this, so that a run that is judged again is judged alike.
pub const STEP_NS: u64 = 50_000_000;

/// By how much stamps of two captures, and times that the controller reads, may be wrong against each other. A frame is stamped
/// before its switch gets it, so this is for clocks of processors, not for a busy machine.
const STAMP_NS: u64 = 100_000;

/// What the captures say.
#[derive(Debug, Default)]
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
    /// By switch of which frames are missing from some time on: that time, in nanoseconds since 1970. Observations are of earlier
    /// frames.
    pub unproved_from: BTreeMap<String, u64>,
    /// By switch: what no fault of it explains.
    pub strays: BTreeMap<String, Strays>,
    /// How RDMA connections came back from what was taken from them, in the same order.
    pub recoveries: Vec<Recovery>,
    /// For each announced outage, the number of frames that the switch let through while it was down.
    pub outages: Vec<OutageCount>,
}

impl Proof {
    /// Number of frames that a switch let through during an outage, if that is known.
    #[must_use]
    pub fn let_through(&self, outage: &Outage) -> Option<u64> {
        let mut outages = self.outages.iter();
        outages.find(|count| count.outage == *outage)?.frames
    }
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

impl Turns {
    /// What a trigger did in both places.
    pub fn and(self, other: Turns) -> Turns {
        Turns {
            came_on: self.came_on + other.came_on,
            keyless: self.keyless + other.keyless,
            conflated: self.conflated + other.conflated,
            is_ambiguous: self.is_ambiguous || other.is_ambiguous,
            is_crowded: self.is_crowded || other.is_crowded,
        }
    }
}

/// Under which conditions frames are judged.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    /// What the recorder tells frames apart by.
    pub digest: Digest,
    /// Whether the switches' programs have the very stamps of the frames that came that the recorder has.
    pub shares_stamps: bool,
}

/// A port that is recorded.
struct Port {
    number: u32,
    /// Its switch, if that has faults: a place among the witnesses.
    witness: Option<usize>,
    /// Its switch, if a disruption can take that down: an index of the downtimes.
    downtime: Option<usize>,
    /// The end that its link leads to, if it leads to one.
    end: Option<usize>,
}

/// Holds what is seen against what has to be, while it passes.
pub struct Judge<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    ports: Vec<Port>,
    witnesses: Vec<(&'a str, Witness<'a>, Connections<'a>)>,
    downtimes: Vec<Downtime<'a>>,
    flows: Flows<'a>,
    /// A frame is at the last switch of its way so long after it was sent, and stays there for so long.
    way_ns: u64,
    stay_ns: u64,
    losses: Vec<Loss>,
}

impl<'a> Judge<'a> {
    /// Of a planned scenario. `ports` are those that are recorded: switch and number.
    #[must_use]
    pub fn new(
        scenario: &'a Scenario,
        plan: &'a Plan,
        ports: &[(String, u32)],
        conditions: Conditions,
    ) -> Judge<'a> {
        let faulting = plan.switches.iter();
        let faulting = faulting.filter(|switch| !switch.faulting().is_empty());
        let witnesses = faulting.filter_map(|switch| {
            let name = switch.name.as_str();
            let own = ports.iter().filter(|(of, _)| of == name);
            let own = own.map(|(_, port)| *port);
            let Conditions {
                digest,
                shares_stamps,
            } = conditions;
            let witness = Witness::new(scenario, plan, name, own, (digest, shares_stamps))?;
            Some((name, witness, Connections::new(scenario, name)))
        });
        let witnesses: Vec<_> = witnesses.collect();
        // A frame is at the next switch of its way when all that may leave of it at the one before has left.
        let stay_ns = witnesses.iter().map(|(_, witness, _)| witness.horizon_ns());
        let stay_ns = stay_ns.max().unwrap_or(epochs::BACKLOG_NS);
        let switches = scenario.topology.switches.len().max(1) as u64;
        let links_ns = scenario
            .topology
            .links
            .iter()
            .map(|link| link.latency_ns)
            .sum();
        let way_ns = stay_ns
            .saturating_mul(switches - 1)
            .saturating_add(links_ns);
        let is_recorded = |switch: &str, port: u32| {
            let mut ports = ports.iter();
            ports.any(|(of, number)| of == switch && *number == port)
        };
        let flows = Flows::new(scenario, &is_recorded);
        let downtimes = Downtime::all(scenario);
        let ports = ports.iter().map(|(switch, number)| Port {
            number: *number,
            witness: witnesses.iter().position(|(name, ..)| name == switch),
            downtime: downtimes.iter().position(|of| of.switch == switch),
            end: flows.end_at(switch, *number),
        });
        Judge {
            scenario,
            plan,
            ports: ports.collect(),
            witnesses,
            downtimes,
            flows,
            way_ns,
            stay_ns,
            losses: Vec::new(),
        }
    }

    /// An epoch was put in force on a switch. All writes that were sent before the time of [`Judge::advance`] are told.
    pub fn write(&mut self, write: &EpochWrite) {
        self.flows.write(write);
        let own = self
            .witnesses
            .iter_mut()
            .filter(|(name, ..)| *name == write.switch);
        own.for_each(|(_, witness, _)| witness.write(write.clone()));
    }

    /// A switch was told of an RDMA connection.
    pub fn tell(&mut self, telling: &Telling) {
        let own = self
            .witnesses
            .iter_mut()
            .filter(|(name, ..)| *name == telling.switch);
        own.for_each(|(_, witness, connections)| {
            witness.tell(telling);
            connections.begins.add(telling);
        });
    }

    /// A disruption took a switch down. An outage may be announced while it lasts, and once more when
    /// its end is known, each within a horizon.
    pub fn down(&mut self, outage: &Outage) {
        let mut downtimes = self.downtimes.iter_mut();
        if let Some(downtime) = downtimes.find(|of| of.switch == outage.switch) {
            downtime.down(outage);
        }
    }

    /// Frames were lost: nothing may be concluded of their switch from then on.
    pub fn lose(&mut self, loss: Loss) {
        let mut loss = loss;
        if let Some(since_ns) = loss.since_ns {
            let own = self.witnesses.iter_mut();
            for (_, witness, _) in own.filter(|(name, ..)| *name == loss.switch) {
                if !witness.give_up(since_ns) {
                    loss.since_ns = None;
                }
            }
        }
        loss.add_to(&mut self.losses);
    }

    /// A frame passed a port, by its place among those that [`Judge::new`] was given. Frames of a port come in their order.
    pub fn see(&mut self, port: usize, sight: &Sight<'_>) {
        let Port {
            number,
            witness,
            downtime,
            end,
        } = self.ports[port];
        if let Some(downtime) = downtime {
            self.downtimes[downtime].see(sight);
        }
        // What leaves is known by its identity alone.
        let headers = match sight.way {
            Way::In => self.scenario.protocols.parsed(sight.bytes),
            Way::Out => Headers::default(),
        };
        if let Some(witness) = witness {
            let (_, witness, connections) = &mut self.witnesses[witness];
            witness.see(number, sight, &headers);
            if witness.takes() {
                connections.see(sight);
            }
        }
        if let Some(end) = end {
            self.flows.see(end, number, sight, &headers);
        }
    }

    /// All that passed until a time is there: decides what can be. `then_hit` gets what faults hit, as it becomes certain.
    pub fn advance(&mut self, now_ns: u64, mut then_hit: impl FnMut(Hit)) {
        for downtime in &mut self.downtimes {
            downtime.advance(now_ns);
        }
        let mut until_ns = now_ns.saturating_sub(self.stay_ns);
        let mut replayed_ns = now_ns.saturating_sub(epochs::AFTER_LEAVING_NS);
        let mut hold_ns: u64 = 0;
        for (number, (_, witness, connections)) in self.witnesses.iter_mut().enumerate() {
            witness.advance(now_ns);
            until_ns = until_ns.min(witness.until_ns());
            replayed_ns = replayed_ns.min(witness.replayed_ns());
            hold_ns = hold_ns.saturating_add(witness.longest_hold_ns());
            for change in witness.docket.changes.drain(..) {
                self.flows.change(number, change);
            }
            for hit in witness.docket.take_hits() {
                connections.hit(self.scenario, self.plan, &hit);
                then_hit(hit);
            }
            connections.advance(now_ns);
        }
        // Frames that came at these times are not replayed yet, those before them are.
        let replayed_ns = replayed_ns.saturating_sub(1);
        let until_ns = until_ns.saturating_sub(1);
        let sent_ns = replayed_ns.saturating_sub(hold_ns);
        self.flows.advance_lately(sent_ns, replayed_ns);
        self.flows.advance(until_ns.saturating_sub(self.way_ns));
    }

    /// The judge has announced every hit of the frames that passed before this time, in nanoseconds since 1970; `u64::MAX` if
    /// nothing is open. Hits of frames that several readings explain follow at the end.
    #[must_use]
    pub fn decided_ns(&self) -> u64 {
        let open = self.witnesses.iter();
        let open = open.map(|(_, witness, _)| witness.decided_ns());
        open.min().unwrap_or(u64::MAX)
    }

    /// The observations so far, by injection of the plan. They cover the frames that are decided.
    #[must_use]
    pub fn so_far(&self) -> Vec<Observation> {
        let mut all = vec![Observation::default(); self.plan.injections.len()];
        for (_, witness, _) in &self.witnesses {
            let seen = witness.docket.tally.observations.iter();
            for (all, seen) in all.iter_mut().zip(seen) {
                *all = all.and(*seen);
            }
        }
        all
    }

    /// Nothing passes any more: decides all but what several readings explain equally well. `then_hit` gets what faults hit.
    pub fn end(&mut self, mut then_hit: impl FnMut(Hit)) {
        for (number, (_, witness, connections)) in self.witnesses.iter_mut().enumerate() {
            witness.end();
            for change in witness.docket.changes.drain(..) {
                self.flows.change(number, change);
            }
            for hit in witness.docket.take_hits() {
                connections.hit(self.scenario, self.plan, &hit);
                then_hit(hit);
            }
        }
    }

    /// The verdict, after [`Judge::end`]. `fired` is what the switches counted for each injection of the plan, `triggers` of each
    /// trigger of the scenario: they say which of several readings is right. `then_hit` gets what faults hit by that reading.
    #[must_use]
    pub fn conclude(
        self,
        fired: &[u64],
        triggers: &[TriggerCount],
        mut then_hit: impl FnMut(Hit),
    ) -> Proof {
        // Triggers that no counter counts move none in the model either.
        let came_on = triggers.iter().map(|count| count.on);
        let mut counted: Vec<u64> = fired.iter().copied().chain(came_on).collect();
        let (injections, declared) = (self.plan.injections.len(), self.scenario.triggers.len());
        counted.resize(injections + declared, 0);
        let mut all = tally::Tally::new(injections, declared);
        let (mut strays, mut recoveries) = (BTreeMap::new(), Vec::new());
        let mut unproved_from = BTreeMap::new();
        for (name, witness, mut connections) in self.witnesses {
            let until_ns = witness.given_up_ns();
            let tally = witness.docket.conclude(&counted, |hit| {
                connections.hit(self.scenario, self.plan, &hit);
                then_hit(hit);
            });
            strays.insert(name.to_owned(), tally.strays);
            let at_any_time = |loss: &Loss| loss.switch == name && loss.since_ns.is_none();
            let until_ns = until_ns.filter(|_| !self.losses.iter().any(at_any_time));
            unproved_from.extend(until_ns.map(|until_ns| (name.to_owned(), until_ns)));
            all.add(tally);
            recoveries.extend(connections.conclude());
        }
        let (flows, throughput) = self.flows.conclude();
        let downtimes = self.downtimes.into_iter();
        Proof {
            outages: downtimes.flat_map(Downtime::conclude).collect(),
            observations: all.observations,
            triggers: all.triggers,
            flows,
            throughput,
            losses: self.losses,
            unproved_from,
            strays,
            recoveries,
        }
    }
}
