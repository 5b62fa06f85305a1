//! Plans with InArt on the fat tree of its paper: several servers, beside an equal split, ATP and LBMM.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use planner::baseline::{atp, equal_split, lbmm};
use planner::evaluation::{Instance, Shape};
use planner::gradient::{Plan, inart};
use planner::network::generate::Programmable;
use serde_json::{Value, json};

use super::measure::timed;

const GBIT: u64 = 1_000_000_000;

/// Settings: name, switches that sum, and rate of the servers' links in Gbit/s. InArt's paper gives neither of the latter two.
const SETTINGS: [(&str, Programmable, u64); 4] = [
    ("racks, 100", Programmable::TopsOfRacks, 100),
    ("racks, 400", Programmable::TopsOfRacks, 400),
    ("all, 100", Programmable::All, 100),
    ("all, 400", Programmable::All, 400),
];

/// Plans each setting over `seeds` seeds: 45 switches and 54 hosts, of which four are servers and the others workers.
pub fn run(seeds: u32) -> Result<Value> {
    let mut found = Vec::new();
    for (name, programmable, server) in SETTINGS {
        let instance = Instance {
            shape: Shape::FatTreeOf45,
            programmable,
            workers: 50,
            servers: 4,
            host_rate_bps: 100 * GBIT,
            server_rate_bps: server * GBIT,
        };
        let mut by_seed = Vec::new();
        for seed in 0..u64::from(seeds) {
            let (network, job) = instance.draw(seed)?;
            let jobs = std::slice::from_ref(&job);
            let first = |plans: Vec<Plan>| plans.into_iter().next().context("a job has a plan");
            let (planned, took) = timed(|| inart::shares(&network, &job))?;
            let (_, plan) = planned?;
            let rates: BTreeMap<&str, f64> = BTreeMap::from([
                ("inart", plan.rate_bps),
                (
                    "equal-split",
                    first(equal_split::plan(&network, jobs)?)?.rate_bps,
                ),
                ("atp", first(atp::plan(&network, jobs)?)?.rate_bps),
                ("lbmm", lbmm::plan(&network, &job)?.rate_bps),
            ]);
            by_seed.push(json!({
                "seed": seed,
                "gap": plan.gap(),
                "proven": plan.is_optimal,
                "plan": took.json(),
                "rates_bps": rates,
            }));
        }
        found.push(json!({"setting": name, "seeds": by_seed}));
    }
    Ok(Value::Array(found))
}
