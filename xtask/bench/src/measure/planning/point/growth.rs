//! Measures a planner's time and memory on a network: all hosts except the servers are workers of
//! one job, or tenants fill the switches.

use anyhow::{Result, bail};
use planner::Method;
use planner::evaluation::{Instance, Shape};
use planner::gradient::{Plan, inart};
use planner::injection::{Scale, sample_of, solve};
use planner::network::generate::Programmable;
use serde_json::{Value, json};

use super::measure::{ElapsedTimes, timed};
use crate::measure::files::memory_kib;

const GBIT: u64 = 1_000_000_000;
/// Seed that draws the switches' throughputs and the servers.
const SEED: u64 = 1;

/// Runs a planner on a network. `size` is the number of ports of a switch in a fat tree, or the number of leaves.
pub fn run(planner: &str, shape: &str, size: u32) -> Result<Value> {
    match planner {
        "injection" => injection(size),
        _ => gradient(planner, shape, size),
    }
}

fn gradient(planner: &str, shape: &str, size: u32) -> Result<Value> {
    let servers = match planner {
        "grid" | "grid-proof" => 1,
        _ => 4,
    };
    let (shape, hosts) = match shape {
        "fat-tree" => (Shape::FatTreeOf { k: size }, size * size * size / 4),
        "leaf-spine" => (Shape::LeafSpineOf { leaves: size }, size * 40),
        _ => bail!("no shape is called {shape}"),
    };
    let instance = Instance {
        shape,
        programmable: Programmable::TopsOfRacks,
        workers: hosts as usize - servers,
        servers,
        host_rate_bps: 100 * GBIT,
        server_rate_bps: 400 * GBIT,
    };
    let (network, job) = instance.draw(SEED)?;
    let mut proof = None;
    let (plan, took): (Plan, ElapsedTimes) = match planner {
        "grid" | "grid-proof" => {
            let (plan, took) = timed(|| Method::Grid.plan(&network, &job))?;
            let mut plan = plan?;
            if planner == "grid-proof" {
                let (proved, took) = timed(|| Method::Grid.prove(&network, &job, &mut plan))?;
                proved?;
                proof = Some(took.json());
            }
            (plan, took)
        }
        "inart" => {
            let (found, took) = timed(|| inart::shares(&network, &job))?;
            (found?.1, took)
        }
        "inart-event" => {
            let shares = vec![1.0 / servers as f64; servers];
            let (plan, took) = timed(|| inart::plan(&network, &job, &shares))?;
            (plan?, took)
        }
        _ => bail!("no planner is called {planner}"),
    };
    Ok(json!({
        "planner": planner,
        "hosts": hosts,
        "switches": network.switches().count(),
        "links": network.links().len(),
        "workers": job.workers.len(),
        "plan": took.json(),
        "proof": proof,
        "rate_bps": plan.rate_bps,
        "bound_bps": plan.bound_bps,
        "gap": plan.gap(),
        "proven": plan.is_optimal,
        "peak_bytes": 1024 * memory_kib("VmHWM:")?,
    }))
}

/// Plans the injection points of faults on a fat tree: five tenants for every four switches, with ten flows each.
fn injection(ports: u32) -> Result<Value> {
    let ports = ports as usize;
    let switches = ports * ports * 5 / 4;
    let scale = Scale {
        ports,
        tenants: switches * 5 / 4,
    };
    let problem = sample_of(scale, SEED);
    let (solved, took) = timed(|| solve(&problem, SEED))?;
    let (worst, bound, refused) = match &solved {
        Ok(placed) => (
            Some(placed.cost.worst.fraction()),
            Some(placed.bound.fraction()),
            None,
        ),
        Err(refusal) => (None, None, Some(refusal.describe(&problem))),
    };
    Ok(json!({
        "planner": "injection",
        "hosts": ports * ports * ports / 4,
        "switches": switches,
        "tenants": scale.tenants,
        "choices": problem.choices.len(),
        "paths": problem.paths.len(),
        "plan": took.json(),
        "worst": worst,
        "bound": bound,
        "gap": solved.as_ref().ok().map(planner::injection::Placement::gap),
        "proven": solved.as_ref().is_ok_and(|placed| placed.proven),
        "refused": refused,
        "peak_bytes": 1024 * memory_kib("VmHWM:")?,
    }))
}
