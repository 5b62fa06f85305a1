//! Makes a scenario's plan, the configuration of each switch: injection points, units, table entries, timeline, bounds.
//!
//! Every packet of a flow passes each of its faults at exactly one injection point, on every path that it can take.

pub mod announcement;
mod before_sum;
pub mod blast_radius;
mod cost;
mod cut;
mod disruptions;
mod effects;
mod engine;
mod entries;
mod forwarding;
mod gradients;
mod key;
mod latency;
mod lease;
mod marking;
mod multipath;
pub mod names;
mod over;
mod place;
mod points;
mod provable;
mod refused;
mod runtime;
mod same;
mod solve;
mod summing;
mod switch;
mod target;
mod text;
mod ties;
mod together;
mod triggered;
mod wait;
mod wanted;

use parser_gen::Filter;
use serde::{Serialize, Serializer};

use crate::diagnostic::{Diagnostics, Sink};
use crate::model::gradient::Gradients;
use crate::model::lease::Leased;
use crate::model::{Direction, Epoch, Scenario};
use crate::units;
use blast_radius::Reach;

pub use before_sum::BeforeSum;
pub use cost::Resources;
use cost::lateness_bound_ns;
pub use disruptions::{ActiveTime, PlannedDisruption};
pub use forwarding::{forwarding, groups};
pub use latency::{PortLatency, port_latencies};
pub use marking::port_marks;
pub use over::{Becomes, Continuation, Ended, Over};
pub use place::Fullest;
pub use provable::{plan_to_prove, triggers_join_ports};
pub use switch::SwitchPlan;
use switch::switch_plan;
pub use target::{TargetModel, Truncates};
pub use together::{check_together, plan_together};
pub use triggered::PlannedTrigger;
pub(crate) use triggered::{events_by_flow, flows_met};

/// Period, in nanoseconds, at which a controller checks the conditions that a step waits for or that abort the run.
pub const LOOK_EVERY_NS: u64 = 50_000_000;

/// The plan of a scenario: the configuration of every switch, and the bounds that hold for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's seed.
    pub seed: u64,
    /// Which nodes sum gradients, if the file asks for a plan (`plan:`); otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradients: Option<Gradients>,
    /// The plan of each switch, in topology order.
    pub switches: Vec<SwitchPlan>,
    /// The injection points: one for each fault, flow and switch, in declared order.
    pub injections: Vec<Injection>,
    /// How full the fullest switch is; `None` without faults. For scenarios that are planned together, it counts all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fullest: Option<Fullest>,
    /// The epochs (intervals of the timeline), each written to all switches at its start. Outside the timeline it is epoch 0.
    pub timeline: Vec<Epoch>,
    /// The disruptions: actions of the controller on programs and switches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disruptions: Vec<PlannedDisruption>,
    /// The lease: whether and when faults end without the controller.
    pub lease: Leased,
    /// The maximum reach of each fault: flows, hosts and links that it may hit.
    pub blast_radius: Vec<Reach>,
    /// Number of bits of a random draw on the target's switches.
    pub draw_bits: u32,
    /// Probabilities that the target's switches represent with an error of more than 1 %.
    pub rounded: Vec<Rounded>,
    /// For each fault with random delays: the number and range of the values that its packets draw.
    pub drawn: Vec<Drawn>,
}

/// The delays that the packets of a fault draw at random; all of them are equally likely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drawn {
    /// The fault's name.
    pub fault: String,
    /// Number of different values that a packet can draw.
    pub steps: usize,
    /// The smallest delay, in nanoseconds.
    pub least_ns: u64,
    /// The median delay, in nanoseconds.
    pub median_ns: u64,
    /// The largest delay, in nanoseconds.
    pub most_ns: u64,
}

/// A probability of a fault that the switch represents with an error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rounded {
    /// The fault's name.
    pub fault: String,
    /// The probability that the file asks for.
    pub asked: f64,
    /// The probability that the switch uses.
    pub held: f64,
}

/// An injection point: the switch and pipeline in which a fault acts on one flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Injection {
    /// The fault's name.
    pub fault: String,
    /// The flow's name.
    pub flow: String,
    /// Name of the switch that injects the fault.
    pub switch: String,
    /// Pipeline in which the fault acts: ingress or egress.
    pub direction: Direction,
    /// Number of the fault's unit (its part of the P4 program) in this pipeline, from 0 in declared order.
    pub unit: usize,
    /// Index of the flow's register cell in the fault unit, and of its counter of hits.
    pub cell: usize,
    /// Name of the P4 counter of hits.
    pub counter: String,
    /// Name of the P4 counter of packets whose key (such as a connection) had no cell; `None` if the unit numbers no keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<String>,
    /// For a fault that holds packets: maximum time, in nanoseconds, by which a packet leaves too late, seen at the interfaces.
    /// It includes the latency of the packet's links, which the switch's ports create by holding frames.
    pub lateness_bound_ns: Option<u64>,
}

/// A flow that a switch classifies: the switch tests for each packet whether it belongs to the flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedFlow {
    /// Position of the flow in the switch's list of flows.
    pub index: usize,
    /// The flow's name.
    pub name: String,
    /// The flow's name in P4, which is unique on the switch.
    pub p4_name: String,
    /// The condition on the flow's packets.
    #[serde(serialize_with = "serialize_filter")]
    pub filter: Filter,
    /// Whether the flow is protected. No fault's table entry matches the packets of a protected flow.
    pub protected: bool,
}

impl PlannedFlow {
    pub(super) fn as_declared(&self) -> parser_gen::Flow {
        parser_gen::Flow {
            name: self.p4_name.clone(),
            filter: self.filter.clone(),
        }
    }
}

/// A fault unit of a switch: the part of its P4 program that injects one fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unit {
    /// Pipeline of the unit: ingress or egress.
    pub direction: Direction,
    /// Number of the unit in this pipeline, from 0 in declared order.
    pub unit: usize,
    /// Name of the fault that the unit injects.
    pub fault: String,
}

/// Makes the plan of a scenario for a target, or returns the reasons why there is none.
pub fn plan(scenario: &Scenario, target: &TargetModel) -> Result<Plan, Diagnostics> {
    let mut sink = scenario.sink();
    let wanted = wanted::Wanted::new(&mut sink, scenario);
    plan_placed(sink, scenario, target, |sink| {
        solve::place(sink, &wanted?, target)
    })
}

/// Chooses the injection points and makes the plan, after all other checks have passed.
fn plan_placed(
    mut sink: Sink<'_>,
    scenario: &Scenario,
    target: &TargetModel,
    place: impl FnOnce(&mut Sink<'_>) -> Option<place::Placement>,
) -> Result<Plan, Diagnostics> {
    effects::check(&mut sink, scenario, target);
    key::check(&mut sink, scenario, target);
    triggered::check(&mut sink, scenario, target);
    let disruptions = disruptions::plan(&mut sink, scenario, target);
    latency::check(&mut sink, scenario, target);
    marking::check(&mut sink, scenario, target);
    multipath::check(&mut sink, scenario, target);
    let rounded = engine::round(&mut sink, scenario, target);
    if sink.has_errors() {
        return Err(sink.into_diagnostics());
    }
    let Some(placement) = place(&mut sink) else {
        return Err(sink.into_diagnostics());
    };
    let switches: Vec<SwitchPlan> = scenario
        .topology
        .switches
        .iter()
        .map(|name| switch_plan(&mut sink, scenario, &placement, name, target))
        .collect();
    let lease = lease::plan(&mut sink, scenario, target, &switches);
    if sink.has_errors() {
        return Err(sink.into_diagnostics());
    }
    let injections = injections(scenario, &placement, &switches, target);
    let injected_on = injections.iter();
    let injected_on = injected_on.map(|point| (point.fault.as_str(), point.switch.as_str()));
    disruptions::check_provable(&mut sink, scenario, injected_on);
    marking::check_provable(&mut sink, scenario, &injections);
    let blast_radius = blast_radius::reaches(scenario, &injections);
    blast_radius::check(&mut sink, scenario, &blast_radius);
    if sink.has_errors() {
        return Err(sink.into_diagnostics());
    }
    Ok(Plan {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        gradients: scenario.gradients.clone(),
        switches,
        injections,
        fullest: placement.fullest,
        timeline: scenario.epochs.clone(),
        disruptions,
        lease,
        blast_radius,
        draw_bits: target.draw_bits,
        rounded,
        drawn: engine::drawn(scenario),
    })
}

impl Plan {
    /// The plan of the switch with this name; `None` if the plan has no such switch.
    #[must_use]
    pub fn switch(&self, name: &str) -> Option<&SwitchPlan> {
        self.switches.iter().find(|switch| switch.name == name)
    }
}

fn injections(
    scenario: &Scenario,
    placement: &place::Placement,
    switches: &[SwitchPlan],
    target: &TargetModel,
) -> Vec<Injection> {
    let made = placement.points.iter().filter_map(|point| {
        let fault = &scenario.faults[point.fault];
        let switch = switches.iter().find(|switch| switch.name == point.switch)?;
        let mut units = switch.units.iter();
        let unit = units
            .find(|unit| unit.fault == fault.id && unit.direction == point.direction)?
            .unit;
        let holds = fault.effect.recirculates();
        Some(Injection {
            fault: fault.id.clone(),
            flow: scenario.flows[point.flow].name.clone(),
            switch: point.switch.clone(),
            direction: point.direction,
            unit,
            cell: point.cell,
            counter: names::fault::fired(point.direction, unit),
            keyless: scenario.faults[point.fault]
                .keys
                .is_some()
                .then(|| names::fault::keyless(point.direction, unit)),
            lateness_bound_ns: holds.then(|| lateness_bound_ns(switch.resources.held_bits, target)),
        })
    });
    made.collect()
}

/// Text for the maximum lateness (ns) of held packets; empty for `None`.
fn show_bound(bound: Option<u64>) -> String {
    bound.map_or_else(String::new, |ns| {
        format!(", at most {} late", units::show_duration(ns))
    })
}

fn serialize_filter<S: Serializer>(filter: &Filter, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(filter.text())
}
