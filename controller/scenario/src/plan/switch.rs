//! Makes the plan of one switch: its flows, fault units, table entries and multicast groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use p4lang::runtime::{ActionCall, CloneSession, MulticastGroup, TableEntry};
use parser_gen::{Arch, EngineSpec, FrameValues, GenerateError, Generated, Options};
use serde::Serialize;

use super::before_sum::{self, BeforeSum};
use super::cost::{Resources, measure};
use super::place::Placement;
use super::triggered::PlannedTrigger;
use super::{
    PlannedFlow, TargetModel, Unit, cut, engine, entries, forwarding, refused, runtime, summing,
    triggered, wait,
};
use crate::diagnostic::{Code, Sink};
use crate::model::protocols::Protocols;
use crate::model::{Direction, Fault, Flow, MAX_FLOWS, MAX_SELECT_ENTRIES, Scenario};
use crate::plan::names;

/// The plan of one switch: its P4 program and its table entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SwitchPlan {
    /// The switch's name.
    pub name: String,
    /// The protocols to which the filters of the switch's flows refer.
    #[serde(skip)]
    pub protocols: Arc<Protocols>,
    /// The flows to which the switch can assign packets: those on which faults act here, and protected ones.
    pub flows: Vec<PlannedFlow>,
    /// Each set of flows to which one packet can belong, as positions in `flows`. Its index is `meta.class`; set 0 is empty.
    pub classes: Vec<Vec<usize>>,
    /// The fault units, with the fault of each.
    pub units: Vec<Unit>,
    /// The triggers for which the switch's units wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<PlannedTrigger>,
    /// The fault units as input of parser-gen, which generates their P4.
    #[serde(skip)]
    pub engine: EngineSpec,
    /// Number of values in the frames that the switch sums; `None` if it does not sum.
    pub aggregates: Option<FrameValues>,
    /// Whether any job that the switch sums has a rate limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub guards_jobs: bool,
    /// Whether several paths lead from this switch to some host.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub multipath: bool,
    /// Whether the switch sums any job whose values come over RoCEv2.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sums_roce: bool,
    /// Whether the switch is a wire: a switch with two ports that forwards by ingress port.
    #[serde(skip)]
    pub wire: bool,
    /// The fault unit in front of the sum; `None` if there is none. Only Tofino's program treats it differently from other
    /// units ([`SwitchPlan::all_entries`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_sum: Option<BeforeSum>,
    /// Table entries of fault units and forwarding, written while no fault is armed; parser-gen adds those of the classifier.
    #[serde(serialize_with = "runtime::serialize_entries")]
    pub entries: Vec<TableEntry>,
    /// Multicast groups for copies of packets, broadcasts, and results of jobs.
    #[serde(serialize_with = "runtime::serialize_groups")]
    pub groups: Vec<MulticastGroup>,
    /// Clone sessions that truncate packets, on targets that truncate by cloning.
    #[serde(
        serialize_with = "cut::serialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sessions: Vec<CloneSession>,
    /// Resources of the switch that the plan uses.
    pub resources: Resources,
}

impl SwitchPlan {
    /// The switch's flows as input of parser-gen, in the same order.
    #[must_use]
    pub fn classifier(&self) -> Vec<parser_gen::Flow> {
        self.flows.iter().map(PlannedFlow::as_declared).collect()
    }

    /// Generates the switch's P4 program with parser-gen.
    pub fn generate(&self) -> Result<Generated, GenerateError> {
        parser_gen::generate_with(
            &self.protocols,
            &self.classifier(),
            &self.options(),
            &self.engine,
        )
    }

    /// Generates the switch's program for the same flows but without faults, to measure the resources of faults.
    pub fn generate_without_faults(&self) -> Result<Generated, GenerateError> {
        parser_gen::generate(&self.protocols, &self.classifier(), &self.options())
    }

    fn options(&self) -> Options {
        Options {
            aggregate: self.aggregates,
            wire: self.wire,
            waits: self.engine.waits(),
            guards_jobs: self.guards_jobs,
            multipath: self.multipath,
            sums_roce: self.sums_roce,
        }
    }

    /// The tables and their default actions that put an epoch (interval of the timeline) in force; empty if there is no fault.
    #[must_use]
    pub fn set_epoch(&self, epoch: u16) -> Vec<(String, ActionCall)> {
        let directions = self.faulting().into_iter();
        directions
            .map(|direction| entries::set_epoch(direction, epoch))
            .collect()
    }

    /// The tables and their default actions that set the end of the lease, in ticks of the clock that stamps packets.
    #[must_use]
    pub fn hold_until(&self, deadline: u64) -> Vec<(String, ActionCall)> {
        let directions = self.faulting().into_iter();
        directions
            .map(|direction| entries::until(direction, deadline))
            .collect()
    }

    /// The pipelines in which the epoch matters: ingress if the switch has faults or triggers, also egress if faults act there.
    #[must_use]
    pub fn faulting(&self) -> Vec<Direction> {
        let is_idle = self.units.is_empty() && self.triggers.is_empty();
        match (is_idle, self.engine.egress.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => vec![Direction::Ingress],
            (false, false) => vec![Direction::Ingress, Direction::Egress],
        }
    }

    /// All table entries that are written to the switch before the timeline starts.
    #[must_use]
    pub fn all_entries(&self, arch: Arch, generated: &Generated) -> Vec<TableEntry> {
        let mut all = generated.entries_for(names::classify::INGRESS);
        all.extend(generated.entries_for(names::classify::EGRESS));
        if arch == Arch::Tna && self.before_sum.is_some() {
            all = before_sum::entries(&self.entries, generated);
        }
        let own = self.entries.iter();
        let is_there = |entry: &&TableEntry| !self.stands_early(arch, &entry.table);
        all.extend(own.filter(is_there).cloned());
        all
    }

    /// [`SwitchPlan::all_entries`], the multicast groups and the clone sessions, in the format of `weir plan --json`.
    pub fn written(&self, arch: Arch, generated: &Generated) -> impl Serialize {
        #[derive(Serialize)]
        struct Written {
            #[serde(serialize_with = "runtime::serialize_entries")]
            entries: Vec<TableEntry>,
            #[serde(serialize_with = "runtime::serialize_groups")]
            groups: Vec<MulticastGroup>,
            #[serde(
                serialize_with = "cut::serialize",
                skip_serializing_if = "Vec::is_empty"
            )]
            sessions: Vec<CloneSession>,
        }
        Written {
            entries: self.all_entries(arch, generated),
            groups: self.groups.clone(),
            sessions: self.sessions.clone(),
        }
    }

    /// Whether a table belongs to the unit in front of the sum, whose entries differ from those of other units.
    fn stands_early(&self, arch: Arch, table: &str) -> bool {
        let unit = names::fault::unit(Direction::Ingress, 0);
        arch == Arch::Tna && self.before_sum.is_some() && table.starts_with(&unit)
    }

    /// The position of each flow in the switch's list of flows, by the flow's name.
    #[must_use]
    pub fn positions(&self) -> BTreeMap<&str, usize> {
        let flows = self.flows.iter();
        flows.map(|flow| (flow.name.as_str(), flow.index)).collect()
    }
}

/// Makes the plan of one switch.
pub(super) fn switch_plan(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    placement: &Placement,
    name: &str,
    target: &TargetModel,
) -> SwitchPlan {
    let mut units = Vec::new();
    for direction in [Direction::Ingress, Direction::Egress] {
        let here: Vec<&Fault> = placement.faults_at(scenario, name, direction).collect();
        if let Some(first_beyond) = here.get(target.units) {
            refused::tell_units(sink, first_beyond, here.len(), (direction, name), target);
        }
        let numbered = here.into_iter().enumerate();
        units.extend(numbered.map(|(unit, fault)| Unit {
            direction,
            unit,
            fault: fault.id.clone(),
        }));
    }
    let flows = planned_flows(sink, scenario, placement, name);
    let classes = classes(sink, &scenario.protocols, &flows);
    let triggers = triggered::for_switch(scenario, placement, name);
    let mut entries = triggered::entries(scenario, &triggers, &flows, &classes);
    entries.extend(entries::for_switch(
        scenario, placement, name, &units, &flows, &classes, target,
    ));
    for unit in &units {
        let table = names::fault::select_table(unit.direction, unit.unit);
        let count = entries.iter().filter(|entry| entry.table == table).count();
        let fault = scenario.faults.iter().find(|fault| fault.id == unit.fault);
        if let Some(fault) = fault.filter(|_| count > MAX_SELECT_ENTRIES) {
            let message = format!(
                "fault `{}` needs {count} entries in a table of the switch, which has {MAX_SELECT_ENTRIES}",
                fault.id
            );
            sink.error(Code::Capacity, fault.span, message)
                .hint("name fewer flows, or only consecutive steps: each combination of overlapping flows needs one entry per series of consecutive steps");
        }
    }
    let groups = forwarding::groups(scenario, name, target);
    let sums = scenario.sums(name);
    let before_sum = before_sum::for_switch(scenario, name, &units, target).filter(|_| sums);
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
    let resources = measure(
        scenario,
        placement,
        target,
        name,
        (&units, &classes),
        (&entries, &groups),
    );
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
        resources,
    }
}

/// The flows on which faults act at this switch, followed by the protected flows that pass it.
fn planned_flows(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    placement: &Placement,
    name: &str,
) -> Vec<PlannedFlow> {
    let points = placement.points.iter();
    let here = points.filter(|point| point.switch == name);
    let mut acted_on: BTreeSet<usize> = here.map(|point| point.flow).collect();
    let triggers = scenario.triggers.iter().zip(&placement.triggers);
    let counting = triggers.filter(|(_, on)| on.as_deref() == Some(name));
    acted_on.extend(counting.flat_map(|(trigger, _)| trigger.flows()));
    let passes = |flow: &Flow| {
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
            "switch `{name}` would have to distinguish {} flows; it can distinguish {MAX_FLOWS}",
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

/// The sets of flows that a packet can belong to on this switch, as positions in `flows`. The scenario's flows have been
/// classified together, so this subset fits too.
fn classes(sink: &mut Sink<'_>, protocols: &Protocols, flows: &[PlannedFlow]) -> Vec<Vec<usize>> {
    let flows: Vec<parser_gen::Flow> = flows.iter().map(PlannedFlow::as_declared).collect();
    match parser_gen::Classes::new(protocols, &flows) {
        Ok(classes) => classes.sets().to_vec(),
        Err(error) => {
            sink.error(Code::Capacity, Default::default(), error.to_string());
            Vec::new()
        }
    }
}
