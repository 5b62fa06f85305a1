//! `all_gather`, `all_to_all`: the links' least time as a share of the time of four ranks, 200 Mbit/s each, MTU 4,096.

use anyhow::{Context, Result};

use super::super::row::{Goal, Row};
use super::figures::read;

/// Payload share of a link's rate at MTU 4,096.
pub const FRAMING: f64 = 4096.0 / 4154.0;

/// Algorithm that the cost model chooses for ranks at one switch.
const CHOSEN: &str = "direct";

/// Row whose value is that of the default algorithm; the note adds the other algorithm and another program.
pub fn row(name: &'static str, text: &str) -> Result<Row> {
    let figures = read(text)?;
    let chosen = figures.iter().find(|figure| figure.name == CHOSEN);
    let chosen = chosen.context("no figure of the default algorithm")?.median;
    let notes: Vec<String> = figures.iter().map(|of| of.note(3)).collect();
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
