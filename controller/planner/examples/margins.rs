//! What GRID's plans are above others': `cargo run --release -p planner --example margins [SEEDS [WORKERS]]`.
//!
//! A table of means over seeds, a line for each of GRID's networks, then one line of JSON. Rates are those of each worker;
//! `bound` is what no plan of whole streams is above. Plans are compared by their pushes. Collectives have push and pull in
//! one, so for them it is the gradient over the time of both; what compares with them is a push with a pull by a tree beside
//! it, the last two columns.

// An example is no part of the pure crate.
#![allow(clippy::disallowed_methods)]

use std::error::Error;

use planner::Network;
use planner::baseline::{atp, geryon, halving_doubling, raw, ring, switchml};
use planner::evaluation::{Instance, Shape};
use planner::fluid::{Pull, Round, Schedule, Simulation};
use planner::gradient::{Job, Plan, grid};
use planner::network::generate::Programmable;

const GBIT: u64 = 1_000_000_000;
const GRADIENT_BYTES: u64 = 100_000_000;
const NAMES: [&str; 10] = [
    "bound",
    "grid",
    "atp",
    "switchml",
    "geryon",
    "raw",
    "ring",
    "halving",
    "grid+pull",
    "atp+pull",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| {
        arguments
            .next()
            .map_or(Ok(default), |text| text.parse::<usize>())
    };
    let (seeds, workers) = (number(100)? as u64, number(64)?);
    let mut lines = Vec::new();
    println!(
        "Gbit/s of each worker, means over {seeds} seeds, {workers} workers, links of 100 Gbit/s"
    );
    println!(
        "{:<26}{}   worst gap (seed)",
        "network",
        NAMES.map(|name| format!("{name:>10}")).concat()
    );
    for (shape, named) in [
        (Shape::FatTree, "fat-tree"),
        (Shape::LeafSpine, "leaf-spine"),
    ] {
        for (programmable, which) in [
            (Programmable::TopsOfRacks, "racks"),
            (Programmable::Share(0.2), "20%"),
        ] {
            for server in [100, 400] {
                let instance = Instance {
                    shape,
                    programmable,
                    workers,
                    servers: 1,
                    host_rate_bps: 100 * GBIT,
                    server_rate_bps: server * GBIT,
                };
                let name = format!("{named} {which} server {server}");
                lines.push(compare(&name, &instance, seeds)?);
            }
        }
    }
    println!("[{}]", lines.join(","));
    Ok(())
}

fn compare(name: &str, instance: &Instance, seeds: u64) -> Result<String, Box<dyn Error>> {
    let mut sums = [0.0; NAMES.len()];
    let mut ratios = [0.0; NAMES.len()];
    let (mut gaps, mut proven) = (Vec::new(), 0);
    for seed in 0..seeds {
        let (network, job) = instance.draw(seed)?;
        let mut plan = grid::plan(&network, &job)?;
        grid::prove(&network, &job, &mut plan)?;
        proven += u32::from(plan.is_optimal);
        gaps.push((plan.gap(), seed));
        let rates = rates(&network, &job, &plan)?;
        for (place, rate) in rates.iter().enumerate() {
            sums[place] += rate / seeds as f64;
            ratios[place] += plan.rate_bps / rate / seeds as f64;
        }
    }
    gaps.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mean_gap = gaps.iter().map(|(gap, _)| gap).sum::<f64>() / seeds as f64;
    let worst = gaps.first().copied().unwrap_or((0.0, 0));
    let columns = |numbers: &[f64], scale: f64| {
        let columns = numbers.iter().map(|n| format!("{:>10.3}", n / scale));
        columns.collect::<String>()
    };
    println!(
        "{name:<26}{}   {:.3} ({})",
        columns(&sums, 1e9),
        worst.0,
        worst.1
    );
    println!(
        "{:<26}{}   mean gap {mean_gap:.3}, {proven} proven",
        "  grid over it",
        columns(&ratios, 1.0)
    );
    let object = |numbers: &[f64]| {
        let pairs = NAMES.iter().zip(numbers);
        let pairs: Vec<String> = pairs.map(|(name, n)| format!("\"{name}\":{n}")).collect();
        format!("{{{}}}", pairs.join(","))
    };
    Ok(format!(
        "{{\"network\":\"{name}\",\"rate_bps\":{},\"grid_over\":{},\"gap_mean\":{mean_gap},\"gap_worst\":{},\"worst_seed\":{},\"proven\":{proven}}}",
        object(&sums),
        object(&ratios),
        worst.0,
        worst.1
    ))
}

fn rates(network: &Network, job: &Job, grid: &Plan) -> Result<[f64; NAMES.len()], Box<dyn Error>> {
    let jobs = std::slice::from_ref(job);
    let atp = &atp::plan(network, jobs)?[0];
    Ok([
        grid.bound_bps,
        simulated(network, job, grid, Pull::None)?,
        simulated(network, job, atp, Pull::None)?,
        simulated(network, job, &switchml::plan(network, jobs)?[0], Pull::None)?,
        simulated(network, job, &geryon::plan(network, job)?, Pull::None)?,
        simulated(network, job, &raw::plan(network, jobs)?[0], Pull::None)?,
        collective(network, job, &ring::schedule(job.workers.len()))?,
        collective(network, job, &halving_doubling::schedule(job.workers.len()))?,
        simulated(network, job, grid, Pull::Tree)?,
        simulated(network, job, atp, Pull::Tree)?,
    ])
}

/// What a round goes at. Sums come back while gradients are pushed, and may meet them on links.
fn simulated(network: &Network, job: &Job, plan: &Plan, pull: Pull) -> Result<f64, Box<dyn Error>> {
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

fn collective(network: &Network, job: &Job, schedule: &Schedule) -> Result<f64, Box<dyn Error>> {
    let mut simulation = Simulation::new();
    simulation.add_schedule(network, &job.workers, schedule, GRADIENT_BYTES, 0.0)?;
    Ok(GRADIENT_BYTES as f64 * 8.0 / simulation.run()?.end_s)
}
