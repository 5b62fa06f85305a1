//! Proof of a run's faults from captures on both sides of each switch, computed while the frames pass.
//!
//! Each decision is a function of seed, fault, flow and ordinal. The judge replays the frames that arrived at a switch through
//! the model of its fault engine ([`scenario::replay`]). The model says which frames each fault had to hit; the frames that
//! left show what happened to each. The judge never reads the switch's state, and a late frame alone is no evidence of a hit.
//!
//! [`Judge`] takes the frames of each port in order and forgets a frame when it is decided. Its memory grows with the frames
//! in flight, not with the length of the run. It does no I/O and reads no clock.
//!
//! Modules in processing order: frame (the recorder's output) → trace (arrivals and departures) → epochs, courses, ahead,
//! choose (replay; which step of the timeline applied to which frame) → judge and order (differences) → docket (decided and
//! waiting frames) → tally. witness runs these stages for each switch. flows and became follow frames end to end, recovery
//! follows the frames of RDMA connections. downtime counts the frames that a switch let through while it was down.

mod ahead;
mod became;
mod choose;
mod courses;
mod docket;
mod downtime;
mod epochs;
mod facts;
mod flow_count;
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
use scenario::plan::announcement::Announcement;

use downtime::Downtime;
pub use downtime::{Outage, OutageCount};
pub use facts::{EpochWrite, TriggerCount};
pub use flow_count::FlowCount;
use flows::Flows;
pub use flows::MOST_FLOWS;
pub use frame::{Digest, Identity, Sight, Way};
pub use hits::{Hit, Outcome};
pub use loss::{Loser, Loss};
use recovery::Connections;
pub use recovery::{Recovery, Teller};
pub use throughput::{Carried, Throughput};
use witness::Witness;

/// Times given to [`Judge::advance`] are multiples of this (nanoseconds), so that judging again gives the same result.
pub const STEP_NS: u64 = 50_000_000;

/// Maximum error, in nanoseconds, between the timestamps of two captures, or between a capture and the controller's clock. A
/// frame is stamped before its switch gets it, so this covers the skew of processor clocks, not the delay of a busy machine.
const STAMP_NS: u64 = 100_000;

/// Result of judging the captures of a run.
#[derive(Debug, Default)]
pub struct Proof {
    /// One observation for each injection (fault on a flow at a switch) of the plan, in the plan's order.
    pub observations: Vec<Observation>,
    /// Activations of each trigger of the scenario, in its order.
    pub triggers: Vec<Turns>,
    /// Frames of each flow, by its name, counted between the first and the last switch of its path.
    pub flows: BTreeMap<String, FlowCount>,
    /// Name and throughput over time of up to [`MOST_FLOWS`] declared flows; flows that faults act on come first.
    pub throughput: Vec<(String, Throughput)>,
    /// Frames missing from the captures, because of which nothing may be concluded about some switches.
    pub losses: Vec<Loss>,
    /// For each switch with missing frames: the time, in nanoseconds since 1970, from which observations do not cover it.
    pub unproved_from: BTreeMap<String, u64>,
    /// For each switch, the number of frames that no fault explains.
    pub strays: BTreeMap<String, Strays>,
    /// How RDMA connections recovered from the packets that faults took, in the order of the losses.
    pub recoveries: Vec<Recovery>,
    /// For each announced outage, the number of frames that the switch let through while it was down.
    pub outages: Vec<OutageCount>,
}

impl Proof {
    /// Number of frames that a switch let through during an outage; `None` if that is not known.
    #[must_use]
    pub fn let_through(&self, outage: &Outage) -> Option<u64> {
        let mut outages = self.outages.iter();
        outages.find(|count| count.outage == *outage)?.frames
    }
}

/// Numbers of frames at a switch whose departures no fault explains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strays {
    /// Number of frames that arrived and did not leave as the model expects.
    pub unexplained: u64,
    /// Number of frames that left without having arrived, or by a wrong port.
    pub foreign: u64,
}

/// Effects of a fault on a flow at a switch, counted from the captures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observation {
    /// Number of frames that the fault looked at, since they belong to its flow.
    pub met: u64,
    /// Number of frames that the fault had to hit, and hit.
    pub observed: u64,
    /// Frames in `observed` that another fault dropped: the effect of this fault on them cannot be seen.
    pub overridden: u64,
    /// Frames in `met` whose key, such as their connection, had no register cell in the switch: the fault had to spare them.
    pub keyless: u64,
    /// Frames in `met` that the fault counted under the key (such as the connection) of another frame.
    pub conflated: u64,
    /// Frames that the fault had to hit without visible effect: the switch's table entries forward them nowhere.
    pub unforwarded: u64,
    /// Frames that the fault had to hit, and did not.
    pub missed: u64,
    /// Frames that the fault had to spare, and hit.
    pub collateral: u64,
    /// Data packets, among all that arrived at the switch, that arrived while their RDMA connection was being announced to it.
    /// Either numbering may have applied. The judge uses the one before the announcement.
    pub in_doubt: u64,
    /// Frames that arrived while an epoch was written: the old or the new may have applied, and the
    /// judge uses the one that fits.
    pub boundary: u64,
    /// Frames that the fault had to spare, and that stayed in the switch as long as if the fault had held them.
    pub slow: u64,
    /// Frames in `slow` for which no other frame shows that the machine stood still at that time.
    pub slow_alone: u64,
    /// Frames that the fault held longer than the scenario plan's lateness bound allows.
    pub beyond: u64,
    /// Largest excess, in nanoseconds, of a held frame's delay over the requested delay.
    pub latest_ns: u64,
    /// Smallest excess, in nanoseconds, of a held frame's delay over the requested delay, without frames that were late while
    /// the machine stood still. If this is too large, the fault holds frames for too long.
    pub soonest_ns: Option<u64>,
    /// Whether two readings (choices of each frame's epoch) fit the captures, but differ in which frames this fault had to hit.
    pub is_ambiguous: bool,
    /// Whether too many frames arrived while an epoch was being written to try all choices of their epochs.
    pub is_crowded: bool,
}

impl Observation {
    /// Combines two observations: adds the counts, takes the larger `latest_ns` and the smaller `soonest_ns`.
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

/// Activations of a trigger at a switch, counted from the captures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turns {
    /// Number of times that the trigger had to come on, summed over its keys, such as connections.
    pub came_on: u64,
    /// Frames that the trigger had to count, but whose key, such as their connection, had no register cell in the switch.
    pub keyless: u64,
    /// Frames that the trigger counted under the key (such as the connection) of another frame.
    pub conflated: u64,
    /// Whether two readings fit the captures, but differ in how often the trigger came on.
    pub is_ambiguous: bool,
    /// Whether too many sequences of trigger changes were possible to try them all.
    pub is_crowded: bool,
}

impl Turns {
    /// Adds the counts of this trigger from two parts of the captures.
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

/// Properties of the recorder that the judge must know.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    /// Hash by which the recorder identifies frames.
    pub digest: Digest,
    /// Whether the switches' programs see the same arrival timestamps that the recorder stores.
    pub shares_stamps: bool,
}

/// A switch port whose frames are recorded.
struct Port {
    number: u32,
    /// Index of the port's switch among the witnesses, if the switch has faults.
    witness: Option<usize>,
    /// Index of the port's switch among the downtimes, if a disruption can take the switch down.
    downtime: Option<usize>,
    /// Index of the flow end (host) that the port's link leads to, if any.
    end: Option<usize>,
}

/// Compares the captured frames of all switches with the model while they pass.
pub struct Judge<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    ports: Vec<Port>,
    witnesses: Vec<(&'a str, Witness<'a>, Connections<'a>)>,
    downtimes: Vec<Downtime<'a>>,
    flows: Flows<'a>,
    /// Maximum time in ns from a frame's sending to the last switch on its path; `stay_ns`: maximum time in that switch.
    way_ns: u64,
    stay_ns: u64,
    losses: Vec<Loss>,
}

impl<'a> Judge<'a> {
    /// A judge for a planned scenario. `ports` lists the recorded ports: switch name and port number.
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
        // A frame is at the next switch of its path once all its copies that may leave the previous switch have left.
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

    /// Adds an epoch write that took effect on a switch. [`Judge::advance`] needs all writes sent before its time.
    pub fn write(&mut self, write: &EpochWrite) {
        self.flows.write(write);
        let own = self
            .witnesses
            .iter_mut()
            .filter(|(name, ..)| *name == write.switch);
        own.for_each(|(_, witness, _)| witness.write(write.clone()));
    }

    /// Adds an announcement, which a switch received, of an RDMA connection's first sequence number.
    pub fn announce(&mut self, announcement: &Announcement) {
        let own = self
            .witnesses
            .iter_mut()
            .filter(|(name, ..)| *name == announcement.switch);
        own.for_each(|(_, witness, connections)| {
            witness.announce(announcement);
            connections.begins.add(announcement);
        });
    }

    /// Records that a disruption took a switch down. Call it again once the end is known, within a frame's longest stay there.
    pub fn down(&mut self, outage: &Outage) {
        let mut downtimes = self.downtimes.iter_mut();
        if let Some(downtime) = downtimes.find(|of| of.switch == outage.switch) {
            downtime.down(outage);
        }
    }

    /// Records frames missing from the captures: nothing may be concluded about their switch from then on.
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

    /// Takes a frame that passed recorded port `port` (index of the ports in [`Judge::new`]); each port's frames come in order.
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
        // A departing frame is known by its identity alone.
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

    /// Decides what can be decided, once all frames until `now_ns` are in. `then_hit` is called with each certain hit.
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
        // Frames with exactly these arrival times are not replayed yet, earlier ones are.
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

    /// The observations so far, one for each injection of the plan. They cover the decided frames.
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

    /// Decides the rest at the end of the run, without frames that several readings explain.
    /// `then_hit` is called with each hit.
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

    /// The proof, after [`Judge::end`]. `fired` has the switches' own count for each injection of the plan, `triggers` for each
    /// trigger of the scenario: they select one of several readings, whose hits are passed to `then_hit`.
    #[must_use]
    pub fn conclude(
        self,
        fired: &[u64],
        triggers: &[TriggerCount],
        mut then_hit: impl FnMut(Hit),
    ) -> Proof {
        // A trigger without a counter changes no counter in the model either.
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
