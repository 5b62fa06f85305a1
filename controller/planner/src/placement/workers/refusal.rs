//! Reasons why the workers of a training cannot be placed.

use std::collections::BTreeMap;

use super::problem::{End, HostId, RackId, WorkerProblem};

/// Why workers cannot be placed. Numbers are indices into the problem's lists; [`WorkerRefusal::describe`] gives names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerRefusal {
    /// An index is out of range: what it is an index of (`rack`, `worker` or `host`), and its value.
    Unknown(&'static str, usize),
    /// There are more workers than slots on all hosts together.
    Slots {
        /// Number of workers to place.
        workers: usize,
        /// Number of slots on all hosts.
        slots: usize,
    },
    /// A worker (its rank) is pinned to two hosts.
    PinnedTwice(usize, HostId, HostId),
    /// More workers are pinned to a host than it has slots: the host, and a smallest set of such workers.
    PinsBeyondSlots(HostId, Vec<usize>),
    /// No placement meets these constraints together.
    Conflict(Box<WorkerConflict>),
    /// Neither a placement was found nor a proof that there is none.
    NotFound,
}

/// Constraints on the placement of workers that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerConflict {
    /// Hosts whose slots are part of the conflict.
    pub slots: Vec<HostId>,
    /// Indices of the limits between racks that are part of the conflict.
    pub limits: Vec<usize>,
    /// Ranks of the workers whose pins are part of the conflict.
    pub pins: Vec<usize>,
    /// Whether the conflict is minimal: without any one of its constraints, a placement is known to exist.
    pub least: bool,
}

/// Maximum number of names that a message lists.
const NAMES: usize = 8;

/// Checks that all indices are in range, and that pins contradict neither each other nor the hosts' slots.
pub(super) fn check(problem: &WorkerProblem) -> Result<(), WorkerRefusal> {
    let rack = |rack: RackId| match rack < problem.racks.len() {
        true => Ok(()),
        false => Err(WorkerRefusal::Unknown("rack", rack)),
    };
    let worker = |worker: usize| match worker < problem.workers {
        true => Ok(()),
        false => Err(WorkerRefusal::Unknown("worker", worker)),
    };
    for machine in &problem.machines {
        rack(machine.rack)?;
    }
    for limit in &problem.limits {
        rack(limit.racks.0)?;
        rack(limit.racks.1)?;
    }
    let ends = problem.pattern.steps.iter().flatten();
    for end in ends.flat_map(|(a, b)| [*a, *b]) {
        match end {
            End::Worker(number) => worker(number)?,
            End::Rack(number) => rack(number)?,
        }
    }
    let mut pinned: BTreeMap<usize, HostId> = BTreeMap::new();
    for (number, host) in &problem.pins {
        worker(*number)?;
        if *host >= problem.machines.len() {
            return Err(WorkerRefusal::Unknown("host", *host));
        }
        if let Some(other) = pinned.insert(*number, *host).filter(|other| other != host) {
            return Err(WorkerRefusal::PinnedTwice(*number, other, *host));
        }
    }
    for (host, machine) in problem.machines.iter().enumerate() {
        let here = pinned.iter().filter(|(_, at)| **at == host);
        let here: Vec<usize> = here.map(|(worker, _)| *worker).collect();
        if here.len() > machine.slots {
            // One worker more than there are slots suffices for a contradiction.
            let workers = here.into_iter().take(machine.slots + 1).collect();
            return Err(WorkerRefusal::PinsBeyondSlots(host, workers));
        }
    }
    let slots = problem.machines.iter().map(|machine| machine.slots);
    let slots = slots.fold(0, usize::saturating_add);
    match slots < problem.workers {
        true => Err(WorkerRefusal::Slots {
            workers: problem.workers,
            slots,
        }),
        false => Ok(()),
    }
}

impl WorkerRefusal {
    /// Text for users that describes the refusal, with the names in the refused problem.
    #[must_use]
    pub fn describe(&self, problem: &WorkerProblem) -> String {
        let host = |host: HostId| format!("`{}`", problem.machines[host].name);
        match self {
            WorkerRefusal::Unknown(what, number) => format!("{what} {number} is not declared"),
            WorkerRefusal::Slots { workers, slots } => {
                let free = problem.machines.iter().filter(|machine| machine.slots > 0);
                format!(
                    "{workers} workers, and the {} hosts with a free slot have {slots}",
                    free.count()
                )
            }
            WorkerRefusal::PinnedTwice(worker, a, b) => format!(
                "worker {worker} is pinned to {} and to {}",
                host(*a),
                host(*b)
            ),
            WorkerRefusal::PinsBeyondSlots(at, workers) => format!(
                "{} workers are pinned to {}, which has {} free slots",
                workers.len(),
                host(*at),
                problem.machines[*at].slots
            ),
            WorkerRefusal::Conflict(conflict) => conflict.describe(problem),
            WorkerRefusal::NotFound => {
                "the search found neither a placement of the workers nor a proof that there is none"
                    .to_owned()
            }
        }
    }
}

impl WorkerConflict {
    fn describe(&self, problem: &WorkerProblem) -> String {
        let list = |names: Vec<String>| {
            let more = names.len().saturating_sub(NAMES);
            let text = names[..names.len() - more].join(", ");
            match more {
                0 => text,
                more => format!("{text} and {more} more"),
            }
        };
        let hosts = |hosts: &[HostId]| {
            let names = hosts
                .iter()
                .map(|host| format!("`{}`", problem.machines[*host].name));
            list(names.collect())
        };
        let mut reasons = Vec::new();
        if !self.limits.is_empty() {
            let limits = self.limits.iter().map(|limit| {
                let limit = &problem.limits[*limit];
                let (a, b) = limit.racks;
                let (a, b) = (&problem.racks[a], &problem.racks[b]);
                format!("{} between `{a}` and `{b}`", limit.pairs)
            });
            reasons.push(format!(
                "the pairs that may communicate ({})",
                list(limits.collect())
            ));
        }
        if !self.slots.is_empty() {
            reasons.push(format!("the slots of {}", hosts(&self.slots)));
        }
        if !self.pins.is_empty() {
            let pinned = problem.pins.iter();
            let pinned = pinned.filter(|(worker, _)| self.pins.contains(worker));
            let at: Vec<String> = pinned
                .map(|(worker, host)| format!("{worker} on `{}`", problem.machines[*host].name))
                .collect();
            reasons.push(format!("pinned workers ({})", list(at)));
        }
        let workers = problem.workers;
        format!("{workers} workers cannot be placed: {}", reasons.join(", "))
    }
}
