//! `nics`: the least time that shared NICs allow for an all-gather, as a share of its time, with two nodes of eight ranks.

use anyhow::Result;

use super::super::row::{Goal, Row};
use super::figures::read;
use super::share::FRAMING;

/// Row whose value is the worst ratio among the measured numbers of NICs.
pub fn row(text: &str) -> Result<Row> {
    let figures = read(text)?;
    let medians = figures.iter().map(|figure| figure.median);
    let worst = medians.fold(f64::INFINITY, f64::min);
    let notes: Vec<String> = figures.iter().map(|of| of.note(3)).collect();
    Ok(Row {
        name: "nics",
        value: Some(worst),
        unit: "share",
        goal: Goal::AtLeast(0.95),
        floor: Some(FRAMING),
        note: format!(
            "of (N - 1) g m / (c B), 2 nodes of 8 ranks, 50 Mbit/s a NIC: {}",
            notes.join(", ")
        ),
    })
}
