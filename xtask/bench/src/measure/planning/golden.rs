//! Rows of the examples in the planners' papers: figures that the papers print, and computed figures.

use std::fmt::Write;

use anyhow::Result;

use super::PlanningBench;
use super::child::{count, list, number, text};
use crate::measure::row::{Goal, Row};

pub const NAMES: &[&str] = &["golden"];

pub fn run(bench: &PlanningBench) -> Result<Vec<Row>> {
    let report = bench.child.run(&["golden"])?;
    let figures = list(&report, "")?;
    let mut note =
        String::from("examples as expected\n\n| of | what | printed | expected | found |\n");
    note.push_str("|---|---|---|---|---|\n");
    for figure in figures {
        let (of, what) = (text(figure, "/of")?, text(figure, "/what")?);
        let (expected, found) = (number(figure, "/expected")?, number(figure, "/found")?);
        let printed = text(figure, "/printed")?;
        writeln!(
            note,
            "| {of} | {what} | {printed} | {expected:.4} | {found:.4} |"
        )?;
    }
    Ok(vec![Row {
        name: "golden",
        value: Some(count(figures, "/same")? as f64),
        unit: "examples",
        goal: Goal::AtLeast(figures.len() as f64),
        floor: None,
        note,
    }])
}
