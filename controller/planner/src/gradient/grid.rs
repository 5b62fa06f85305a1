//! GRID: each worker's gradient is summed at one node, a switch or the server, so that all workers send as fast as can be
//! (Fang et al., "GRID: Gradient Routing with In-network Aggregation for Distributed Training", IEEE/ACM ToN 2023).
//!
//! The paper's program has a rate for each worker and switch. All that counts is the least of them, so a plan in which all
//! workers send at one rate λ is as good, and it is a matter of counting: at rate λ a link of B bit/s has room for ⌊B / λ⌋
//! streams, a switch that sums C bit/s for ⌊C / λ⌋ workers, and a stream is what one worker sends raw, or what one switch
//! sends of all that it sums. The paper leaves links out; here every stream has its way, on links that have room for it.
//!
//! The paper leaves answers out, too. In a run each sum comes back to all workers, while others go up. [`plan`] counts that:
//! answers are one stream more, over each link of a tree. [`push`] does not, as the paper has it.
//!
//! Nothing changes between two rates at which something has room for a stream less, so λ is found by bisection of those.
//! `search` opens switches, and takes workers to them by a maximum flow of whole streams; `bound` is a program in which
//! streams may be split; `short` makes ways short where that costs no rate.

mod bound;
mod classes;
mod search;
mod short;
pub(crate) mod streams;
mod tree;

use std::collections::BTreeMap;

use super::{Answers, Goal, Job, JobError, Member, Part, Plan};
use crate::network::{Network, NodeId};
use bound::{Relaxed, relax};
use search::{Search, Ways};
use streams::Streams;

/// A plan is as good as the best if it is within this share.
const PRECISION: f64 = 1e-6;

/// What [`prove`] does at most. The same work finds the same on every machine, which the same time does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Linear programs that it solves.
    pub programs: usize,
    /// Sets of switches that it tries beside those that programs lead to.
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

/// The greatest rate that all workers can have, sums that come back counted, as far as it is found, and how.
///
/// # Errors
///
/// What [`Job::check`] refuses, [`JobError::OneServer`] and [`JobError::NoWay`].
pub fn plan(network: &Network, job: &Job) -> Result<Plan, JobError> {
    quick(network, job, true)
}

/// The same of what workers send alone, as the paper has it.
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
    // A worker that cannot send or be answered at all is told at once.
    if let Some(cut_off) = cut_off(network, job, server.host, answers) {
        return Err(cut_off);
    }
    let streams = Streams::of(network, job, server, answers);
    let most = streams.most_bps();
    let rates = streams.rates(0.0, most);
    let (mut low, mut high) = (0, rates.len());
    let mut best: Option<Found> = None;
    while low < high {
        // The greatest first: it is often reached.
        let middle = match high == rates.len() {
            true => high - 1,
            false => usize::midpoint(low, high),
        };
        match Search::new(&streams, rates[middle]).quick() {
            Some(ways) => {
                let found = Found::of(&streams, ways, rates[middle]);
                // It may let workers send faster than was asked.
                let reached = rates.partition_point(|rate| *rate <= found.rate_bps);
                low = reached.max(middle + 1);
                best = Some(found);
            }
            None => high = middle,
        }
    }
    let best = best.ok_or_else(|| no_way(network, job, (job.workers[0], server.host)))?;
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

/// Looks by linear programs how much better a plan could be, makes it so where it finds out how, and says in it what is left.
/// Where the limit of work is reached, the plan is not said to be the best.
///
/// # Errors
///
/// [`JobError::OneServer`].
pub fn prove(network: &Network, job: &Job, plan: &mut Plan, work: Work) -> Result<(), JobError> {
    if plan.is_optimal {
        return Ok(());
    }
    let streams = Streams::of(network, job, job.server()?, !plan.answers.is_empty());
    let rates = streams.rates(plan.rate_bps, plan.bound_bps);
    let (mut low, mut high) = (0, rates.len());
    let mut best: Option<Found> = None;
    // What is opened at rates that are neither refuted nor reached.
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
    // The greatest is the last.
    for (rate_bps, switches) in open.into_iter().rev() {
        if best.as_ref().is_some_and(|best| best.rate_bps >= rate_bps) {
            break;
        }
        if let Some(ways) = Search::new(&streams, rate_bps).near(&switches, &mut tries) {
            best = Some(Found::of(&streams, ways, rate_bps));
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

/// Ways, and the rate that all workers have by them.
struct Found {
    ways: Ways,
    rate_bps: f64,
}

impl Found {
    /// Ways that have room at some rate have it at a greater one, up to where something is full.
    fn of(streams: &Streams<'_>, ways: Ways, at_bps: f64) -> Found {
        let rate_bps = at_bps.max(streams.rate_of(&ways));
        Found { ways, rate_bps }
    }

    fn shortened(self, streams: &Streams<'_>) -> Found {
        let ways = Search::new(streams, self.rate_bps).shortened(self.ways);
        Found::of(streams, ways, self.rate_bps)
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

/// Who cannot send to the server at all, or cannot be answered, if there is one.
fn cut_off(network: &Network, job: &Job, server: NodeId, answers: bool) -> Option<JobError> {
    let reached = |from: NodeId, is_away: bool| {
        let mut reached = vec![false; network.nodes().len()];
        reached[from.index()] = true;
        let mut ahead = vec![from];
        while let Some(node) = ahead.pop() {
            // Hosts pass nothing on.
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
        return Some(no_way(network, job, (worker, server)));
    }
    let unanswered = answers.then(|| missing(&reached(server, true))).flatten()?;
    Some(no_way(network, job, (server, unanswered)))
}

fn no_way(network: &Network, job: &Job, (from, to): (NodeId, NodeId)) -> JobError {
    JobError::NoWay {
        job: job.name.clone(),
        from: network.name(from).to_owned(),
        to: network.name(to).to_owned(),
    }
}
