//! Jobs whose values a switch sums.

use parser_gen::FrameValues;

use crate::diagnostic::{Code, Sink, Span, Spanned};
use crate::names::JOB;
use crate::resolve::unknown;
use crate::schema::{Raw, RawDeadline, RawJob};
use crate::topology::{Link, Topology};
use crate::workload::{Training, Workload};

/// Pairs of cells that a switch has for all its jobs (`NUM_SLOTS` in p4src).
pub const SLOTS: u32 = 1024;
/// Ranks of a job, on a tree of switches.
pub const MAX_RANKS: usize = 1024;
/// A slot's bitmap of contributors has so many bits.
pub const MAX_CHILDREN: usize = 64;
/// Jobs of one switch (`jobs` in p4src/common/aggregate.p4).
pub const MAX_JOBS: usize = 64;
/// What of an IP packet stands before a frame's values: headers of IPv4, UDP and aggregation (docs/protocol.md).
pub const HEADERS: u32 = 20 + 8 + 24;
/// What RoCEv2 leaves for what stands around them, whichever packet it is: a link takes the RoCE MTU that is less than its own by
/// this, as with the kernel's rxe (docs/rdma.md, "Sums by the switch").
pub const ROCE_HEADERS: u32 = 80;
/// Queue pairs that a switch knows of all its jobs (`NUM_CONTACTS` in p4src).
pub const CONTACTS: u32 = 1024;

/// The least rate that a job can be held to, in bits a second.
pub const MIN_RATE_BPS: u64 = 1000;
/// Of a frame of 256 values, with its headers (docs/protocol.md, "Frame").
const FRAME_BYTES: u64 = 1090;

/// The bytes that a job held to a rate may send at once, where so many children of a switch have such a window: two windows of
/// each, so that nothing is lost of what ranks have under way when they begin.
#[must_use]
pub fn burst_bytes(window: u32, children: usize) -> u64 {
    2 * u64::from(window) * children as u64 * FRAME_BYTES
}

/// No sum waits longer for its deadline.
pub const MAX_DEADLINE_NS: u64 = 60_000_000_000;

/// What becomes of values that come after their sum was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// They are dropped.
    Drop,
    /// They join the next sum of the same values.
    Next,
}

/// When a sum is made of fewer than all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// So long after a rank gave its values.
    pub after_ns: u64,
    /// If so many have.
    pub quorum: u16,
    /// What becomes of the rest.
    pub late: Late,
    /// Where it is declared.
    pub span: Span,
}

/// What carries the values of a job between ranks and the switch that sums them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP (docs/protocol.md).
    #[default]
    Udp,
    /// RDMA WRITEs with immediate, over RoCEv2.
    Rdma,
}

impl Transport {
    /// As scenarios and programs say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Rdma => "rdma",
        }
    }
}

/// A job: ranks that give values, and the switches that sum them and send all of them the sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Its number on the wire, from 1 in declared order.
    pub number: u16,
    /// Hosts, by rank.
    pub ranks: Vec<String>,
    /// The switches that sum, the topmost first.
    pub tree: Vec<Summing>,
    /// Chunks that a rank may have under way: a power of two.
    pub window: u32,
    /// The first of its slots among each switch's.
    pub base: u32,
    /// When a sum is made of fewer than all; `None`: never.
    pub deadline: Option<Deadline>,
    /// What the frames that come to a switch of its tree may be together, in bits a second.
    pub rate: Option<Spanned<u64>>,
    /// Values of a frame.
    pub values: FrameValues,
    /// Where their number is declared. `None` if it follows from the links.
    pub values_span: Option<Span>,
    /// What carries them.
    pub transport: Spanned<Transport>,
    /// Of RDMA: the number by which a switch knows rank 0's queue pair; the others' follow.
    pub contact: u32,
    /// Where it is declared.
    pub span: Span,
}

/// A switch that sums values of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summing {
    /// Its name.
    pub switch: String,
    /// Those whose values it sums, by the number that it knows each by: hosts, and switches below.
    pub children: Vec<String>,
    /// The switch above, and the number that it knows this one by. `None` of the topmost.
    pub parent: Option<(String, u16)>,
}

impl Job {
    /// The part of a switch, if it sums.
    #[must_use]
    pub fn on(&self, switch: &str) -> Option<&Summing> {
        self.tree.iter().find(|summing| summing.switch == switch)
    }

    /// The switch whose sum is that of all.
    #[must_use]
    pub fn top(&self) -> &str {
        self.tree.first().map_or("", |top| &top.switch)
    }

    /// Whether its values are carried by RoCEv2.
    #[must_use]
    pub fn is_rdma(&self) -> bool {
        self.transport.value == Transport::Rdma
    }

    /// What tells a program on a host which rank of the job it is to be; empty if the host is none.
    #[must_use]
    pub fn environment(&self, host: &str) -> Vec<(&'static str, String)> {
        let rank = self.ranks.iter().position(|rank| rank == host);
        let place = self.tree.iter().find_map(|summing| {
            let child = summing.children.iter().position(|child| child == host)?;
            Some((child, summing.children.len()))
        });
        let (Some(rank), Some((child, siblings)), Some(top)) = (rank, place, self.tree.first())
        else {
            return Vec::new();
        };
        let mut environment = vec![
            ("WEIR_JOB", self.number.to_string()),
            ("WEIR_RANK", rank.to_string()),
            ("WEIR_RANKS", self.ranks.len().to_string()),
            ("WEIR_WINDOW", self.window.to_string()),
            ("WEIR_VALUES", self.values.count().to_string()),
            (
                "WEIR_PLACE",
                format!("{child}/{siblings}/{}", top.children.len()),
            ),
        ];
        if self.is_rdma() {
            environment.push(("WEIR_TRANSPORT", self.transport.value.name().to_owned()));
        }
        if let Some(deadline) = self.deadline {
            let seconds = deadline.after_ns as f64 / 1e9;
            let late = match deadline.late {
                Late::Drop => "drop",
                Late::Next => "next",
            };
            environment.extend([
                ("WEIR_DEADLINE", seconds.to_string()),
                ("WEIR_QUORUM", deadline.quorum.to_string()),
                ("WEIR_LATE", late.to_owned()),
            ]);
        }
        environment
    }
}

/// The jobs of a file whose names are known and whose slots fit.
pub(crate) fn resolve(sink: &mut Sink<'_>, raw: &Raw) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut base = 0;
    if let Some(workload) = &raw.workload
        && let Workload::Training(training) = &workload.value.workload
    {
        let Some(job) = raw.jobs.first() else {
            jobs.extend(of_training(training, workload.span));
            if training.window > SLOTS && (raw.plan.is_some() || training.aggregate_on.is_some()) {
                let message = format!(
                    "a window of {} slots; a switch has {SLOTS}",
                    training.window
                );
                sink.error(Code::Capacity, workload.span, message);
            }
            passes_by(sink, &raw.topology, training, workload.span);
            return jobs;
        };
        let message = "`jobs` cannot stand beside `workload: training`, which is a job itself";
        sink.error(Code::Contradiction, job.name.span, message)
            .hint("start both by `commands`, or leave `jobs` out");
        return jobs;
    }
    for declared in &raw.jobs {
        let Some(job) = job(sink, raw, declared, &jobs, base) else {
            continue;
        };
        base += job.window;
        if base > SLOTS {
            let message =
                format!("the windows of all jobs together are {base} slots; a switch has {SLOTS}");
            sink.error(Code::Capacity, declared.window.span, message);
            break;
        }
        jobs.push(job);
    }
    frame_values(sink, raw, &mut jobs);
    contacts(&mut jobs);
    jobs
}

/// Numbers the queue pairs of jobs whose values RoCEv2 carries. A host is a rank of one job, and a topology has fewer hosts than a
/// switch knows queue pairs ([`CONTACTS`]).
fn contacts(jobs: &mut [Job]) {
    let mut next = 0;
    for job in jobs.iter_mut().filter(|job| job.is_rdma()) {
        job.contact = next;
        next += job.ranks.len() as u32;
    }
    debug_assert!(next <= CONTACTS);
}

/// Says how many values the frames of each job have: as many as declared, or, of all jobs that declare nothing, as many as
/// the narrowest of their links has room for. A switch's program sums frames of one size.
fn frame_values(sink: &mut Sink<'_>, raw: &Raw, jobs: &mut [Job]) {
    let narrowest: Vec<Option<&Link>> = jobs
        .iter()
        .map(|job| narrowest(&raw.topology, job))
        .collect();
    let silent = jobs.iter().zip(&narrowest);
    let silent = silent.filter(|(job, _)| job.values_span.is_none() && !job.is_rdma());
    let mtu = silent
        .filter_map(|(_, link)| Some(link.as_ref()?.mtu))
        .min();
    let most = mtu.map_or(FrameValues::default(), largest_within);
    for (job, narrowest) in jobs.iter_mut().zip(narrowest) {
        let span = match job.values_span {
            Some(span) => span,
            // One packet is one message, of one size.
            None if job.is_rdma() => job.transport.span,
            None => {
                job.values = most;
                continue;
            }
        };
        let bytes = match job.transport.value {
            Transport::Udp => packet_bytes(job.values),
            Transport::Rdma => ROCE_HEADERS + 4 * u32::from(job.values.count()),
        };
        if let Some(link) = narrowest.filter(|link| link.mtu < bytes) {
            let [a, b] = &link.ends;
            let wants = match job.transport.value {
                Transport::Udp => "has",
                Transport::Rdma => "by RoCEv2 wants",
            };
            let message = format!(
                "a packet of {} values {wants} {bytes} bytes, and the link between `{a}` and `{b}` takes {} (its MTU)",
                job.values.count(),
                link.mtu
            );
            let hint = match job.transport.value {
                Transport::Udp => format!(
                    "write `mtu: 9000` for the link, or `values: {}` for the job",
                    largest_within(link.mtu).count()
                ),
                Transport::Rdma => format!("write `mtu: {bytes}` or more for the link"),
            };
            sink.error(Code::Capacity, span, message).hint(hint);
        }
    }
    for (index, job) in jobs.iter().enumerate() {
        let meets = |other: &&Job| {
            let mut here = other.tree.iter();
            other.values != job.values && here.any(|summing| job.on(&summing.switch).is_some())
        };
        if let Some(other) = jobs[..index].iter().find(meets) {
            let message = format!(
                "jobs `{}` and `{}` meet at a switch, which sums frames of one size: {} values, or {}",
                other.name,
                job.name,
                other.values.count(),
                job.values.count()
            );
            sink.error(
                Code::Contradiction,
                job.values_span.unwrap_or(job.span),
                message,
            )
            .hint("write the same `values` in both jobs");
        }
    }
}

/// Bytes of an IP packet of so many values.
fn packet_bytes(values: FrameValues) -> u32 {
    HEADERS + 4 * u32::from(values.count())
}

/// The most values that a packet of so many bytes has room for.
fn largest_within(mtu: u32) -> FrameValues {
    let mut all = FrameValues::ALL.into_iter().rev();
    // A link's MTU is at least 576.
    all.find(|values| packet_bytes(*values) <= mtu)
        .unwrap_or(FrameValues::V32)
}

/// The link with the smallest MTU between a job's ranks and its topmost switch.
fn narrowest<'t>(topology: &'t Topology, job: &Job) -> Option<&'t Link> {
    let links = job.ranks.iter().flat_map(|rank| {
        let way = topology.way_up(rank, job.top()).unwrap_or_default();
        let nodes = std::iter::once(rank.as_str()).chain(way);
        let nodes: Vec<&str> = nodes.collect();
        let pairs = nodes
            .windows(2)
            .filter_map(|pair| topology.link(pair[0], pair[1]));
        pairs.collect::<Vec<&'t Link>>()
    });
    links.min_by_key(|link| link.mtu)
}

/// Refuses a switch that is to sum what never comes to it.
fn passes_by(sink: &mut Sink<'_>, topology: &Topology, training: &Training, span: Span) {
    let Some(on) = &training.aggregate_on else {
        return;
    };
    let misses = |worker: &&String| {
        let path = topology.path(worker, &training.server);
        path.is_some_and(|path| !path.contains(&on.as_str()))
    };
    if let Some(worker) = training.workers.iter().find(misses) {
        let message = format!(
            "switch `{on}` is to sum, and the path from `{worker}` to `{}` does not cross it",
            training.server
        );
        sink.error(Code::Placement, span, message)
            .hint("write `aggregate_on` with a switch that all paths cross, or `plan: {by: grid}`");
    }
}

/// That of a training whose values a switch sums for its server.
fn of_training(training: &Training, span: Span) -> Option<Job> {
    Some(Job {
        name: "training".to_owned(),
        number: JOB,
        ranks: training.workers.clone(),
        tree: vec![Summing {
            switch: training.aggregate_on.clone()?,
            children: training.workers.clone(),
            parent: None,
        }],
        window: training.window,
        base: 0,
        deadline: None,
        rate: None,
        // As many as `weir-agent` sends.
        values: FrameValues::default(),
        values_span: None,
        transport: Spanned::new(Transport::Udp, span),
        contact: 0,
        span,
    })
}

fn job(
    sink: &mut Sink<'_>,
    raw: &Raw,
    declared: &RawJob,
    others: &[Job],
    base: u32,
) -> Option<Job> {
    let topology = &raw.topology;
    let mut is_known = true;
    for (index, rank) in declared.ranks.iter().enumerate() {
        if topology.host(&rank.value).is_none() {
            let hosts = topology.hosts.iter().map(|host| host.name.as_str());
            unknown(sink, "host", rank, hosts);
            is_known = false;
            continue;
        }
        let is_twice = declared.ranks[..index]
            .iter()
            .any(|other| other.value == rank.value);
        let other = others.iter().find(|job| job.ranks.contains(&rank.value));
        if is_twice || other.is_some() {
            let message = match other {
                Some(job) => format!(
                    "host `{}` is a rank of job `{}` as well",
                    rank.value, job.name
                ),
                None => format!("host `{}` has two ranks", rank.value),
            };
            sink.error(Code::Duplicate, rank.span, message);
            is_known = false;
        }
    }
    let on = on(sink, raw, declared)?;
    let deadline = match &declared.deadline {
        None => None,
        Some(raw) => Some(deadline(sink, declared, raw, &on)?),
    };
    if !is_known || !carries(sink, declared, &on) {
        return None;
    }
    Some(Job {
        name: declared.name.value.clone(),
        number: u16::try_from(others.len() + 1).ok()?,
        ranks: declared
            .ranks
            .iter()
            .map(|rank| rank.value.clone())
            .collect(),
        tree: tree(sink, raw, declared, &on)?,
        window: declared.window.value,
        base,
        deadline,
        rate: declared.rate,
        values: declared
            .values
            .as_ref()
            .map(|v| v.value)
            .unwrap_or_default(),
        values_span: declared.values.as_ref().map(|v| v.span),
        transport: declared.transport,
        contact: 0,
        span: declared.name.span,
    })
}

/// Refuses what RDMA does not carry.
fn carries(sink: &mut Sink<'_>, declared: &RawJob, on: &[Spanned<String>]) -> bool {
    if declared.transport.value == Transport::Udp {
        return true;
    }
    let mut refuse = |span, message: &str, hint: &str| {
        sink.error(Code::Contradiction, span, message).hint(hint);
        false
    };
    if let Some(values) = &declared.values
        && values.value != FrameValues::V256
    {
        let message = "RDMA carries 256 values, a message of 1,024 bytes, in one packet";
        return refuse(values.span, message, "write `values: 256`");
    }
    if let Some(deadline) = &declared.deadline {
        let message = "`deadline` with `transport: rdma`: a WRITE has no room to say who is late";
        return refuse(
            deadline.span,
            message,
            "write `transport: udp`, or leave `deadline` out",
        );
    }
    if let [_, below, ..] = on {
        let message = "`transport: rdma` with more than one switch that sums: one switch holds the queue pairs of all ranks";
        return refuse(
            below.span,
            message,
            "name one switch in `on`, or write `transport: udp`",
        );
    }
    true
}

/// A deadline that a switch can keep.
fn deadline(
    sink: &mut Sink<'_>,
    declared: &RawJob,
    raw: &Spanned<RawDeadline>,
    on: &[Spanned<String>],
) -> Option<Deadline> {
    let ranks = declared.ranks.len();
    if on.len() > 1 {
        let message = "`deadline` with more than one switch that sums: none of them knows who is missing at the others";
        sink.error(Code::Contradiction, raw.span, message)
            .hint("name one switch in `on`, or leave `deadline` out");
        return None;
    }
    // More than half, but of two ranks one.
    let usual = (ranks / 2 + 1).min(ranks.saturating_sub(1));
    let (quorum, span) = match raw.value.quorum {
        Some(quorum) => (usize::from(quorum.value), quorum.span),
        None => (usual, raw.span),
    };
    if ranks < 2 {
        let message = "`deadline` needs two ranks or more; found one";
        sink.error(Code::Contradiction, raw.span, message)
            .hint("leave `deadline` out: there is nobody to wait for");
        return None;
    }
    if quorum == 0 || quorum >= ranks {
        let message = format!(
            "`quorum` is {quorum}, and the job has {ranks} ranks; a partial sum needs fewer"
        );
        let hint = match ranks {
            2 => "write `quorum: 1`, or leave `deadline` out".to_owned(),
            _ => format!("write 1 to {}, or leave `deadline` out", ranks - 1),
        };
        sink.error(Code::OutOfRange, span, message).hint(hint);
        return None;
    }
    Some(Deadline {
        after_ns: raw.value.after_ns,
        quorum: u16::try_from(quorum).ok()?,
        late: raw.value.late,
        span: raw.span,
    })
}

/// The switches that sum, the topmost first: the only one, if none is named.
fn on(sink: &mut Sink<'_>, raw: &Raw, declared: &RawJob) -> Option<Vec<Spanned<String>>> {
    let switches = &raw.topology.switches;
    for (index, on) in declared.on.iter().enumerate() {
        if !raw.topology.has_switch(&on.value) {
            unknown(sink, "switch", on, switches.iter().map(String::as_str));
            return None;
        }
        if declared.on[..index]
            .iter()
            .any(|other| other.value == on.value)
        {
            let message = format!("switch `{}` is named twice", on.value);
            sink.error(Code::Duplicate, on.span, message)
                .hint("write it once");
            return None;
        }
    }
    if !declared.on.is_empty() {
        return Some(declared.on.clone());
    }
    match switches.as_slice() {
        [only] => Some(vec![Spanned::new(only.clone(), declared.name.span)]),
        _ => {
            let message = format!(
                "job `{}` needs `on`: the network has several switches",
                declared.name.value
            );
            sink.error(Code::MissingKey, declared.name.span, message)
                .hint(format!(
                    "write the switch that sums, such as `on: {}`",
                    switches.first().map_or("SWITCH", String::as_str)
                ));
            None
        }
    }
}

/// Who sums whom: the first of the switches that sum on the way from a rank, or from such a switch, to the topmost.
fn tree(
    sink: &mut Sink<'_>,
    raw: &Raw,
    declared: &RawJob,
    on: &[Spanned<String>],
) -> Option<Vec<Summing>> {
    let (top, below) = on.split_first()?;
    let mut tree: Vec<Summing> = on
        .iter()
        .map(|on| Summing {
            switch: on.value.clone(),
            children: Vec::new(),
            parent: None,
        })
        .collect();
    for child in declared.ranks.iter().chain(below) {
        let way = raw.topology.way_up(&child.value, &top.value);
        let mut way = way.unwrap_or_default().into_iter();
        let Some(parent) = way.find(|switch| on.iter().any(|on| on.value == *switch)) else {
            let message = format!(
                "no path leads from `{}` to switch `{}`, which sums",
                child.value, top.value
            );
            sink.error(Code::Unreachable, child.span, message);
            return None;
        };
        let parent = parent.to_owned();
        let summing = tree.iter_mut().find(|summing| summing.switch == parent)?;
        summing.children.push(child.value.clone());
        let number = u16::try_from(summing.children.len() - 1).ok()?;
        if summing.children.len() > MAX_CHILDREN {
            let message =
                format!("switch `{parent}` sums more than {MAX_CHILDREN} ranks and switches");
            sink.error(Code::Capacity, child.span, message)
                .hint("name switches between them, the topmost first: `on: [SPINE, LEAF, LEAF]`");
            return None;
        }
        if let Some(own) = tree
            .iter_mut()
            .find(|summing| summing.switch == child.value)
        {
            own.parent = Some((parent, number));
        }
    }
    for (summing, on) in tree.iter().zip(on) {
        if summing.children.is_empty() {
            let message = format!("switch `{}` has no rank below it to sum", on.value);
            sink.error(Code::Unreachable, on.span, message)
                .hint("name the topmost switch first; leave this one out, or attach ranks to it");
            return None;
        }
    }
    same_ways(sink, raw, declared, &top.value).then_some(tree)
}

/// Sums come down to each rank by the switches by which its values went up.
fn same_ways(sink: &mut Sink<'_>, raw: &Raw, declared: &RawJob, top: &str) -> bool {
    for rank in &declared.ranks {
        let up = raw.topology.way_up(&rank.value, top).unwrap_or_default();
        let down = raw.topology.routes_to(&rank.value);
        // Each of them, from the topmost on, leads to the one before it, and the last to the rank.
        let below = std::iter::once(rank.value.as_str()).chain(up.iter().copied());
        let leads = |(switch, below): (&&str, &str)| {
            down.next_hop(switch).is_some_and(|port| port.peer == below)
        };
        if !up.iter().zip(below).all(leads) {
            let message = format!(
                "packets from `{}` to switch `{top}` take other switches than packets back",
                rank.value
            );
            sink.error(Code::Unreachable, rank.span, message)
                .hint("sums need a tree: one path between each rank and the topmost switch");
            return false;
        }
    }
    true
}
