//! Measures planning injection points for faults of 100 tenants with 1,000 flows on a fat tree of 80 switches.

use anyhow::Result;
use planner::injection::{Refusal, sample, solve};
use serde_json::{Value, json};

use super::measure::timed;

/// Number of times that each seed is planned; the best time counts, since other programs use the machine too.
const TIMES: usize = 3;

/// Plans injection points for `seeds` seeds; returns figures as JSON.
pub fn run(seeds: u32) -> Result<Value> {
    let mut found = Vec::new();
    for seed in 0..u64::from(seeds) {
        let problem = sample(seed);
        let (mut solved, mut took) = timed(|| solve(&problem, seed))?;
        for _ in 1..TIMES {
            let (again, took_again) = timed(|| solve(&problem, seed))?;
            (solved, took) = (again, took.min(took_again));
        }
        found.push(match solved {
            Ok(placed) => json!({
                "seed": seed,
                "choices": problem.choices.len(),
                "worst": placed.cost.worst.fraction(),
                "bound": placed.bound.fraction(),
                "gap": placed.gap(),
                "proven": placed.proven,
                "switches": placed.cost.touched,
                "hops": placed.cost.hops,
                "plan": took.json(),
            }),
            Err(refusal) => json!({
                "seed": seed,
                "choices": problem.choices.len(),
                "refused": refusal.describe(&problem),
                "is_shown": !matches!(refusal, Refusal::NotFound),
                "plan": took.json(),
            }),
        });
    }
    Ok(Value::Array(found))
}
