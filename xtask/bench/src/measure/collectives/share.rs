//! `all_gather`, `all_to_all`: what the links allow over the time that four ranks take at 200 Mbit/s each, MTU 4,096.

use anyhow::{Context, Result};

use super::super::row::{Goal, Row};
use super::figures::read;

/// What headers leave of a link at MTU 4,096.
pub const FRAMING: f64 = 4096.0 / 4154.0;

/// What a cost model chooses for ranks at one switch, which has no reason to prefer another.
const CHOSEN: &str = "direct";

/// The algorithm counts that ranks use if they are not told otherwise; the other one, and a program of others, are beside it.
pub fn row(name: &'static str, text: &str) -> Result<Row> {
    let figures = read(text)?;
    let chosen = figures.iter().find(|figure| figure.name == CHOSEN);
    let chosen = chosen.context("the algorithm that is chosen")?.median;
    let notes: Vec<String> = figures.iter().map(|of| of.told(3)).collect();
    Ok(Row {
        name,
        value: Some(chosen),
        unit: "share",
        goal: Goal::AtLeast(0.95),
        floor: Some(FRAMING),
        note: format!(
            "of (N - 1) m / B, 4 ranks on a bridge, 64 MB a link: {}",
            notes.join(", ")
        ),
    })
}
