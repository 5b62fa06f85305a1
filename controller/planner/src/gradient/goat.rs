//! GOAT: divides the model into sub-models and sums each at switches of its own, so that switches with little memory work
//! together (Fang et al., "GOAT: Gradient Scheduling with Collaborative In-Network Aggregation for Distributed Training", IWQoS
//! 2023, and IEEE/ACM ToN 2024).
//!
//! Sub-model g is open at the switches that may sum it; each needs b(g) bytes of its memory B(s) for it. A worker's gradient of
//! g goes to one of them, or to the server; a switch sends its sum to the server. Let D be the cost of a path. The plan
//! minimizes Σ b(g) · (Σ D(w → node that sums it) + Σ D(switch → server)). That is the paper's first form; the form to which it
//! rewrites it omits a term that depends on the decision.
//!
//! Given the open switches, each worker uses the nearest node, since only memory is limited. So the decision is which switches
//! are open, and closing one is always allowed, since the server remains. `relax` bounds the cost from below, `knapsack` rounds
//! as the paper does, `search` repairs exceeded memories and improves the result, and `exact` solves small problems.
//! [`fastest`] is the asynchronous mode.
//!
//! Memory is never exceeded. Paths use links with spare capacity, and [`Plan::rate_bps`] is the rate at which the first link,
//! switch or server is full: up to it a plan exceeds no capacity.

mod exact;
pub mod fastest;
mod instance;
mod knapsack;
mod program;
mod relax;
mod search;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::{Goal, Job, JobError, Loads, Plan};
use crate::network::Network;
use crate::routing::Costs;
use instance::GoatProblem;
use search::OpenSites;

/// Number of roundings of one relaxation; each is random.
const ROUNDINGS: usize = 8;

/// Relative gap below which a plan counts as optimal.
const PRECISION: f64 = 1e-6;

/// Sizes of a job's sub-models, and the cost of their traffic on each link.
#[derive(Debug, Clone, Copy)]
pub struct Gradient<'a> {
    /// Size of each sub-model in bytes.
    pub sub_models: &'a [u64],
    /// Cost of a byte on each link; with 1 everywhere, the cost is the number of links.
    pub costs: &'a Costs,
}

/// Why GOAT has no plan for a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoatError {
    /// The job is invalid, or a worker cannot reach the server.
    #[error(transparent)]
    Job(#[from] JobError),
    /// All sub-models of the job are empty.
    #[error("job `{0}` has a gradient without bytes")]
    Empty(String),
    /// The gradient exceeds the range in which byte counts are exact.
    #[error("job `{0}` has a gradient of more than 2^53 bytes")]
    TooLarge(String),
}

/// Costs of 1 for each link: the cost of a byte is the number of links that it crosses.
#[must_use]
pub fn links(network: &Network) -> Costs {
    Costs::from_fn(network, |_| 1)
}

/// Plan with the least traffic that is found: decides where each sub-model is summed. Equal seeds give equal plans.
pub fn plan(
    network: &Network,
    job: &Job,
    gradient: &Gradient<'_>,
    seed: u64,
) -> Result<Plan, GoatError> {
    let instance = GoatProblem::new(network, job, gradient)?;
    let relaxed = relax::relax(&instance);
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut best = search::improved(&instance, OpenSites::closed(&instance));
    if let Some(open) = &relaxed.open {
        for _ in 0..ROUNDINGS {
            if best.cost(&instance) <= relaxed.bound * (1.0 + PRECISION) {
                break;
            }
            let picked = instance
                .sub_models()
                .map(|g| knapsack::pick(&open[relaxed.class[g]], &mut rng));
            let placement = search::repaired(&instance, picked.collect());
            let placement = search::improved(&instance, placement);
            if placement.cost(&instance) < best.cost(&instance) {
                best = placement;
            }
        }
    }
    let mut bound = relaxed.bound;
    if best.cost(&instance) > bound * (1.0 + PRECISION)
        && let Some((placement, proved)) = exact::solve(&instance, &best)
    {
        best = placement;
        bound = bound.max(proved);
    }
    let cost = best.cost(&instance);
    let mut plan = instance.plan(&best.open);
    plan.is_optimal = cost <= bound * (1.0 + PRECISION);
    plan.goal = Goal::Traffic {
        byte_cost: cost,
        bound: bound.min(cost),
    };
    plan.rate_bps = Loads::from_plan(network, job, &plan).rate_bps(network, job);
    Ok(plan)
}
