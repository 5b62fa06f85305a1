//! Row of the time to plan injection points for the faults of 100 tenants.

use std::fmt::Write;

use anyhow::Result;
use serde_json::Value;

use super::PlanningBench;
use super::child::{list, most, number, text};
use crate::measure::row::{Goal, Row};

pub const NAMES: &[&str] = &["injection_s", "injection_share", "injection_gap"];

/// Maximum number of seeds, each of which draws other tenants.
const SEEDS: u32 = 30;

pub fn run(bench: &PlanningBench) -> Result<Vec<Row>> {
    let report = bench
        .child
        .run(&["injection", &bench.args.seeds.min(SEEDS).to_string()])?;
    let (placed, refused): (Vec<Value>, Vec<Value>) =
        (list(&report, "")?.iter().cloned()).partition(|seed| seed.get("refused").is_none());
    let mut note = format!(
        "{} of {} placed",
        placed.len(),
        placed.len() + refused.len()
    );
    for seed in &refused {
        let why = text(seed, "/refused")?;
        write!(note, "; seed {}: {why}", number(seed, "/seed")?)?;
    }
    let gap = |seed: &_| number(seed, "/gap");
    let best = placed
        .iter()
        .filter(|seed| gap(seed).is_ok_and(|gap| gap == 0.0));
    let row = |name, value: f64, unit, goal, note: String| Row {
        name,
        value: Some(value),
        unit,
        goal,
        floor: None,
        note,
    };
    Ok(vec![
        row(
            "injection_s",
            most(list(&report, "")?, |seed| number(seed, "/plan/cpu_s"))?,
            "s",
            Goal::AtMost(1.0),
            format!(
                "worst of all seeds, each the best of 3; by the clock {:.2} s",
                most(list(&report, "")?, |seed| number(seed, "/plan/wall_s"))?
            ),
        ),
        row(
            "injection_share",
            100.0 * most(&placed, |seed| number(seed, "/worst"))?,
            "%",
            Goal::AtMost(10.0),
            note,
        ),
        row(
            "injection_gap",
            100.0 * most(&placed, gap)?,
            "%",
            Goal::Nothing,
            format!(
                "worst; {} have the least worst utilisation there is",
                best.count()
            ),
        ),
    ])
}
