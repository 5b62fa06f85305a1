//! Problem: hosts with slots, in racks, and the pairs of workers that communicate.

use std::collections::{BTreeMap, BTreeSet};

use crate::network::{Network, NodeId};

/// Index into [`WorkerProblem::machines`].
pub type HostId = usize;
/// Index into [`WorkerProblem::racks`].
pub type RackId = usize;

/// Workers to be placed. All numbers are indexes into its lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerProblem {
    /// Hosts that may be taken.
    pub machines: Vec<Machine>,
    /// Names of the racks' switches.
    pub racks: Vec<String>,
    /// Number of workers.
    pub workers: usize,
    /// Pairs of workers that communicate.
    pub pattern: Pattern,
    /// Limits of communication between racks.
    pub limits: Vec<RackLimit>,
    /// Workers with a given host.
    pub pins: Vec<(usize, HostId)>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Name for people.
    pub name: String,
    /// Rack of the host.
    pub rack: RackId,
    /// Number of free slots for workers.
    pub slots: usize,
    /// Whether it already runs something.
    pub busy: bool,
}

/// Communication by step; circuits may be reconfigured between steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pattern {
    /// The pairs of each step.
    pub steps: Vec<Vec<(End, End)>>,
}

/// End of a communicating pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A worker, by rank.
    Worker(usize),
    /// A server in a rack.
    Rack(RackId),
}

/// Maximum number of pairs that may communicate between two racks in one step, in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RackLimit {
    /// The racks.
    pub racks: (RackId, RackId),
    /// Number of pairs.
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

    /// Every worker communicates with the next one; the last with the first.
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
    /// Problem of placing workers on a network's hosts, each in the rack of the switch at its first link. A host without a
    /// known number of slots has one. `taken` are workers that run there besides those in the network's data.
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

    /// Pinned host by worker.
    pub(super) fn pinned(&self) -> BTreeMap<usize, HostId> {
        self.pins.iter().copied().collect()
    }

    /// Lower bounds of the idle hosts and of the hosts that any placement takes, by slots only.
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

    /// Whether workers are alike: each has the same pairs, all with racks.
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

    /// Rack of an end, if it is known.
    pub(super) fn rack_of(&self, end: End, at: &[Option<HostId>]) -> Option<RackId> {
        match end {
            End::Rack(rack) => Some(rack),
            End::Worker(worker) => at[worker].map(|host| self.machines[host].rack),
        }
    }

    /// Limits that are exceeded, with the step; pairs with an unplaced end do not count.
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
