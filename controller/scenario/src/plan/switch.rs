//! The plan of one switch.

use std::collections::BTreeMap;
use std::sync::Arc;

use p4lang::runtime::{ActionCall, CloneSession, MulticastGroup, TableEntry};
use parser_gen::{Arch, EngineSpec, Filter, FrameValues, GenerateError, Generated, Options};
use serde::{Serialize, Serializer};

use super::before_sum::{self, BeforeSum};
use super::cost::Resources;
use super::triggered::PlannedTrigger;
use super::{cut, entries};
use crate::model::Direction;
use crate::names;
use crate::protocols::Protocols;

/// The plan of one switch: its program and its entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SwitchPlan {
    /// The switch's name.
    pub name: String,
    /// The protocols that its flows' filters refer to.
    #[serde(skip)]
    pub protocols: Arc<Protocols>,
    /// Flows that the switch classifies.
    pub flows: Vec<PlannedFlow>,
    /// The sets of flows that `meta.class` numbers: positions in `flows`. 0 is "no flow".
    pub classes: Vec<Vec<usize>>,
    /// The fault in each unit.
    pub units: Vec<Unit>,
    /// Triggers that its units wait for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<PlannedTrigger>,
    /// The generated part of each unit in the program.
    #[serde(skip)]
    pub engine: EngineSpec,
    /// Number of values in the frames that the switch sums; `None` if it does not sum.
    pub aggregates: Option<FrameValues>,
    /// Whether any job has a rate limit here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub guards_jobs: bool,
    /// Whether several paths lead from here to some hosts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub multipath: bool,
    /// Whether RoCEv2 carries the values of any job here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sums_roce: bool,
    /// Whether the switch is a wire, which forwards by ingress port.
    #[serde(skip)]
    pub wire: bool,
    /// A fault before a sum. Only Tofino's program treats its unit differently from other targets
    /// ([`SwitchPlan::all_entries`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_sum: Option<BeforeSum>,
    /// Entries of fault units and forwarding, written while the epoch is 0. parser-gen adds the classifier's entries.
    #[serde(serialize_with = "entries::serialize_entries")]
    pub entries: Vec<TableEntry>,
    /// Multicast groups for duplicates, broadcasts, results of a job.
    #[serde(serialize_with = "entries::serialize_groups")]
    pub groups: Vec<MulticastGroup>,
    /// Clone sessions that truncate packets, on targets that use them.
    #[serde(
        serialize_with = "cut::serialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sessions: Vec<CloneSession>,
    /// Resources that the plan uses.
    pub resources: Resources,
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

impl SwitchPlan {
    /// The flows as input of parser-gen, in the same order.
    #[must_use]
    pub fn classifier(&self) -> Vec<parser_gen::Flow> {
        self.flows.iter().map(PlannedFlow::as_declared).collect()
    }

    /// Generates the switch's program with parser-gen.
    pub fn generate(&self) -> Result<Generated, GenerateError> {
        parser_gen::generate_with(
            &self.protocols,
            &self.classifier(),
            &self.options(),
            &self.engine,
        )
    }

    /// Generates the program for the same flows without faults, to measure what it needs without them.
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

    /// The default actions that put an epoch in force; empty if the switch has no fault.
    #[must_use]
    pub fn set_epoch(&self, epoch: u16) -> Vec<(String, ActionCall)> {
        let directions = self.faulting().into_iter();
        directions
            .map(|direction| entries::set_epoch(direction, epoch))
            .collect()
    }

    /// The default actions that set the end of the lease, in ticks of the clock by which the program stamps packets.
    #[must_use]
    pub fn hold_until(&self, deadline: u64) -> Vec<(String, ActionCall)> {
        let directions = self.faulting().into_iter();
        directions
            .map(|direction| entries::until(direction, deadline))
            .collect()
    }

    /// The pipelines with a timeline: both if faults act in egress, none without faults and triggers.
    #[must_use]
    pub fn faulting(&self) -> Vec<Direction> {
        let is_idle = self.units.is_empty() && self.triggers.is_empty();
        match (is_idle, self.engine.egress.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => vec![Direction::Ingress],
            (false, false) => vec![Direction::Ingress, Direction::Egress],
        }
    }

    /// All entries to write before the timeline starts.
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

    /// The entries of [`SwitchPlan::all_entries`] and the multicast groups, in the format of `weir plan --json`.
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

    /// Whether a table belongs to a unit before a sum, which has entries of its own.
    fn stands_early(&self, arch: Arch, table: &str) -> bool {
        let unit = names::fault::unit(Direction::Ingress, 0);
        arch == Arch::Tna && self.before_sum.is_some() && table.starts_with(&unit)
    }

    /// Maps each flow's name to its position.
    #[must_use]
    pub fn positions(&self) -> BTreeMap<&str, usize> {
        let flows = self.flows.iter();
        flows.map(|flow| (flow.name.as_str(), flow.index)).collect()
    }
}

fn serialize_filter<S: Serializer>(filter: &Filter, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(filter.text())
}
