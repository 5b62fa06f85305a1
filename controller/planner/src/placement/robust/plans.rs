//! Chooses plans of trainings so that the loss of one switch touches few of them.
//!
//! A switch touches a training if it sums its gradients, or if its frames or answers cross it. Each training is planned several
//! more times by the same planner, in the network without some switches that it can avoid; the choice among its plans is a
//! [`Decision`]. Every training keeps its rate: slower plans are discarded.

use std::collections::{BTreeMap, BTreeSet};

use super::problem::{Decision, DecisionOption, ResourceLimit, RobustProblem};
use super::{RobustRefusal, solve};
use crate::gradient::{Job, JobError, Loads, Plan, Resource, spare_bps};
use crate::network::{Network, NodeId};

/// Maximum number of plans per training among which the placement chooses.
const PLANS: usize = 24;
/// Maximum number of times that the planner is called for a training to get further plans.
const TRIES: usize = 60;

/// Plans for trainings that share a network, chosen so that the loss of one switch touches few of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Plan of each training; `None` if it had none.
    pub plans: Vec<Option<Plan>>,
    /// Number of trainings that the loss of the worst switch touches.
    pub worst: usize,
    /// Lower bound of `worst` for any plans: the most trainings that have a host linked to one and the same switch only.
    pub least: usize,
    /// Number of plans among which the placement chose, of all trainings together.
    pub looked_at: usize,
    /// Whether `worst`, and then the traffic, are proved to be the least among these plans.
    pub proven: bool,
}

/// Chooses a plan for each training so that the loss of one switch touches few. `plans` are known plans that together exceed no
/// capacity at their rates; `by` makes further plans. Equal input and seed give equal plans.
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
        // Keep the known plans.
        Err(RobustRefusal::NotFound | RobustRefusal::Conflict(_)) => (start, false),
        Err(RobustRefusal::Unknown(..) | RobustRefusal::NoOption(_)) => (start, false),
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

/// Number of trainings that the loss of the worst switch touches.
#[must_use]
pub fn worst(network: &Network, jobs: &[Job], plans: &[Option<Plan>]) -> usize {
    let of_jobs = jobs.iter().zip(plans);
    most(of_jobs.filter_map(|(job, plan)| Some(touched(network, job, plan.as_ref()?))))
}

/// Number of the sets that contain the switch that is in the most sets.
fn most(sets: impl Iterator<Item = BTreeSet<NodeId>>) -> usize {
    let mut count: BTreeMap<NodeId, usize> = BTreeMap::new();
    for switch in sets.flatten() {
        *count.entry(switch).or_default() += 1;
    }
    count.into_values().max().unwrap_or(0)
}

/// Switches whose loss touches a training with this plan.
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

/// Switches whose loss touches a training under any plan: some of its hosts are linked to no other switch.
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

/// The known plan, and other plans of the job that are as fast, each in the network without some switches.
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
    // Switches without which each plan was made.
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

/// A copy of the network in which no traffic crosses the switches `without`.
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

fn problem(
    network: &Network,
    jobs: &[Job],
    known: &[Option<Plan>],
    all: &[Vec<Plan>],
) -> RobustProblem {
    let mut problem = RobustProblem {
        points: network
            .ids()
            .map(|id| network.name(id).to_owned())
            .collect(),
        ..RobustProblem::default()
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
            let mut choice = DecisionOption {
                points: touched(network, job, plan)
                    .iter()
                    .map(|node| node.index())
                    .collect(),
                ..DecisionOption::default()
            };
            for (resource, load) in Loads::from_plan(network, job, plan).iter() {
                // The rate is infinite if no resource limits it.
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
                // Tolerate rounding errors where a plan uses a whole capacity.
                let most = spare * (1.0 + 1e-9);
                let limit = *limits.entry(resource).or_insert_with(|| {
                    let name = resource.describe(network);
                    problem.limits.push(ResourceLimit { name, most });
                    problem.limits.len() - 1
                });
                // Trainings may state different ingress rates for a server's host.
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
