//! Jobs whose values a switch sums.

use crate::diagnostic::{Code, Sink, Span, Spanned};
use crate::names::JOB;
use crate::resolve::unknown;
use crate::schema::{Raw, RawJob};
use crate::workload::{Training, Workload};

/// Pairs of cells that a switch has for all its jobs (`NUM_SLOTS` in p4src).
pub const SLOTS: u32 = 1024;
/// A slot's bitmap of contributors has so many bits.
pub const MAX_RANKS: usize = 32;
/// Jobs of one switch (`jobs` in p4src/common/aggregate.p4).
pub const MAX_JOBS: usize = 64;

/// A job: ranks that give values, and the switch that sums them and sends all of them the sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Its number on the wire, from 1 in declared order.
    pub number: u16,
    /// Hosts, by rank.
    pub ranks: Vec<String>,
    /// The switch that sums.
    pub on: String,
    /// Chunks that a rank may have under way: a power of two.
    pub window: u32,
    /// The first of its slots among the switch's.
    pub base: u32,
    /// Where it is declared.
    pub span: Span,
}

impl Job {
    /// What tells a program on a host which rank of the job it is to be; empty if the host is none.
    #[must_use]
    pub fn environment(&self, host: &str) -> Vec<(&'static str, String)> {
        let Some(rank) = self.ranks.iter().position(|rank| rank == host) else {
            return Vec::new();
        };
        vec![
            ("WEIR_JOB", self.number.to_string()),
            ("WEIR_RANK", rank.to_string()),
            ("WEIR_RANKS", self.ranks.len().to_string()),
            ("WEIR_WINDOW", self.window.to_string()),
        ]
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
            return jobs;
        };
        let message = "`training` is a job of its own, beside which there is no other";
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
    jobs
}

/// That of a training whose values a switch sums for its server.
fn of_training(training: &Training, span: Span) -> Option<Job> {
    Some(Job {
        name: "training".to_owned(),
        number: JOB,
        ranks: training.workers.clone(),
        on: training.aggregate_on.clone()?,
        window: training.window,
        base: 0,
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
    if let Some(other) = others.iter().find(|job| job.on != on.value) {
        let message = format!(
            "job `{}` is summed on switch `{}`: one switch sums for all jobs",
            other.name, other.on
        );
        sink.error(Code::Capacity, on.span, message);
        is_known = false;
    }
    if !is_known {
        return None;
    }
    for rank in &declared.ranks {
        let is_attached = topology
            .ports(&on.value)
            .any(|port| port.peer == rank.value);
        if !is_attached {
            let message = format!(
                "host `{}` is not attached to switch `{}`, which sums",
                rank.value, on.value
            );
            sink.error(Code::Unreachable, rank.span, message)
                .hint("a switch knows a rank by the port that it alone is at");
            return None;
        }
    }
    Some(Job {
        name: declared.name.value.clone(),
        number: u16::try_from(others.len() + 1).ok()?,
        ranks: declared
            .ranks
            .iter()
            .map(|rank| rank.value.clone())
            .collect(),
        on: on.value,
        window: declared.window.value,
        base,
        span: declared.name.span,
    })
}

/// The switch that sums: the only one, if none is named.
fn on(sink: &mut Sink<'_>, raw: &Raw, declared: &RawJob) -> Option<Spanned<String>> {
    let switches = &raw.topology.switches;
    match &declared.on {
        Some(on) if raw.topology.has_switch(&on.value) => Some(on.clone()),
        Some(on) => {
            unknown(sink, "switch", on, switches.iter().map(String::as_str));
            None
        }
        None => match switches.as_slice() {
            [only] => Some(Spanned::new(only.clone(), declared.name.span)),
            _ => {
                let message = format!("which switch sums for job `{}`?", declared.name.value);
                sink.error(Code::MissingKey, declared.name.span, message)
                    .hint(format!(
                        "`on: {}`",
                        switches.first().map_or("SWITCH", String::as_str)
                    ));
                None
            }
        },
    }
}
