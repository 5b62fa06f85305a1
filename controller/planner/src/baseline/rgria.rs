//! R-GRIA, the rounding of GRID's own paper (Fang et al., "GRID: Gradient Routing with In-network Aggregation for Distributed
//! Training", IEEE/ACM ToN 2023): solves the linear relaxation of its program, then each worker draws the node that sums it.
//!
//! The paper's program has no links, and the drawn assignment exceeds capacities: by a factor of O(log |S|) in expectation,
//! says the paper. [`Rounded::exceeded`] is the actual factor. [`Rounded::plan`] makes a plan that respects all capacities:
//! each stream takes a shortest path, and all workers send at the rate that the fullest resource allows.

use std::collections::BTreeMap;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::nearest::{spare_sums_bps, way};
use crate::gradient::{Job, JobError, Loads, Member, Part, Plan, Route};
use crate::network::generate::random::unit;
use crate::network::{Network, NodeId};
use crate::routing::{Costs, Routing};

/// Optimum of GRID's relaxed linear program.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxation {
    /// λ: upper bound of the rate of any assignment of workers to nodes, if there were no links.
    pub rate_bps: f64,
    /// Switches that sum, and for each the rate in bit/s at which every worker sends to it.
    pub summed_bps: Vec<(NodeId, f64)>,
    /// Rate at which every worker sends to the server directly, in bit/s.
    pub raw_bps: f64,
}

/// The node that sums each worker's gradient, drawn at random.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounded {
    /// For each rank, the node that sums the worker's gradient: a switch or the server.
    pub at: Vec<NodeId>,
    /// λ, the rate in bit/s at which all workers would send, if no capacity were exceeded.
    pub rate_bps: f64,
    /// Greatest ratio, over switches and the server, of the load at `rate_bps` to the capacity. Links do not count.
    pub exceeded: f64,
}

/// Solves the relaxation of a job with one server.
///
/// Without links all workers are alike, so each sends to a node what their mean does, r. A switch then receives workers · r and
/// forwards r, which is never worse than sending as much raw, and the server receives all that it can. The solution leaves open
/// which switches are used. Here they are those with the greatest capacity, so they are as few as possible. The server receives
/// a stream from each switch that is drawn, so few switches exceed its capacity least.
///
/// # Errors
///
/// Errors of [`Job::check`], and [`JobError::OneServer`].
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

/// Lets each worker draw the node that sums it, with the worker's share at a node as probability, from a generator with `seed`.
#[must_use]
pub fn round(network: &Network, job: &Job, relaxation: &Relaxation, seed: u64) -> Rounded {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let draws: Vec<f64> = job.workers.iter().map(|_| unit(&mut random)).collect();
    rounded(network, job, relaxation, &draws)
}

/// Assigns a node to each worker by its draw, a number from 0 to 1; draws are in the order of ranks.
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
    /// The switch that a draw from 0 to 1 selects; `None`: the server.
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
    /// Makes a plan from the drawn nodes that exceeds no capacity.
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
        let parts = parts.collect::<Result<_, JobError>>()?;
        let mut plan = Plan::new(job, parts);
        plan.rate_bps = Loads::from_plan(network, job, &plan).rate_bps(network, job);
        Ok(plan)
    }
}

/// Rate of gradients in bit/s that a switch can still sum; `None` for a host, or a switch that is not programmable.
fn sums_bps(network: &Network, node: NodeId) -> Option<f64> {
    let can_sum = network.switch(node)?.programmable;
    can_sum.then(|| spare_sums_bps(network, node))
}
