//! GRID: each worker's gradient is summed at one node, a switch or the server, so that all workers send as fast as can be
//! (Fang et al., "GRID: Gradient Routing with In-network Aggregation for Distributed Training", IEEE/ACM ToN 2023).
//!
//! The paper's program has a rate for each worker and switch. All that counts is the least of them, so a plan in which all
//! workers send at one rate λ is as good, and it is a matter of counting: at rate λ a link of B bit/s has room for ⌊B / λ⌋
//! streams, a switch that sums C bit/s for ⌊C / λ⌋ workers, and a stream is what one worker sends raw, or what one switch
//! sends of all that it sums. The paper leaves links out; here every stream has its way, on links that have room for it.
//!
//! The greatest λ is found by bisection. For one λ, `streams` opens switches, and a maximum flow of whole streams takes
//! workers to them.

mod bound;
pub(crate) mod streams;

use super::{Job, JobError, Loads, Plan};
use crate::network::{Network, NodeId};
use bound::{Relaxed, relax};
use streams::{Streams, bisect};

/// A plan is as good as the best if it is within this share.
const PRECISION: f64 = 1e-6;

/// The greatest rate that all workers can have, as far as it is found, and how.
pub fn plan(network: &Network, job: &Job) -> Result<Plan, JobError> {
    job.check(network)?;
    let streams = Streams::of(network, job, job.server()?);
    let most = streams.most_bps();
    // A worker that cannot send at all is told at once.
    let server = job.servers[0].host;
    if let Some(cut_off) = cut_off(network, job, server) {
        return Err(cut_off);
    }
    let mut best: Option<Plan> = None;
    bisect(0.0, most, |rate_bps| {
        // What was found may let workers send faster than was asked.
        if best.as_ref().is_some_and(|best| best.rate_bps >= rate_bps) {
            return true;
        }
        let found = streams.at_rate(rate_bps);
        let is_found = found.is_some();
        if let Some(mut plan) = found {
            plan.rate_bps = rate_of(network, job, &plan).unwrap_or(rate_bps);
            best = Some(plan);
        }
        is_found
    });
    let mut plan = best.ok_or_else(|| no_way(network, job, job.workers[0], server))?;
    plan.bound_bps = most.max(plan.rate_bps);
    plan.is_optimal = plan.rate_bps >= most * (1.0 - PRECISION);
    Ok(plan)
}

/// Looks by linear programs how much better a plan could be, makes it so where it finds out how, and says in it what is left.
/// It takes some ten times as long as [`plan`].
pub fn prove(network: &Network, job: &Job, plan: &mut Plan) -> Result<(), JobError> {
    let streams = Streams::of(network, job, job.server()?);
    if plan.is_optimal {
        return Ok(());
    }
    while !plan.is_optimal {
        // Up to the next rate at which something has room for a stream less, all is the same.
        match relax(&streams, streams.next_rate(plan.rate_bps)) {
            Relaxed::Refuted => {
                plan.bound_bps = plan.rate_bps;
                plan.is_optimal = true;
            }
            relaxed if !better(network, job, plan, &streams, &relaxed) => break,
            _ => {}
        }
    }
    let (_, bound) = bisect(plan.rate_bps, plan.bound_bps, |rate_bps| {
        if rate_bps <= plan.rate_bps {
            return true;
        }
        let relaxed = relax(&streams, rate_bps);
        if relaxed == Relaxed::Refuted {
            return false;
        }
        better(network, job, plan, &streams, &relaxed);
        true
    });
    plan.bound_bps = plan.bound_bps.min(bound).max(plan.rate_bps);
    plan.is_optimal = plan.bound_bps <= plan.rate_bps * (1.0 + PRECISION);
    Ok(())
}

/// Takes the plan that a relaxation leads to, if it is better.
fn better(
    network: &Network,
    job: &Job,
    plan: &mut Plan,
    streams: &Streams<'_>,
    relaxed: &Relaxed,
) -> bool {
    let Relaxed::Open { rate_bps, switches } = relaxed else {
        return false;
    };
    let Some(found) = streams.rounded(*rate_bps, switches) else {
        return false;
    };
    let rate_bps = rate_of(network, job, &found).unwrap_or(*rate_bps);
    let is_better = rate_bps > plan.rate_bps * (1.0 + PRECISION);
    if is_better {
        plan.parts = found.parts;
        plan.rate_bps = rate_bps;
    }
    is_better
}

/// What all workers can send by a plan; `None` if nothing binds.
fn rate_of(network: &Network, job: &Job, plan: &Plan) -> Option<f64> {
    let binding = Loads::of(network, job, plan).binding(network, job)?;
    Some(binding.rate_bps)
}

/// Who cannot send at all, if there is one.
fn cut_off(network: &Network, job: &Job, server: NodeId) -> Option<JobError> {
    let mut flow = crate::flow::Flow::new(network, |arc| {
        if network.spare_bps(arc) > 0 {
            job.workers.len()
        } else {
            0
        }
    });
    let workers: Vec<_> = job.workers.iter().map(|worker| (*worker, 1)).collect();
    let reached = flow.send(&workers, &[(server, workers.len())]);
    let reached: std::collections::BTreeSet<NodeId> =
        reached.into_iter().map(|stream| stream.from).collect();
    let cut_off = job
        .workers
        .iter()
        .find(|worker| !reached.contains(worker))?;
    Some(no_way(network, job, *cut_off, server))
}

fn no_way(network: &Network, job: &Job, worker: NodeId, server: NodeId) -> JobError {
    JobError::NoWay {
        job: job.name.clone(),
        from: network.name(worker).to_owned(),
        to: network.name(server).to_owned(),
    }
}
