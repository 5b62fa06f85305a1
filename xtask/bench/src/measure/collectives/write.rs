//! `write_cpu`: processor time of sender and receiver for a gigabyte of WRITEs of 1 MiB over veth,
//! in bundles, beside rings that only copy single frames, and the kernel's TCP.

use anyhow::{Context, Result};

use super::super::row::{Goal, Row};
use super::figures::read;

pub fn row(text: &str) -> Result<Row> {
    let figures = read(text)?;
    let of = |name: &str| {
        let found = figures.iter().find(|figure| figure.name == name);
        found.map(|figure| figure.median).context("a figure")
    };
    let notes = figures.iter().map(|of| {
        let (least, most) = (of.least, of.most);
        format!(
            "{} {:.3} s/GB ({least:.3} to {most:.3})",
            of.name, of.median
        )
    });
    let notes: Vec<String> = notes.collect();
    Ok(Row {
        name: "write_cpu",
        value: Some(of("roce")? / of("copies")?),
        unit: "times",
        goal: Goal::AtMost(0.95),
        floor: None,
        note: format!("WRITEs of 1 MiB over veth, MTU 4,096: {}", notes.join(", ")),
    })
}
