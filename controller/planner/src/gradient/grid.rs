//! GRID: sums each worker's gradient at one node, a switch or the server, at the greatest rate of all workers (Fang et al.,
//! "GRID: Gradient Routing with In-network Aggregation for Distributed Training", IEEE/ACM ToN 2023).
//!
//! The paper's program has a rate for each worker and switch. Only the least of them counts, so a plan in which all workers
//! send at one rate λ is as good, and planning is counting: at rate λ a link of B bit/s has capacity for ⌊B / λ⌋ streams, and a
//! switch that sums C bit/s for ⌊C / λ⌋ workers. A stream is one worker's raw traffic, or a switch's sum. The paper leaves
//! links out; here every stream has a path on links with capacity for it.
//!
//! The paper leaves answers out, too. In a run each sum returns to all workers while later gradients go up. [`plan`] counts
//! answers: one more stream over each link of a tree. [`push`] leaves them out, like the paper.
//!
//! Capacities in streams change only at some rates, so λ is found by bisection over those. `search` opens switches, and assigns
//! workers to them by a maximum flow of whole streams; `bound` is a program in which streams may be split; `short` shortens
//! paths where that costs no rate.

mod bound;
mod classes;
mod paths;
mod search;
mod short;
pub(crate) mod streams;
mod tree;

use std::collections::BTreeMap;

use super::{Answers, Goal, Job, JobError, Member, Part, Plan};
use crate::network::{Network, NodeId};
use bound::{Relaxed, relax};
use paths::StreamPaths;
use search::Search;
use streams::Streams;

/// Relative gap below which a plan counts as optimal.
const PRECISION: f64 = 1e-6;

/// Limit of the work of [`prove`]. Unlike a time limit, it gives equal results on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Maximum number of linear programs to solve.
    pub programs: usize,
    /// Maximum number of sets of summing switches to try, besides those that the programs suggest.
    pub sets: usize,
}

impl Default for Work {
    fn default() -> Work {
        Work {
            programs: 1_000,
            sets: 400,
        }
    }
}

/// Plans a job with one server, at the greatest rate found at which all workers can send while answers return to them.
///
/// # Errors
///
/// Errors of [`Job::check`], [`JobError::OneServer`] and [`JobError::NoWay`].
pub fn plan(network: &Network, job: &Job) -> Result<Plan, JobError> {
    quick(network, job, true)
}

/// Plans as [`plan`] does, but without capacity for answers to the workers, as in the paper.
///
/// # Errors
///
/// As [`plan`].
pub fn push(network: &Network, job: &Job) -> Result<Plan, JobError> {
    quick(network, job, false)
}

fn quick(network: &Network, job: &Job, answers: bool) -> Result<Plan, JobError> {
    job.check(network)?;
    let server = job.server()?;
    // Report a worker that is cut off from the server at once.
    if let Some(cut_off) = cut_off(network, job, server.host, answers) {
        return Err(cut_off);
    }
    let streams = Streams::new(network, job, server, answers);
    let most = streams.most_bps();
    let rates = streams.rates(0.0, most);
    let (mut low, mut high) = (0, rates.len());
    let mut best: Option<Found> = None;
    while low < high {
        // Try the greatest rate first: it is often reached.
        let middle = match high == rates.len() {
            true => high - 1,
            false => usize::midpoint(low, high),
        };
        match Search::new(&streams, rates[middle]).quick() {
            Some(ways) => {
                let found = Found::new(&streams, ways, rates[middle]);
                // The paths may allow a higher rate than the tried one.
                let reached = rates.partition_point(|rate| *rate <= found.rate_bps);
                low = reached.max(middle + 1);
                best = Some(found);
            }
            None => high = middle,
        }
    }
    let best = best.ok_or_else(|| job.no_way(network, job.workers[0], server.host))?;
    let best = best.shortened(&streams);
    Ok(Plan {
        bound_bps: most.max(best.rate_bps),
        is_optimal: best.rate_bps >= most * (1.0 - PRECISION),
        rate_bps: best.rate_bps,
        goal: Goal::Rate,
        job: job.name.clone(),
        answers: best.answers(&streams),
        parts: best.parts(job),
    })
}

/// Computes by linear programs how much better a plan could be, improves the plan where a program shows how, and records the
/// remaining gap in it. If the limit of work is reached, the plan is not marked optimal.
///
/// # Errors
///
/// [`JobError::OneServer`].
pub fn prove(network: &Network, job: &Job, plan: &mut Plan, work: Work) -> Result<(), JobError> {
    if plan.is_optimal {
        return Ok(());
    }
    let streams = Streams::new(network, job, job.server()?, !plan.answers.is_empty());
    let rates = streams.rates(plan.rate_bps, plan.bound_bps);
    let (mut low, mut high) = (0, rates.len());
    let mut best: Option<Found> = None;
    // Switches open at rates that are neither refuted nor reached.
    let mut open: Vec<(f64, Vec<NodeId>)> = Vec::new();
    let mut programs = work.programs;
    while low < high {
        let middle = usize::midpoint(low, high);
        match relax(&streams, rates[middle], &mut programs) {
            Relaxed::Refuted => high = middle,
            Relaxed::Open(switches) => {
                low = middle + 1;
                open.push((rates[middle], switches));
            }
            Relaxed::Unknown => low = middle + 1,
        }
    }
    let bound_bps = high
        .checked_sub(1)
        .map_or(plan.rate_bps, |last| rates[last]);
    let mut tries = work.sets;
    // The greatest rate is the last.
    for (rate_bps, switches) in open.into_iter().rev() {
        if best.as_ref().is_some_and(|best| best.rate_bps >= rate_bps) {
            break;
        }
        if let Some(ways) = Search::new(&streams, rate_bps).near(&switches, &mut tries) {
            best = Some(Found::new(&streams, ways, rate_bps));
        }
    }
    if let Some(best) = best.map(|best| best.shortened(&streams)) {
        plan.rate_bps = best.rate_bps;
        plan.answers = best.answers(&streams);
        plan.parts = best.parts(job);
    }
    plan.bound_bps = bound_bps.max(plan.rate_bps);
    plan.is_optimal = plan.bound_bps <= plan.rate_bps * (1.0 + PRECISION);
    Ok(())
}

/// Paths of all streams of a plan, and the rate in bit/s of all workers on these paths.
struct Found {
    ways: StreamPaths,
    rate_bps: f64,
}

impl Found {
    /// Adopts paths with capacity at the rate `at_bps`. Workers may send faster, until a resource on the paths is full.
    fn new(streams: &Streams<'_>, ways: StreamPaths, at_bps: f64) -> Found {
        let rate_bps = at_bps.max(streams.rate_of(&ways));
        Found { ways, rate_bps }
    }

    fn shortened(self, streams: &Streams<'_>) -> Found {
        let ways = Search::new(streams, self.rate_bps).shortened(self.ways);
        Found::new(streams, ways, self.rate_bps)
    }

    fn answers(&self, streams: &Streams<'_>) -> Vec<Answers> {
        let answers = streams.answers.then(|| Answers {
            server: 0,
            share: 1.0,
            tree: self.ways.tree.clone(),
        });
        answers.into_iter().collect()
    }

    fn parts(self, job: &Job) -> Vec<Part> {
        let rank: BTreeMap<NodeId, usize> = job.workers.iter().copied().zip(0..).collect();
        let mut members: BTreeMap<NodeId, Vec<Member>> = BTreeMap::new();
        for stream in self.ways.workers {
            members.entry(stream.to).or_default().push(Member {
                worker: rank[&stream.from],
                route: stream.route,
            });
        }
        let ups = self.ways.ups.into_iter().map(|up| (up.from, up.route));
        let server = job.servers[0].host;
        let parts = ups.chain([(server, Vec::new())]).filter_map(|(at, up)| {
            let mut members = members.remove(&at)?;
            members.sort_unstable_by_key(|member| member.worker);
            Some(Part {
                piece: 0,
                share: 1.0,
                server: 0,
                at,
                members,
                up,
            })
        });
        parts.collect()
    }
}

/// Error for a worker that cannot reach the server, or that answers cannot reach; `None` if there is no such worker.
fn cut_off(network: &Network, job: &Job, server: NodeId, answers: bool) -> Option<JobError> {
    let reached = |from: NodeId, is_away: bool| {
        let mut reached = vec![false; network.nodes().len()];
        reached[from.index()] = true;
        let mut ahead = vec![from];
        while let Some(node) = ahead.pop() {
            // Hosts do not forward.
            if node != from && network.host(node).is_some() {
                continue;
            }
            for (link, next) in network.adjacent(node) {
                let arc = network.arc(*link, if is_away { node } else { *next });
                if network.spare_bps(arc) > 0 && !reached[next.index()] {
                    reached[next.index()] = true;
                    ahead.push(*next);
                }
            }
        }
        reached
    };
    let missing = |reached: &[bool]| {
        let mut workers = job.workers.iter();
        workers.find(|worker| !reached[worker.index()]).copied()
    };
    if let Some(worker) = missing(&reached(server, false)) {
        return Some(job.no_way(network, worker, server));
    }
    let unanswered = answers.then(|| missing(&reached(server, true))).flatten()?;
    Some(job.no_way(network, server, unanswered))
}
