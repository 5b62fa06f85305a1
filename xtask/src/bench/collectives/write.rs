//! `write_cpu`: what a gigabyte of WRITEs of 1 MiB costs the processors of both ends, over veth, beside rings that only copy, and
//! the kernel's TCP.

use anyhow::{Context, Result};

use super::super::row::{Goal, Row};

/// Of what was measured.
pub fn row(text: &str) -> Result<Row> {
    let mut figures = Vec::new();
    for line in text.lines() {
        let (name, rest) = line.split_once(": ").context("a figure")?;
        let numbers = rest.split_whitespace().map(str::parse::<f64>);
        figures.push((name, numbers.collect::<Result<Vec<f64>, _>>()?));
    }
    let of = |name: &str| {
        let found = figures.iter().find(|(other, _)| *other == name);
        found.map(|(_, figures)| figures[0]).context("a figure")
    };
    let notes = figures
        .iter()
        .map(|(name, of)| format!("{name} {:.3} s/GB ({:.3} to {:.3})", of[0], of[1], of[2]));
    let notes: Vec<String> = notes.collect();
    Ok(Row {
        name: "write_cpu",
        value: Some(of("roce")? / of("copies")?),
        unit: "times",
        goal: Goal::AtMost(1.5),
        floor: Some(1.0),
        note: format!("WRITEs of 1 MiB over veth, MTU 4,096: {}", notes.join(", ")),
    })
}
