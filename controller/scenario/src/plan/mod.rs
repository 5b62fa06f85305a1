//! From a scenario to the plan of each switch: injection points, units, entries, the timeline, bounds.
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

/// Period, in nanoseconds, at which a controller checks conditions that a step waits for or that abort the run.
pub const LOOK_EVERY_NS: u64 = 50_000_000;

/// The plan: the configuration of every switch, and the bounds that hold for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's seed.
    pub seed: u64,
    /// Where gradients are summed, if the file asks for a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradients: Option<Gradients>,
    /// The switches in topology order.
    pub switches: Vec<SwitchPlan>,
    /// One per (fault, flow, switch), in declared order.
    pub injections: Vec<Injection>,
    /// Occupancy of the fullest switch; `None` without faults. For scenarios planned together, it covers all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fullest: Option<Fullest>,
    /// Epochs, each written to every switch at its time; epoch 0 is in force before the start and after the end.
    pub timeline: Vec<Epoch>,
    /// Actions of the controller on programs and switches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disruptions: Vec<PlannedDisruption>,
    /// Whether faults end without the controller.
    pub lease: Leased,
    /// The maximum reach of each fault.
    pub blast_radius: Vec<Reach>,
    /// Number of bits of a draw on these switches.
    pub draw_bits: u32,
    /// Probabilities that these switches represent with an error of more than 1 %.
    pub rounded: Vec<Rounded>,
    /// The values that packets draw, and their resolution.
    pub drawn: Vec<Drawn>,
}

/// The equally likely values that the packets of a fault draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drawn {
    /// The fault's name.
    pub fault: String,
    /// Number of values.
    pub steps: usize,
    /// For a delay: the smallest value.
    pub least_ns: u64,
    /// For a delay: the median.
    pub median_ns: u64,
    /// For a delay: the largest value.
    pub most_ns: u64,
}

/// A probability that the switch represents with an error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rounded {
    /// The fault's name.
    pub fault: String,
    /// Probability in the file.
    pub asked: f64,
    /// Probability on the switch.
    pub held: f64,
}

/// An injection point of a fault for one flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Injection {
    /// The fault's name.
    pub fault: String,
    /// The flow's name.
    pub flow: String,
    /// The switch.
    pub switch: String,
    /// Ingress or egress.
    pub direction: Direction,
    /// Number of the unit in declared order, from 0.
    pub unit: usize,
    /// The unit's state cell, and the index of its counter.
    pub cell: usize,
    /// Name of the counter of hits.
    pub counter: String,
    /// Name of the counter of packets whose key had no cell, if keys are numbered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<String>,
    /// For a fault that holds packets: the maximum lateness of a packet, measured at the interfaces. It includes the
    /// latency of the links that the packet comes and leaves by, because the switch's ports hold frames for that.
    pub lateness_bound_ns: Option<u64>,
}

/// A flow that a switch classifies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedFlow {
    /// Position among the switch's flows.
    pub index: usize,
    /// The flow's name.
    pub name: String,
    /// A name that is unique on the switch and legal in P4.
    pub p4_name: String,
    /// The condition on its packets.
    #[serde(serialize_with = "serialize_filter")]
    pub filter: Filter,
    /// Whether the flow is protected: it is classified so that no fault's entry matches its packets.
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

/// A fault in a unit of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unit {
    /// Ingress or egress.
    pub direction: Direction,
    /// Number of the unit in declared order, from 0.
    pub unit: usize,
    /// The fault's name.
    pub fault: String,
}

/// Makes the plan, or returns the reasons why there is none.
pub fn plan(scenario: &Scenario, target: &TargetModel) -> Result<Plan, Diagnostics> {
    let mut sink = scenario.sink();
    let wanted = wanted::Wanted::new(&mut sink, scenario);
    plan_placed(sink, scenario, target, |sink| {
        solve::place(sink, &wanted?, target)
    })
}

/// Makes the plan once all other checks have passed; only the placement can still fail.
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
    /// A switch by name.
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

/// The lateness bound for text output.
fn show_bound(bound: Option<u64>) -> String {
    bound.map_or_else(String::new, |ns| {
        format!(", at most {} late", units::show_duration(ns))
    })
}

fn serialize_filter<S: Serializer>(filter: &Filter, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(filter.text())
}
