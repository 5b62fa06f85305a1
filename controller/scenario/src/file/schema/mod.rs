//! The schema of scenario files, version 1: one function per section reads it and reports all errors in it. docs/reference.md
//! lists the keys.

mod blast_radius;
mod disruptions;
mod effect;
mod faults;
mod foreign;
mod given;
mod jobs;
mod json;
mod lease;
mod limits;
mod partition;
mod per;
mod plan;
mod probes;
mod protocols;
mod ranges;
pub(crate) mod reader;
mod reference;
mod routing;
mod selection;
pub(crate) mod shape;
mod sides;
pub(crate) mod templates;
mod timeline;
mod topology;
mod trainings;
mod triggers;
mod workload;

use std::sync::Arc;

use planner::Method;
use shape::{Object, Shape, may, needed};

use crate::diagnostic::{Code, Sink, Span, Spanned};
use crate::file::yaml::{self, Kind, Node};
use crate::model::effect::Effect;
use crate::model::lease::{Lease, LeaseRequest};
use crate::model::protocols::Protocols;
use crate::model::selection::Selection;
use crate::model::topology::{Topology, TopologySource};
use crate::model::workload::{Training, Workload, WorkloadSource};
use crate::model::{BlastRadius, Captures, Direction, Keys, Limits};

pub(crate) use disruptions::RawDisruption;
pub use given::{Given, named_files, named_topology, named_workload};
pub(crate) use jobs::{RawDeadline, RawJob};
pub use json::{json_schema, workload_json_schema};
pub(crate) use probes::RawProbe;
pub use reference::reference;
pub(crate) use timeline::RawStep;
pub use topology::load_topology;
pub use trainings::{
    CutGradient, PastRounds, PlacedWorkers, ReadFor, TrainingInNetwork, TrainingSpans, hosts_named,
    load_trainings, refused_training,
};
pub(crate) use triggers::{RawEvent, RawTrigger};

/// The version of scenario files that this program reads.
const VERSION: u64 = 1;

/// A scenario file as written: every value has its type, names are not yet resolved.
#[derive(Debug)]
pub(crate) struct Raw {
    pub protocols: Arc<Protocols>,
    pub name: String,
    pub description: String,
    pub seed: u64,
    pub topology: Topology,
    /// The topology file that the scenario names; `None` if the scenario itself describes the topology.
    pub topology_file: Option<TopologySource>,
    pub workload: Option<Spanned<RawWorkload>>,
    /// The workload file, and its roles (placeholders for hosts) without a host in the scenario. `None` if there is no such
    /// file.
    pub workload_file: Option<(WorkloadSource, Vec<Role>)>,
    pub probes: Vec<RawProbe>,
    pub jobs: Vec<RawJob>,
    pub plan: Option<Spanned<Method>>,
    pub flows: Vec<RawFlow>,
    pub protect: Vec<Spanned<String>>,
    pub faults: Vec<RawFault>,
    pub disruptions: Vec<RawDisruption>,
    pub triggers: Vec<RawTrigger>,
    pub steps: Vec<RawStep>,
    pub expect: Vec<Node>,
    pub limits: Limits,
    pub captures: Option<Spanned<Captures>>,
    pub lease: LeaseRequest,
    pub abort_if: Vec<Node>,
    pub blast_radius: Option<BlastRadius>,
    pub declared: Declared,
}

impl Raw {
    /// The training that the file declares as its workload, with its position; `None` for other workloads.
    pub fn training(&self) -> Option<(&Training, Span)> {
        let workload = self.workload.as_ref()?;
        match &workload.value.workload {
            Workload::Training(training) => Some((training, workload.span)),
            _ => None,
        }
    }
}

/// Names that the file declares. They include the names of refused items, so that uses of these are not reported as well.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub flows: Vec<String>,
    pub faults: Vec<String>,
    pub triggers: Vec<String>,
    pub workload_is_refused: bool,
    pub probes_are_refused: bool,
}

/// A workload as written, with the positions where it names hosts and switches.
#[derive(Debug)]
pub(crate) struct RawWorkload {
    pub workload: Workload,
    pub hosts: Vec<Spanned<String>>,
    pub switches: Vec<Spanned<String>>,
    /// The workload file and its probes; `None` if the scenario itself describes the workload.
    pub file: Option<RawFile>,
}

/// The content of a workload file besides its commands.
#[derive(Debug)]
pub(crate) struct RawFile {
    pub source: WorkloadSource,
    pub probes: Vec<RawProbe>,
    /// Roles (placeholders for hosts) to which the scenario assigns no host. Each is played by the host of the same name.
    pub roles: Vec<Role>,
}

/// A role of a workload file (a placeholder for a host) to which the scenario assigns no host.
#[derive(Debug)]
pub(crate) struct Role {
    /// The role's name. Its position is where the scenario names the workload file.
    pub name: Spanned<String>,
    /// Position of the role in the workload file.
    pub declared: Span,
}

#[derive(Debug)]
pub(crate) struct RawFlow {
    pub name: Spanned<String>,
    pub from: Vec<Spanned<String>>,
    pub to: Vec<Spanned<String>>,
    /// The text of the filter, as a node of the YAML tree so that errors can point into the text; `None`: no filter.
    pub filter: Option<Node>,
    pub on: Option<Spanned<String>>,
}

#[derive(Debug)]
pub(crate) struct RawFault {
    pub id: Spanned<String>,
    pub flows: Vec<Spanned<String>>,
    pub effect: Spanned<Effect>,
    pub selection: Spanned<Selection>,
    pub keys: Option<Keys>,
    pub place: Option<RawPlace>,
    pub when: Option<Spanned<String>>,
    pub during: Vec<Spanned<String>>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct RawPlace {
    pub switch: Spanned<String>,
    pub direction: Direction,
}

/// The keys of a scenario file at its top level, with the shape of each.
pub(crate) static SCENARIO: Object = Object {
    what: "a scenario",
    keys: &[
        needed(
            "weir",
            Shape::Integer(VERSION, VERSION),
            "the version of the schema",
        ),
        needed("name", Shape::Name("a scenario"), "short"),
        needed("topology", Shape::At(&topology::TOPOLOGY), "the network"),
        may(
            "routing",
            routing::ROUTING,
            "which paths packets take where there are several",
        )
        .or_word("shortest"),
        may("description", Shape::Text, "for people"),
        may(
            "seed",
            Shape::Integer(0, u64::MAX),
            "seed of every random decision of the run",
        )
        .or(0),
        may(
            "protocols",
            Shape::List(&Shape::Text),
            "protocol files of one's own, relative to this one",
        ),
        may(
            "workload",
            Shape::At(&workload::SECTION),
            "what runs in the network",
        ),
        may(
            "probes",
            Shape::Map(&Shape::Object(&probes::PROBE)),
            "what asks services while it runs",
        ),
        may(
            "jobs",
            Shape::Map(&Shape::Object(&jobs::JOB)),
            "whose values a switch sums",
        ),
        may(
            "plan",
            Shape::Object(&plan::PLAN),
            "the planner that chooses where gradients are summed",
        ),
        may("flows", Shape::Map(&faults::FLOW), "sets of packets"),
        may(
            "protect",
            Shape::Names("a flow"),
            "flows that no fault may touch",
        ),
        may(
            "faults",
            Shape::List(&faults::FAULT_OR_PARTITION),
            "what happens to which packets",
        ),
        may(
            "triggers",
            Shape::Map(&Shape::Object(&triggers::TRIGGER)),
            "what faults wait for",
        ),
        may(
            "timeline",
            Shape::List(&Shape::Object(&timeline::STEP)),
            "when faults act",
        ),
        may(
            "expect",
            Shape::List(&Shape::Text),
            "comparisons of metrics that must hold in the end",
        ),
        may(
            "limits",
            Shape::Object(&limits::LIMITS),
            "bounds of the run",
        ),
        may(
            "captures",
            Shape::Word(&Captures::WORDS),
            "which frames the run keeps",
        )
        .or_first(),
        may(
            "lease",
            Shape::At(&lease::LEASE),
            "how long faults hold without the controller",
        )
        .or(Lease::DEFAULT_NS)
        .beyond(lease::LONGER),
        may(
            "abort_if",
            Shape::List(&Shape::Text),
            "conditions that end the run at once",
        ),
        may(
            "blast_radius",
            Shape::Object(&blast_radius::RADIUS),
            "how far faults may reach",
        ),
    ],
};

/// Reads a whole scenario file. `None` if it is not YAML or has no usable topology, which is reported.
pub(crate) fn read(sink: &mut Sink<'_>, given: &Given) -> Option<Raw> {
    let root = yaml::parse(sink)?;
    if let Some(version) = workload::version_of(&root) {
        let message = "this is a workload file, not a scenario";
        sink.error(Code::Workload, version.key_span, message)
            .hint("write a scenario that names this file: `workload: {file: …}`");
        return None;
    }
    let sections = reader::fields(sink, &root, &SCENARIO)?;
    version(sink, sections.get("weir"));
    let errors = sink.errors();
    let protocols = protocols::read(
        sink,
        sections.get("protocols"),
        sections.get("flows"),
        given,
    );
    if sink.errors() > errors {
        // Without the protocols, filters have a different meaning.
        return None;
    }
    let protocols = protocols?;
    let name = sections.name(sink, "name");
    let description = sections.text(sink, "description");
    let seed = sections.number(sink, "seed");
    let topology = sections.read("topology", |node| topology::read(sink, node, given));
    let errors = sink.errors();
    let workload = sections.read("workload", |node| workload::read(sink, node, given));
    let workload_is_refused = sink.errors() > errors;
    let errors = sink.errors();
    let mut probes = sections.read_or_default("probes", |node| probes::read(sink, node));
    let (mut workload, mut workload_file) = (workload, None);
    if let Some(of) = &mut workload
        && let Some(file) = of.value.file.take()
    {
        probes::add(sink, &mut probes, file.probes, of.span);
        workload_file = Some((file.source, file.roles));
    }
    let jobs = sections.read_or_default("jobs", |node| jobs::read(sink, node));
    let plan = sections.read("plan", |node| plan::read(sink, node));
    let mut declared = Declared {
        flows: sections.get("flows").map(faults::keys).unwrap_or_default(),
        faults: sections.get("faults").map(faults::ids).unwrap_or_default(),
        triggers: sections
            .get("triggers")
            .map(faults::keys)
            .unwrap_or_default(),
        workload_is_refused,
        probes_are_refused: workload_is_refused || sink.errors() > errors,
    };
    let mut flows = sections.read_or_default("flows", |node| faults::flows(sink, node));
    let protect = sections.names(sink, "protect");
    let faults::ReadFaults {
        faults,
        flows: made,
        disruptions,
    } = sections.read_or_default("faults", |node| faults::faults(sink, &protocols, node));
    for flow in made {
        let name = &flow.name;
        if flows.iter().any(|other| other.name.value == name.value) {
            let message = format!(
                "this partition declares flow `{}`, but a flow with this name exists",
                name.value
            );
            sink.error(Code::Duplicate, name.span, message);
            continue;
        }
        declared.flows.push(name.value.clone());
        flows.push(flow);
    }
    let limits = sections.read("limits", |node| Some(limits::read(sink, node)));
    let limits = limits.unwrap_or(Limits::DEFAULT);
    let captures = sections.read("captures", |node| {
        let captures = sections.word(sink, "captures")?.parse().ok()?;
        Some(Spanned::new(captures, node.span))
    });
    let lease = lease::read(sink, &sections);
    let triggers = sections.read_or_default("triggers", |node| {
        triggers::read(sink, &protocols, node, &declared)
    });
    let steps = sections.read_or_default("timeline", |node| timeline::read(sink, node, &limits));
    let expect = sections.read_or_default("expect", |node| {
        comparisons(sink, node, "`expect`", "an expectation")
    });
    let abort_if = sections.read_or_default("abort_if", |node| {
        comparisons(sink, node, "`abort_if`", "a condition")
    });
    let lists = [
        "protocols",
        "probes",
        "flows",
        "protect",
        "faults",
        "triggers",
        "timeline",
        "expect",
        "abort_if",
        "limits",
    ];
    let lists = lists.iter().copied();
    warn_of_empty(
        sink,
        lists.filter_map(|name| Some((name, sections.get(name)?))),
    );
    let blast_radius = sections.read("blast_radius", |node| blast_radius::read(sink, node));
    let (mut topology, topology_file) = topology?;
    if let Some(node) = sections.get("routing") {
        routing::read(sink, node, &mut topology);
    }
    Some(Raw {
        protocols,
        name: name.map(|name| name.value).unwrap_or_default(),
        description: description.map(|text| text.value).unwrap_or_default(),
        seed: seed.map_or(0, |seed| seed.value),
        topology,
        topology_file,
        workload,
        workload_file,
        probes,
        jobs,
        plan,
        flows,
        protect: protect.unwrap_or_default(),
        faults,
        disruptions,
        triggers,
        steps,
        expect,
        limits,
        captures,
        lease,
        abort_if,
        blast_radius,
        declared,
    })
}

/// Warns of sections of the file that are empty.
fn warn_of_empty<'n>(
    sink: &mut Sink<'_>,
    sections: impl Iterator<Item = (&'static str, &'n Node)>,
) {
    for (name, node) in sections {
        let is_empty = match &node.kind {
            Kind::List(items) => items.is_empty(),
            Kind::Map(entries) => entries.is_empty(),
            _ => false,
        };
        if is_empty {
            let message = format!("`{name}` is empty, which has no effect");
            sink.warning(Code::Suspicious, node.span, message)
                .hint("leave it out");
        }
    }
}

fn version(sink: &mut Sink<'_>, node: Option<&Node>) {
    let Some(node) = node else { return };
    let integer = match node.kind {
        Kind::Number { integer, .. } => integer,
        _ => None,
    };
    if integer != Some(i128::from(VERSION)) {
        let message = format!(
            "this program reads version {VERSION} of the schema; found {}",
            node.describe()
        );
        sink.error(Code::Version, node.span, message)
            .hint(format!("write `weir: {VERSION}`"));
    }
}

fn comparisons(sink: &mut Sink<'_>, node: &Node, section: &str, what: &str) -> Vec<Node> {
    let items = reader::list(sink, node, section).unwrap_or_default();
    items
        .iter()
        .filter(|item| reader::text(sink, item, what).is_some())
        .cloned()
        .collect()
}
