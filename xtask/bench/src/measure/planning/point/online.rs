//! Measures InArt's planning when a job with 1,000 workers arrives at a network, and when the job departs.

use anyhow::{Context, Result, ensure};
use planner::evaluation::{Instance, Shape};
use planner::gradient::inart::Online;
use planner::network::generate::Programmable;
use serde_json::{Value, json};

use super::measure::{ElapsedTimes, timed};

const GBIT: u64 = 1_000_000_000;
const SEED: u64 = 1;
const SERVERS: usize = 4;

/// Plans arrival and departure `times` times; the best times count, since other programs use the machine too.
pub fn run(times: u32) -> Result<Value> {
    // 1,040 hosts on 26 leaves.
    let instance = Instance {
        shape: Shape::LeafSpineOf { leaves: 26 },
        programmable: Programmable::All,
        workers: 1_000,
        servers: SERVERS,
        host_rate_bps: 100 * GBIT,
        server_rate_bps: 400 * GBIT,
    };
    let (network, job) = instance.draw(SEED)?;
    let shares = [1.0 / SERVERS as f64; SERVERS];
    let mut online = Online::new(network.clone());
    let (mut arrival, mut departure) = (ElapsedTimes::NEVER, ElapsedTimes::NEVER);
    let (mut rate_bps, mut bound_bps) = (0.0, 0.0);
    for _ in 0..times {
        let (arrived, took) = timed(|| {
            let plan = online.arrive(&job, &shares, GBIT);
            plan.map(|plan| (plan.rate_bps, plan.bound_bps))
        })?;
        (rate_bps, bound_bps) = arrived?;
        arrival = arrival.min(took);
        let (departed, took) = timed(|| online.depart(&job.name))?;
        departed.context("the job had arrived")?;
        departure = departure.min(took);
    }
    ensure!(
        *online.network() == network,
        "the departed job still occupies capacity"
    );
    Ok(json!({
        "workers": job.workers.len(),
        "rate_bps": rate_bps,
        "bound_bps": bound_bps,
        "arrival": arrival.json(),
        "departure": departure.json(),
    }))
}
