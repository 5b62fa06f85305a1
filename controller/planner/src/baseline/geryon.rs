//! Geryon (Wang, Li and Geng, "Geryon: Accelerating Distributed CNN Training by Network-Level Flow Scheduling", INFOCOM 2020),
//! as in GRID's comparison: no switch sums, and raw streams are routed so that links are balanced.
//!
//! Geryon's priorities among a job's own flows change which layers arrive first, not when the last one arrives; they are left
//! out. Routes are the best for whole streams, so at least as good as those that Geryon finds.

use crate::flow::Flow;
use crate::gradient::grid::streams::{bisect, whole};
use crate::gradient::{Job, JobError, Loads, Member, Part, Plan, Route};
use crate::network::{Network, NodeId};

/// Plans a job with one server by Geryon, at the greatest common rate of its workers.
///
/// # Errors
///
/// Errors of [`Job::check`], [`JobError::OneServer`] and [`JobError::NoWay`].
pub fn plan(network: &Network, job: &Job) -> Result<Plan, JobError> {
    job.check(network)?;
    let server = job.server()?;
    let ingress_bps = server.spare_bps(network) as f64;
    let workers: Vec<(NodeId, usize)> = job.workers.iter().map(|worker| (*worker, 1)).collect();
    let mut best: Option<Plan> = None;
    bisect(0.0, ingress_bps / workers.len() as f64, |rate_bps| {
        if best.as_ref().is_some_and(|best| best.rate_bps >= rate_bps) {
            return true;
        }
        let mut flow = Flow::new(network, |arc| {
            whole(network.spare_bps(arc) as f64, rate_bps)
        });
        let streams = flow.send(&workers, &[(server.host, workers.len())]);
        if streams.len() < workers.len() {
            return false;
        }
        // Streams are in the order of their sources.
        let routes = streams.into_iter().map(|stream| stream.route);
        best = Some(raw(network, job, routes.collect()));
        true
    });
    best.ok_or_else(|| job.no_way(network, job.workers[0], server.host))
}

fn raw(network: &Network, job: &Job, routes: Vec<Route>) -> Plan {
    let members = routes.into_iter().enumerate();
    let members = members.map(|(worker, route)| Member { worker, route });
    let part = Part {
        piece: 0,
        share: 1.0,
        server: 0,
        at: job.servers[0].host,
        members: members.collect(),
        up: Route::new(),
    };
    let mut plan = Plan::new(job, vec![part]);
    plan.rate_bps = Loads::from_plan(network, job, &plan).rate_bps(network, job);
    plan.bound_bps = plan.rate_bps;
    plan.is_optimal = true;
    plan
}
