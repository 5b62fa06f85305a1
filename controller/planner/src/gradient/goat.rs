//! GOAT: the model is cut into sub-models, and each is summed at switches of its own, so that switches which hold little at
//! a time work together (Fang et al., "GOAT: Gradient Scheduling with Collaborative In-Network Aggregation for Distributed
//! Training", IWQoS 2023, and IEEE/ACM ToN 2024).
//!
//! Sub-model g is open at a set of switches that each keep its b(g) bytes within their memory B(s). A worker's gradient of g
//! goes to one of them, or to the server; what a switch has summed goes on to the server. The least is sought of
//! Σ b(g) · (Σ D(w → where it is summed) + Σ D(switch → server)), D being the cost of the way. That is the paper's first
//! form; the one that it rewrites it to leaves out a term that depends on the decision.
//!
//! With the open switches known, each worker goes to the nearest node: nothing but memory is short. So the decision is which
//! are open, and closing one is always allowed, the server being always there. `relax` bounds the cost from below,
//! `knapsack` rounds as the paper does, `search` repairs what that exceeds and improves it, and `exact` proves small
//! ones. [`fastest`] is the asynchronous mode.
//!
//! Memory is never exceeded. Ways use links that have something left, and [`Plan::rate_bps`] is the rate at which the first
//! link, switch or server is full: a plan that is followed at that rate exceeds nothing.

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
use instance::Instance;
use search::Placement;

/// Roundings of one relaxation: each ends elsewhere.
const ROUNDINGS: usize = 8;

/// The share of its cost within which a plan is as good as its bound.
const PRECISION: f64 = 1e-6;

/// What a job's gradient is made of.
#[derive(Debug, Clone, Copy)]
pub struct Gradient<'a> {
    /// The bytes of each sub-model.
    pub sub_models: &'a [u64],
    /// What a byte costs on each link; 1 everywhere counts the links that it passes.
    pub costs: &'a Costs,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoatError {
    /// The job makes no sense, or a worker is cut off.
    #[error(transparent)]
    Job(#[from] JobError),
    /// There is nothing to sum.
    #[error("job `{0}` has a gradient without bytes")]
    Empty(String),
    /// More than is counted with.
    #[error("job `{0}` has a gradient of more than 2^53 bytes")]
    TooLarge(String),
}

/// Each link costs 1: what is counted is how many links a byte passes.
#[must_use]
pub fn links(network: &Network) -> Costs {
    Costs::of_each(network, |_| 1)
}

/// The least traffic, as far as it is found, and where each sub-model is summed for it. The same seed gives the same plan.
pub fn plan(
    network: &Network,
    job: &Job,
    gradient: &Gradient<'_>,
    seed: u64,
) -> Result<Plan, GoatError> {
    let instance = Instance::of(network, job, gradient)?;
    let relaxed = relax::relax(&instance);
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut best = search::improved(&instance, Placement::closed(&instance));
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
    let mut plan = instance.plan(&best);
    plan.is_optimal = cost <= bound * (1.0 + PRECISION);
    plan.goal = Goal::Traffic {
        byte_cost: cost,
        bound: bound.min(cost),
    };
    let binding = Loads::of(network, job, &plan).binding(network, job);
    plan.rate_bps = binding.map_or(f64::INFINITY, |binding| binding.rate_bps);
    Ok(plan)
}
