//! What GRID's plans are above others': `cargo run --release -p planner --example margins [SEEDS [WORKERS]]`.
//!
//! For each of GRID's networks two tables of means over seeds: of what workers send alone, as the paper has it, and of a round,
//! in which sums come back meanwhile; then one line of JSON. Rates are those of each worker. In a round GRID's answers take
//! the tree that was planned with the rest, those of others, and of the paper's GRID (`push`), a tree of shortest ways.
//! Collectives have both in one. `bound` is what no plan of whole streams is above; `rgria` is the paper's rounding, repaired.

// An example is no part of the pure crate.
#![allow(clippy::disallowed_methods)]

use std::error::Error;
use std::time::Instant;

use planner::Network;
use planner::baseline::{atp, geryon, halving_doubling, raw, rgria, ring, switchml};
use planner::evaluation::{Instance, Shape};
use planner::fluid::{Pull, Round, Schedule, Simulation};
use planner::gradient::grid::{self, Work};
use planner::gradient::{Job, Plan};
use planner::network::generate::Programmable;

const GBIT: u64 = 1_000_000_000;
const GRADIENT_BYTES: u64 = 100_000_000;
const PUSH: [&str; 7] = ["grid", "bound", "atp", "switchml", "geryon", "raw", "rgria"];
const ROUND: [&str; 10] = [
    "grid", "bound", "push", "atp", "switchml", "geryon", "raw", "rgria", "ring", "halving",
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

/// Means over seeds of one kind of plans.
struct Table<const N: usize> {
    names: [&'static str; N],
    rates: [f64; N],
    /// GRID's rate over each.
    grid_over: [f64; N],
    gaps: Vec<(f64, u64)>,
    proven: u32,
    hops: usize,
    slowest_s: [f64; 2],
}

impl<const N: usize> Table<N> {
    fn new(names: [&'static str; N]) -> Table<N> {
        Table {
            names,
            rates: [0.0; N],
            grid_over: [0.0; N],
            gaps: Vec::new(),
            proven: 0,
            hops: 0,
            slowest_s: [0.0; 2],
        }
    }

    /// Plans, proves, and says how long that took at most.
    fn plan(
        &mut self,
        (network, job): (&Network, &Job),
        seed: u64,
        by: fn(&Network, &Job) -> Result<Plan, planner::gradient::JobError>,
    ) -> Result<Plan, Box<dyn Error>> {
        let start = Instant::now();
        let mut plan = by(network, job)?;
        let planned = Instant::now();
        grid::prove(network, job, &mut plan, Work::default())?;
        let took = [planned - start, planned.elapsed()].map(|took| took.as_secs_f64());
        for (slowest, took) in self.slowest_s.iter_mut().zip(took) {
            *slowest = slowest.max(took);
        }
        self.proven += u32::from(plan.is_optimal);
        self.gaps.push((plan.gap(), seed));
        self.hops += plan.hops();
        Ok(plan)
    }

    fn add(&mut self, rates: [f64; N], seeds: u64) {
        for (place, rate) in rates.iter().enumerate() {
            self.rates[place] += rate / seeds as f64;
            self.grid_over[place] += rates[0] / rate / seeds as f64;
        }
    }

    fn mean_gap(&self) -> f64 {
        self.gaps.iter().map(|(gap, _)| gap).sum::<f64>() / self.gaps.len() as f64
    }

    fn worst_gap(&self) -> (f64, u64) {
        let gaps = self.gaps.iter().copied();
        gaps.fold(
            (0.0, 0),
            |worst, gap| if gap.0 > worst.0 { gap } else { worst },
        )
    }

    fn print(&self, title: &str) {
        let names = self.names.map(|name| format!("{name:>10}")).concat();
        println!("  {title:<14}{names}");
        let columns = |numbers: &[f64; N], scale: f64| {
            let columns = numbers.iter().map(|n| format!("{:>10.3}", n / scale));
            columns.collect::<String>()
        };
        println!("  {:<14}{}", "", columns(&self.rates, 1e9));
        println!("  {:<14}{}", "grid over it", columns(&self.grid_over, 1.0));
        let (worst, seed) = self.worst_gap();
        let [plan_s, prove_s] = self.slowest_s;
        println!(
            "  gap {:.4} mean, {worst:.4} worst (seed {seed}), {} proven; {:.1} hops; {plan_s:.3} s to plan, {prove_s:.3} s to prove at most",
            self.mean_gap(),
            self.proven,
            self.hops as f64 / self.gaps.len() as f64,
        );
    }

    fn json(&self) -> String {
        let object = |numbers: &[f64; N]| {
            let pairs = self.names.iter().zip(numbers);
            let pairs: Vec<String> = pairs.map(|(name, n)| format!("\"{name}\":{n}")).collect();
            format!("{{{}}}", pairs.join(","))
        };
        let (worst, seed) = self.worst_gap();
        format!(
            "{{\"rate_bps\":{},\"grid_over\":{},\"gap_mean\":{},\"gap_worst\":{worst},\"worst_seed\":{seed},\"proven\":{},\"hops\":{}}}",
            object(&self.rates),
            object(&self.grid_over),
            self.mean_gap(),
            self.proven,
            self.hops as f64 / self.gaps.len() as f64,
        )
    }
}

fn compare(name: &str, instance: &Instance, seeds: u64) -> Result<String, Box<dyn Error>> {
    let (mut push, mut round) = (Table::new(PUSH), Table::new(ROUND));
    // Of the paper's relaxation: λ, and by how much what is drawn exceeds capacities.
    let (mut relaxed, mut exceeded, mut most_exceeded) = (0.0, 0.0, 0.0_f64);
    for seed in 0..seeds {
        let (network, job) = &instance.draw(seed)?;
        let grid_push = push.plan((network, job), seed, grid::push)?;
        let grid = round.plan((network, job), seed, grid::plan)?;
        let relaxation = rgria::relax(network, job)?;
        let rounded = rgria::round(network, job, &relaxation, seed);
        relaxed += relaxation.rate_bps / 1e9 / seeds as f64;
        exceeded += rounded.exceeded / seeds as f64;
        most_exceeded = most_exceeded.max(rounded.exceeded);
        let jobs = std::slice::from_ref(job);
        let others = [
            atp::plan(network, jobs)?.remove(0),
            switchml::plan(network, jobs)?.remove(0),
            geryon::plan(network, job)?,
            raw::plan(network, jobs)?.remove(0),
            rounded.plan(network, job)?,
        ];
        let by = |plan: &Plan, pull: Pull| simulated(network, job, plan, pull);
        let mut pushed = [0.0; PUSH.len()];
        (pushed[0], pushed[1]) = (by(&grid_push, Pull::None)?, grid_push.bound_bps);
        let mut both = [0.0; ROUND.len()];
        (both[0], both[1]) = (by(&grid, Pull::Tree)?, grid.bound_bps);
        let shortest = Plan {
            answers: Vec::new(),
            ..grid_push
        };
        both[2] = by(&shortest, Pull::Tree)?;
        for (place, plan) in others.iter().enumerate() {
            pushed[2 + place] = by(plan, Pull::None)?;
            both[3 + place] = by(plan, Pull::Tree)?;
        }
        let workers = job.workers.len();
        both[8] = collective(network, job, &ring::schedule(workers))?;
        both[9] = collective(network, job, &halving_doubling::schedule(workers))?;
        push.add(pushed, seeds);
        round.add(both, seeds);
    }
    println!("{name}");
    push.print("sent");
    round.print("sent, answered");
    println!(
        "  rgria: {relaxed:.1} relaxed; capacities exceeded {exceeded:.2} times, {most_exceeded:.2} at most"
    );
    Ok(format!(
        "{{\"network\":\"{name}\",\"push\":{},\"round\":{},\"rgria\":{{\"relaxed_gbps\":{relaxed},\"exceeded\":{exceeded},\"exceeded_most\":{most_exceeded}}}}}",
        push.json(),
        round.json()
    ))
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
