//! Plans of trainings, chosen so that one lost switch touches few of them.
//!
//! A switch touches a training if it sums its gradients, or if their frames or answers pass it. Each training is planned several times
//! more, by the same planner, in the network without some switches that it need not pass; which of its plans it takes is a
//! [`Decision`]. Every training keeps the rate that it had: plans that are slower are none.

use std::collections::{BTreeMap, BTreeSet};

use super::problem::{Choice, Decision, Limit, Problem};
use super::{Refusal, solve};
use crate::gradient::{Job, JobError, Loads, Plan, Resource, spare_bps};
use crate::network::{Network, NodeId};

/// Plans of one training that are looked at, at most.
const PLANS: usize = 24;
/// Times that a training is planned for them, at most.
const TRIES: usize = 60;

/// Plans for trainings that are to share a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// By training; `None` where there was none.
    pub plans: Vec<Option<Plan>>,
    /// Trainings that the loss of the worst switch touches.
    pub worst: usize,
    /// So many are touched by the loss of some switch whatever is planned: their hosts have links to no other.
    pub least: usize,
    /// How many plans there were to choose from, of all trainings together.
    pub looked_at: usize,
    /// Whether no choice from these touches fewer, nor as few with less traffic.
    pub proven: bool,
}

/// Chooses among plans of trainings. `plans` are known ones, which exceed nothing together at the rates that they tell; `by`
/// makes others. The same input and seed give the same answer.
pub fn spread(
    network: &Network,
    jobs: &[Job],
    plans: &[Option<Plan>],
    by: impl Fn(&Network, &Job) -> Result<Plan, JobError>,
    seed: u64,
) -> Spread {
    let mut all: Vec<Vec<Plan>> = Vec::new();
    for (job, plan) in jobs.iter().zip(plans) {
        all.push(match plan {
            Some(plan) => others(network, job, plan, &by),
            None => Vec::new(),
        });
    }
    let problem = problem(network, jobs, plans, &all);
    let start = vec![0; problem.decisions.len()];
    let placed = solve(&problem, Some(&start), seed);
    let (chosen, proven) = match placed {
        Ok(placed) => (placed.chosen, placed.proven),
        // What was known before is what there is.
        Err(Refusal::NotFound | Refusal::Conflict(_)) => (start, false),
        Err(Refusal::Unknown(..) | Refusal::NoOption(_)) => (start, false),
    };
    let mut chosen = chosen.into_iter();
    let looked_at = all.iter().map(Vec::len).sum();
    let taken = all.into_iter().map(|mut plans| match plans.is_empty() {
        true => None,
        false => Some(plans.swap_remove(chosen.next().unwrap_or(0))),
    });
    let plans: Vec<Option<Plan>> = taken.collect();
    let planned = jobs.iter().zip(&plans).filter(|(_, plan)| plan.is_some());
    let planned: Vec<&Job> = planned.map(|(job, _)| job).collect();
    Spread {
        worst: worst(network, jobs, &plans),
        least: most(planned.iter().map(|job| needed(network, job))),
        plans,
        looked_at,
        proven,
    }
}

/// Trainings that the loss of the worst switch touches.
#[must_use]
pub fn worst(network: &Network, jobs: &[Job], plans: &[Option<Plan>]) -> usize {
    let of_jobs = jobs.iter().zip(plans);
    most(of_jobs.filter_map(|(job, plan)| Some(touched(network, job, plan.as_ref()?))))
}

/// How many of some sets the switch is in that is in most.
fn most(sets: impl Iterator<Item = BTreeSet<NodeId>>) -> usize {
    let mut count: BTreeMap<NodeId, usize> = BTreeMap::new();
    for switch in sets.flatten() {
        *count.entry(switch).or_default() += 1;
    }
    count.into_values().max().unwrap_or(0)
}

/// The switches whose loss touches a training.
#[must_use]
pub fn touched(network: &Network, job: &Job, plan: &Plan) -> BTreeSet<NodeId> {
    let mut nodes = BTreeSet::new();
    for part in &plan.parts {
        nodes.insert(part.at);
        let routes = part.members.iter().map(|member| &member.route);
        for arc in routes.chain([&part.up]).flatten() {
            let (from, to) = network.ends(*arc);
            nodes.extend([from, to]);
        }
    }
    for arc in plan.answers.iter().flat_map(|answers| &answers.tree) {
        let (from, to) = network.ends(*arc);
        nodes.extend([from, to]);
    }
    nodes.extend(needed(network, job));
    nodes.retain(|node| network.switch(*node).is_some());
    nodes
}

/// The switches that a training touches whatever is planned: hosts of it have links to no other.
fn needed(network: &Network, job: &Job) -> BTreeSet<NodeId> {
    let servers = job.servers.iter().map(|server| server.host);
    let hosts = servers.chain(job.workers.iter().copied());
    let only = hosts.filter_map(|host| {
        let mut peers = network.adjacent(host).iter().map(|(_, peer)| *peer);
        let first = peers.next()?;
        peers.all(|peer| peer == first).then_some(first)
    });
    only.filter(|node| network.switch(*node).is_some())
        .collect()
}

/// A known plan, and others of the same job that are as fast, each in the network without some switches.
fn others(
    network: &Network,
    job: &Job,
    known: &Plan,
    by: &impl Fn(&Network, &Job) -> Result<Plan, JobError>,
) -> Vec<Plan> {
    let needed = needed(network, job);
    let mut plans = vec![known.clone()];
    let mut seen = BTreeSet::from([touched(network, job, known)]);
    let mut tried: BTreeSet<BTreeSet<NodeId>> = BTreeSet::new();
    let mut at = 0;
    // Of what each plan was made without.
    let mut without: Vec<BTreeSet<NodeId>> = vec![BTreeSet::new()];
    while at < plans.len() {
        let here: Vec<NodeId> = touched(network, job, &plans[at])
            .difference(&needed)
            .copied()
            .collect();
        for switch in here {
            if plans.len() >= PLANS || tried.len() >= TRIES {
                return plans;
            }
            let mut fewer = without[at].clone();
            fewer.insert(switch);
            if !tried.insert(fewer.clone()) {
                continue;
            }
            let Ok(plan) = by(&lessened(network, &fewer), job) else {
                continue;
            };
            let is_as_fast = plan.rate_bps >= known.rate_bps * (1.0 - 1e-9);
            if is_as_fast && seen.insert(touched(network, job, &plan)) {
                plans.push(Plan {
                    rate_bps: known.rate_bps,
                    bound_bps: known.bound_bps,
                    is_optimal: known.is_optimal,
                    ..plan
                });
                without.push(fewer);
            }
        }
        at += 1;
    }
    plans
}

/// A network in which nothing passes some switches.
fn lessened(network: &Network, without: &BTreeSet<NodeId>) -> Network {
    let mut network = network.clone();
    for switch in without {
        let links: Vec<_> = network
            .adjacent(*switch)
            .iter()
            .map(|(link, _)| *link)
            .collect();
        for link in links {
            let link = network.link_mut(link);
            link.load_bps = [link.rate_bps; 2];
        }
        if let Some(switch) = network.switch_mut(*switch) {
            switch.programmable = false;
        }
    }
    network
}

fn problem(network: &Network, jobs: &[Job], known: &[Option<Plan>], all: &[Vec<Plan>]) -> Problem {
    let mut problem = Problem {
        points: network
            .ids()
            .map(|id| network.name(id).to_owned())
            .collect(),
        ..Problem::default()
    };
    let mut limits: BTreeMap<Resource, usize> = BTreeMap::new();
    for ((job, known), plans) in jobs.iter().zip(known).zip(all) {
        let Some(known) = known else {
            continue;
        };
        let user = problem.users.len();
        problem.users.push(job.name.clone());
        let mut decision = Decision {
            name: job.name.clone(),
            users: vec![user],
            options: Vec::new(),
        };
        for plan in plans {
            let mut choice = Choice {
                points: touched(network, job, plan)
                    .iter()
                    .map(|node| node.index())
                    .collect(),
                ..Choice::default()
            };
            for (resource, load) in Loads::of(network, job, plan).iter() {
                // Infinite where nothing binds it.
                let bps = match known.rate_bps.is_finite() {
                    true => load * known.rate_bps,
                    false => load,
                };
                if let Resource::Link(_) = resource {
                    choice.cost += bps;
                }
                let Some(spare) = spare_bps(network, job, resource) else {
                    continue;
                };
                // What fills something whole is rounded.
                let most = spare * (1.0 + 1e-9);
                let limit = *limits.entry(resource).or_insert_with(|| {
                    let name = resource.describe(network);
                    problem.limits.push(Limit { name, most });
                    problem.limits.len() - 1
                });
                // Trainings may say of one server's host that it takes in different amounts.
                let known = &mut problem.limits[limit].most;
                *known = known.min(most);
                choice.takes.push((limit, bps));
            }
            decision.options.push(choice);
        }
        problem.decisions.push(decision);
    }
    problem
}
