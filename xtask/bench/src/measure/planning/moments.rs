//! Rows of planning times that have to be short: GRID's on the fat tree of its paper, InArt's when a job arrives or departs.

use anyhow::Result;

use super::PlanningBench;
use super::child::{list, mean, most, number};
use crate::measure::row::{Goal, Row};

pub const NAMES: &[&str] = &["fat_tree", "arrival", "departure"];

/// Number of seeds for each setting of the fat tree.
const SEEDS: u32 = 10;
/// Number of times that InArt's job arrives and departs; the best time counts.
const TIMES: u32 = 10;

pub fn run(bench: &PlanningBench) -> Result<Vec<Row>> {
    let report = bench.child.run(&["fat-tree", &SEEDS.to_string()])?;
    let plans = list(&report, "")?;
    let on_processor = |plan: &_| number(plan, "/plan/cpu_s");
    let online = bench.child.run(&["online", &TIMES.to_string()])?;
    let at_once = |name, path: &str| -> Result<Row> {
        let wall_s = number(&online, &format!("/{path}/wall_s"))?;
        Ok(Row {
            name,
            value: Some(number(&online, &format!("/{path}/cpu_s"))? * 1e3),
            unit: "ms",
            goal: Goal::AtMost(100.0),
            floor: None,
            note: format!(
                "1,000 workers and four servers on 26 leaves; best of {TIMES}, {:.1} ms by the clock",
                wall_s * 1e3
            ),
        })
    };
    Ok(vec![
        Row {
            name: "fat_tree",
            value: Some(most(plans, on_processor)?),
            unit: "s",
            goal: Goal::AtMost(0.3),
            floor: None,
            note: format!(
                "GRID's plan of both kinds, 80 switches, 192 hosts, 64 or 191 workers, {} settings and seeds, each the best of 3: worst; mean {:.3} s, worst by the clock {:.3} s",
                plans.len(),
                mean(plans, on_processor)?,
                most(plans, |plan| number(plan, "/plan/wall_s"))?,
            ),
        },
        at_once("arrival", "arrival")?,
        at_once("departure", "departure")?,
    ])
}
