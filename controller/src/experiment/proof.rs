//! What captures on both sides of a switch say of its faults: the other half of every count that the switch makes.
//!
//! Nothing here looks at the switch's state. A frame that came in is expected to leave by the ports that the forwarding
//! entries name; what is missing, came once more, or came late, was done to it inside.

use std::collections::{BTreeMap, VecDeque};

use p4lang::runtime::Match;
use parser_gen::{Filter, Library};
use scenario::Plan;
use scenario::model::{Direction as Side, Effect, Scenario};
use scenario::plan::{Injection, SwitchPlan};
use testbeds::bed::PortRecording;
use testbeds::capture::{self, AggregationKey, Difference, Direction, Frame, Seen, TcpKey};

/// Identifies one transmission of a frame.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum FrameKey {
    Aggregation(AggregationKey),
    Tcp(TcpKey),
    Other(Box<[u8]>),
}

impl FrameKey {
    fn of(frame: &[u8]) -> FrameKey {
        if let Some(key) = capture::aggregation_key(frame) {
            FrameKey::Aggregation(key)
        } else if let Some(key) = capture::tcp_key(frame) {
            FrameKey::Tcp(key)
        } else {
            FrameKey::Other(frame.into())
        }
    }
}

/// What one fault did to one flow at one switch, seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Index into [`Plan::injections`].
    pub injection: usize,
    /// Frames of the flow that came in.
    pub met: u64,
    /// Frames to which the fault's effect was done.
    pub observed: u64,
    /// For a delay: how much later than asked the latest frame left.
    pub latest_ns: u64,
    /// For a delay: frames that left later than the plan's bound allows.
    pub beyond: u64,
}

/// What became of a flow between its first and its last switch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCount {
    /// Frames that the sender put on its link.
    pub sent: u64,
    /// Of those, frames that came out towards the receiver.
    pub received: u64,
    /// Sent and not received.
    pub lost: u64,
    /// Received more often than sent.
    pub extra: u64,
    /// The longest time between the two.
    pub longest_ns: u64,
}

/// Why nothing can be concluded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The recorder lost frames.
    #[error(
        "the capture at port {port} of switch {switch} is incomplete: {lost} frames too fast, {full} beyond its limit"
    )]
    Incomplete {
        /// Where.
        switch: String,
        /// Where.
        port: u32,
        /// Not recorded in time.
        lost: u64,
        /// Not recorded for want of room.
        full: u64,
    },
    /// An aggregating switch takes frames in and sends others out.
    #[error(
        "switch {switch} aggregates, so captures cannot prove fault {fault} there: place it at a neighbour"
    )]
    Aggregates {
        /// Where.
        switch: String,
        /// Which.
        fault: String,
    },
}

struct SwitchTrace<'a> {
    plan: &'a SwitchPlan,
    /// In the order of time, over all ports.
    came: Vec<(u32, &'a Frame)>,
    left: Vec<(u32, &'a Frame)>,
    /// When each frame that passed came and left, by the first; it may have left before it came, see [`STAMP_NS`].
    transits: Vec<(u64, u64)>,
}

impl SwitchTrace<'_> {
    fn pair(&mut self) {
        self.came.sort_by_key(|(_, frame)| frame.at_ns);
        self.left.sort_by_key(|(_, frame)| frame.at_ns);
        let mut waiting: BTreeMap<FrameKey, VecDeque<u64>> = BTreeMap::new();
        for (_, frame) in &self.left {
            waiting
                .entry(FrameKey::of(&frame.bytes))
                .or_default()
                .push_back(frame.at_ns);
        }
        for (_, frame) in &self.came {
            if let Some(left) = waiting
                .get_mut(&FrameKey::of(&frame.bytes))
                .and_then(VecDeque::pop_front)
            {
                self.transits.push((frame.at_ns, left));
            }
        }
    }

    /// Whether the switch went on working while a frame was inside for `took_ns`.
    ///
    /// A software switch may be kept from running for as long as a delay lasts, and then all that had come leaves together. A
    /// frame that was held on purpose is overtaken by what came after it; and if nothing came after it, it leaves alone.
    fn was_alive(&self, came_ns: u64, took_ns: u64, delay_ns: u64) -> bool {
        let left_ns = came_ns + took_ns;
        let until = left_ns.saturating_sub(delay_ns / 2);
        let first = self
            .transits
            .partition_point(|transit| transit.0 <= came_ns);
        let mut later = self.transits[first..]
            .iter()
            .take_while(|transit| transit.0 < until);
        if later.any(|transit| transit.1 <= until) {
            return true;
        }
        let companions = self.transits.iter().filter(|(came, left)| {
            left.abs_diff(left_ns) <= delay_ns / 8
                && left.saturating_sub(*came) >= delay_ns / 2
                && (*came, *left) != (came_ns, left_ns)
        });
        companions.count() < COMPANIONS
    }
}

/// How late a frame may be seen to come: the recorder stamps its copy of a frame when it gets it, and the switch, which gets one
/// of its own, may by then have sent the frame on (by up to 6 us, in a few of a hundred runs on a busy machine). The kernel has no
/// earlier time for TCP over veth.
const STAMP_NS: u64 = 100_000;

/// So many frames that were slow together with another were stalled, not held: a fault selects few of neighbouring frames.
const COMPANIONS: usize = 3;

/// All captures of a run.
pub struct Trace<'a> {
    library: Library,
    switches: BTreeMap<&'a str, SwitchTrace<'a>>,
}

impl<'a> Trace<'a> {
    /// Sorts recordings by switch; refuses incomplete ones.
    pub fn new(plan: &'a Plan, recordings: &'a [PortRecording]) -> Result<Self, ProofError> {
        let mut switches = BTreeMap::new();
        for port in recordings {
            if !port.recording.is_complete() {
                return Err(ProofError::Incomplete {
                    switch: port.switch.clone(),
                    port: port.port,
                    lost: port.recording.lost,
                    full: port.recording.over_limit,
                });
            }
            let Some(plan) = plan.switch(&port.switch) else {
                continue;
            };
            let trace: &mut SwitchTrace<'_> =
                switches
                    .entry(port.switch.as_str())
                    .or_insert_with(|| SwitchTrace {
                        plan,
                        came: Vec::new(),
                        left: Vec::new(),
                        transits: Vec::new(),
                    });
            trace.came.extend(
                port.recording
                    .going(Direction::In)
                    .map(|frame| (port.port, frame)),
            );
            trace.left.extend(
                port.recording
                    .going(Direction::Out)
                    .map(|frame| (port.port, frame)),
            );
        }
        switches.values_mut().for_each(SwitchTrace::pair);
        Ok(Self {
            library: Library::builtin(),
            switches,
        })
    }

    /// What each injection whose switch was recorded did.
    pub fn observe(
        &self,
        scenario: &Scenario,
        plan: &Plan,
        aggregator: Option<&str>,
    ) -> Result<Vec<Observation>, ProofError> {
        let mut observations = Vec::new();
        for (index, injection) in plan.injections.iter().enumerate() {
            let Some(trace) = self.switches.get(injection.switch.as_str()) else {
                continue;
            };
            if aggregator == Some(injection.switch.as_str()) {
                let (switch, fault) = (injection.switch.clone(), injection.fault.clone());
                return Err(ProofError::Aggregates { switch, fault });
            }
            let fault = scenario
                .faults
                .iter()
                .find(|fault| fault.id == injection.fault);
            let flow = scenario
                .flows
                .iter()
                .find(|flow| flow.name == injection.flow);
            let (Some(fault), Some(flow)) = (fault, flow) else {
                continue;
            };
            observations.push(self.observe_one(
                trace,
                injection,
                index,
                fault.effect,
                &flow.filter,
            ));
        }
        Ok(observations)
    }

    fn observe_one(
        &self,
        trace: &SwitchTrace<'_>,
        injection: &Injection,
        index: usize,
        effect: Effect,
        filter: &Filter,
    ) -> Observation {
        let difference = self.compare(trace, injection.direction, filter, effect);
        let (observed, latest_ns, late) = match effect {
            Effect::Drop => (difference.missing.len(), 0, 0),
            Effect::Duplicate => (difference.extra.len(), 0, 0),
            Effect::Delay { ns } => {
                let held = difference
                    .late
                    .iter()
                    .filter(|late| trace.was_alive(late.at_ns, late.delay_ns, ns));
                let beyond: Vec<u64> = held.map(|late| late.delay_ns.saturating_sub(ns)).collect();
                let bound = injection.lateness_bound_ns.unwrap_or(u64::MAX);
                let late = beyond.iter().filter(|ns| **ns > bound).count();
                (beyond.len(), beyond.into_iter().max().unwrap_or(0), late)
            }
        };
        let met = difference.matched + difference.missing.len() as u64;
        Observation {
            injection: index,
            met,
            observed: observed as u64,
            latest_ns,
            beyond: late as u64,
        }
    }

    /// Matches what came in with what left. A fault in ingress acts on the frame, whatever number of copies leave: one of
    /// them stands for it. A fault in egress acts on each copy.
    fn compare(
        &self,
        trace: &SwitchTrace<'_>,
        side: Side,
        filter: &Filter,
        effect: Effect,
    ) -> Difference<(u32, FrameKey)> {
        let mut before = Vec::new();
        for (port, frame) in &trace.came {
            let exits = exits(trace.plan, *port, &frame.bytes);
            let of_flow = |port: u32| filter.matches(&self.library.dissect(&frame.bytes, port));
            let key = || FrameKey::of(&frame.bytes);
            match side {
                Side::Ingress if of_flow(*port) => {
                    before.extend(exits.first().map(|exit| Seen {
                        key: (*exit, key()),
                        at_ns: frame.at_ns,
                    }));
                }
                Side::Ingress => {}
                Side::Egress => {
                    let copies = exits.into_iter().filter(|exit| of_flow(*exit));
                    before.extend(copies.map(|exit| Seen {
                        key: (exit, key()),
                        at_ns: frame.at_ns,
                    }));
                }
            }
        }
        let wanted: std::collections::BTreeSet<&(u32, FrameKey)> =
            before.iter().map(|seen| &seen.key).collect();
        let after: Vec<Seen<(u32, FrameKey)>> = trace
            .left
            .iter()
            .map(|(port, frame)| Seen {
                key: (*port, FrameKey::of(&frame.bytes)),
                at_ns: frame.at_ns,
            })
            .filter(|seen| wanted.contains(&seen.key))
            .collect();
        // A held frame leaves at its deadline or later: `late` counts what took at least as long as was asked, but for what
        // the recorder's stamps may be wrong by.
        let bound = match effect {
            Effect::Delay { ns } => (ns - (ns / 10).min(STAMP_NS)).saturating_sub(1),
            Effect::Drop | Effect::Duplicate => u64::MAX,
        };
        capture::match_frames(&before, &after, bound)
    }

    /// What became of each flow whose first and last switch were recorded and do not aggregate.
    pub fn flows(
        &self,
        scenario: &Scenario,
        aggregator: Option<&str>,
    ) -> BTreeMap<String, FlowCount> {
        let mut counts: BTreeMap<String, FlowCount> = BTreeMap::new();
        for flow in &scenario.flows {
            let mut total = FlowCount::default();
            let mut known = !flow.paths.is_empty();
            for path in &flow.paths {
                let through_aggregator =
                    aggregator.is_some_and(|name| path.switches.iter().any(|s| s == name));
                let ends = path.switches.first().zip(path.switches.last());
                let traces = ends.and_then(|(first, last)| {
                    Some((
                        self.switches.get(first.as_str())?,
                        self.switches.get(last.as_str())?,
                    ))
                });
                let (Some((first, last)), false) = (traces, through_aggregator) else {
                    known = false;
                    continue;
                };
                self.count_path(
                    scenario,
                    &path.from,
                    &path.to,
                    &flow.filter,
                    (first, last),
                    &mut total,
                );
            }
            if known {
                counts.insert(flow.name.clone(), total);
                if flow.declared != flow.name {
                    let sum = counts.entry(flow.declared.clone()).or_default();
                    sum.sent += total.sent;
                    sum.received += total.received;
                    sum.lost += total.lost;
                    sum.extra += total.extra;
                    sum.longest_ns = sum.longest_ns.max(total.longest_ns);
                }
            }
        }
        counts
    }

    fn count_path(
        &self,
        scenario: &Scenario,
        from: &str,
        to: &str,
        filter: &Filter,
        (first, last): (&SwitchTrace<'_>, &SwitchTrace<'_>),
        total: &mut FlowCount,
    ) {
        let entry = scenario
            .topology
            .next_hop(&first.plan.name, from)
            .map(|port| port.number);
        let exit = scenario
            .topology
            .next_hop(&last.plan.name, to)
            .map(|port| port.number);
        let receiver = scenario.topology.host(to).map(|host| host.mac.0);
        let is_for_receiver = |frame: &Frame| {
            frame
                .bytes
                .get(..6)
                .is_some_and(|mac| Some(mac) == receiver.as_ref().map(|m| &m[..]))
        };
        let seen =
            |frames: &[(u32, &Frame)], at: Option<u32>, check: bool| -> Vec<Seen<FrameKey>> {
                frames
                    .iter()
                    .filter(|(port, frame)| Some(*port) == at && is_for_receiver(frame))
                    .filter(|(port, frame)| {
                        !check || filter.matches(&self.library.dissect(&frame.bytes, *port))
                    })
                    .map(|(_, frame)| Seen {
                        key: FrameKey::of(&frame.bytes),
                        at_ns: frame.at_ns,
                    })
                    .collect()
            };
        let before = seen(&first.came, entry, true);
        let wanted: std::collections::BTreeSet<&FrameKey> =
            before.iter().map(|seen| &seen.key).collect();
        let after: Vec<_> = seen(&last.left, exit, false)
            .into_iter()
            .filter(|seen| wanted.contains(&seen.key))
            .collect();
        let difference = capture::match_frames(&before, &after, u64::MAX);
        total.sent += before.len() as u64;
        total.received += difference.matched;
        total.lost += difference.missing.len() as u64;
        total.extra += difference.extra.len() as u64;
        total.longest_ns = total.longest_ns.max(difference.longest_in_time_ns);
    }
}

/// The ports by which the forwarding entries send a frame that came in by `port`.
fn exits(plan: &SwitchPlan, _port: u32, frame: &[u8]) -> Vec<u32> {
    let Some(destination) = frame.get(..6) else {
        return Vec::new();
    };
    let destination = destination
        .iter()
        .fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
    let forward = plan.entries.iter().find(|entry| {
        entry.table.ends_with(".forward.mac")
            && entry
                .key
                .iter()
                .any(|key| key.value == Match::exact(destination))
    });
    let Some((_, value)) = forward.and_then(|entry| entry.action.params.first()) else {
        return Vec::new();
    };
    if forward.is_some_and(|entry| entry.action.name.ends_with(".multicast")) {
        let group = plan
            .groups
            .iter()
            .find(|group| *value == u128::from(group.id));
        group
            .map(|group| group.replicas.iter().map(|replica| replica.port).collect())
            .unwrap_or_default()
    } else {
        value.to().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(plan: &SwitchPlan, transits: Vec<(u64, u64)>) -> SwitchTrace<'_> {
        SwitchTrace {
            plan,
            came: Vec::new(),
            left: Vec::new(),
            transits,
        }
    }

    fn plan() -> SwitchPlan {
        SwitchPlan {
            name: "s".into(),
            flows: Vec::new(),
            units: Vec::new(),
            entries: Vec::new(),
            groups: Vec::new(),
            resources: Default::default(),
        }
    }

    #[test]
    fn a_held_frame_is_overtaken_and_a_stalled_switch_overtakes_nothing() {
        let plan = plan();
        // Came at 100, left at 200, asked for 80.
        let overtaken = trace(&plan, vec![(100, 200), (110, 112)]);
        assert!(overtaken.was_alive(100, 100, 80));
        // All that came meanwhile left with it, and so for each of them.
        let stalled = trace(&plan, vec![(100, 200), (105, 200), (110, 201), (120, 202)]);
        assert!(!stalled.was_alive(100, 100, 80));
        assert!(!stalled.was_alive(120, 82, 80));
        // Nothing came that could tell, or one other that was held as well.
        let alone = trace(&plan, vec![(50, 51), (100, 200), (195, 201)]);
        assert!(alone.was_alive(100, 100, 80));
        let two = trace(&plan, vec![(100, 200), (102, 202)]);
        assert!(two.was_alive(100, 100, 80) && two.was_alive(102, 100, 80));
        // The recorder got another frame after the switch had sent it on.
        let quick = trace(&plan, vec![(100, 200), (203, 199)]);
        assert!(quick.was_alive(100, 100, 80));
    }
}
