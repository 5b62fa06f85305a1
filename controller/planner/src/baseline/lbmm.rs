//! LBMM, as in InArt's comparison (WWW 2024): several servers, no switch sums, and the load of the most loaded link is
//! minimized. A server's share of the model is its share of all servers' ingress rate.
//!
//! Streams choose one after another, each among all its shortest paths: the one whose fullest link is then the least full.

use std::collections::BTreeMap;

use super::nearest::{joint_rate_bps, ways};
use crate::gradient::{Job, JobError, Member, Part, Plan, Route};
use crate::network::{Arc, Network};
use crate::routing::{Costs, Routing};

/// Plans a job by LBMM, at the greatest common rate of its workers on the chosen paths.
///
/// # Errors
///
/// Errors of [`Job::check`], and [`JobError::NoWay`].
pub fn plan(network: &Network, job: &Job) -> Result<Plan, JobError> {
    job.check(network)?;
    let routing = Routing::new(network, Costs::hops(network));
    let taken = job
        .servers
        .iter()
        .map(|server| server.spare_bps(network) as f64);
    let taken: Vec<f64> = taken.collect();
    let all: f64 = taken.iter().sum();
    let mut loads: BTreeMap<Arc, f64> = BTreeMap::new();
    let mut parts = Vec::new();
    for (server, taken) in taken.iter().enumerate() {
        let (share, to) = (taken / all, job.servers[server].host);
        let mut members = Vec::new();
        for (worker, from) in job.workers.iter().enumerate() {
            let fullest = |way: &Route| {
                let full = way.iter().map(|arc| {
                    let load = loads.get(arc).unwrap_or(&0.0) + share;
                    load / network.spare_bps(*arc) as f64
                });
                full.fold(0.0, f64::max)
            };
            let ways = ways(&routing, job, *from, to)?;
            let best = ways
                .into_iter()
                .min_by(|a, b| fullest(a).total_cmp(&fullest(b)));
            let route = best.unwrap_or_default();
            for arc in &route {
                *loads.entry(*arc).or_default() += share;
            }
            members.push(Member { worker, route });
        }
        parts.push(Part {
            piece: server,
            share,
            server,
            at: to,
            members,
            up: Route::new(),
        });
    }
    let mut plan = Plan::new(job, parts);
    plan.rate_bps = joint_rate_bps(
        network,
        std::slice::from_ref(job),
        std::slice::from_ref(&plan),
    );
    // The ingress rate of all servers bounds the rate of all workers.
    plan.bound_bps = (all / job.workers.len() as f64).max(plan.rate_bps);
    plan.is_optimal = plan.rate_bps == plan.bound_bps;
    if plan.rate_bps > 0.0 {
        return Ok(plan);
    }
    Err(job.no_way(network, job.workers[0], job.servers[0].host))
}
