//! GOAT's problem, reduced to the switches that can save traffic (sites) and to groups of workers that are alike.

use std::collections::BTreeMap;

use super::{GoatError, Gradient};
use crate::gradient::{Job, Member, Part, Plan};
use crate::network::{Network, NodeId};
use crate::routing::{Costs, Routing};

/// Cost of a full link: more than the cost of all other links together.
const FULL: u64 = 1 << 40;

/// Maximum number of bytes: up to it, floats represent whole numbers exactly.
const MOST_BYTES: u64 = 1 << 53;

pub(super) struct GoatProblem<'n> {
    job: &'n Job,
    server: NodeId,
    routing: Routing<'n>,
    /// Size of each sub-model in bytes.
    pub bytes: Vec<u64>,
    /// Switches that can sum and save traffic.
    pub sites: Vec<Site>,
    /// Groups of workers with equal distances to all nodes.
    pub groups: Vec<WorkerGroup>,
}

/// A switch that can sum sub-models.
pub(super) struct Site {
    pub id: NodeId,
    /// Memory of the switch for sums, in bytes.
    pub memory: u64,
    /// Cost of a byte from the switch to the server.
    pub up: u64,
}

pub(super) struct WorkerGroup {
    /// Ranks of the group's workers.
    pub workers: Vec<usize>,
    /// Cost of a byte from a worker of the group to the server.
    pub direct: u64,
    /// Cost of a byte from a worker of the group to each switch.
    pub to: Vec<u64>,
}

impl WorkerGroup {
    pub fn count(&self) -> u64 {
        self.workers.len() as u64
    }
}

impl<'n> GoatProblem<'n> {
    pub fn new(
        network: &'n Network,
        job: &'n Job,
        gradient: &Gradient<'_>,
    ) -> Result<GoatProblem<'n>, GoatError> {
        job.check(network)?;
        let server = job.server()?.host;
        if gradient.sub_models.iter().all(|bytes| *bytes == 0) {
            return Err(GoatError::Empty(job.name.clone()));
        }
        let mut bytes = gradient.sub_models.iter();
        let sum = bytes.try_fold(0_u64, |sum, bytes| sum.checked_add(*bytes));
        if sum.is_none_or(|sum| sum > MOST_BYTES) {
            return Err(GoatError::TooLarge(job.name.clone()));
        }
        let costs = Costs::from_fn(network, |arc| match network.spare_bps(arc) {
            0 => FULL,
            _ => gradient.costs.get(arc).min(FULL / 1024),
        });
        let routing = Routing::new(network, costs);
        let cost = |from: NodeId, to: NodeId| {
            let distance = routing.distance(from, to).ok()?;
            Some(distance.cost).filter(|cost| *cost < FULL)
        };
        let mut sites: Vec<Site> = Vec::new();
        for id in network.switches() {
            let switch = network.switch(id).filter(|switch| switch.programmable);
            let Some(switch) = switch else { continue };
            let is_full = switch.spare_sums_bps() == Some(0);
            if let Some(up) = cost(id, server).filter(|_| !is_full) {
                sites.push(Site {
                    id,
                    memory: switch.memory_bytes.unwrap_or(u64::MAX),
                    up,
                });
            }
        }
        // Workers with one link to the same switch have equal distances to all nodes.
        let mut groups: BTreeMap<(Vec<u64>, u64), Vec<usize>> = BTreeMap::new();
        for (rank, worker) in job.workers.iter().enumerate() {
            let Some(direct) = cost(*worker, server) else {
                return Err(job.no_way(network, *worker, server).into());
            };
            let to = sites.iter();
            let to = to.map(|site| cost(*worker, site.id).unwrap_or(FULL));
            groups.entry((to.collect(), direct)).or_default().push(rank);
        }
        let groups = groups
            .into_iter()
            .map(|((to, direct), workers)| WorkerGroup {
                workers,
                direct,
                to,
            });
        let mut instance = GoatProblem {
            job,
            server,
            routing,
            bytes: gradient.sub_models.to_vec(),
            sites,
            groups: groups.collect(),
        };
        instance.keep_what_pays();
        Ok(instance)
    }

    /// Removes switches that save no traffic even if they alone sum: they save even less beside other summing switches.
    fn keep_what_pays(&mut self) {
        let pays = |site: usize| {
            let saved = self.groups.iter().map(|group| {
                let nearer = group.direct.saturating_sub(group.to[site]);
                nearer * group.count()
            });
            saved.sum::<u64>() > self.sites[site].up
        };
        let least = self.bytes.iter().filter(|bytes| **bytes > 0).min();
        let least = least.copied().unwrap_or(0);
        let keeps: Vec<bool> = (0..self.sites.len())
            .map(|site| pays(site) && self.sites[site].memory >= least)
            .collect();
        let mut kept = keeps.iter();
        self.sites.retain(|_| *kept.next().unwrap_or(&false));
        for group in &mut self.groups {
            let mut kept = keeps.iter();
            group.to.retain(|_| *kept.next().unwrap_or(&false));
        }
    }

    pub fn sub_models(&self) -> std::ops::Range<usize> {
        0..self.bytes.len()
    }

    /// For each switch, whether its memory can hold a sum of `bytes` bytes.
    pub fn fits(&self, bytes: u64) -> Vec<bool> {
        self.sites.iter().map(|site| bytes <= site.memory).collect()
    }

    /// Switch that sums a group's gradient: the nearest one in `open`; `None` if the server, which then sums, is no farther.
    fn nearest(&self, group: &WorkerGroup, open: &[bool]) -> Option<usize> {
        let sites = (0..self.sites.len()).filter(|site| open[*site]);
        let nearest = sites.min_by_key(|site| group.to[*site])?;
        (group.to[nearest] < group.direct).then_some(nearest)
    }

    /// The plan in which `open` says which switches sum each sub-model: by sub-model, then switch.
    pub fn plan(&self, open: &[Vec<bool>]) -> Plan {
        let path = |from, to| self.routing.path(from, to).unwrap_or_default();
        let sum = self.bytes.iter().sum::<u64>() as f64;
        let mut parts: Vec<Part> = Vec::new();
        let sub_models = self.sub_models().filter(|g| self.bytes[*g] > 0);
        for (piece, g) in sub_models.enumerate() {
            let mut at: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
            for group in &self.groups {
                let site = self.nearest(group, &open[g]);
                at.entry(site).or_default().extend(&group.workers);
            }
            for (site, mut workers) in at {
                workers.sort_unstable();
                let at = site.map_or(self.server, |site| self.sites[site].id);
                let members = workers.into_iter().map(|worker| Member {
                    worker,
                    route: path(self.job.workers[worker], at),
                });
                parts.push(Part {
                    piece,
                    share: self.bytes[g] as f64 / sum,
                    server: 0,
                    at,
                    members: members.collect(),
                    up: path(at, self.server),
                });
            }
        }
        Plan::new(self.job, parts)
    }
}
