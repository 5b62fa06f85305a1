//! Rows of GOAT, a planner of sums in switches, with workers in and out of step, beside ATP, ESA and Geryon.

use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::Value;

use super::PlanningBench;
use super::child::{list, number, text};
use crate::measure::row::{Goal, Row};

pub const NAMES: &[&str] = &["goat_over_atp", "goat_over_atp_in_step"];

/// Number of simulated rounds of each setting.
const ROUNDS: u32 = 40;
/// Standard deviation of the workers' computing times in the row, as a share of their mean.
const OUT_OF_STEP: f64 = 0.1;

pub fn run(bench: &PlanningBench) -> Result<Vec<Row>> {
    let report = bench.child.run(&["asynchrony", &ROUNDS.to_string()])?;
    let settings = list(&report, "")?;
    let mut table = String::from("\n\n| out of step | scheme | the server receives, MB |");
    table.push_str(" between switches, MB | communication, s | images/s |\n");
    table.push_str("|---|---|---|---|---|---|\n");
    for setting in settings {
        let out_of_step = number(setting, "/out_of_step")?;
        for scheme in list(setting, "/schemes")? {
            writeln!(
                table,
                "| {:.0} % | {} | {:.0} | {:.0} | {:.2} | {:.0} |",
                100.0 * out_of_step,
                text(scheme, "/name")?,
                number(scheme, "/received_bytes")? / 1e6,
                number(scheme, "/bytes_between_switches")? / 1e6,
                number(scheme, "/communication_s")?,
                number(scheme, "/images_a_second")?,
            )?;
        }
    }
    let row = |name, out_of_step: f64, table: &str| -> Result<Row> {
        let setting = settings.iter().find(|setting| {
            number(setting, "/out_of_step").is_ok_and(|found| found == out_of_step)
        });
        let setting =
            setting.with_context(|| format!("no setting has a deviation of {out_of_step}"))?;
        let images = |name| number(scheme(setting, name)?, "/images_a_second");
        Ok(Row {
            name,
            value: Some(images("GOAT, the first 16")? / images("ATP")?),
            unit: "times",
            goal: Goal::Nothing,
            floor: None,
            note: format!(
                "images per second, waiting for all 16, computing times with a deviation of {:.0} %; the paper's is 931 / 512 = 1.82{table}",
                100.0 * out_of_step
            ),
        })
    };
    Ok(vec![
        row("goat_over_atp", OUT_OF_STEP, &table)?,
        row("goat_over_atp_in_step", 0.0, "")?,
    ])
}

fn scheme<'v>(setting: &'v Value, name: &str) -> Result<&'v Value> {
    let schemes = list(setting, "/schemes")?.iter();
    let mut named = schemes.filter(|scheme| text(scheme, "/name").is_ok_and(|found| found == name));
    named.next().with_context(|| format!("there is no {name}"))
}
