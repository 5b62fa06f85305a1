//! GRID on the networks of its paper: how near its plans are to the best, and how far ahead of other planners'.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use planner::Network;
use planner::baseline::{atp, esa, geryon, halving_doubling, lbmm, raw, ring, switchml};
use planner::evaluation::{Instance, Shape};
use planner::fluid::{Pull, Round, Schedule, Simulation};
use planner::gradient::{Job, Loads, Method, Plan};
use planner::network::generate::Programmable;
use serde_json::{Value, json};

use super::measure::{Took, timed};

const GBIT: u64 = 1_000_000_000;
const GRADIENT_BYTES: u64 = 100_000_000;
const WORKERS: usize = 64;
/// A load may be this share over a capacity: sums of fractions are rounded.
const ROUNDING: f64 = 1e-9;

/// GRID's networks, by name: the shape, which switches sum, and the server's link in Gbit/s.
const NETWORKS: [(&str, Shape, Programmable, u64); 8] = [
    (
        "fat-tree-racks-100",
        Shape::FatTree,
        Programmable::TopsOfRacks,
        100,
    ),
    (
        "fat-tree-racks-400",
        Shape::FatTree,
        Programmable::TopsOfRacks,
        400,
    ),
    (
        "fat-tree-20%-100",
        Shape::FatTree,
        Programmable::Share(0.2),
        100,
    ),
    (
        "fat-tree-20%-400",
        Shape::FatTree,
        Programmable::Share(0.2),
        400,
    ),
    (
        "leaf-spine-racks-100",
        Shape::LeafSpine,
        Programmable::TopsOfRacks,
        100,
    ),
    (
        "leaf-spine-racks-400",
        Shape::LeafSpine,
        Programmable::TopsOfRacks,
        400,
    ),
    (
        "leaf-spine-20%-100",
        Shape::LeafSpine,
        Programmable::Share(0.2),
        100,
    ),
    (
        "leaf-spine-20%-400",
        Shape::LeafSpine,
        Programmable::Share(0.2),
        400,
    ),
];

/// GRID as its paper has it: what workers send alone.
fn grid() -> Method {
    Method::of("grid-push").unwrap_or(Method::Grid)
}

/// One network, over so many seeds.
pub fn run(name: &str, seeds: u32) -> Result<Value> {
    let found = NETWORKS.iter().find(|(other, ..)| *other == name);
    let (_, shape, programmable, server) = *found.context("there is no such network")?;
    let instance = Instance {
        shape,
        programmable,
        workers: WORKERS,
        servers: 1,
        host_rate_bps: 100 * GBIT,
        server_rate_bps: server * GBIT,
    };
    let mut by_seed = Vec::new();
    for seed in 0..u64::from(seeds) {
        let (network, job) = instance.draw(seed)?;
        let (plan, took) = timed(|| grid().plan(&network, &job))?;
        let mut plan = plan?;
        let (proved, proof) = timed(|| grid().prove(&network, &job, &mut plan))?;
        proved?;
        by_seed.push(json!({
            "seed": seed,
            "rate_bps": plan.rate_bps,
            "gap": plan.gap(),
            "proven": plan.is_optimal,
            "over_capacity": over_capacity(&network, &job, &plan),
            "plan": took.json(),
            "proof": proof.json(),
            "rates_bps": rates(&network, &job, &plan)?,
        }));
    }
    Ok(json!({"network": name, "workers": WORKERS, "seeds": by_seed}))
}

/// Whether a plan takes more of anything than there is.
fn over_capacity(network: &Network, job: &Job, plan: &Plan) -> bool {
    let binding = Loads::of(network, job, plan).binding(network, job);
    binding.is_some_and(|binding| plan.rate_bps > binding.rate_bps * (1.0 + ROUNDING))
}

/// What each worker has by each planner, in bits a second. Of collectives, the gradient over the time of push and pull; what
/// compares with them is a plan's push with a pull by a tree beside it.
fn rates(network: &Network, job: &Job, grid: &Plan) -> Result<BTreeMap<&'static str, f64>> {
    let jobs = std::slice::from_ref(job);
    let first = |plans: Vec<Plan>| plans.into_iter().next().context("a job has a plan");
    let atp = first(atp::plan(network, jobs)?)?;
    let pushed = [
        ("grid", grid.clone()),
        ("esa", first(esa::plan(network, jobs)?)?),
        ("switchml", first(switchml::plan(network, jobs)?)?),
        ("geryon", geryon::plan(network, job)?),
        ("lbmm", lbmm::plan(network, job)?),
        ("raw", first(raw::plan(network, jobs)?)?),
        ("atp", atp.clone()),
    ];
    let mut rates = BTreeMap::new();
    for (name, plan) in &pushed {
        rates.insert(*name, simulated(network, job, plan, Pull::None)?);
    }
    rates.insert("grid+pull", simulated(network, job, grid, Pull::Tree)?);
    rates.insert("atp+pull", simulated(network, job, &atp, Pull::Tree)?);
    let workers = job.workers.len();
    rates.insert("ring", collective(network, job, &ring::schedule(workers))?);
    let halving = halving_doubling::schedule(workers);
    rates.insert("halving-doubling", collective(network, job, &halving)?);
    Ok(rates)
}

/// What a round goes at. Sums come back while gradients are pushed, and may meet them on links.
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

/// How long a plan takes on GRID's fat tree, on each of its four settings and so many seeds; the best of three times each.
pub fn fat_tree(seeds: u32) -> Result<Value> {
    let mut found = Vec::new();
    let fat_trees = NETWORKS
        .iter()
        .filter(|(_, shape, ..)| *shape == Shape::FatTree);
    for (name, shape, programmable, server) in fat_trees {
        for workers in [WORKERS, 191] {
            let instance = Instance {
                shape: *shape,
                programmable: *programmable,
                workers,
                servers: 1,
                host_rate_bps: 100 * GBIT,
                server_rate_bps: server * GBIT,
            };
            for seed in 0..u64::from(seeds) {
                let (network, job) = instance.draw(seed)?;
                let mut took = Took::NEVER;
                for _ in 0..3 {
                    let (plan, again) = timed(|| grid().plan(&network, &job))?;
                    plan?;
                    took = took.min(again);
                }
                found.push(json!({
                    "network": name,
                    "workers": workers,
                    "seed": seed,
                    "plan": took.json(),
                }));
            }
        }
    }
    Ok(Value::Array(found))
}
