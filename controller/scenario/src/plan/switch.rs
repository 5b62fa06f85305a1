//! What one switch is told.

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
    /// Jobs have rates here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub guards_jobs: bool,
    /// Several ways lead from here to some hosts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub multipath: bool,
    /// Jobs here have their values carried by RoCEv2.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sums_roce: bool,
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
    /// Its number in declared order, from 0.
    pub unit: usize,
    /// The fault's name.
    pub fault: String,
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
            guards_jobs: self.guards_jobs,
            multipath: self.multipath,
            sums_roce: self.sums_roce,
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

fn serialize_filter<S: Serializer>(filter: &Filter, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(filter.text())
}
