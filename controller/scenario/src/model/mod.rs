//! A scenario with all names resolved: the input of the planner and the runner.

pub mod decision;
pub mod disruption;
pub mod effect;
pub mod expect;
pub mod gradient;
pub mod job;
pub mod lease;
pub mod overlap;
pub mod probe;
pub mod protocols;
pub mod routing;
pub mod selection;
pub mod topology;
pub(crate) mod traffic;
pub mod trigger;
pub mod workload;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use parser_gen::key::PacketKey;
use parser_gen::{Classes, Filter};
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostics, Sink, Source, Span, Spanned};
use disruption::Disruption;
use effect::Effect;
use expect::Expectation;
use expect::metric::{CommandMetric, FaultMetric, Metric};
use gradient::Gradients;
use job::Job;
use lease::LeaseRequest;
use probe::Probe;
use protocols::Protocols;
use routing::Ways;
use selection::Selection;
use topology::{Topology, TopologySource};
use trigger::Trigger;
use workload::{Workload, WorkloadSource};

/// Maximum number of flows in a scenario.
pub const MAX_FLOWS: usize = parser_gen::MAX_FLOWS;
/// Maximum number of flows of one fault: the state cells of a unit.
pub const MAX_FLOWS_PER_FAULT: usize = 4096;
/// Maximum number of entries in a unit's `select` table.
pub const MAX_SELECT_ENTRIES: usize = 4096;

/// A checked scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// File name as given.
    pub file: String,
    /// The file's text, for messages that come later.
    pub text: String,
    /// Short name.
    pub name: String,
    /// Description for users.
    pub description: String,
    /// Seed of every random decision in the run.
    pub seed: u64,
    /// The network.
    pub topology: Topology,
    /// The file of the topology, if it has its own.
    pub topology_file: Option<TopologySource>,
    /// The protocols that filters and fields name.
    pub protocols: Arc<Protocols>,
    /// The programs that run on the hosts.
    pub workload: Option<Workload>,
    /// The file of the workload, if it has its own.
    pub workload_file: Option<WorkloadSource>,
    /// Probes of services during the run, in declared order.
    pub probes: Vec<Probe>,
    /// Jobs whose values switches sum, in declared order, including that of a training with a summing switch.
    pub jobs: Vec<Job>,
    /// Where the file's plan sums gradients; the sums of switches also appear in `jobs`.
    pub gradients: Option<Gradients>,
    /// The paths between hosts, if `routing` asks for several.
    pub ways: Option<Ways>,
    /// Declared flows, expanded: one per pair of hosts.
    pub flows: Vec<Flow>,
    /// The sets of flows that a packet can belong to.
    pub classes: Classes,
    /// Faults on packets, in declared order.
    pub faults: Vec<Fault>,
    /// Faults on programs and switches, in declared order.
    pub disruptions: Vec<Disruption>,
    /// Triggers that faults wait for, in declared order.
    pub triggers: Vec<Trigger>,
    /// The timeline as epochs, from time 0 on, without gaps.
    pub epochs: Vec<Epoch>,
    /// Conditions that the timeline's steps wait for, in order.
    pub awaited: Vec<Expectation>,
    /// Conditions that must hold after the run.
    pub expectations: Vec<Expectation>,
    /// Bounds of the run.
    pub limits: Limits,
    /// The frames that the run keeps.
    pub captures: Captures,
    /// Position of `captures` in the file; `None` if the file does not have it, or the command line overrides it.
    pub captures_span: Option<Span>,
    /// Conditions of which any one aborts the run.
    pub abort_if: Vec<Expectation>,
    /// Limits on what faults may hit, if the file sets them.
    pub blast_radius: Option<BlastRadius>,
    /// The lease: for how long faults stay armed without a refresh by the controller.
    pub lease: LeaseRequest,
    /// Warnings about legal but suspicious parts of the file.
    pub warnings: Diagnostics,
}

impl Scenario {
    /// Whether a switch sums for any job.
    #[must_use]
    pub fn sums(&self, switch: &str) -> bool {
        self.jobs.iter().any(|job| job.on(switch).is_some())
    }

    /// The file, for diagnostics.
    #[must_use]
    pub fn source(&self) -> Source<'_> {
        Source {
            file: &self.file,
            text: &self.text,
        }
    }

    /// A sink for diagnostics after loading.
    pub(crate) fn sink(&self) -> Sink<'_> {
        Sink::new(self.source())
    }

    /// The scenario with another seed, which selects other packets.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Scenario {
        self.seed = seed;
        for fault in &mut self.faults {
            fault.key = decision::fault_key(seed, &fault.id);
        }
        self
    }

    /// Replaces the choice of frames if `captures` is given: `--captures` on the command line overrides the file.
    #[must_use]
    pub fn with_captures(mut self, captures: Option<Captures>) -> Scenario {
        if let Some(captures) = captures {
            (self.captures, self.captures_span) = (captures, None);
        }
        self
    }

    /// Whether the file expects that a fault hits no packet.
    #[must_use]
    pub fn expects_nothing_of(&self, fault: &str) -> bool {
        let mut expectations = self.expectations.iter();
        let fired = Metric::fault(fault, FaultMetric::Fired);
        expectations.any(|expectation| expectation.is_zero(&fired))
    }

    /// Whether the file names a metric of the given fault; with `None`, a metric of any fault, flow or trigger.
    #[must_use]
    pub fn asks_of_frames(&self, fault: Option<&str>) -> bool {
        let lines = self.expectations.iter().chain(&self.abort_if);
        let mut metrics = lines.flat_map(Expectation::metrics);
        metrics.any(|(metric, _)| match metric {
            Metric::Fault { id, .. } => fault.is_none_or(|fault| id.as_str() == fault),
            Metric::Flow { .. } | Metric::Trigger { .. } => fault.is_none(),
            _ => false,
        })
    }

    /// Whether the file's expectations name a metric.
    #[must_use]
    pub fn expects_of(&self, metric: &Metric) -> bool {
        self.expectations.iter().any(|line| line.names(metric))
    }

    /// Whether the file names the metric of how often a trigger comes on.
    #[must_use]
    pub fn speaks_of(&self, trigger: &Trigger) -> bool {
        let lines = self.expectations.iter();
        let lines = lines.chain(&self.awaited).chain(&self.abort_if);
        let mut metrics = lines.flat_map(Expectation::metrics);
        let is_of = |metric: &Metric| matches!(metric, Metric::Trigger { name, .. } if name.as_str() == trigger.name);
        metrics.any(|(metric, _)| is_of(metric))
    }

    /// Whether the file states a command's exit code, or how often the command may fail.
    #[must_use]
    pub fn expects_exit_of(&self, command: &str) -> bool {
        let whats = [CommandMetric::Exit, CommandMetric::Failures];
        let metrics = whats.map(|what| Metric::command(command, what));
        let mut expectations = self.expectations.iter();
        expectations.any(|line| metrics.iter().any(|metric| line.names(metric)))
    }

    /// Start of an epoch, in nanoseconds since the start of the workload; `None` if it depends on events of the run.
    #[must_use]
    pub fn begins_ns(&self, epoch: u16) -> Option<u64> {
        let mut known = self.epochs.iter().take_while(|epoch| epoch.on.is_none());
        known
            .find(|other| other.epoch == epoch)
            .map(|epoch| epoch.at_ns)
    }

    /// Whether a packet can belong to both flows, given by index.
    #[must_use]
    pub fn may_meet(&self, a: usize, b: usize) -> bool {
        self.classes.meet(a, b)
    }

    /// All flows that share a packet with this one, including itself.
    #[must_use]
    pub fn meeting(&self, flow: usize) -> BTreeSet<usize> {
        let classes = self.classes.containing(flow).iter();
        let sets = classes.map(|class| &self.classes.sets()[*class as usize]);
        sets.flatten().copied().collect()
    }

    /// The flows that no fault may hit.
    pub fn protected(&self) -> impl Iterator<Item = (usize, &Flow)> {
        self.flows
            .iter()
            .enumerate()
            .filter(|(_, flow)| flow.protected)
    }
}

/// A set of packets with one sequence of ordinals.
#[derive(Debug, Clone)]
pub struct Flow {
    /// `name`, or `name.from`, `name.from.to` where a declaration with several hosts was expanded.
    pub name: String,
    /// The declared name.
    pub declared: String,
    /// The condition on its packets, including the hosts' addresses.
    pub filter: Filter,
    /// Sender, receiver and the switches between them, for each pair of hosts that the filter allows.
    pub paths: Vec<Path>,
    /// The one switch at which the filter identifies the flow's packets: elsewhere it would match others too.
    pub on: Option<String>,
    /// Whether the flow is protected: no fault may hit it.
    pub protected: bool,
    /// The flow's contribution to the decision key.
    pub key: u64,
    /// Position of the declaration in the file.
    pub span: Span,
}

/// A path that packets of a flow take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Path {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Switches on the path, in order.
    pub switches: Vec<String>,
}

impl Path {
    /// All nodes on the path: sender, switches, receiver.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        let switches = self.switches.iter();
        let ends = [&self.from].into_iter().chain(switches).chain([&self.to]);
        ends.map(String::as_str)
    }
}

/// The pipeline of a switch: ingress or egress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Before forwarding and aggregation.
    Ingress,
    /// After forwarding and aggregation, for each copy of a multicast.
    Egress,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Ingress => "ingress",
            Direction::Egress => "egress",
        })
    }
}

/// An injection point that the file names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InjectionPoint {
    /// The switch's name.
    pub switch: String,
    /// The pipeline.
    pub direction: Direction,
}

/// A declared fault.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The fault's name.
    pub id: String,
    /// Indexes of flows; the position in this list is the fault's state cell.
    pub flows: Vec<usize>,
    /// The effect on a hit packet.
    pub effect: Effect,
    /// The selection of packets within a flow.
    pub selection: Selection,
    /// The key by which packets are numbered and drawn within a flow; `None`: by the flow alone.
    pub keys: Option<Keys>,
    /// The injection point; `None`: the plan chooses a switch, in ingress.
    pub place: Option<InjectionPoint>,
    /// Index of the trigger that enables the fault; the fault acts while the trigger is on.
    pub when: Option<usize>,
    /// Epochs in which the fault acts, in ascending, disjoint ranges.
    pub epochs: Vec<RangeInclusive<u16>>,
    /// The fault's contribution to the decision key.
    pub key: u64,
    /// Position of the declaration in the file.
    pub span: Span,
    /// Position where the file names the injection point; otherwise the position of the whole declaration.
    pub place_span: Span,
}

impl Fault {
    /// Whether the fault takes packets of RDMA connections, which the connection then retransmits.
    #[must_use]
    pub fn takes_rdma_data(&self) -> bool {
        matches!(self.selection, Selection::Psn(_)) && self.effect.takes()
    }

    /// The selection, for users: `every 3rd`, `every 3rd per connection`.
    #[must_use]
    pub fn selected(&self) -> String {
        match &self.keys {
            Some(keys) => format!("{} per {}", self.selection, keys.one),
            None => self.selection.to_string(),
        }
    }
}

/// Keys within a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The key of a packet.
    pub key: PacketKey,
    /// Plural noun for users: `connections`.
    pub of: String,
    /// Singular noun for users: `connection`.
    pub one: String,
    /// Whether numbering restarts when a TCP connection is opened again.
    pub restarts: bool,
    /// The property that all packets of a key share.
    pub shared: Shared,
    /// Maximum number of keys.
    pub most: u32,
    /// Position in the file.
    pub span: Span,
}

/// A property that all packets of one key share: packets that differ in it never have the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// Sender and receiver.
    Direction,
    /// The sender.
    Sender,
    /// No property of the flow.
    Nothing,
}

impl Keys {
    /// Each hash table has 2 to the power of this many cells: as many as there may be keys, so that in hardly one of a
    /// hundred runs a key finds no cell.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.most.next_power_of_two().ilog2().clamp(8, 16)
    }
}

/// An interval of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Epoch {
    /// Number of the epoch, from 1; 0 means "disarmed".
    pub epoch: u16,
    /// Start in nanoseconds, since the start of the workload or since the last epoch before it that waits for a
    /// condition.
    pub at_ns: u64,
    /// The condition that it waits for, as written; [`Scenario::awaited`] has the parsed form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// The step's name; `None` between steps.
    pub step: Option<String>,
}

/// Bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Maximum duration in nanoseconds; the run fails when it takes longer.
    pub time_ns: u64,
    /// Position in the file, if the file sets it.
    #[serde(skip)]
    pub time_span: Option<Span>,
    /// Maximum size of the frames that the run writes, in bytes, including frames that wait on disk for the judge. At
    /// least [`Limits::LEAST_DISK_BYTES`]. After that, the run continues without keeping frames.
    pub disk_bytes: u64,
    /// Position of `limits.disk` in the file; `None` if the file does not have it.
    #[serde(skip)]
    pub disk_span: Option<Span>,
    /// Maximum number of packets that all faults together may hit; beyond it, the run is aborted.
    #[serde(skip)]
    pub hits: Option<Spanned<u64>>,
}

impl Limits {
    /// The smallest `limits.disk`, in bytes: the largest frame fits, with its metadata.
    pub const LEAST_DISK_BYTES: u64 = 1 << 20;
    /// The limits of a file that sets none.
    pub const DEFAULT: Limits = Limits {
        time_ns: 60_000_000_000,
        time_span: None,
        disk_bytes: 1 << 30,
        disk_span: None,
        hits: None,
    };
}

/// The limits that a file sets on the reach of its faults; a limit that is `None` does not bound anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlastRadius {
    /// The hosts that may send or receive packets that a fault hits.
    pub hosts: Option<Vec<Spanned<String>>>,
    /// Maximum number of flows that faults may hit; each pair of hosts counts as one flow.
    pub flows: Option<Spanned<u64>>,
    /// Maximum share of a flow's packets that one fault may hit.
    pub share: Option<Spanned<f64>>,
    /// Position of the section in the file.
    pub span: Span,
}

/// The frames that a run keeps. The verdict does not depend on it, because the judge works during the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Captures {
    /// Each frame that a fault hit, and the frames before and after it between the same two hosts at that port.
    #[default]
    Hits,
    /// Every frame, whole.
    All,
    /// No frame.
    None,
}

/// A word that is not a value of `captures`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`captures` cannot be `{0}`: write `hits`, `all` or `none`")]
pub struct UnknownCaptures(String);

impl Captures {
    /// Every value, as files and command lines write it.
    pub const WORDS: [&'static str; 3] = ["hits", "all", "none"];
}

impl fmt::Display for Captures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hits => "hits",
            Self::All => "all",
            Self::None => "none",
        })
    }
}

impl FromStr for Captures {
    type Err = UnknownCaptures;

    fn from_str(word: &str) -> Result<Captures, UnknownCaptures> {
        match word {
            "hits" => Ok(Self::Hits),
            "all" => Ok(Self::All),
            "none" => Ok(Self::None),
            _ => Err(UnknownCaptures(word.to_owned())),
        }
    }
}
