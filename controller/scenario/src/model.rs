//! A scenario with every name looked up: what the planner and the runner work on.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use parser_gen::key::PacketKey;
use parser_gen::{Classes, Filter};
use serde::{Deserialize, Serialize};

use crate::blast_radius::BlastRadius;
use crate::decision;
use crate::diagnostic::{Diagnostics, Sink, Source, Span, Spanned};
use crate::disruption::Disruption;
use crate::effect::Effect;
use crate::expect::Expectation;
use crate::expect::metric::{CommandMetric, FaultMetric, Metric};
use crate::gradient::Gradients;
use crate::job::Job;
use crate::lease::Asked;
use crate::probe::Probe;
use crate::protocols::Protocols;
use crate::routing::Ways;
use crate::selection::Selection;
use crate::topology::{Topology, TopologySource};
use crate::trigger::Trigger;
use crate::workload::{Workload, WorkloadSource};

/// The most flows that one scenario may declare.
pub const MAX_FLOWS: usize = parser_gen::MAX_FLOWS;
/// The most flows of one fault: a unit's state cells.
pub const MAX_FLOWS_PER_FAULT: usize = 4096;
/// The most entries of one unit's `select` table.
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
    /// For people.
    pub description: String,
    /// Everything random derives from it.
    pub seed: u64,
    /// The network.
    pub topology: Topology,
    /// The file that it is from, where it has one of its own.
    pub topology_file: Option<TopologySource>,
    /// The protocols that filters and fields name.
    pub protocols: Arc<Protocols>,
    /// What runs.
    pub workload: Option<Workload>,
    /// The file that it is from, where it has one of its own.
    pub workload_file: Option<WorkloadSource>,
    /// What asks services while it runs, in declared order.
    pub probes: Vec<Probe>,
    /// Jobs whose values a switch sums, in declared order; the one of a training that a switch sums for among them.
    pub jobs: Vec<Job>,
    /// Where a plan has gradients summed, if the file asks for one; what its switches sum is among the jobs.
    pub gradients: Option<Gradients>,
    /// The ways between hosts, if `routing` asks for several.
    pub ways: Option<Ways>,
    /// Declared flows, expanded: one per pair of hosts.
    pub flows: Vec<Flow>,
    /// Which sets of the flows a packet can be in.
    pub classes: Classes,
    /// In declared order.
    pub faults: Vec<Fault>,
    /// Faults of programs and switches, in declared order.
    pub disruptions: Vec<Disruption>,
    /// What faults wait for, in declared order.
    pub triggers: Vec<Trigger>,
    /// The timeline as epochs, from time 0 on, without gaps.
    pub epochs: Vec<Epoch>,
    /// What its steps wait for, one after the other.
    pub awaited: Vec<Expectation>,
    /// What must hold in the end.
    pub expectations: Vec<Expectation>,
    /// Bounds of the run.
    pub limits: Limits,
    /// Which frames the run keeps.
    pub captures: Captures,
    /// Where `captures` is written; `None` if the file does not have it, or the command line overrides it.
    pub captures_span: Option<Span>,
    /// While it runs, any of these ends it.
    pub abort_if: Vec<Expectation>,
    /// What may be hit at most, where the file says it.
    pub blast_radius: Option<BlastRadius>,
    /// For how long faults hold without a word from the controller.
    pub lease: Asked,
    /// What is legal and suspicious.
    pub warnings: Diagnostics,
}

impl Scenario {
    /// Whether a switch sums.
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

    /// For what is found later.
    pub(crate) fn sink(&self) -> Sink<'_> {
        let mut sink = Sink::new(self.source());
        sink.set_protocols(Arc::clone(&self.protocols));
        sink
    }

    /// The same under another seed: other packets are hit.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Scenario {
        self.seed = seed;
        for fault in &mut self.faults {
            fault.key = decision::fault_key(seed, &fault.id);
        }
        self
    }

    /// Replaces the choice of frames, if `captures` is given: `--captures` of a command overrides the file.
    #[must_use]
    pub fn with_captures(mut self, captures: Option<Captures>) -> Scenario {
        if let Some(captures) = captures {
            (self.captures, self.captures_span) = (captures, None);
        }
        self
    }

    /// Whether the file expects that a fault hits nothing.
    #[must_use]
    pub fn expects_nothing_of(&self, fault: &str) -> bool {
        let mut expectations = self.expectations.iter();
        let fired = Metric::fault(fault, FaultMetric::Fired);
        expectations.any(|expectation| expectation.is_zero(&fired))
    }

    /// Whether the file says anything of what a fault did, or of what became of a flow.
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

    /// Whether the file says anything of a metric.
    #[must_use]
    pub fn expects_of(&self, metric: &Metric) -> bool {
        self.expectations.iter().any(|line| line.names(metric))
    }

    /// Whether the file says anything of how often a trigger comes on.
    #[must_use]
    pub fn speaks_of(&self, trigger: &Trigger) -> bool {
        let lines = self.expectations.iter();
        let lines = lines.chain(&self.awaited).chain(&self.abort_if);
        let mut metrics = lines.flat_map(Expectation::metrics);
        let is_of = |metric: &Metric| matches!(metric, Metric::Trigger { name, .. } if name.as_str() == trigger.name);
        metrics.any(|(metric, _)| is_of(metric))
    }

    /// Whether the file says what a command's exit code is to be, or how often it may fail.
    #[must_use]
    pub fn expects_exit_of(&self, command: &str) -> bool {
        let whats = [CommandMetric::Exit, CommandMetric::Failures];
        let metrics = whats.map(|what| Metric::command(command, what));
        let mut expectations = self.expectations.iter();
        expectations.any(|line| metrics.iter().any(|metric| line.names(metric)))
    }

    /// When an epoch begins, since the start of the workload; `None` if that depends on what happens.
    #[must_use]
    pub fn begins_ns(&self, epoch: u16) -> Option<u64> {
        let mut known = self.epochs.iter().take_while(|epoch| epoch.on.is_none());
        known
            .find(|other| other.epoch == epoch)
            .map(|epoch| epoch.at_ns)
    }

    /// Whether a packet can belong to both flows, by index.
    #[must_use]
    pub fn may_meet(&self, a: usize, b: usize) -> bool {
        self.classes.meet(a, b)
    }

    /// The flows that some packet of this one belongs to as well, itself included.
    #[must_use]
    pub fn meeting(&self, flow: usize) -> BTreeSet<usize> {
        let classes = self.classes.containing(flow).iter();
        let sets = classes.map(|class| &self.classes.sets()[*class as usize]);
        sets.flatten().copied().collect()
    }

    /// The flows that no fault may touch.
    pub fn protected(&self) -> impl Iterator<Item = (usize, &Flow)> {
        self.flows
            .iter()
            .enumerate()
            .filter(|(_, flow)| flow.protected)
    }
}

/// A set of packets with one ordinal sequence.
#[derive(Debug, Clone)]
pub struct Flow {
    /// `name`, or `name.from`, `name.from.to` where a declaration with several hosts was expanded.
    pub name: String,
    /// The declared name.
    pub declared: String,
    /// What the packets have in common, hosts' addresses included.
    pub filter: Filter,
    /// Sender, receiver and the switches between them, for each pair of hosts that the filter allows.
    pub paths: Vec<Path>,
    /// The one switch at which its packets are told apart: elsewhere its filter would match others, too.
    pub on: Option<String>,
    /// Faults must not touch it.
    pub protected: bool,
    /// Its part of the key in decisions.
    pub key: u64,
    /// Where it is declared.
    pub span: Span,
}

/// A way that packets of a flow take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Path {
    /// Host.
    pub from: String,
    /// Host.
    pub to: String,
    /// In order.
    pub switches: Vec<String>,
}

impl Path {
    /// Sender, switches, receiver.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        let switches = self.switches.iter();
        let ends = [&self.from].into_iter().chain(switches).chain([&self.to]);
        ends.map(String::as_str)
    }
}

/// Which half of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Before forwarding and aggregation.
    Ingress,
    /// After, for each copy of a multicast.
    Egress,
}

/// A place that the file names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Switch.
    pub switch: String,
    /// Half.
    pub direction: Direction,
}

/// A declared fault.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Its name.
    pub id: String,
    /// Indexes of flows; the position in this list is the fault's state cell.
    pub flows: Vec<usize>,
    /// What it does.
    pub effect: Effect,
    /// To which packets.
    pub selection: Selection,
    /// What its packets are numbered and drawn by within a flow; by the flow alone without.
    pub keys: Option<Keys>,
    /// Where; `None` = the plan chooses a switch, in ingress.
    pub place: Option<Place>,
    /// The trigger that it waits for, an index: it acts while that is on.
    pub when: Option<usize>,
    /// When: epochs in ascending, disjoint ranges.
    pub epochs: Vec<RangeInclusive<u16>>,
    /// Its part of the key in decisions.
    pub key: u64,
    /// Where it is declared.
    pub span: Span,
    /// Where its place is named, else the whole.
    pub place_span: Span,
}

impl Fault {
    /// Whether it takes packets from RDMA connections that these miss, and ask for again.
    #[must_use]
    pub fn takes_rdma_data(&self) -> bool {
        matches!(self.selection, Selection::Psn(_)) && self.effect.takes()
    }

    /// Which packets it selects, for people: `every 3rd`, `every 3rd per connection`.
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
    /// What packets of one key have in common.
    pub key: PacketKey,
    /// The keys, for people: `connections`.
    pub of: String,
    /// One of them: `connection`.
    pub one: String,
    /// Whether a TCP connection that begins anew is numbered anew.
    pub restarts: bool,
    /// What all packets of a key have in common in any case.
    pub shared: Shared,
    /// How many there may be.
    pub most: u32,
    /// Where that is written.
    pub span: Span,
}

/// What packets of one key have in common: packets that differ in it have no key in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// Sender and receiver.
    Direction,
    /// The sender.
    Sender,
    /// Nothing that a flow says.
    Nothing,
}

impl Keys {
    /// Each way has 2 to the power of this cells: as many as there may be keys, so that hardly one in a hundred runs has a key
    /// without a cell.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.most.next_power_of_two().ilog2().clamp(8, 16)
    }
}

/// A stretch of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Epoch {
    /// From 1; 0 is "disarmed".
    pub epoch: u16,
    /// Since the start of the workload, or since the last epoch before it that waits for something.
    pub at_ns: u64,
    /// What it waits for, as written; [`Scenario::awaited`] has it for the programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// The step's name; none between steps.
    pub step: Option<String>,
}

/// Bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// The run fails when it takes longer.
    pub time_ns: u64,
    /// Where that is written, if it is.
    #[serde(skip)]
    pub time_span: Option<Span>,
    /// Bytes of frames that the run may write, those included that wait on disk for the judge. At least
    /// [`Limits::LEAST_DISK_BYTES`]. Once they are written, the run goes on and keeps no more frames.
    pub disk_bytes: u64,
    /// Where `limits.disk` is written; `None` if the file does not have it.
    #[serde(skip)]
    pub disk_span: Option<Span>,
    /// Packets that all faults together may hit; beyond, the run is aborted.
    #[serde(skip)]
    pub hits: Option<Spanned<u64>>,
}

impl Limits {
    /// The smallest `limits.disk`: the largest frame fits, with all that is written beside it.
    pub const LEAST_DISK_BYTES: u64 = 1 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time_ns: 60_000_000_000,
            time_span: None,
            disk_bytes: 1 << 30,
            disk_span: None,
            hits: None,
        }
    }
}

/// Which frames a run keeps. The verdict does not depend on it, as a run is judged while it goes on.
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
