//! Rows of InArt's rate with four parameter servers, beside an equal split, ATP and LBMM.

use std::fmt::Write;

use anyhow::Result;

use super::PlanningBench;
use super::child::{count, list, mean, most, number, text};
use crate::measure::row::{Goal, Row};

pub const NAMES: &[&str] = &["inart_over_split", "inart_over_atp", "inart_over_lbmm"];

/// Row name, planner that InArt is compared with, and the ratio in InArt's paper (26.2 Gbit/s over that planner's rate).
const OTHERS: [(&str, &str, f64); 3] = [
    ("inart_over_split", "equal-split", 26.2 / 23.1),
    ("inart_over_atp", "atp", 26.2 / 19.25),
    ("inart_over_lbmm", "lbmm", 26.2 / 15.4),
];

/// Maximum number of seeds: planning one seed with free shares takes half a second.
const SEEDS: u32 = 20;

pub fn run(bench: &PlanningBench) -> Result<Vec<Row>> {
    let seeds = bench.args.seeds.min(SEEDS).to_string();
    let report = bench.child.run(&["servers", &seeds])?;
    let settings = list(&report, "")?;
    let mut table = String::from("\n\n| switches that sum, servers' links | InArt, Gbit/s |");
    table.push_str(" to an equal split | to ATP | to LBMM | mean, worst gap | proven |\n");
    table.push_str("|---|---|---|---|---|---|---|\n");
    let mut sums = [0.0; OTHERS.len()];
    for setting in settings {
        let seeds = list(setting, "/seeds")?;
        let inart = |seed: &_| number(seed, "/rates_bps/inart");
        let mut cells = Vec::new();
        for ((_, other, _), sum) in OTHERS.iter().zip(&mut sums) {
            let path = format!("/rates_bps/{other}");
            let ratio = mean(seeds, |seed| Ok(inart(seed)? / number(seed, &path)?))?;
            *sum += ratio / settings.len() as f64;
            cells.push(format!("{ratio:.2}"));
        }
        let gap = |seed: &_| number(seed, "/gap");
        writeln!(
            table,
            "| {} | {:.1} | {} | {:.3}, {:.3} | {} of {} |",
            text(setting, "/setting")?,
            mean(seeds, inart)? / 1e9,
            cells.join(" | "),
            mean(seeds, gap)?,
            most(seeds, gap)?,
            count(seeds, "/proven")?,
            seeds.len(),
        )?;
    }
    let rows = OTHERS.iter().zip(sums).enumerate();
    let rows = rows.map(|(place, ((name, _, papers), ratio))| Row {
        name,
        value: Some(ratio),
        unit: "times",
        goal: Goal::Nothing,
        floor: None,
        note: format!(
            "mean over the settings; the paper's is {papers:.2}{}",
            if place == 0 { table.as_str() } else { "" }
        ),
    });
    Ok(rows.collect())
}
