//! Plans in which the first programmable switch on a worker's path sums some share of the traffic that it receives.

use std::collections::BTreeMap;

use crate::gradient::{Job, JobError, Loads, Member, Part, Plan, Resource, Route, spare_bps};
use crate::network::{Network, NetworkError, NodeId, Switch};
use crate::routing::{Costs, Path, Routing};

/// Maximum number of equally short paths among which streams are spread.
const WAYS: usize = 64;
/// Relative rounding error of sums of shares. A capacity counts as exceeded only if it is exceeded by more.
const ROUNDING: f64 = 1e-12;

/// Workers of one job whose streams to one server reach the same programmable switch first.
pub(super) struct Rack {
    /// Index of the job among all jobs that are planned.
    pub job: usize,
    /// Index of the server in the job.
    pub server: usize,
    /// First programmable switch on the workers' paths to the server; `None` if there is none.
    pub at: Option<NodeId>,
    /// Share of the model that the server holds.
    pub share: f64,
    /// For each worker: its rank, its whole path to the server, and the number of arcs up to the switch.
    workers: Vec<(usize, Route, usize)>,
    /// Path from the switch to the server.
    up: Route,
}

impl Rack {
    /// Rate that arrives at the rack's switch per bit/s that each worker sends.
    pub fn demand(&self) -> f64 {
        self.share * self.workers.len() as f64
    }

    /// Parts of the job's plan if the rack's switch sums the share `summed` of its traffic, and the rest goes to the server.
    fn parts(&self, job: &Job, summed: f64) -> impl Iterator<Item = Part> {
        let member = |(worker, route, to_switch): &(usize, Route, usize), is_raw: bool| Member {
            worker: *worker,
            route: route[..if is_raw { route.len() } else { *to_switch }].to_vec(),
        };
        let part = |share: f64, at: NodeId, is_raw: bool| Part {
            piece: self.server,
            share,
            server: self.server,
            at,
            members: self.workers.iter().map(|w| member(w, is_raw)).collect(),
            up: if is_raw {
                Route::new()
            } else {
                self.up.clone()
            },
        };
        let at = self.at.filter(|_| summed > ROUNDING);
        let summed = if at.is_none() {
            0.0
        } else if summed >= 1.0 - ROUNDING {
            1.0
        } else {
            summed
        };
        let raw = (summed < 1.0).then(|| {
            let server = job.servers[self.server].host;
            part(self.share * (1.0 - summed), server, true)
        });
        let at = at.map(|at| part(self.share * summed, at, false));
        at.into_iter().chain(raw)
    }
}

/// Racks of workers of all jobs, sorted by job, server and switch.
pub(super) fn racks(network: &Network, jobs: &[Job]) -> Result<Vec<Rack>, JobError> {
    let routing = Routing::new(network, Costs::hops(network));
    let mut racks = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        job.check(network)?;
        for (server, to) in job.servers.iter().enumerate() {
            let mut by_switch: BTreeMap<Option<NodeId>, Rack> = BTreeMap::new();
            for (worker, from) in job.workers.iter().enumerate() {
                let route = way(&routing, job, *from, to.host, worker)?;
                let (at, to_switch) = first_switch(network, &route);
                let rack = by_switch.entry(at).or_insert_with(|| Rack {
                    job: number,
                    server,
                    at,
                    share: 1.0 / job.servers.len() as f64,
                    workers: Vec::new(),
                    up: Route::new(),
                });
                rack.workers.push((worker, route, to_switch));
            }
            for (place, mut rack) in by_switch.into_values().enumerate() {
                if let Some(at) = rack.at {
                    rack.up = way(&routing, job, at, to.host, place)?;
                }
                racks.push(rack);
            }
        }
    }
    Ok(racks)
}

/// The shortest path with index `number` modulo the number of shortest paths.
pub(super) fn way(
    routing: &Routing<'_>,
    job: &Job,
    from: NodeId,
    to: NodeId,
    number: usize,
) -> Result<Route, JobError> {
    let mut ways = ways(routing, job, from, to)?;
    let chosen = number % ways.len();
    Ok(ways.swap_remove(chosen))
}

/// Shortest paths between two nodes, at most [`WAYS`]; an error if there is none.
pub(super) fn ways(
    routing: &Routing<'_>,
    job: &Job,
    from: NodeId,
    to: NodeId,
) -> Result<Vec<Path>, JobError> {
    let ways: Result<_, NetworkError> = routing.paths(from, to, WAYS);
    let ways = ways.ok().filter(|ways: &Vec<Path>| !ways.is_empty());
    ways.ok_or_else(|| job.no_way(routing.network(), from, to))
}

fn first_switch(network: &Network, route: &Route) -> (Option<NodeId>, usize) {
    let ends = route.iter().map(|arc| network.ends(*arc).1);
    let found = ends.zip(1..).find(|(node, _)| {
        let switch = network.switch(*node);
        switch.is_some_and(|switch| switch.programmable)
    });
    found.map_or((None, route.len()), |(at, passed)| (Some(at), passed))
}

/// Rate of gradients in bit/s that a switch can still sum; infinite if the switch has no limit.
pub(super) fn spare_sums_bps(network: &Network, switch: NodeId) -> f64 {
    let spare = network.switch(switch).and_then(Switch::spare_sums_bps);
    spare.map_or(f64::INFINITY, |bps| bps as f64)
}

/// Plans of all jobs at the greatest common rate of all their workers. `summed` returns, for a rate, the share of its traffic
/// that each rack's switch sums: the higher the rate, the more the switch forwards raw.
pub(super) fn fastest(
    network: &Network,
    jobs: &[Job],
    racks: &[Rack],
    summed: impl Fn(f64) -> Vec<f64>,
) -> Result<Vec<Plan>, JobError> {
    let plans_at = |rate_bps: f64| plans(jobs, racks, &summed(rate_bps), rate_bps);
    let most_bps = |plans: &[Plan]| joint_rate_bps(network, jobs, plans);
    let narrowest = jobs.iter().map(|job| job.narrowest_bps(network));
    let (mut low, mut high) = (0.0, 2.0 * narrowest.fold(f64::INFINITY, f64::min));
    // Bisect down to adjacent floating-point numbers.
    loop {
        let middle: f64 = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if most_bps(&plans_at(middle)) * (1.0 + ROUNDING) >= middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    let mut plans = plans_at(low);
    let rate_bps = low.min(most_bps(&plans));
    if rate_bps <= f64::MIN_POSITIVE {
        return Err(cut_off(network, jobs, racks));
    }
    for plan in &mut plans {
        (plan.rate_bps, plan.bound_bps) = (rate_bps, rate_bps);
    }
    Ok(plans)
}

fn plans(jobs: &[Job], racks: &[Rack], summed: &[f64], rate_bps: f64) -> Vec<Plan> {
    let mut plans: Vec<Plan> = jobs
        .iter()
        .map(|job| Plan {
            rate_bps,
            bound_bps: rate_bps,
            is_optimal: true,
            ..Plan::new(job, Vec::new())
        })
        .collect();
    for (rack, summed) in racks.iter().zip(summed) {
        let parts = rack.parts(&jobs[rack.job], *summed);
        plans[rack.job].parts.extend(parts);
    }
    plans
}

/// Greatest common rate of all jobs' workers if all plans run at once.
pub(super) fn joint_rate_bps(network: &Network, jobs: &[Job], plans: &[Plan]) -> f64 {
    let mut loads: BTreeMap<Resource, (f64, f64)> = BTreeMap::new();
    for (job, plan) in jobs.iter().zip(plans) {
        for (resource, load) in Loads::from_plan(network, job, plan).iter() {
            let spare = spare_bps(network, job, resource).unwrap_or(f64::INFINITY);
            let entry = loads.entry(resource).or_insert((0.0, f64::INFINITY));
            *entry = (entry.0 + load, entry.1.min(spare));
        }
    }
    let rates = loads.values().map(|(load, spare)| spare / load);
    rates.fold(f64::INFINITY, f64::min)
}

fn cut_off(network: &Network, jobs: &[Job], racks: &[Rack]) -> JobError {
    let is_full = |route: &Route| route.iter().any(|arc| network.spare_bps(*arc) == 0);
    let mut workers = racks
        .iter()
        .flat_map(|rack| rack.workers.iter().map(move |worker| (rack, worker)));
    let full = workers.clone().find(|(_, (_, route, _))| is_full(route));
    let (rack, worker) = match full.or_else(|| workers.next()) {
        Some((rack, (worker, _, _))) => (rack, *worker),
        None => return JobError::NoWorkers(String::new()),
    };
    let job = &jobs[rack.job];
    let server = job.servers[rack.server].host;
    job.no_way(network, job.workers[worker], server)
}
