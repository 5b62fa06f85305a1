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
/// Maximum number of flows of one fault. A fault unit (a part of the P4 program that injects one fault) has a cell for each.
pub const MAX_FLOWS_PER_FAULT: usize = 4096;
/// Maximum number of table entries in a fault unit's `select` table.
pub const MAX_SELECT_ENTRIES: usize = 4096;

/// A scenario file after all checks, with all names resolved.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// File name as given on the command line.
    pub file: String,
    /// Text of the scenario file, for messages after it was read.
    pub text: String,
    /// Short name of the scenario.
    pub name: String,
    /// Description of the scenario for users.
    pub description: String,
    /// Seed of every random decision in the run.
    pub seed: u64,
    /// The network: switches, hosts and links.
    pub topology: Topology,
    /// The topology file; `None` if the scenario itself describes the topology.
    pub topology_file: Option<TopologySource>,
    /// The protocols whose fields filters and faults may name.
    pub protocols: Arc<Protocols>,
    /// The programs that run on the hosts; `None` if the scenario has no workload.
    pub workload: Option<Workload>,
    /// The workload file; `None` if the scenario itself describes the workload.
    pub workload_file: Option<WorkloadSource>,
    /// Probes of services during the run, in declared order.
    pub probes: Vec<Probe>,
    /// Jobs whose values switches sum, in declared order, including the job of a training with a summing switch.
    pub jobs: Vec<Job>,
    /// The gradient plan: which nodes sum gradients. The jobs of summing switches are also in `jobs`. `None` without `plan:`.
    pub gradients: Option<Gradients>,
    /// All paths between hosts; `None` if `routing` asks for only one path between two hosts.
    pub ways: Option<Ways>,
    /// The declared flows, expanded to one flow per pair of hosts.
    pub flows: Vec<Flow>,
    /// Each set of flows to which one packet can belong.
    pub classes: Classes,
    /// Faults on packets, in declared order.
    pub faults: Vec<Fault>,
    /// Faults on programs and switches, in declared order.
    pub disruptions: Vec<Disruption>,
    /// Triggers that faults wait for, in declared order.
    pub triggers: Vec<Trigger>,
    /// The epochs (intervals of the timeline), in order and without gaps, from time 0 on.
    pub epochs: Vec<Epoch>,
    /// The conditions for which steps of the timeline wait, in the order of the steps.
    pub awaited: Vec<Expectation>,
    /// The expectations: conditions that must hold after the run.
    pub expectations: Vec<Expectation>,
    /// Limits of the run: duration, disk space and hits.
    pub limits: Limits,
    /// Which captured frames the run keeps.
    pub captures: Captures,
    /// Position of `captures` in the file; `None` if the file does not have it, or the command line overrides it.
    pub captures_span: Option<Span>,
    /// Conditions that abort the run as soon as one of them holds.
    pub abort_if: Vec<Expectation>,
    /// Limits on what faults may hit; `None` if the file sets none.
    pub blast_radius: Option<BlastRadius>,
    /// The lease: how long faults stay armed after the controller's last refresh.
    pub lease: LeaseRequest,
    /// Warnings about legal but suspicious parts of the file.
    pub warnings: Diagnostics,
}

impl Scenario {
    /// Whether the named switch sums for any job.
    #[must_use]
    pub fn sums(&self, switch: &str) -> bool {
        self.jobs.iter().any(|job| job.on(switch).is_some())
    }

    /// Name and text of the scenario file, for diagnostics.
    #[must_use]
    pub fn source(&self) -> Source<'_> {
        Source {
            file: &self.file,
            text: &self.text,
        }
    }

    /// A collector for further diagnostics about the scenario file.
    pub(crate) fn sink(&self) -> Sink<'_> {
        Sink::new(self.source())
    }

    /// The scenario with another seed, so that random selections select other packets.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Scenario {
        self.seed = seed;
        for fault in &mut self.faults {
            fault.key = decision::fault_key(seed, &fault.id);
        }
        self
    }

    /// The scenario with another choice of frames to keep, if given: `--captures` on the command line overrides the file.
    #[must_use]
    pub fn with_captures(mut self, captures: Option<Captures>) -> Scenario {
        if let Some(captures) = captures {
            (self.captures, self.captures_span) = (captures, None);
        }
        self
    }

    /// Whether an expectation says that the named fault hits no packet.
    #[must_use]
    pub fn expects_nothing_of(&self, fault: &str) -> bool {
        let mut expectations = self.expectations.iter();
        let fired = Metric::fault(fault, FaultMetric::Fired);
        expectations.any(|expectation| expectation.is_zero(&fired))
    }

    /// Whether `expect` or `abort_if` names a metric of this fault; with `None`, a metric of any fault, flow or trigger.
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

    /// Whether any expectation of the file names the metric.
    #[must_use]
    pub fn expects_of(&self, metric: &Metric) -> bool {
        self.expectations.iter().any(|line| line.names(metric))
    }

    /// Whether the file names a metric of the trigger.
    #[must_use]
    pub fn speaks_of(&self, trigger: &Trigger) -> bool {
        let lines = self.expectations.iter();
        let lines = lines.chain(&self.awaited).chain(&self.abort_if);
        let mut metrics = lines.flat_map(Expectation::metrics);
        let is_of = |metric: &Metric| matches!(metric, Metric::Trigger { name, .. } if name.as_str() == trigger.name);
        metrics.any(|(metric, _)| is_of(metric))
    }

    /// Whether the file's expectations name the command's exit code or its number of failures.
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

    /// Whether some packet can belong to both flows, which are given by index.
    #[must_use]
    pub fn may_meet(&self, a: usize, b: usize) -> bool {
        self.classes.meet(a, b)
    }

    /// Indexes of all flows that can share a packet with a flow, including the flow itself.
    #[must_use]
    pub fn meeting(&self, flow: usize) -> BTreeSet<usize> {
        let classes = self.classes.containing(flow).iter();
        let sets = classes.map(|class| &self.classes.sets()[*class as usize]);
        sets.flatten().copied().collect()
    }

    /// The protected flows, which no fault may hit, with their indexes.
    pub fn protected(&self) -> impl Iterator<Item = (usize, &Flow)> {
        self.flows
            .iter()
            .enumerate()
            .filter(|(_, flow)| flow.protected)
    }
}

/// A flow: a named set of packets. For each fault, the packets of a flow have ordinals 1, 2, 3 …
#[derive(Debug, Clone)]
pub struct Flow {
    /// The declared name, or `name.from` or `name.from.to` where a declaration for several hosts was expanded.
    pub name: String,
    /// Name under which the file declares the flow.
    pub declared: String,
    /// The condition on the flow's packets, including the hosts' addresses.
    pub filter: Filter,
    /// The paths of the flow's packets, for each pair of hosts that the filter allows.
    pub paths: Vec<Path>,
    /// The only switch where the filter suffices to recognize the flow's packets; `None`: it suffices at every switch.
    pub on: Option<String>,
    /// Whether the flow is protected: no fault may hit its packets.
    pub protected: bool,
    /// The flow's part of the key from which the random words for its packets are computed ([`decision`]).
    pub key: u64,
    /// Position of the flow's declaration in the file.
    pub span: Span,
}

/// A path from one host to another that packets of a flow take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Path {
    /// Name of the sending host.
    pub from: String,
    /// Name of the receiving host.
    pub to: String,
    /// Names of the switches on the path, in order.
    pub switches: Vec<String>,
}

impl Path {
    /// Names of all nodes on the path: sender, switches, receiver.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        let switches = self.switches.iter();
        let ends = [&self.from].into_iter().chain(switches).chain([&self.to]);
        ends.map(String::as_str)
    }
}

/// A pipeline of a switch: ingress or egress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Ingress: before the switch forwards and aggregates a packet.
    Ingress,
    /// Egress: after the switch has forwarded and aggregated a packet, for each copy of a multicast.
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

/// The switch and pipeline in which a fault acts, if the file names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InjectionPoint {
    /// The switch's name.
    pub switch: String,
    /// The pipeline: ingress or egress.
    pub direction: Direction,
}

/// A declared fault on packets.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The fault's name.
    pub id: String,
    /// Indexes of the flows on which the fault acts. A flow's position in this list is also the index of its register cell.
    pub flows: Vec<usize>,
    /// The effect of the fault on a packet that it hits.
    pub effect: Effect,
    /// Which packets of a flow the fault hits.
    pub selection: Selection,
    /// How a key, such as the connection, divides a flow's packets, which are numbered per key; `None`: they are not divided.
    pub keys: Option<Keys>,
    /// The injection point that the file names; `None`: the plan chooses a switch, and the fault acts in ingress.
    pub place: Option<InjectionPoint>,
    /// Index of the trigger for which the fault waits: the fault acts only while the trigger is on. `None`: it waits for none.
    pub when: Option<usize>,
    /// Numbers of the epochs (intervals of the timeline) in which the fault acts, in ascending, disjoint ranges.
    pub epochs: Vec<RangeInclusive<u16>>,
    /// The fault's part of the key from which the random words for packets are computed ([`decision`]).
    pub key: u64,
    /// Position of the fault's declaration in the file.
    pub span: Span,
    /// Position where the file names the injection point; otherwise the position of the whole declaration.
    pub place_span: Span,
}

impl Fault {
    /// Whether the fault takes away packets of RDMA connections, so that the sender retransmits them.
    #[must_use]
    pub fn takes_rdma_data(&self) -> bool {
        matches!(self.selection, Selection::Psn(_)) && self.effect.takes()
    }

    /// Description of the selection for users: `every 3rd`, `every 3rd per connection`.
    #[must_use]
    pub fn selected(&self) -> String {
        match &self.keys {
            Some(keys) => format!("{} per {}", self.selection, keys.one),
            None => self.selection.to_string(),
        }
    }
}

/// How the packets of a flow are divided by a key, such as the connection, and numbered separately for each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The fields of a packet that are its key.
    pub key: PacketKey,
    /// Plural noun for the keys, for users: `connections`.
    pub of: String,
    /// Singular noun for a key, for users: `connection`.
    pub one: String,
    /// Whether the numbers of a connection's packets start again at 1 when the TCP connection is opened again.
    pub restarts: bool,
    /// How far all packets with one key agree in sender and receiver.
    pub shared: Shared,
    /// Maximum number of keys (such as connections) whose counts a switch can store.
    pub most: u32,
    /// Position of `per` in the file.
    pub span: Span,
}

/// How far all packets with one key (such as a connection) agree. Packets that differ in this never have the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// All packets of a key have the same sender and the same receiver.
    Direction,
    /// All packets of a key have the same sender.
    Sender,
    /// Packets of a key may differ in sender and receiver.
    Nothing,
}

impl Keys {
    /// Base-2 logarithm of the number of cells in each hash table: at least one per key. Then hardly 1 run in 100 lacks a cell.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.most.next_power_of_two().ilog2().clamp(8, 16)
    }
}

/// An epoch: an interval of the timeline, which is a step or a gap between steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Epoch {
    /// Number of the epoch, counted from 1; 0 means that all faults are disarmed.
    pub epoch: u16,
    /// Start in nanoseconds since the start of the workload, or of the last earlier epoch that waits for a condition.
    pub at_ns: u64,
    /// The condition that the epoch waits for, as written ([`Scenario::awaited`] has the parsed form); `None`: no condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Name of the step; `None` if the epoch is a gap between steps.
    pub step: Option<String>,
}

/// Limits of a run: duration, disk space and hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Maximum duration of the run in nanoseconds; a run that takes longer fails.
    pub time_ns: u64,
    /// Position of `limits.time` in the file; `None` if the file does not have it.
    #[serde(skip)]
    pub time_span: Option<Span>,
    /// Maximum size of the frames that the run writes, in bytes, including frames that wait on disk for the judge. At
    /// least [`Limits::LEAST_DISK_BYTES`]. After that, the run continues without keeping frames.
    pub disk_bytes: u64,
    /// Position of `limits.disk` in the file; `None` if the file does not have it.
    #[serde(skip)]
    pub disk_span: Option<Span>,
    /// Maximum number of packets that all faults together may hit; a run that exceeds it is aborted. `None`: no limit.
    #[serde(skip)]
    pub hits: Option<Spanned<u64>>,
}

impl Limits {
    /// The smallest `limits.disk`, in bytes: the largest frame fits, with its metadata.
    pub const LEAST_DISK_BYTES: u64 = 1 << 20;
    /// The limits of a run whose file sets none.
    pub const DEFAULT: Limits = Limits {
        time_ns: 60_000_000_000,
        time_span: None,
        disk_bytes: 1 << 30,
        disk_span: None,
        hits: None,
    };
}

/// The limits on the reach of a file's faults. A limit that is `None` does not bound anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlastRadius {
    /// Names of the hosts that may send or receive packets which a fault hits.
    pub hosts: Option<Vec<Spanned<String>>>,
    /// Maximum number of flows that faults may hit; each pair of hosts counts as one flow.
    pub flows: Option<Spanned<u64>>,
    /// Maximum share of a flow's packets that one fault may hit, from 0 to 1.
    pub share: Option<Spanned<f64>>,
    /// Position of `blast_radius` in the file.
    pub span: Span,
}

/// Which captured frames a run keeps. The verdict does not depend on it, because the judge sees all frames during the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Captures {
    /// Keeps each frame that a fault hit, and the frames before and after it between the same two hosts at that port.
    #[default]
    Hits,
    /// Keeps all frames, whole.
    All,
    /// Keeps no frame.
    None,
}

/// The error for a word that is not a value of `captures`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`captures` cannot be `{0}`: write `hits`, `all` or `none`")]
pub struct UnknownCaptures(String);

impl Captures {
    /// The words for all values, in files and on the command line.
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
