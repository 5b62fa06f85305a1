//! R-GRIA, the rounding of GRID's own paper (Fang et al., "GRID: Gradient Routing with In-network Aggregation for Distributed
//! Training", IEEE/ACM ToN 2023): the linear relaxation of its program, then each worker draws where it is summed.
//!
//! The paper's program has no links, and capacities are exceeded by what is drawn: in the paper's words by a factor of
//! O(log |S|) in expectation. [`Rounded::exceeded`] says by how much, and [`Rounded::plan`] makes a plan of it that holds every
//! capacity: each stream takes a shortest way, and all workers send as much as the fullest resource then lets them.

use std::collections::BTreeMap;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::nearest::way;
use crate::gradient::{Goal, Job, JobError, Loads, Member, Part, Plan, Route};
use crate::network::generate::random::unit;
use crate::network::{Network, NodeId};
use crate::routing::{Costs, Routing};

/// An optimum of the relaxed program.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxation {
    /// λ: what no assignment of workers to nodes is above, were there no links.
    pub rate_bps: f64,
    /// The rate at which every worker sends to each switch, of those that it sends to.
    pub summed_bps: Vec<(NodeId, f64)>,
    /// The rate at which every worker sends to the server itself.
    pub raw_bps: f64,
}

/// Where each worker has drawn to be summed.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounded {
    /// By rank: a switch, or the server.
    pub at: Vec<NodeId>,
    /// λ, at which all of them would send.
    pub rate_bps: f64,
    /// The greatest ratio of what a switch sums or the server takes in at λ to what it can; links are not counted.
    pub exceeded: f64,
}

/// Solves the relaxation. The job has one server.
///
/// Workers are alike in it, as it has no links, so each sends to a node what the mean of them does, r. A switch then sends r on
/// for what it sums, workers · r, which is never worse than as much sent raw; the server takes in all that it can. What is
/// left open is which of the switches are used: here those that sum most, which is as few as can be, so the server, which
/// takes in a stream from each that is drawn, is exceeded the least.
///
/// # Errors
///
/// What [`Job::check`] refuses, and [`JobError::OneServer`].
pub fn relax(network: &Network, job: &Job) -> Result<Relaxation, JobError> {
    job.check(network)?;
    let server = job.server()?;
    let ingress_bps = server.spare_bps(network) as f64;
    let workers = job.workers.len() as f64;
    let mut sums: Vec<(NodeId, f64)> = (network.switches())
        .filter_map(|id| Some((id, sums_bps(network, id)?)))
        .collect();
    sums.sort_by(|(one, a), (other, b)| b.total_cmp(a).then(one.cmp(other)));
    let mut left_bps = ingress_bps;
    let mut summed_bps: Vec<(NodeId, f64)> = Vec::new();
    for (switch, most_bps) in sums {
        let rate_bps = left_bps.min(most_bps / workers);
        if rate_bps > 0.0 {
            left_bps -= rate_bps;
            summed_bps.push((switch, rate_bps));
        }
    }
    let raw_bps = left_bps / workers;
    Ok(Relaxation {
        rate_bps: summed_bps.iter().map(|(_, rate)| rate).sum::<f64>() + raw_bps,
        summed_bps,
        raw_bps,
    })
}

/// Lets each worker draw where it is summed, each node as likely as the worker's share there, by a generator of this seed.
#[must_use]
pub fn round(network: &Network, job: &Job, relaxation: &Relaxation, seed: u64) -> Rounded {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let draws: Vec<f64> = job.workers.iter().map(|_| unit(&mut random)).collect();
    rounded(network, job, relaxation, &draws)
}

/// The same with numbers that were drawn from 0 to 1, by rank.
#[must_use]
pub fn rounded(network: &Network, job: &Job, relaxation: &Relaxation, draws: &[f64]) -> Rounded {
    let server = &job.servers[0];
    let drawn = |draw: &f64| relaxation.drawn(*draw).unwrap_or(server.host);
    let at: Vec<NodeId> = draws.iter().map(drawn).collect();
    let mut workers: BTreeMap<NodeId, usize> = BTreeMap::new();
    for node in &at {
        *workers.entry(*node).or_default() += 1;
    }
    let raw = workers.get(&server.host).copied().unwrap_or(0);
    let streams = workers.keys().filter(|node| **node != server.host).count() + raw;
    let sums = workers.iter().filter_map(|(node, count)| {
        let most_bps = sums_bps(network, *node)?;
        Some(*count as f64 * relaxation.rate_bps / most_bps)
    });
    let ingress = streams as f64 * relaxation.rate_bps / server.spare_bps(network) as f64;
    Rounded {
        exceeded: sums.fold(ingress, f64::max),
        rate_bps: relaxation.rate_bps,
        at,
    }
}

impl Relaxation {
    /// The switch that a number from 0 to 1 draws; `None`: the server.
    fn drawn(&self, draw: f64) -> Option<NodeId> {
        let mut below_bps = draw * self.rate_bps;
        let chosen = self.summed_bps.iter().find(|(_, rate_bps)| {
            let is_chosen = below_bps < *rate_bps;
            below_bps -= rate_bps;
            is_chosen
        });
        chosen.map(|(switch, _)| *switch)
    }
}

impl Rounded {
    /// A plan of it that exceeds nothing.
    ///
    /// # Errors
    ///
    /// [`JobError::NoWay`].
    pub fn plan(&self, network: &Network, job: &Job) -> Result<Plan, JobError> {
        let routing = Routing::new(network, Costs::hops(network));
        let server = job.server()?.host;
        let mut members: BTreeMap<NodeId, Vec<Member>> = BTreeMap::new();
        for (worker, (from, at)) in job.workers.iter().zip(&self.at).enumerate() {
            let route = way(&routing, job, *from, *at, worker)?;
            members
                .entry(*at)
                .or_default()
                .push(Member { worker, route });
        }
        let parts = members
            .into_iter()
            .enumerate()
            .map(|(place, (at, members))| {
                let up = match at == server {
                    true => Route::new(),
                    false => way(&routing, job, at, server, place)?,
                };
                Ok(Part {
                    piece: 0,
                    share: 1.0,
                    server: 0,
                    at,
                    members,
                    up,
                })
            });
        let mut plan = Plan {
            job: job.name.clone(),
            parts: parts.collect::<Result<_, JobError>>()?,
            answers: Vec::new(),
            rate_bps: 0.0,
            bound_bps: f64::INFINITY,
            goal: Goal::Rate,
            is_optimal: false,
        };
        let binding = Loads::of(network, job, &plan).binding(network, job);
        plan.rate_bps = binding.map_or(f64::INFINITY, |binding| binding.rate_bps);
        Ok(plan)
    }
}

/// What a switch sums; `None` of those that cannot, and of hosts.
fn sums_bps(network: &Network, node: NodeId) -> Option<f64> {
    let switch = network.switch(node).filter(|switch| switch.programmable)?;
    Some(match switch.throughput_bps {
        Some(bps) => bps.saturating_sub(switch.load_bps) as f64,
        None => f64::INFINITY,
    })
}
