//! Resolves jobs whose values switches sum: their ranks (hosts), their aggregation slots, and the tree of summing switches.

mod frames;
mod tree;

use parser_gen::FrameValues;

use crate::diagnostic::{Code, Sink, Span, Spanned, unknown};
use crate::file::schema::{Raw, RawDeadline, RawJob};
use crate::model::job::{CONTACTS, Deadline, JOB, Job, SLOTS, Summing, Transport};
use crate::model::topology::Topology;
use crate::model::workload::{Training, Workload};
use frames::frame_values;
use tree::{summing_switches, tree};

/// Resolves the jobs of a file: looks up their hosts and switches, and checks that each switch has enough aggregation slots.
pub(super) fn resolve(sink: &mut Sink<'_>, raw: &Raw) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut base = 0;
    if let Some(workload) = &raw.workload
        && let Workload::Training(training) = &workload.value.workload
    {
        let Some(job) = raw.jobs.first() else {
            jobs.extend(training_job(training, workload.span));
            if training.window > SLOTS && (raw.plan.is_some() || training.aggregate_on.is_some()) {
                let message = format!(
                    "the `window` is {} slots, but a switch has only {SLOTS}",
                    training.window
                );
                sink.error(Code::Capacity, workload.span, message);
            }
            passes_by(sink, &raw.topology, training, workload.span);
            return jobs;
        };
        let message = "`jobs` cannot be combined with `workload: training`, which is a job itself";
        sink.error(Code::Contradiction, job.name.span, message)
            .hint("start the programs of both with `workload: commands`, or leave `jobs` out");
        return jobs;
    }
    for declared in &raw.jobs {
        let Some(job) = job(sink, raw, declared, &jobs, base) else {
            continue;
        };
        base += job.window;
        if base > SLOTS {
            let message = format!(
                "the windows of all jobs together are {base} slots, but a switch has only {SLOTS}"
            );
            sink.error(Code::Capacity, declared.window.span, message);
            break;
        }
        jobs.push(job);
    }
    frame_values(sink, raw, &mut jobs);
    contacts(&mut jobs);
    jobs
}

/// Gives each job over RoCEv2 a range of the queue pairs that a switch stores. There are always enough: a host is a rank of one
/// job, and a topology has fewer hosts than a switch has queue pairs ([`CONTACTS`]).
fn contacts(jobs: &mut [Job]) {
    let mut next = 0;
    for job in jobs.iter_mut().filter(|job| job.is_rdma()) {
        job.contact = next;
        next += job.ranks.len() as u32;
    }
    debug_assert!(next <= CONTACTS);
}

/// Refuses a summing switch that some worker's gradients do not pass on their way to the server.
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
            "switch `{on}` cannot sum for `{worker}`: its path to `{}` does not cross that switch",
            training.server
        );
        sink.error(Code::Placement, span, message).hint(
            "name in `aggregate_on` a switch that all paths cross, or write `plan: {by: grid}`",
        );
    }
}

/// The job for a training whose gradients a switch sums for the server; `None` if the server sums.
fn training_job(training: &Training, span: Span) -> Option<Job> {
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
                    "host `{}` is already a rank of job `{}`",
                    rank.value, job.name
                ),
                None => format!("host `{}` has two ranks", rank.value),
            };
            sink.error(Code::Duplicate, rank.span, message);
            is_known = false;
        }
    }
    let on = summing_switches(sink, raw, declared)?;
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

/// Checks that a job over RDMA uses no settings that RDMA does not support; reports others.
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
        let message = "with `transport: rdma` a packet carries 256 values (1,024 bytes)";
        return refuse(values.span, message, "write `values: 256`");
    }
    if let Some(deadline) = &declared.deadline {
        let message = "`deadline` cannot be combined with `transport: rdma`: a WRITE has no field for late contributions";
        return refuse(
            deadline.span,
            message,
            "write `transport: udp`, or leave `deadline` out",
        );
    }
    if let [_, below, ..] = on {
        let message = "`transport: rdma` allows only one switch that sums: that switch holds the queue pairs of all ranks";
        return refuse(
            below.span,
            message,
            "name one switch in `on`, or write `transport: udp`",
        );
    }
    true
}

/// Reads the deadline of a job, and refuses a deadline that a switch cannot keep.
fn deadline(
    sink: &mut Sink<'_>,
    declared: &RawJob,
    raw: &Spanned<RawDeadline>,
    on: &[Spanned<String>],
) -> Option<Deadline> {
    let ranks = declared.ranks.len();
    if on.len() > 1 {
        let message = "`deadline` allows only one switch that sums: with several, no switch knows which ranks are missing at the others";
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
            .hint("leave `deadline` out: a single rank waits for no other");
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
