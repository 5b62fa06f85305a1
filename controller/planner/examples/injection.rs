//! Places the large sample: `cargo run --release -p planner --example injection [SEEDS]`.
#![allow(
    clippy::disallowed_methods,
    reason = "an example reads its argument and the clock"
)]

use std::time::Instant;

use planner::injection::{sample, solve};

fn main() {
    let seeds = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(10);
    for seed in 0..seeds {
        let problem = sample(seed);
        let start = Instant::now();
        let solved = solve(&problem, seed);
        let took = start.elapsed();
        match solved {
            Ok(placement) => println!(
                "seed {seed}: {} choices, worst {:.2} %, bound {:.2} %, gap {:.1} %, {} switches, {} hops, proven {}, {} ms",
                problem.choices.len(),
                100.0 * placement.cost.worst.fraction(),
                100.0 * placement.bound.fraction(),
                100.0 * placement.gap(),
                placement.cost.touched,
                placement.cost.hops,
                placement.proven,
                took.as_millis()
            ),
            Err(refusal) => println!(
                "seed {seed}: {}, {} ms",
                refusal.describe(&problem),
                took.as_millis()
            ),
        }
    }
}
