//! From a scenario to what each switch is told: injection points, units, entries, the timeline, bounds.
//!
//! Every packet of a flow meets each of its faults at exactly one injection point, on every path it can take.

mod before_sum;
mod cut;
mod engine;
mod entries;
mod key;
mod latency;
mod lease;
mod over;
mod place;
mod provable;
mod text;
mod together;
mod triggered;
mod wait;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use p4lang::runtime::{ActionCall, CloneSession, MulticastGroup, TableEntry};
use parser_gen::{Arch, EngineSpec, Filter, FrameValues, GenerateError, Generated, Options};
use serde::{Serialize, Serializer};

use crate::blast_radius::{self, Reach};
use crate::diagnostic::{Code, Diagnostics, Sink};
use crate::disruption;
use crate::lease::Leased;
use crate::model::{Direction, Epoch, Fault, MAX_FLOWS, MAX_SELECT_ENTRIES, Scenario};
use crate::protocols::Protocols;
use crate::workload::Workload;
use crate::{names, units};

pub use before_sum::BeforeSum;
pub use latency::{PortLatency, port_latencies};
pub use over::{Becomes, Ended, Fate, Over};
pub use provable::{plan_to_prove, triggers_join_ports};
pub use together::check_together;
pub use triggered::PlannedTrigger;
pub(crate) use triggered::{events_by_flow, flows_met};

/// How often a controller looks whether a condition holds that a step waits for, or that ends the run.
pub const LOOK_EVERY_NS: u64 = 50_000_000;

/// What the plan assumes of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TargetModel {
    /// One pass over the recirculation port.
    pub loop_ns: u64,
    /// What the recirculation port carries.
    pub loop_rate_bps: u64,
    /// What the machine may add to any deadline: 0 in hardware, the scheduler's wake-up in software.
    pub wakeup_ns: u64,
    /// The recirculation port's number.
    pub recirculation_port: u32,
    /// Whether multicast reaches the recirculation port, as duplicates need (docs/decisions/0003).
    pub multicast_recirculates: bool,
    /// Whether its ports hold frames for as long as their links take.
    pub delays_links: bool,
    /// How many faults have room in a direction.
    pub units: usize,
    /// Bits of a draw: a probability is a multiple of 2 to minus this.
    pub draw_bits: u32,
    /// Bits in which it reckons with time.
    pub time_bits: u32,
    /// The largest aggregation frames that it sums in one pass.
    pub frame_values: FrameValues,
    /// Whether a register can hold a deadline and be compared with it: Tofino's stateful ALU cannot, where clocks wrap.
    pub compares_deadlines: bool,
    /// Whether checksums over what changes can be mended.
    pub mends_checksums: bool,
    /// The same where faults act, too; `None` if a sum leaves them no more than the first stage.
    pub frame_values_beside_faults: Option<FrameValues>,
    /// Whether a fault that can stand before a sum does: one pass less.
    pub faults_before_sums: bool,
    /// Whether it has room for keys whose packets are numbered each for itself.
    pub numbers_keys: bool,
    /// Whether packets can wait for others: one that comes back reads a register that others write.
    pub reorders: bool,
    /// Whether faults can wait for triggers.
    pub has_triggers: bool,
    /// How it cuts packets short; `None` if it cannot.
    pub truncates: Option<Truncates>,
    /// Whether a controller can ask it for its clock, as leases need.
    pub tells_time: bool,
    /// Whether `weir run` starts the programs of hosts, and the switches.
    pub runs_hosts: bool,
    /// Whether a switch of this kind can be started again while others run.
    pub restarts: bool,
}

/// What cuts packets short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncates {
    /// Clone sessions do, one for each length.
    Clones,
    /// An extern of the architecture's.
    Extern,
}

impl TargetModel {
    /// The embedded switch with its default recirculation link.
    pub const EMBEDDED: TargetModel = TargetModel {
        loop_ns: 20_000,
        loop_rate_bps: 100_000_000_000,
        wakeup_ns: 5_000_000,
        recirculation_port: names::port::PSA_RECIRCULATE,
        multicast_recirculates: true,
        delays_links: true,
        units: 64,
        draw_bits: 32,
        time_bits: 48,
        frame_values: FrameValues::V256,
        compares_deadlines: true,
        mends_checksums: true,
        frame_values_beside_faults: Some(FrameValues::V256),
        faults_before_sums: false,
        truncates: Some(Truncates::Clones),
        reorders: true,
        numbers_keys: true,
        has_triggers: true,
        tells_time: true,
        runs_hosts: true,
        restarts: true,
    };

    /// BMv2's `simple_switch_grpc`, which runs v1model. A packet takes 10 to 20 µs of a processor, and waits for four threads
    /// in turn: assumed, not measured.
    pub const SIMPLE_SWITCH_GRPC: TargetModel = TargetModel {
        loop_ns: 100_000,
        loop_rate_bps: 100_000_000,
        wakeup_ns: 20_000_000,
        recirculation_port: names::port::V1MODEL_HOLD,
        multicast_recirculates: true,
        delays_links: false,
        units: 64,
        draw_bits: 32,
        time_bits: 48,
        frame_values: FrameValues::V256,
        compares_deadlines: true,
        mends_checksums: true,
        frame_values_beside_faults: Some(FrameValues::V256),
        faults_before_sums: false,
        truncates: Some(Truncates::Extern),
        reorders: true,
        numbers_keys: true,
        has_triggers: true,
        tells_time: false,
        runs_hosts: true,
        restarts: false,
    };

    /// BMv2's `psa_switch`: the same machinery, but its multicast knows the ports 0 to 511 only.
    pub const PSA_SWITCH: TargetModel = TargetModel {
        recirculation_port: names::port::PSA_RECIRCULATE,
        multicast_recirculates: false,
        truncates: None,
        tells_time: true,
        ..TargetModel::SIMPLE_SWITCH_GRPC
    };

    /// Tofino: its recirculation port carries 100 Gbit/s, and a pass through both pipelines takes under a microsecond
    /// (assumed; no chip was measured).
    pub const TOFINO: TargetModel = TargetModel {
        truncates: None,
        reorders: false,
        numbers_keys: false,
        has_triggers: false,
        loop_ns: 1_000,
        loop_rate_bps: 100_000_000_000,
        wakeup_ns: 0,
        recirculation_port: names::port::TOFINO_RECIRCULATE,
        multicast_recirculates: true,
        delays_links: false,
        units: 1,
        draw_bits: 16,
        time_bits: 32,
        frame_values: FrameValues::V32,
        compares_deadlines: false,
        mends_checksums: false,
        frame_values_beside_faults: None,
        faults_before_sums: true,
        tells_time: true,
        runs_hosts: false,
        restarts: false,
    };

    /// Tofino 2: more stages.
    pub const TOFINO2: TargetModel = TargetModel {
        units: 8,
        frame_values: FrameValues::V64,
        frame_values_beside_faults: Some(FrameValues::V32),
        ..TargetModel::TOFINO
    };
}

/// What every switch is told, and what may be expected of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's seed.
    pub seed: u64,
    /// In topology order.
    pub switches: Vec<SwitchPlan>,
    /// One per (fault, flow, switch), in declared order.
    pub injections: Vec<Injection>,
    /// Written to every switch at its time; epoch 0 is in force before the start and after the end.
    pub timeline: Vec<Epoch>,
    /// What the controller does to programs and switches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disruptions: Vec<disruption::Planned>,
    /// Whether faults end by themselves.
    pub lease: Leased,
    /// What each fault may hit at most.
    pub blast_radius: Vec<Reach>,
    /// Bits of a draw on these switches.
    pub draw_bits: u32,
    /// Probabilities that these switches can only hold with an error of more than 1 %.
    pub rounded: Vec<Rounded>,
    /// What is drawn for each packet, and how finely.
    pub drawn: Vec<Drawn>,
}

/// Values that the packets of a fault draw, each as likely as the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drawn {
    /// The fault's name.
    pub fault: String,
    /// How many there are.
    pub steps: usize,
    /// Of a delay: the least.
    pub least_ns: u64,
    /// Of a delay: the one in the middle.
    pub median_ns: u64,
    /// Of a delay: the most.
    pub most_ns: u64,
}

/// A probability that is not the one that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rounded {
    /// The fault's name.
    pub fault: String,
    /// As written.
    pub asked: f64,
    /// As the switch has it.
    pub held: f64,
}

/// What one switch is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SwitchPlan {
    /// The switch.
    pub name: String,
    /// What its flows' filters are read by.
    #[serde(skip)]
    pub protocols: Arc<Protocols>,
    /// Flows that it tells apart.
    pub flows: Vec<PlannedFlow>,
    /// What `meta.class` stands for: for each number, positions in `flows`. 0 is "of no flow".
    pub classes: Vec<Vec<usize>>,
    /// Which fault sits in which unit.
    pub units: Vec<Unit>,
    /// What its units wait for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<PlannedTrigger>,
    /// What its program has of each unit.
    #[serde(skip)]
    pub engine: EngineSpec,
    /// How many values the frames have that are summed here; none if nothing is.
    pub aggregates: Option<FrameValues>,
    /// It forwards by the port that a packet came in by.
    #[serde(skip)]
    pub wire: bool,
    /// A fault that stands before a sum. Its unit is as on other targets but for Tofino's program ([`SwitchPlan::all_entries`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_sum: Option<BeforeSum>,
    /// Written while the epoch is 0: fault units and forwarding. parser-gen adds the classifier's.
    #[serde(serialize_with = "entries::serialize_entries")]
    pub entries: Vec<TableEntry>,
    /// Duplicates, broadcasts, results of a job.
    #[serde(serialize_with = "entries::serialize_groups")]
    pub groups: Vec<MulticastGroup>,
    /// What cuts packets short, where clones do.
    #[serde(
        serialize_with = "cut::serialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sessions: Vec<CloneSession>,
    /// What it costs.
    pub resources: Resources,
}

/// A flow that a switch classifies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedFlow {
    /// Its position among the switch's flows.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// A name that is unique on the switch and legal in P4.
    pub p4_name: String,
    /// Which packets belong to it.
    #[serde(serialize_with = "serialize_filter")]
    pub filter: Filter,
    /// Classified so that no fault's entry can match its packets.
    pub protected: bool,
}

impl PlannedFlow {
    fn as_declared(&self) -> parser_gen::Flow {
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
    /// Its number in declared order, from 0.
    pub unit: usize,
    /// The fault's name.
    pub fault: String,
}

/// Where a fault meets the packets of a flow.
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
    /// Its number in declared order, from 0.
    pub unit: usize,
    /// The unit's state cell, and the index of its counter.
    pub cell: usize,
    /// Counts what fired.
    pub counter: String,
    /// Counts packets whose key had no cell, where keys are numbered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<String>,
    /// For what a switch holds: how much later than asked a packet may leave, seen at the interfaces. The latency of the links
    /// that it came and leaves by is part of it, since the switch's ports hold frames for that.
    pub lateness_bound_ns: Option<u64>,
}

/// What a plan takes of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Resources {
    /// How many of them stand side by side there.
    pub ingress_units: usize,
    /// The same of egress.
    pub egress_units: usize,
    /// Of 65,535: sets of flows that packets can be in.
    pub classes: usize,
    /// One per fault and flow.
    pub state_cells: usize,
    /// In `select` tables.
    pub select_entries: usize,
    /// In the forwarding table.
    pub forward_entries: usize,
    /// Copies that the multicast groups make.
    pub replicas: usize,
    /// Bits held at once by delays, at the flows' full rates.
    pub held_bits: u64,
    /// What the held packets take of the recirculation port.
    pub recirculation_bps: u64,
}

/// Makes the plan, or says why there is none.
pub fn plan(scenario: &Scenario, target: &TargetModel) -> Result<Plan, Diagnostics> {
    let mut sink = scenario.sink();
    let placement = place::place(&mut sink, scenario);
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
    let rounded = engine::round(&mut sink, scenario, target);
    let Some(placement) = placement.filter(|_| !sink.has_errors()) else {
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
    let blast_radius = blast_radius::reaches(scenario, &injections);
    blast_radius::check(&mut sink, scenario, &blast_radius);
    if sink.has_errors() {
        return Err(sink.into_diagnostics());
    }
    Ok(Plan {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        switches,
        injections,
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

impl SwitchPlan {
    /// The flows as parser-gen takes them, in the same order.
    #[must_use]
    pub fn classifier(&self) -> Vec<parser_gen::Flow> {
        self.flows.iter().map(PlannedFlow::as_declared).collect()
    }

    /// The switch's program, as parser-gen writes it.
    pub fn generate(&self) -> Result<Generated, GenerateError> {
        parser_gen::generate_with(
            &self.protocols,
            &self.classifier(),
            &self.options(),
            &self.engine,
        )
    }

    /// The same with the same flows and no faults: what the program takes without them.
    pub fn generate_without_faults(&self) -> Result<Generated, GenerateError> {
        parser_gen::generate(&self.protocols, &self.classifier(), &self.options())
    }

    fn options(&self) -> Options {
        Options {
            aggregate: self.aggregates,
            wire: self.wire,
            waits: self.engine.waits(),
        }
    }

    /// The default actions that put an epoch in force; none where no fault is.
    #[must_use]
    pub fn set_epoch(&self, epoch: u16) -> Vec<(String, ActionCall)> {
        let directions = self.faulting().into_iter();
        directions
            .map(|direction| entries::set_epoch(direction, epoch))
            .collect()
    }

    /// The default actions that let faults hold until then, in ticks of the clock by which its program stamps packets.
    #[must_use]
    pub fn hold_until(&self, deadline: u64) -> Vec<(String, ActionCall)> {
        let directions = self.faulting().into_iter();
        directions
            .map(|direction| entries::until(direction, deadline))
            .collect()
    }

    /// The pipelines that know a timeline: both where faults act in egress, none without faults and triggers.
    #[must_use]
    pub fn faulting(&self) -> Vec<Direction> {
        let is_idle = self.units.is_empty() && self.triggers.is_empty();
        match (is_idle, self.engine.egress.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => vec![Direction::Ingress],
            (false, false) => vec![Direction::Ingress, Direction::Egress],
        }
    }

    /// Everything that is written into a switch of this program before the timeline begins.
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

    /// The same for a file: the entries of [`SwitchPlan::all_entries`] and the multicast groups, as `weir plan --json` has them.
    pub fn written(&self, arch: Arch, generated: &Generated) -> impl Serialize {
        #[derive(Serialize)]
        struct Written {
            #[serde(serialize_with = "entries::serialize_entries")]
            entries: Vec<TableEntry>,
            #[serde(serialize_with = "entries::serialize_groups")]
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

    /// Whether a table is one of a unit that stands before a sum, and has entries of its own.
    fn stands_early(&self, arch: Arch, table: &str) -> bool {
        let unit = names::fault::unit(Direction::Ingress, 0);
        arch == Arch::Tna && self.before_sum.is_some() && table.starts_with(&unit)
    }

    /// The position of each flow, by its name.
    #[must_use]
    pub fn positions(&self) -> BTreeMap<&str, usize> {
        let flows = self.flows.iter();
        flows.map(|flow| (flow.name.as_str(), flow.index)).collect()
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
                "{} faults in {side} of switch `{name}`, which has room for {}",
                here.len(),
                target.units
            );
            sink.error(Code::Capacity, first_beyond.span, message)
                .hint("move some to another switch with `where`");
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
                "fault `{}` takes {count} entries of a unit's {MAX_SELECT_ENTRIES}",
                fault.id
            );
            sink.error(Code::Capacity, fault.span, message)
                .hint("one per set of flows that packets can be in, and unbroken run of steps: name fewer flows, or steps that follow each other");
        }
    }
    let groups = entries::groups(scenario, name, target);
    let sums = aggregates(scenario, name);
    let before_sum = before_sum::of_switch(scenario, name, &units, target).filter(|_| sums);
    if sums && before_sum.is_none() {
        before_sum::check(sink, scenario, name, &units, target);
    }
    if sums {
        cut::check(sink, scenario, name, &units, target);
    }
    let values = match units.is_empty() && triggers.is_empty() {
        true => target.frame_values,
        false => target
            .frame_values_beside_faults
            .unwrap_or(target.frame_values),
    };
    let aggregates = sums.then_some(values);
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
        wire: scenario.topology.wire,
        before_sum,
        entries,
        groups,
        sessions,
        resources: Resources::default(),
    }
}

fn aggregates(scenario: &Scenario, switch: &str) -> bool {
    match &scenario.workload {
        Some(Workload::Training(training)) => training.aggregate_on.as_deref() == Some(switch),
        _ => false,
    }
}

/// Flows that a fault acts on here, then the protected ones whose packets pass here.
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
            "switch `{name}` would have to tell {} flows apart, of {MAX_FLOWS}",
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

/// What `meta.class` stands for. The scenario's flows have been told apart all together, so fewer can be.
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

/// Fills in what the switch's plan costs.
fn measure(
    scenario: &Scenario,
    placement: &place::Placement,
    target: &TargetModel,
    switch: &mut SwitchPlan,
) {
    let at = |direction| {
        switch
            .units
            .iter()
            .filter(|unit| unit.direction == direction)
            .count()
    };
    let select_tables: Vec<String> = switch
        .units
        .iter()
        .map(|unit| names::fault::select_table(unit.direction, unit.unit))
        .collect();
    let entries_in = |tables: &dyn Fn(&str) -> bool| {
        let entries = switch.entries.iter();
        entries.filter(|entry| tables(&entry.table)).count()
    };
    let held_bits = held_bits(scenario, placement, &switch.name);
    switch.resources = Resources {
        ingress_units: at(Direction::Ingress),
        egress_units: at(Direction::Egress),
        classes: switch.classes.len().saturating_sub(1),
        state_cells: placement
            .points
            .iter()
            .filter(|point| point.switch == switch.name)
            .count(),
        select_entries: entries_in(&|table| select_tables.iter().any(|select| select == table)),
        forward_entries: entries_in(&|table| {
            [names::forward::TABLE, names::forward::WIRE].contains(&table)
        }),
        replicas: switch.groups.iter().map(|group| group.replicas.len()).sum(),
        held_bits,
        recirculation_bps: (u128::from(held_bits) * 1_000_000_000
            / u128::from(target.loop_ns.max(1)))
        .min(u128::from(target.loop_rate_bps)) as u64,
    };
}

/// Bits that wait in a switch when every delayed flow runs at the rate of its path and every packet is selected.
fn held_bits(scenario: &Scenario, placement: &place::Placement, switch: &str) -> u64 {
    let held = placement
        .points
        .iter()
        .filter(|point| point.switch == switch)
        .map(|point| {
            let ns = scenario.faults[point.fault].effect.longest_stay_ns();
            let rates = scenario.flows[point.flow].paths.iter();
            let rate = rates
                .filter_map(|path| scenario.topology.path_rate_bps(&path.from, &path.to))
                .max()
                .unwrap_or(0);
            u64::try_from(u128::from(rate) * u128::from(ns) / 1_000_000_000).unwrap_or(u64::MAX)
        });
    held.fold(0, u64::saturating_add)
}

/// A deadline that was just missed costs one round, and a round takes as long as all that is held takes to pass the
/// recirculation port.
fn lateness_bound_ns(held_bits: u64, target: &TargetModel) -> u64 {
    let drain = u128::from(held_bits) * 1_000_000_000 / u128::from(target.loop_rate_bps.max(1));
    target
        .loop_ns
        .max(u64::try_from(drain).unwrap_or(u64::MAX))
        .saturating_add(target.wakeup_ns)
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

fn serialize_filter<S: Serializer>(filter: &Filter, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(filter.text())
}

/// For text output.
fn show_bound(bound: Option<u64>) -> String {
    bound.map_or_else(String::new, |ns| {
        format!(", at most {} late", units::show_duration(ns))
    })
}
