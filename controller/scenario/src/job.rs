//! Jobs whose values switches sum.

use parser_gen::FrameValues;

use crate::diagnostic::{Code, Sink, Span, Spanned};
use crate::names::JOB;
use crate::resolve::unknown;
use crate::schema::{Raw, RawDeadline, RawJob};
use crate::topology::{Link, Topology};
use crate::workload::{Training, Workload};

/// Pairs of cells of a switch, shared by all its jobs (`NUM_SLOTS` in p4src).
pub const SLOTS: u32 = 1024;
/// Maximum number of ranks of a job, on a tree of switches.
pub const MAX_RANKS: usize = 1024;
/// Maximum number of children of a summing switch: the number of bits in a slot's bitmap of contributors.
pub const MAX_CHILDREN: usize = 64;
/// Maximum number of jobs on one switch (`jobs` in p4src/common/aggregate.p4).
pub const MAX_JOBS: usize = 64;
/// Bytes of an IP packet in front of the values: headers of IPv4, UDP and aggregation (docs/protocol.md).
pub const HEADERS: u32 = 20 + 8 + 24;
/// Bytes that RoCEv2 reserves for headers, whatever the packet: a link uses the largest RoCE MTU that is smaller than its
/// own by this amount, as the kernel's rxe does (docs/rdma.md, "Sums by the switch").
pub const ROCE_HEADERS: u32 = 80;
/// Queue pairs that a switch knows, over all its jobs (`NUM_CONTACTS` in p4src).
pub const CONTACTS: u32 = 1024;

/// The lowest rate limit of a job, in bits per second.
pub const MIN_RATE_BPS: u64 = 1000;
/// Bytes of a frame of 256 values, with its headers (docs/protocol.md, "Frame").
const FRAME_BYTES: u64 = 1090;

/// Burst size, in bytes, of a rate-limited job whose `children` at a switch each have such a window: two windows per
/// child, so that the initial burst of the ranks is not dropped.
#[must_use]
pub fn burst_bytes(window: u32, children: usize) -> u64 {
    2 * u64::from(window) * children as u64 * FRAME_BYTES
}

/// The longest deadline of a sum, in nanoseconds.
pub const MAX_DEADLINE_NS: u64 = 60_000_000_000;

/// The treatment of late contributions: values that come after their sum was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// Late contributions are dropped.
    Drop,
    /// Late contributions join the next sum of the same values.
    Next,
}

/// When a switch completes a partial sum, without all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// Time after the first contribution, in nanoseconds.
    pub after_ns: u64,
    /// Minimum number of ranks that must have contributed.
    pub quorum: u16,
    /// The treatment of late contributions.
    pub late: Late,
    /// Position of the declaration in the file.
    pub span: Span,
}

/// The transport of a job's values between the ranks and the switch that sums them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP (docs/protocol.md).
    #[default]
    Udp,
    /// RDMA WRITEs with immediate, over RoCEv2.
    Rdma,
}

impl Transport {
    /// The transport's word in scenarios and programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Rdma => "rdma",
        }
    }
}

/// A job: ranks that contribute values, and the switches that sum the values and send the sums to all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The job's name.
    pub name: String,
    /// Number of the job on the wire, counted from 1 in declared order.
    pub number: u16,
    /// Hosts of the ranks, in rank order.
    pub ranks: Vec<String>,
    /// The switches that sum, the root first.
    pub tree: Vec<Summing>,
    /// Maximum number of chunks that a rank has in flight: a power of two.
    pub window: u32,
    /// Index of the job's first slot on each switch.
    pub base: u32,
    /// When a switch completes a partial sum; `None`: never.
    pub deadline: Option<Deadline>,
    /// Rate limit of all frames that come to one switch of the tree, in bits per second.
    pub rate: Option<Spanned<u64>>,
    /// Number of values in a frame.
    pub values: FrameValues,
    /// Position where the file declares the number of values; `None` if it follows from the links.
    pub values_span: Option<Span>,
    /// The transport of the values.
    pub transport: Spanned<Transport>,
    /// For RDMA: index of rank 0's queue pair on a switch; the other ranks follow in order.
    pub contact: u32,
    /// Position of the declaration in the file.
    pub span: Span,
}

/// A switch that sums values of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summing {
    /// The switch's name.
    pub switch: String,
    /// Hosts and lower switches whose values this switch sums, in the order of their numbers at this switch.
    pub children: Vec<String>,
    /// The parent switch, and this switch's number there. `None` for the root.
    pub parent: Option<(String, u16)>,
}

impl Job {
    /// A switch's node in the tree; `None` if the switch does not sum for this job.
    #[must_use]
    pub fn on(&self, switch: &str) -> Option<&Summing> {
        self.tree.iter().find(|summing| summing.switch == switch)
    }

    /// The root of the tree, whose sum covers all ranks.
    #[must_use]
    pub fn top(&self) -> &str {
        self.tree.first().map_or("", |top| &top.switch)
    }

    /// Whether RoCEv2 carries the job's values.
    #[must_use]
    pub fn is_rdma(&self) -> bool {
        self.transport.value == Transport::Rdma
    }

    /// Environment variables that tell a program on a host its rank in the job; empty if the host is not a rank.
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

/// Resolves the jobs of a file: checks their names, and that their slots fit.
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

/// Assigns queue pair indices to jobs over RoCEv2. They always suffice: a host is a rank of one job, and a topology has
/// fewer hosts than a switch has queue pairs ([`CONTACTS`]).
fn contacts(jobs: &mut [Job]) {
    let mut next = 0;
    for job in jobs.iter_mut().filter(|job| job.is_rdma()) {
        job.contact = next;
        next += job.ranks.len() as u32;
    }
    debug_assert!(next <= CONTACTS);
}

/// Sets the number of values in the frames of each job: the declared number, or, for all jobs without a declaration, the
/// largest that fits the narrowest of their links. A switch's program sums frames of one size.
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
            // With RDMA, a packet is a message, and all messages have one size.
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

/// Length in bytes of an IP packet with this many values.
fn packet_bytes(values: FrameValues) -> u32 {
    HEADERS + 4 * u32::from(values.count())
}

/// The largest number of values that fits into an IP packet of `mtu` bytes.
fn largest_within(mtu: u32) -> FrameValues {
    let mut all = FrameValues::ALL.into_iter().rev();
    // A link's MTU is at least 576.
    all.find(|values| packet_bytes(*values) <= mtu)
        .unwrap_or(FrameValues::V32)
}

/// The link with the smallest MTU between a job's ranks and its root switch.
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

/// Refuses a summing switch that the gradients do not pass.
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

/// The job of a training whose values a switch sums for its server.
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
        // The number of values that `weir-agent` sends.
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

/// Refuses job settings that RDMA does not support.
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

/// Reads a deadline, and refuses one that a switch cannot keep.
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
    // More than half of the ranks; for two ranks, one.
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

/// The switches that sum, the root first. If the file names none, the only switch of the topology.
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

/// Builds the tree: the parent of a rank or summing switch is the first summing switch on its path to the root.
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

/// Checks that sums reach each rank through the same switches that its values pass on the way up.
fn same_ways(sink: &mut Sink<'_>, raw: &Raw, declared: &RawJob, top: &str) -> bool {
    for rank in &declared.ranks {
        let up = raw.topology.way_up(&rank.value, top).unwrap_or_default();
        let down = raw.topology.routes_to(&rank.value);
        // From the root down, each switch must lead to the one before it, and the last to the rank.
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
