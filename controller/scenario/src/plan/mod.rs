//! From a scenario to the plan of each switch: injection points, units, entries, the timeline, bounds.
//!
//! Every packet of a flow passes each of its faults at exactly one injection point, on every path that it can take.

mod before_sum;
mod cost;
mod cut;
mod engine;
mod entries;
mod key;
mod latency;
mod lease;
mod marking;
mod multipath;
mod over;
mod place;
mod points;
mod provable;
mod refused;
mod same;
mod summing;
mod switch;
mod target;
mod text;
mod together;
mod triggered;
mod wait;

use std::collections::BTreeSet;
use std::sync::Arc;

use parser_gen::EngineSpec;
use serde::Serialize;

use crate::blast_radius::{self, Reach};
use crate::diagnostic::{Code, Diagnostics, Sink};
use crate::disruption;
use crate::gradient::Gradients;
use crate::lease::Leased;
use crate::model::{Direction, Epoch, Fault, MAX_FLOWS, MAX_SELECT_ENTRIES, Scenario};
use crate::{names, units};

pub use before_sum::BeforeSum;
pub use cost::{Fullest, Resources};
use cost::{lateness_bound_ns, measure};
pub(crate) use entries::call;
pub use entries::{forwarding, groups};
pub use latency::{PortLatency, port_latencies};
pub use marking::port_marks;
pub use over::{Becomes, Ended, Fate, Over};
pub use provable::{plan_to_prove, triggers_join_ports};
pub use switch::{PlannedFlow, SwitchPlan, Unit};
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
    pub disruptions: Vec<disruption::Planned>,
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

/// Makes the plan, or returns the reasons why there is none.
pub fn plan(scenario: &Scenario, target: &TargetModel) -> Result<Plan, Diagnostics> {
    let mut sink = scenario.sink();
    let wanted = place::Wanted::of(&mut sink, scenario);
    plan_placed(sink, scenario, target, |sink| {
        points::place(sink, &wanted?, target)
    })
}

/// Makes the plan once all other checks have passed; only the placement can still fail.
fn plan_placed(
    mut sink: Sink<'_>,
    scenario: &Scenario,
    target: &TargetModel,
    place: impl FnOnce(&mut Sink<'_>) -> Option<place::Placement>,
) -> Result<Plan, Diagnostics> {
    for fault in &scenario.faults {
        if let Some(why) = fault.effect.refused_by(target) {
            sink.error(
                Code::Effect,
                fault.span,
                format!("this target cannot {why}"),
            )
            .hint("the embedded switch and simple_switch_grpc can");
        }
    }
    key::check(&mut sink, scenario, target);
    triggered::check(&mut sink, scenario, target);
    let disruptions = disruption::plan(&mut sink, scenario, target);
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
    let mut switches: Vec<SwitchPlan> = scenario
        .topology
        .switches
        .iter()
        .map(|name| switch_plan(&mut sink, scenario, &placement, name, target))
        .collect();
    for switch in &mut switches {
        measure(scenario, &placement, target, switch);
    }
    let lease = lease::plan(&mut sink, scenario, target, &switches);
    if sink.has_errors() {
        return Err(sink.into_diagnostics());
    }
    let injections = injections(scenario, &placement, &switches, target);
    let injected_on = injections.iter();
    let injected_on = injected_on.map(|point| (point.fault.as_str(), point.switch.as_str()));
    disruption::check_provable(&mut sink, scenario, injected_on);
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

fn switch_plan(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    placement: &place::Placement,
    name: &str,
    target: &TargetModel,
) -> SwitchPlan {
    let mut units = Vec::new();
    for direction in [Direction::Ingress, Direction::Egress] {
        let here: Vec<&Fault> = placement.faults_at(scenario, name, direction).collect();
        if let Some(first_beyond) = here.get(target.units) {
            let side = if direction == Direction::Ingress {
                "ingress"
            } else {
                "egress"
            };
            let message = format!(
                "{} faults act in {side} of switch `{name}`, which has capacity for {}",
                here.len(),
                target.units
            );
            sink.error(Code::Capacity, first_beyond.span, message)
                .hint("move some to another switch: `where: SWITCH`");
        }
        let numbered = here.into_iter().enumerate();
        units.extend(numbered.map(|(unit, fault)| Unit {
            direction,
            unit,
            fault: fault.id.clone(),
        }));
    }
    let flows = planned_flows(sink, scenario, placement, name);
    let classes = classes(sink, &flows);
    let triggers = triggered::of_switch(scenario, placement, name);
    let mut entries = triggered::entries(scenario, &triggers, &flows, &classes);
    entries.extend(entries::of_switch(
        scenario, placement, name, &units, &flows, &classes, target,
    ));
    for unit in &units {
        let table = names::fault::select_table(unit.direction, unit.unit);
        let count = entries.iter().filter(|entry| entry.table == table).count();
        let fault = scenario.faults.iter().find(|fault| fault.id == unit.fault);
        if let Some(fault) = fault.filter(|_| count > MAX_SELECT_ENTRIES) {
            let message = format!(
                "fault `{}` takes {count} entries of a table that has {MAX_SELECT_ENTRIES}",
                fault.id
            );
            sink.error(Code::Capacity, fault.span, message)
                .hint("name fewer flows, or steps that follow each other: each set of flows that a packet can be in takes an entry for each run of steps");
        }
    }
    let groups = entries::groups(scenario, name, target);
    let sums = scenario.sums(name);
    let before_sum = before_sum::of_switch(scenario, name, &units, target).filter(|_| sums);
    if sums && before_sum.is_none() {
        before_sum::check(sink, scenario, name, &units, target);
    }
    if sums {
        cut::check(sink, scenario, name, &units, target);
        summing::check_children(sink, scenario, name, target);
        summing::check_deadlines(sink, scenario, name, target);
        summing::check_rates(sink, scenario, name, target);
        summing::check_transport(sink, scenario, name, target);
    }
    let is_faultless = units.is_empty() && triggers.is_empty();
    let most = match is_faultless {
        true => target.frame_values,
        false => target
            .frame_values_beside_faults
            .unwrap_or(target.frame_values),
    };
    let aggregates = summing::frame_values(sink, scenario, name, (most, is_faultless), target);
    let engine = EngineSpec {
        early: before_sum.as_ref().map(|before| before.early),
        triggers: triggered::specs(scenario, &triggers, &units, &entries),
        ..engine::spec(scenario, placement, name, &units, &triggers, &entries)
    };
    let sessions = cut::sessions(scenario, &units, &engine, target);
    wait::check(sink, scenario, &flows, &classes, &units);
    SwitchPlan {
        name: name.to_owned(),
        protocols: Arc::clone(&scenario.protocols),
        flows,
        classes,
        units,
        triggers,
        engine,
        aggregates,
        guards_jobs: summing::rated(scenario, name).next().is_some(),
        sums_roce: scenario
            .jobs
            .iter()
            .any(|job| job.is_rdma() && job.on(name).is_some()),
        multipath: entries
            .iter()
            .any(|entry| entry.table == names::forward::NEXT_HOPS),
        wire: scenario.topology.wire,
        before_sum,
        entries,
        groups,
        sessions,
        resources: Resources::default(),
    }
}

/// Flows that a fault acts on at this switch, then protected flows that pass it.
fn planned_flows(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    placement: &place::Placement,
    name: &str,
) -> Vec<PlannedFlow> {
    let points = placement.points.iter();
    let here = points.filter(|point| point.switch == name);
    let mut acted_on: BTreeSet<usize> = here.map(|point| point.flow).collect();
    let triggers = scenario.triggers.iter().zip(&placement.triggers);
    let counting = triggers.filter(|(_, on)| on.as_deref() == Some(name));
    acted_on.extend(counting.flat_map(|(trigger, _)| trigger.flows()));
    let passes = |flow: &crate::model::Flow| {
        flow.paths
            .iter()
            .any(|path| path.switches.iter().any(|s| s == name))
    };
    let mut wanted: Vec<usize> = acted_on.iter().copied().collect();
    if !acted_on.is_empty() {
        wanted.extend(
            scenario
                .protected()
                .filter(|(index, flow)| passes(flow) && !acted_on.contains(index))
                .map(|(index, _)| index),
        );
    }
    if wanted.len() > MAX_FLOWS {
        let message = format!(
            "switch `{name}` would tell {} flows apart, and can tell {MAX_FLOWS}",
            wanted.len()
        );
        sink.error(
            Code::Capacity,
            scenario.flows[wanted[MAX_FLOWS]].span,
            message,
        );
    }
    let planned = wanted.into_iter().enumerate().map(|(index, wanted)| {
        let flow = &scenario.flows[wanted];
        let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let p4_name = format!(
            "f{index}_{}",
            flow.name.chars().map(legal).collect::<String>()
        );
        PlannedFlow {
            index,
            name: flow.name.clone(),
            p4_name,
            filter: flow.filter.clone(),
            protected: flow.protected,
        }
    });
    planned.collect()
}

/// The sets of flows that `meta.class` numbers. The scenario's flows have been classified together, so this subset fits
/// too.
fn classes(sink: &mut Sink<'_>, flows: &[PlannedFlow]) -> Vec<Vec<usize>> {
    let flows: Vec<parser_gen::Flow> = flows.iter().map(PlannedFlow::as_declared).collect();
    match parser_gen::Classes::new(&sink.protocols(), &flows) {
        Ok(classes) => classes.sets().to_vec(),
        Err(error) => {
            sink.error(Code::Capacity, Default::default(), error.to_string());
            Vec::new()
        }
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
