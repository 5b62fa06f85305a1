//! Describes a problem of placing workers: hosts with slots, in racks, and the pairs of workers that communicate.

use std::collections::{BTreeMap, BTreeSet};

use crate::network::{Network, NodeId};

/// Index of a host in [`WorkerProblem::machines`].
pub type HostId = usize;
/// Index of a rack in [`WorkerProblem::racks`].
pub type RackId = usize;

/// Workers of a training to be placed at hosts. Every number in it is an index into one of its lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerProblem {
    /// Hosts at which workers may be placed.
    pub machines: Vec<Machine>,
    /// Names of the racks' switches.
    pub racks: Vec<String>,
    /// Number of workers to place.
    pub workers: usize,
    /// Pairs of workers that communicate, for each step of the training.
    pub pattern: Pattern,
    /// Limits of communication between racks.
    pub limits: Vec<RackLimit>,
    /// Workers that the user has pinned to a host, each with its host.
    pub pins: Vec<(usize, HostId)>,
}

/// A host at which workers may be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Name of the host in messages.
    pub name: String,
    /// Rack of the host.
    pub rack: RackId,
    /// Number of free slots for workers.
    pub slots: usize,
    /// Whether the host already runs something.
    pub busy: bool,
}

/// Which workers communicate in each step of a training; circuits may be reconfigured between steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pattern {
    /// For each step, the pairs of ends that communicate.
    pub steps: Vec<Vec<(End, End)>>,
}

/// One end of a communicating pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A worker, given by its rank.
    Worker(usize),
    /// A server somewhere in this rack.
    Rack(RackId),
}

/// Maximum number of pairs that may communicate between two racks in one step, in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RackLimit {
    /// The two racks.
    pub racks: (RackId, RackId),
    /// Maximum number of communicating pairs in a step.
    pub pairs: usize,
}

impl Pattern {
    /// Every worker communicates with a server in a rack, in one step.
    #[must_use]
    pub fn to_server(workers: usize, rack: RackId) -> Pattern {
        let pairs = (0..workers).map(|worker| (End::Worker(worker), End::Rack(rack)));
        Pattern {
            steps: vec![pairs.collect()],
        }
    }

    /// Every worker communicates with the next one, and the last worker with the first, in one step.
    #[must_use]
    pub fn ring(workers: usize) -> Pattern {
        let next = |worker: usize| (End::Worker(worker), End::Worker((worker + 1) % workers));
        let pairs = match workers {
            0 | 1 => Vec::new(),
            2 => vec![next(0)],
            _ => (0..workers).map(next).collect(),
        };
        Pattern { steps: vec![pairs] }
    }

    /// In step t every worker communicates with the one whose rank differs in bit t, if there is one.
    #[must_use]
    pub fn halving_doubling(workers: usize) -> Pattern {
        let steps = (0..usize::BITS).map(|step| 1 << step);
        let steps = steps.take_while(|bit| *bit < workers).map(|bit: usize| {
            let pairs = (0..workers).map(|worker| (worker, worker ^ bit));
            let pairs = pairs.filter(|(a, b)| a < b && *b < workers);
            pairs
                .map(|(a, b)| (End::Worker(a), End::Worker(b)))
                .collect()
        });
        Pattern {
            steps: steps.collect(),
        }
    }
}

impl WorkerProblem {
    /// Problem of placing workers on a network's hosts, each in the rack of the switch at its first link. A host whose number
    /// of slots is unknown has one. `taken` counts, by host, running workers that the network's data do not have.
    #[must_use]
    pub fn from_network(
        network: &Network,
        workers: usize,
        hosts: &[NodeId],
        taken: &BTreeMap<NodeId, usize>,
    ) -> WorkerProblem {
        let mut problem = WorkerProblem {
            workers,
            ..WorkerProblem::default()
        };
        for id in hosts {
            let Some(host) = network.host(*id) else {
                continue;
            };
            let rack = problem.rack(network, *id);
            let here = taken.get(id).copied().unwrap_or(0);
            problem.machines.push(Machine {
                name: network.name(*id).to_owned(),
                rack,
                slots: (host.slots.unwrap_or(1) as usize).saturating_sub(here),
                busy: host.busy || here > 0,
            });
        }
        problem
    }

    /// Rack of a host: the switch at its first link. Adds the rack if it contains no machine.
    pub fn rack(&mut self, network: &Network, host: NodeId) -> RackId {
        // A host without a link forms a rack of its own.
        let first = network.adjacent(host).first();
        let name = network.name(first.map_or(host, |(_, switch)| *switch));
        let known = self.racks.iter().position(|rack| rack == name);
        known.unwrap_or_else(|| {
            self.racks.push(name.to_owned());
            self.racks.len() - 1
        })
    }

    /// For each pinned worker, its host.
    pub(super) fn pinned(&self) -> BTreeMap<usize, HostId> {
        self.pins.iter().copied().collect()
    }

    /// Lower bounds of the number of idle hosts and of all hosts that any placement takes, by slots only.
    pub(super) fn at_least(&self) -> (usize, usize) {
        let pinned: BTreeSet<HostId> = self.pins.iter().map(|(_, host)| *host).collect();
        let of = |busy: bool| {
            let machines = self.machines.iter().enumerate();
            let here = machines.filter(move |(_, machine)| machine.busy == busy);
            let mut slots: Vec<(bool, usize)> = here
                .map(|(host, machine)| (pinned.contains(&host), machine.slots))
                .collect();
            // Hosts with a pin are always taken.
            slots.sort_unstable_by(|a, b| b.cmp(a));
            slots
        };
        let (busy, idle) = (of(true), of(false));
        let room = |hosts: &[(bool, usize)]| hosts.iter().map(|(_, slots)| slots).sum::<usize>();
        let must = idle.iter().filter(|(pinned, _)| *pinned).count();
        let mut count = must;
        while count < idle.len() && room(&busy) + room(&idle[..count]) < self.workers {
            count += 1;
        }
        let mut all = [&busy[..], &idle[..count]].concat();
        all.sort_unstable_by(|a, b| b.cmp(a));
        let must = all.iter().filter(|(pinned, _)| *pinned).count();
        let mut hosts = must;
        while hosts < all.len() && room(&all[..hosts]) < self.workers {
            hosts += 1;
        }
        (count, hosts)
    }

    /// Whether workers are alike: each communicates in the same pairs, all of them with servers in racks.
    pub(super) fn are_alike(&self) -> bool {
        self.limits.is_empty()
            || self.pattern.steps.iter().all(|step| {
                let mut by_worker: Vec<Vec<RackId>> = vec![Vec::new(); self.workers];
                for pair in step {
                    match *pair {
                        (End::Worker(worker), End::Rack(rack))
                        | (End::Rack(rack), End::Worker(worker)) => by_worker[worker].push(rack),
                        (End::Rack(_), End::Rack(_)) => {}
                        (End::Worker(_), End::Worker(_)) => return false,
                    }
                }
                by_worker.iter_mut().for_each(|racks| racks.sort_unstable());
                by_worker.windows(2).all(|pair| pair[0] == pair[1])
            })
    }

    /// Rack of an end of a pair; `None` if the end is a worker that is not placed.
    pub(super) fn rack_of(&self, end: End, at: &[Option<HostId>]) -> Option<RackId> {
        match end {
            End::Rack(rack) => Some(rack),
            End::Worker(worker) => at[worker].map(|host| self.machines[host].rack),
        }
    }

    /// Exceeded limits, each as the index of the limit and of the step; pairs with an unplaced end do not count.
    #[must_use]
    pub fn exceeded(&self, at: &[Option<HostId>]) -> Vec<(usize, usize)> {
        let mut exceeded = Vec::new();
        for (step, pairs) in self.pattern.steps.iter().enumerate() {
            for (number, limit) in self.limits.iter().enumerate() {
                let (a, b) = limit.racks;
                let passes = |(from, to): &&(End, End)| {
                    let ends = (self.rack_of(*from, at), self.rack_of(*to, at));
                    a != b && (ends == (Some(a), Some(b)) || ends == (Some(b), Some(a)))
                };
                if pairs.iter().filter(passes).count() > limit.pairs {
                    exceeded.push((number, step));
                }
            }
        }
        exceeded
    }
}
