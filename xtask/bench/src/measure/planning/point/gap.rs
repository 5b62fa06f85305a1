//! Measures GRID on the networks of its paper: gaps to the optimum, and rates beside other planners' rates.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use planner::baseline::{atp, esa, geryon, lbmm, raw, rgria, switchml};
use planner::evaluation::{Instance, Shape};
use planner::gradient::{Job, Loads, Plan};
use planner::network::generate::Programmable;
use planner::{Method, Network};
use serde_json::{Value, json};

use super::measure::{ElapsedTimes, timed};
use crate::fluid::{Pull, Round, Schedule, Simulation, halving_doubling, ring};

const GBIT: u64 = 1_000_000_000;
const GRADIENT_BYTES: u64 = 100_000_000;
const WORKERS: usize = 64;
/// Relative tolerance by which a load may exceed its capacity: sums of fractions are rounded.
const ROUNDING: f64 = 1e-9;

struct GridNetwork {
    name: &'static str,
    shape: Shape,
    /// Which switches of the network sum.
    programmable: Programmable,
    /// Rate of the server's link, in Gbit/s.
    server: u64,
}

const RACKS: Programmable = Programmable::TopsOfRacks;
const FIFTH: Programmable = Programmable::Share(0.2);

const NETWORKS: [GridNetwork; 8] = [
    setting("fat-tree-racks-100", Shape::FatTree, RACKS, 100),
    setting("fat-tree-racks-400", Shape::FatTree, RACKS, 400),
    setting("fat-tree-20%-100", Shape::FatTree, FIFTH, 100),
    setting("fat-tree-20%-400", Shape::FatTree, FIFTH, 400),
    setting("leaf-spine-racks-100", Shape::LeafSpine, RACKS, 100),
    setting("leaf-spine-racks-400", Shape::LeafSpine, RACKS, 400),
    setting("leaf-spine-20%-100", Shape::LeafSpine, FIFTH, 100),
    setting("leaf-spine-20%-400", Shape::LeafSpine, FIFTH, 400),
];

const fn setting(
    name: &'static str,
    shape: Shape,
    programmable: Programmable,
    server: u64,
) -> GridNetwork {
    GridNetwork {
        name,
        shape,
        programmable,
        server,
    }
}

impl GridNetwork {
    fn instance(&self, workers: usize) -> Instance {
        Instance {
            shape: self.shape,
            programmable: self.programmable,
            workers,
            servers: 1,
            host_rate_bps: 100 * GBIT,
            server_rate_bps: self.server * GBIT,
        }
    }
}

/// Measures the network of this name over `seeds` seeds. `push` is the GRID of its paper, which
/// plans only what workers send; `round` includes the return of sums.
pub fn run(name: &str, seeds: u32) -> Result<Value> {
    let found = NETWORKS.iter().find(|network| network.name == name);
    let instance = found
        .with_context(|| format!("no network is called {name}"))?
        .instance(WORKERS);
    let mut by_seed = Vec::new();
    for seed in 0..u64::from(seeds) {
        let (network, job) = instance.draw(seed)?;
        let (push, of_push) = planned(&network, &job, Method::GridPush)?;
        let (round, of_round) = planned(&network, &job, Method::Grid)?;
        let relaxation = rgria::relax(&network, &job)?;
        let rounded = rgria::round(&network, &job, &relaxation, seed);
        let others = others(&network, &job, rounded.plan(&network, &job)?)?;
        by_seed.push(json!({
            "seed": seed,
            "push": of_push,
            "round": of_round,
            "sent_bps": sent(&network, &job, &push, &others)?,
            "round_bps": answered(&network, &job, (push, &round), &others)?,
            "relaxed_bps": relaxation.rate_bps,
            "exceeded": rounded.exceeded,
        }));
    }
    Ok(json!({"network": name, "workers": WORKERS, "seeds": by_seed}))
}

/// Plans a job and proves the plan's gap to the optimum; returns the plan and its figures as JSON.
fn planned(network: &Network, job: &Job, by: Method) -> Result<(Plan, Value)> {
    let (plan, took) = timed(|| by.plan(network, job))?;
    let mut plan = plan?;
    let (proved, proof) = timed(|| by.prove(network, job, &mut plan))?;
    proved?;
    let figures = json!({
        "rate_bps": plan.rate_bps,
        "gap": plan.gap(),
        "proven": plan.is_optimal,
        "hops": plan.hops(),
        "over_capacity": over_capacity(network, job, &plan),
        "plan": took.json(),
        "proof": proof.json(),
    });
    Ok((plan, figures))
}

/// Whether a plan's load exceeds the capacity of a link or switch.
fn over_capacity(network: &Network, job: &Job, plan: &Plan) -> bool {
    let binding = Loads::from_plan(network, job, plan).binding(network, job);
    binding.is_some_and(|binding| plan.rate_bps > binding.rate_bps * (1.0 + ROUNDING))
}

/// (Planner's name, its plan) for each planner that GRID is compared with.
type Others = [(&'static str, Plan); 7];

fn others(network: &Network, job: &Job, rgria: Plan) -> Result<Others> {
    let jobs = std::slice::from_ref(job);
    let first = |plans: Vec<Plan>| plans.into_iter().next().context("a job has a plan");
    Ok([
        ("atp", first(atp::plan(network, jobs)?)?),
        ("esa", first(esa::plan(network, jobs)?)?),
        ("switchml", first(switchml::plan(network, jobs)?)?),
        ("geryon", geryon::plan(network, job)?),
        ("lbmm", lbmm::plan(network, job)?),
        ("raw", first(raw::plan(network, jobs)?)?),
        ("rgria", rgria),
    ])
}

/// Rate at which each worker sends, in bits a second, by planner.
fn sent(
    network: &Network,
    job: &Job,
    grid: &Plan,
    others: &Others,
) -> Result<BTreeMap<&'static str, f64>> {
    let others = others.iter().map(|(name, plan)| (*name, plan));
    let all = std::iter::once(("grid", grid)).chain(others);
    all.map(|(name, plan)| Ok((name, simulated(network, job, plan, Pull::None)?)))
        .collect()
}

/// Rate of a round with the return of sums, by planner. GRID uses the tree that it planned; the other planners, and the
/// paper's GRID (`push`), use one of shortest paths. A collective includes the return.
fn answered(
    network: &Network,
    job: &Job,
    (push, grid): (Plan, &Plan),
    others: &Others,
) -> Result<BTreeMap<&'static str, f64>> {
    let push = Plan {
        answers: Vec::new(),
        ..push
    };
    let others = others.iter().map(|(name, plan)| (*name, plan));
    let all = [("grid", grid), ("push", &push)].into_iter().chain(others);
    let mut rates = BTreeMap::new();
    for (name, plan) in all {
        rates.insert(name, simulated(network, job, plan, Pull::Tree)?);
    }
    let workers = job.workers.len();
    rates.insert("ring", collective(network, job, &ring::schedule(workers))?);
    let halving = halving_doubling::schedule(workers);
    rates.insert("halving-doubling", collective(network, job, &halving)?);
    Ok(rates)
}

/// Rate of a simulated round in bits a second. Sums return while gradients are pushed, and may share links with them.
fn simulated(network: &Network, job: &Job, plan: &Plan, pull: Pull) -> Result<f64> {
    let mut simulation = Simulation::new();
    let round = Round {
        job,
        plan,
        gradient_bytes: GRADIENT_BYTES,
        start_s: 0.0,
        pull,
        is_pipelined: true,
    };
    let id = simulation.add_round(network, &round)?;
    let outcome = simulation.run()?.round(&id);
    Ok(GRADIENT_BYTES as f64 * 8.0 / outcome.round_s)
}

fn collective(network: &Network, job: &Job, schedule: &Schedule) -> Result<f64> {
    let mut simulation = Simulation::new();
    simulation.add_schedule(network, &job.workers, schedule, GRADIENT_BYTES, 0.0)?;
    Ok(GRADIENT_BYTES as f64 * 8.0 / simulation.run()?.end_s)
}

/// Time of planning on GRID's fat tree, for each of its four settings and both kinds of GRID, over
/// `seeds` seeds; each plan is timed three times, and the best time counts.
pub fn fat_tree(seeds: u32) -> Result<Value> {
    let mut found = Vec::new();
    let fat_trees = NETWORKS.iter();
    for network in fat_trees.filter(|network| network.shape == Shape::FatTree) {
        for (workers, by) in [WORKERS, 191]
            .into_iter()
            .flat_map(|workers| [Method::Grid, Method::GridPush].map(|by| (workers, by)))
        {
            for seed in 0..u64::from(seeds) {
                let (drawn, job) = network.instance(workers).draw(seed)?;
                let mut took = ElapsedTimes::NEVER;
                for _ in 0..3 {
                    let (plan, again) = timed(|| by.plan(&drawn, &job))?;
                    plan?;
                    took = took.min(again);
                }
                found.push(json!({
                    "network": network.name,
                    "workers": workers,
                    "by": by.name(),
                    "seed": seed,
                    "plan": took.json(),
                }));
            }
        }
    }
    Ok(Value::Array(found))
}
