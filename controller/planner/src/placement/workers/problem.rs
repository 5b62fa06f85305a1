//! Hosts with slots, in racks, and who talks with whom.

use std::collections::{BTreeMap, BTreeSet};

use super::Refusal;
use crate::network::{Network, NodeId};

/// A host's number: its place in [`Problem::machines`].
pub type HostId = usize;
/// A rack's number: its place in [`Problem::racks`].
pub type RackId = usize;

/// Workers to be placed. All numbers are places in its lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problem {
    /// Hosts that may be taken.
    pub machines: Vec<Machine>,
    /// Racks, by the names of their switches.
    pub racks: Vec<String>,
    /// How many workers there are.
    pub workers: usize,
    /// Who talks with whom.
    pub pattern: Pattern,
    /// What passes between racks.
    pub limits: Vec<Limit>,
    /// Workers whose host is given.
    pub pins: Vec<(usize, HostId)>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// For people.
    pub name: String,
    /// Where it stands.
    pub rack: RackId,
    /// Workers that it has room for yet.
    pub slots: usize,
    /// Whether it runs something already.
    pub busy: bool,
}

/// Who talks with whom, step by step; circuits may be configured anew between steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pattern {
    /// The pairs of each step.
    pub steps: Vec<Vec<(End, End)>>,
}

/// Who talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A worker, by rank.
    Worker(usize),
    /// What stands in a rack already: a server.
    Rack(RackId),
}

/// Pairs that may talk between two racks in one step, whoever begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The racks.
    pub racks: (RackId, RackId),
    /// How many pairs.
    pub pairs: usize,
}

impl Pattern {
    /// Every worker talks with a server in a rack, all at once.
    #[must_use]
    pub fn to_server(workers: usize, rack: RackId) -> Pattern {
        let pairs = (0..workers).map(|worker| (End::Worker(worker), End::Rack(rack)));
        Pattern {
            steps: vec![pairs.collect()],
        }
    }

    /// Every worker talks with the next; the last with the first.
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

    /// In step t every worker talks with the one whose rank differs in bit t, where there is one.
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

impl Problem {
    /// Places workers on hosts of a network, each in the rack of the switch that its first link leads to. A host that does not
    /// say how many slots it has, has one. `taken` are workers that run there beside those that the network tells of.
    #[must_use]
    pub fn of(
        network: &Network,
        workers: usize,
        hosts: &[NodeId],
        taken: &BTreeMap<NodeId, usize>,
    ) -> Problem {
        let mut problem = Problem {
            workers,
            ..Problem::default()
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

    /// The rack of a host: the switch that its first link leads to. A rack in which no machine stands is added.
    pub fn rack(&mut self, network: &Network, host: NodeId) -> RackId {
        // A host without a link is a rack of its own.
        let first = network.adjacent(host).first();
        let name = network.name(first.map_or(host, |(_, switch)| *switch));
        let known = self.racks.iter().position(|rack| rack == name);
        known.unwrap_or_else(|| {
            self.racks.push(name.to_owned());
            self.racks.len() - 1
        })
    }

    /// Whether all numbers point at something, and pins do not contradict each other or what hosts have room for.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let rack = |rack: RackId| match rack < self.racks.len() {
            true => Ok(()),
            false => Err(Refusal::Unknown("rack", rack)),
        };
        let worker = |worker: usize| match worker < self.workers {
            true => Ok(()),
            false => Err(Refusal::Unknown("worker", worker)),
        };
        for machine in &self.machines {
            rack(machine.rack)?;
        }
        for limit in &self.limits {
            rack(limit.racks.0)?;
            rack(limit.racks.1)?;
        }
        let ends = self.pattern.steps.iter().flatten();
        for end in ends.flat_map(|(a, b)| [*a, *b]) {
            match end {
                End::Worker(number) => worker(number)?,
                End::Rack(number) => rack(number)?,
            }
        }
        let mut pinned: BTreeMap<usize, HostId> = BTreeMap::new();
        for (number, host) in &self.pins {
            worker(*number)?;
            if *host >= self.machines.len() {
                return Err(Refusal::Unknown("host", *host));
            }
            if let Some(other) = pinned.insert(*number, *host).filter(|other| other != host) {
                return Err(Refusal::PinnedTwice(*number, other, *host));
            }
        }
        for (host, machine) in self.machines.iter().enumerate() {
            let here = pinned.iter().filter(|(_, at)| **at == host);
            let here: Vec<usize> = here.map(|(worker, _)| *worker).collect();
            if here.len() > machine.slots {
                // One more than there is room for contradicts it already.
                let workers = here.into_iter().take(machine.slots + 1).collect();
                return Err(Refusal::PinsBeyondSlots(host, workers));
            }
        }
        let slots = self.machines.iter().map(|machine| machine.slots);
        let slots = slots.fold(0, usize::saturating_add);
        match slots < self.workers {
            true => Err(Refusal::Slots {
                workers: self.workers,
                slots,
            }),
            false => Ok(()),
        }
    }

    /// Where a worker is pinned.
    pub(super) fn pinned(&self) -> BTreeMap<usize, HostId> {
        self.pins.iter().copied().collect()
    }

    /// The idle hosts that are taken and the hosts that are taken by no placement fewer, slots alone considered.
    pub(super) fn at_least(&self) -> (usize, usize) {
        let pinned: BTreeSet<HostId> = self.pins.iter().map(|(_, host)| *host).collect();
        let of = |busy: bool| {
            let machines = self.machines.iter().enumerate();
            let here = machines.filter(move |(_, machine)| machine.busy == busy);
            let mut slots: Vec<(bool, usize)> = here
                .map(|(host, machine)| (pinned.contains(&host), machine.slots))
                .collect();
            // Those with a pin are taken whatever else is.
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

    /// Whether a pattern does not tell workers apart: each has the same pairs, all with racks.
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

    /// Where an end is, if that is known.
    pub(super) fn rack_of(&self, end: End, at: &[Option<HostId>]) -> Option<RackId> {
        match end {
            End::Rack(rack) => Some(rack),
            End::Worker(worker) => at[worker].map(|host| self.machines[host].rack),
        }
    }

    /// The limits that are exceeded, in the steps in which they are; pairs of which an end is not placed do not count.
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
