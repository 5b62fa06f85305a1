//! InArt: several servers hold a share of the model each. Each worker's gradient for each server is summed at a node, along a
//! path, of its own, at the greatest rate of all workers (Liu et al., "InArt: In-Network Aggregation with Route Selection for
//! Accelerating Distributed Training", WWW 2024).
//!
//! At rate f, server s takes its share x_s of the rate from each stream. A stream is a worker's raw traffic, or a switch's sum
//! for s. Given the streams, u_s = f · x_s is a linear program with a row for each link, switch and server (`share`); given the
//! shares, `search` moves streams away from the fullest resource. It starts from the paper's relaxation, rounded, if that is
//! small (`relax`), and from some other placements. There is always a plan, since the server sums what no switch does. `relax`
//! and `bound` are upper bounds of any plan. [`exact()`] solves the second phase's program itself, for small networks.
//!
//! As in the paper there are two phases: [`shares`] change slowly, since parameters move with them, and [`plan`] keeps them at
//! each event. [`Online`] does so for jobs that come and go.

mod bound;
mod cover;
mod exact;
mod online;
mod relax;
mod search;
mod share;
mod ways;

pub use exact::MOST_VARIABLES;
pub use online::{Online, Refused};

use super::{Job, JobError, Loads, Plan};
use crate::network::Network;
use search::Search;
use ways::Ways;

/// Relative gap below which a plan counts as optimal.
const PRECISION: f64 = 1e-6;

/// Maximum number of iterations from each starting placement; an iteration moves streams, then changes the servers' shares.
const TURNS: usize = 8;
/// Maximum number of further iterations from the best result.
const MORE_TURNS: usize = 64;
/// Maximum number of further searches with given shares when a job arrives or departs, which leaves little time.
const MORE_IN_AN_EVENT: usize = 4;

/// First phase: the servers' shares of the model with the greatest rate that is found, and the plan for these shares.
pub fn shares(network: &Network, job: &Job) -> Result<(Vec<f64>, Plan), JobError> {
    job.check(network)?;
    let ways = Ways::new(network, job)?;
    let count = job.servers.len();
    let mut best: Option<Found<'_>> = None;
    let relaxed = relax::relax(&ways, None);
    let rounded = relaxed
        .as_ref()
        .map(|relaxed| Search::rounded(&ways, relaxed));
    for start in Search::starts(&ways).into_iter().chain(rounded) {
        // The streams of a start give better shares than any shares given before.
        let shares = share::best(&start).unwrap_or_else(|| vec![1.0 / count as f64; count]);
        take_turns(&mut best, start, shares, TURNS);
    }
    // The best shares for few streams may leave out servers that could take more streams.
    let equal = vec![1.0 / count as f64; count];
    for start in Search::best_starts(&ways, &equal) {
        take_turns(
            &mut best,
            climbed(start, &equal, TURNS),
            equal.clone(),
            TURNS,
        );
    }
    // With many streams an iteration moves only some of them, so continue from the best.
    if let Some((_, shares, search)) = best.clone() {
        take_turns(&mut best, search, shares, MORE_TURNS);
    }
    let (_, shares, search) = best.ok_or_else(|| ways.no_room())?;
    let plan = finished(
        network,
        job,
        &ways,
        &search,
        &shares,
        bound::any_shares(&ways),
    );
    Ok((shares, plan))
}

/// Rate of all workers in bit/s, the servers' shares that reach it, and the placement of streams.
type Found<'w> = (f64, Vec<f64>, Search<'w>);

/// Moves streams and changes the servers' shares alternately, as long as the rate grows.
fn take_turns<'w>(
    best: &mut Option<Found<'w>>,
    mut search: Search<'w>,
    mut shares: Vec<f64>,
    turns: usize,
) {
    let mut rate = 0.0;
    for _ in 0..turns {
        search.improve(&shares);
        let reached = search.rate(&shares);
        let better = share::best(&search).map(|next| (search.rate(&next), next));
        let (reached, next) = match better {
            Some((with_next, next)) if with_next > reached => (with_next, next),
            _ => (reached, shares.clone()),
        };
        let known = best.as_ref().map_or(0.0, |(rate, _, _)| *rate);
        if reached > known * (1.0 + PRECISION) {
            *best = Some((reached, next.clone(), search.clone()));
        }
        if reached <= rate * (1.0 + PRECISION) {
            break;
        }
        (rate, shares) = (reached, next);
    }
}

/// Moves streams repeatedly, up to `times` times, as long as the rate grows.
fn climbed<'w>(mut search: Search<'w>, shares: &[f64], times: usize) -> Search<'w> {
    let mut rate = 0.0;
    for _ in 0..times {
        search.improve(shares);
        let reached = search.rate(shares);
        if reached <= rate * (1.0 + PRECISION) {
            break;
        }
        rate = reached;
    }
    search
}

/// Second phase: plan with the greatest rate that is found for given shares of the servers, whose sum is 1.
pub fn plan(network: &Network, job: &Job, shares: &[f64]) -> Result<Plan, JobError> {
    let ways = ways(network, job, shares)?;
    let (search, most) = searched(&ways, shares)?;
    Ok(finished(network, job, &ways, &search, shares, most))
}

/// Result of solving the second phase's whole program, for small networks.
#[derive(Debug, Clone, PartialEq)]
pub struct Exact {
    /// Best plan found, at least as fast as the plan of [`plan`].
    pub plan: Plan,
    /// Upper bound of the rate in bit/s, over the considered nodes and paths; infinite if the program is too large.
    pub best_bps: f64,
    /// Number of nodes of the branch-and-bound search.
    pub nodes: usize,
}

/// Finds and proves, in a search of at most `nodes` nodes, the best choice among the nodes and paths that [`plan`] considers.
///
/// # Errors
///
/// Errors of [`plan`].
pub fn exact(
    network: &Network,
    job: &Job,
    shares: &[f64],
    nodes: usize,
) -> Result<Exact, JobError> {
    let ways = ways(network, job, shares)?;
    let (search, most) = searched(&ways, shares)?;
    let proved = exact::prove(&ways, &search, shares, nodes);
    let (search, best_bps, nodes) = match proved {
        Some(proved) => (proved.search, proved.bound, proved.nodes),
        None => (search, f64::INFINITY, 0),
    };
    let plan = finished(network, job, &ways, &search, shares, most);
    Ok(Exact {
        best_bps: best_bps.max(plan.rate_bps),
        plan,
        nodes,
    })
}

fn ways<'n>(network: &'n Network, job: &'n Job, shares: &[f64]) -> Result<Ways<'n>, JobError> {
    job.check(network)?;
    let sum: f64 = shares.iter().sum();
    let makes_sense = shares.iter().all(|share| *share >= 0.0) && (sum - 1.0).abs() < 1e-6;
    if shares.len() != job.servers.len() || !makes_sense {
        return Err(JobError::Shares(job.name.clone(), job.servers.len()));
    }
    Ways::new(network, job)
}

/// Best search result for given shares, and an upper bound of any plan's rate in bit/s.
fn searched<'w>(ways: &'w Ways<'w>, shares: &[f64]) -> Result<(Search<'w>, f64), JobError> {
    let mut best: Option<(f64, Search<'_>)> = None;
    let relaxed = relax::relax(ways, Some(shares));
    let rounded = relaxed
        .as_ref()
        .map(|relaxed| Search::rounded(ways, relaxed));
    for mut search in Search::best_starts(ways, shares).into_iter().chain(rounded) {
        search.improve(shares);
        let rate = search.rate(shares);
        if rate > best.as_ref().map_or(0.0, |(rate, _)| *rate) {
            best = Some((rate, search));
        }
    }
    let (_, search) = best.ok_or_else(|| ways.no_room())?;
    let search = climbed(search, shares, MORE_IN_AN_EVENT);
    let relaxed = relaxed.map_or(f64::INFINITY, |relaxed| relaxed.bound);
    Ok((search, bound::with_shares(ways, shares).min(relaxed)))
}

fn finished(
    network: &Network,
    job: &Job,
    ways: &Ways<'_>,
    search: &Search<'_>,
    shares: &[f64],
    most: f64,
) -> Plan {
    let mut plan = Plan::new(job, search.parts(ways, shares));
    let binding = Loads::from_plan(network, job, &plan).binding(network, job);
    plan.rate_bps = binding.map_or(most, |binding| binding.rate_bps);
    debug_assert!(
        plan.rate_bps <= most * (1.0 + PRECISION),
        "{} > {most}",
        plan.rate_bps
    );
    plan.bound_bps = most.max(plan.rate_bps);
    plan.is_optimal = plan.rate_bps >= most * (1.0 - PRECISION);
    plan
}
