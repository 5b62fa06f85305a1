//! `all_gather`, `all_to_all`: what the links allow over the time that four ranks take at 200 Mbit/s each, MTU 4,096.

use anyhow::Result;

use super::super::row::{Goal, Row};
use super::figures::read;

/// What headers leave of a link at MTU 4,096.
pub const FRAMING: f64 = 4096.0 / 4154.0;

const RIVALS: [&str; 2] = ["Gloo", "MPICH"];

/// The worst algorithm counts; a program of others is beside them.
pub fn row(name: &'static str, text: &str) -> Result<Row> {
    let figures = read(text)?;
    let ours = figures
        .iter()
        .filter(|figure| !RIVALS.contains(&figure.name));
    let medians = ours.map(|figure| figure.median);
    let worst = medians.fold(f64::INFINITY, f64::min);
    let notes: Vec<String> = figures.iter().map(|of| of.told(3)).collect();
    Ok(Row {
        name,
        value: Some(worst),
        unit: "share",
        goal: Goal::AtLeast(0.95),
        floor: Some(FRAMING),
        note: format!(
            "of (N - 1) m / B, 4 ranks on a bridge, 64 MB a link: {}",
            notes.join(", ")
        ),
    })
}
