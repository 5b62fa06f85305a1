//! How far InArt's search is from the best choice: `cargo run --release -p planner --example inart_gap [SEEDS [NODES]]`.
//!
//! The paper's setting: a fat tree of 45 switches and 54 hosts, four servers. Links carry 100 Gbit/s; what switches sum is
//! drawn by seed from GRID's range, those at racks can, or 20 % of all. Shares are those that the first phase finds. A line
//! for each number of workers: the mean rate of the search, how often a best choice was proved in so many nodes, how often
//! the search had found it, by which share it was short at the worst, and the mean and worst distance to the bound that the
//! program leaves, over all seeds.

// An example is no part of the pure crate.
#![allow(clippy::disallowed_methods)]

use std::error::Error;
use std::time::Instant;

use planner::gradient::{Job, Server, inart};
use planner::network::generate::{
    FatTree, PAPERS_THROUGHPUT_BPS, Parts, Programmable, draw_throughputs, make_programmable,
};
use planner::{Network, NodeId};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

const GBIT: u64 = 1_000_000_000;
const SERVERS: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| {
        arguments
            .next()
            .map_or(Ok(default), |text| text.parse::<usize>())
    };
    let (seeds, nodes) = (number(20)? as u64, number(500)?);
    println!("switches workers  Gbit/s  proved  found  short  gap mean, worst  seconds");
    for (programmable, which) in [
        (Programmable::TopsOfRacks, "racks"),
        (Programmable::Share(0.2), "20 %"),
    ] {
        for workers in [4, 8, 16, 50] {
            let (mut rates, mut proved, mut found) = (0.0, 0, 0);
            let (mut short, mut gaps) = (0.0_f64, Vec::new());
            let start = Instant::now();
            for seed in 0..seeds {
                let (network, job) = drawn(programmable, workers, seed)?;
                let (shares, _) = inart::shares(&network, &job)?;
                let plan = inart::plan(&network, &job, &shares)?;
                let exact = inart::exact(&network, &job, &shares, nodes)?;
                rates += plan.rate_bps / seeds as f64;
                // No plan of any kind exceeds the one bound, no choice of these ways the other.
                let best = exact.best_bps.min(exact.plan.bound_bps);
                gaps.push(1.0 - plan.rate_bps / best);
                if exact.plan.rate_bps >= best * (1.0 - 1e-5) {
                    proved += 1;
                    let by = 1.0 - plan.rate_bps / exact.plan.rate_bps;
                    found += u32::from(by < 1e-5);
                    short = short.max(by);
                }
            }
            let mean = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
            let worst = gaps.iter().copied().fold(0.0, f64::max);
            println!(
                "{which:<8} {workers:>7}  {:>6.1}  {proved:>6}  {found:>5}  {short:>5.3}  {mean:>8.3}, {worst:.3}  {:>7.2}",
                rates / 1e9,
                start.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}

/// Workers and servers anywhere, ranks in the order of hosts.
fn drawn(
    programmable: Programmable,
    workers: usize,
    seed: u64,
) -> Result<(Network, Job), Box<dyn Error>> {
    let mut network = FatTree {
        k: 6,
        hosts_per_edge: None,
        rate_bps: 100 * GBIT,
        parts: Parts::default(),
    }
    .build()?;
    make_programmable(&mut network, programmable, seed)?;
    draw_throughputs(&mut network, PAPERS_THROUGHPUT_BPS, seed)?;
    let mut hosts: Vec<NodeId> = network.hosts().collect();
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    for place in 0..hosts.len() {
        let left = (hosts.len() - place) as u64;
        hosts.swap(place, place + (random.next_u64() % left) as usize);
    }
    let mut chosen = hosts[SERVERS..SERVERS + workers].to_vec();
    chosen.sort_unstable();
    let job = Job {
        name: format!("job-{seed}"),
        workers: chosen,
        servers: hosts[..SERVERS]
            .iter()
            .map(|host| Server::on(*host))
            .collect(),
    };
    Ok((network, job))
}
