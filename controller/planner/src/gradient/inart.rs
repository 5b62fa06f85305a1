//! InArt: several servers have a share of the model each, and each worker's gradient for each of them is summed at a node of
//! its own, along a way of its own, so that all workers send as fast as can be (Liu et al., "InArt: In-Network Aggregation
//! with Route Selection for Accelerating Distributed Training", WWW 2024).
//!
//! At rate f, server s takes its share x_s of it from each stream. A stream is what a worker sends raw, or what a switch sends
//! of all that it sums for s. With the streams known, u_s = f · x_s is a linear program with a row for each link, switch and
//! server (`share`); with the shares known, `search` moves streams away from what is full first. It starts from the paper's
//! relaxation, rounded, where that is small (`relax`), and from some placements besides. There is always a plan: the server
//! itself sums what no switch does. `relax` and `bound` say what no plan exceeds. [`exact()`] is the second phase's program
//! itself, for small networks.
//!
//! As in the paper there are two phases: [`shares`] are changed slowly, since parameters move with them, and [`plan`] keeps
//! them, for each event. [`Online`] does so for jobs that come and go.

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

use super::{Goal, Job, JobError, Loads, Plan};
use crate::network::Network;
use search::Search;
use ways::Ways;

/// A plan is as good as the best if it is within this share.
const PRECISION: f64 = 1e-6;

/// Turns of streams and shares from each start, at most.
const TURNS: usize = 8;
/// Turns after those, from the best.
const MORE_TURNS: usize = 64;
/// Further searches with given shares: an event has little time.
const MORE_IN_AN_EVENT: usize = 4;

/// The first phase: the shares of the servers with which the greatest rate was found, and the plan for them.
pub fn shares(network: &Network, job: &Job) -> Result<(Vec<f64>, Plan), JobError> {
    job.check(network)?;
    let ways = Ways::of(network, job)?;
    let count = job.servers.len();
    let mut best: Option<Found<'_>> = None;
    let relaxed = relax::relax(&ways, None);
    let rounded = relaxed
        .as_ref()
        .map(|relaxed| Search::rounded(&ways, relaxed));
    for start in Search::starts(&ways).into_iter().chain(rounded) {
        // Streams as they start say more of shares than any shares before do.
        let shares = share::of(&start).unwrap_or_else(|| vec![1.0 / count as f64; count]);
        take_turns(&mut best, start, shares, TURNS);
    }
    // The best shares of few streams may leave servers out that more streams would be for.
    let equal = vec![1.0 / count as f64; count];
    for start in Search::best_starts(&ways, &equal) {
        take_turns(
            &mut best,
            climbed(start, &equal, TURNS),
            equal.clone(),
            TURNS,
        );
    }
    // Of many streams, a turn moves but some: the best goes on.
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

/// A rate, the shares with which it is reached, and the streams.
type Found<'w> = (f64, Vec<f64>, Search<'w>);

/// Moves streams and changes shares in turn, as long as it pays.
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
        let better = share::of(&search).map(|next| (search.rate(&next), next));
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

/// Moves streams again and again, as long as it pays.
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

/// The second phase: the greatest rate that is found for given shares, which are 1 together.
pub fn plan(network: &Network, job: &Job, shares: &[f64]) -> Result<Plan, JobError> {
    let ways = ways(network, job, shares)?;
    let (search, most) = searched(&ways, shares)?;
    Ok(finished(network, job, &ways, &search, shares, most))
}

/// The second phase by its whole program, of networks so small that it is solved.
#[derive(Debug, Clone, PartialEq)]
pub struct Exact {
    /// The best plan that was found: at least as fast as that of [`plan`].
    pub plan: Plan,
    /// No choice of the nodes and ways that are looked at gives all workers more, in bits a second; infinite where the program
    /// is too large.
    pub best_bps: f64,
    /// Nodes of the search for it.
    pub nodes: usize,
}

/// The best of all choices of nodes and ways that [`plan`] looks at, as far as a search of so many nodes finds and proves it.
///
/// # Errors
///
/// Those of [`plan`].
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
    Ways::of(network, job)
}

/// The best that the search finds, and what no plan exceeds.
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
    let mut plan = Plan {
        job: job.name.clone(),
        parts: search.parts(ways, shares),
        answers: Vec::new(),
        rate_bps: 0.0,
        bound_bps: most,
        goal: Goal::Rate,
        is_optimal: false,
    };
    let binding = Loads::of(network, job, &plan).binding(network, job);
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
