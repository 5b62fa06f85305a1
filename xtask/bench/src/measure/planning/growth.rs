//! Rows of the planners' time and memory on networks of 100 to 10,000 hosts.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use plotters::chart::SeriesLabelPosition;
use plotters::style::RGBColor;
use serde_json::Value;

use super::PlanningBench;
use super::child::number;
use crate::measure::row::{Goal, Row};
use crate::plots::{Axis, Curve, drawing, drawing_with};

pub const NAMES: &[&str] = &["growth_s", "growth_gb"];

/// Numbers of ports of a fat tree's switches; the trees have 128, 432, 1,024, 2,000, 4,394 and 11,664 hosts.
const PORTS: &[u32] = &[8, 12, 16, 20, 26, 36];
/// Numbers of leaf switches with 40 hosts each: 120 to 10,000 hosts.
const LEAVES: &[u32] = &[3, 10, 25, 50, 110, 250];
/// Ports of the fat trees for which the row waits for a proof of GRID's gap; `PROVED_LEAVES` for the other networks.
const PROVED_PORTS: &[u32] = &[8, 12, 16, 20];
const PROVED_LEAVES: &[u32] = &[3, 10, 25, 50, 110];
/// Time limit for the proof of one gap.
const PATIENCE: Duration = Duration::from_secs(60);

struct Line {
    name: &'static str,
    planner: &'static str,
    shape: &'static str,
    sizes: &'static [u32],
    color: RGBColor,
}

const LINES: [Line; 8] = [
    Line {
        name: "GRID, fat tree",
        planner: "grid",
        shape: "fat-tree",
        sizes: PORTS,
        color: RGBColor(0x1f, 0x77, 0xb4),
    },
    Line {
        name: "GRID, leaf-spine",
        planner: "grid",
        shape: "leaf-spine",
        sizes: LEAVES,
        color: RGBColor(0x7f, 0xb8, 0xe0),
    },
    Line {
        name: "InArt, fat tree",
        planner: "inart",
        shape: "fat-tree",
        sizes: PORTS,
        color: RGBColor(0xd6, 0x27, 0x28),
    },
    Line {
        name: "InArt, leaf-spine",
        planner: "inart",
        shape: "leaf-spine",
        sizes: LEAVES,
        color: RGBColor(0xf0, 0x90, 0x80),
    },
    Line {
        name: "InArt, an event, leaf-spine",
        planner: "inart-event",
        shape: "leaf-spine",
        sizes: LEAVES,
        color: RGBColor(0x94, 0x67, 0xbd),
    },
    Line {
        name: "injection points, fat tree",
        planner: "injection",
        shape: "fat-tree",
        sizes: PORTS,
        color: RGBColor(0x2c, 0xa0, 0x2c),
    },
    Line {
        name: "GRID with proof, fat tree",
        planner: "grid-proof",
        shape: "fat-tree",
        sizes: PROVED_PORTS,
        color: RGBColor(0x44, 0x44, 0x44),
    },
    Line {
        name: "GRID with proof, leaf-spine",
        planner: "grid-proof",
        shape: "leaf-spine",
        sizes: PROVED_LEAVES,
        color: RGBColor(0x99, 0x99, 0x99),
    },
];

/// Time and memory of a planner on one network.
struct GrowthPoint {
    hosts: f64,
    seconds: f64,
    bytes: f64,
}

pub fn run(bench: &PlanningBench) -> Result<Vec<Row>> {
    let mut table = String::from("\n\n| planner, network | hosts | switches | time, s |");
    table.push_str(" memory, MiB | rate, Gbit/s; worst utilisation | gap |\n");
    table.push_str("|---|---|---|---|---|---|---|\n");
    let mut lines = Vec::new();
    for line in &LINES {
        let mut points = Vec::new();
        for size in line.sizes {
            let arguments = ["growth", line.planner, line.shape, &size.to_string()];
            let most = match line.planner {
                "grid-proof" => PATIENCE,
                _ => Duration::MAX,
            };
            let Some(report) = bench.child.run_within(&arguments, most)? else {
                let seconds = PATIENCE.as_secs();
                writeln!(
                    table,
                    "| {} | size {size} | | > {seconds} | | | |",
                    line.name
                )?;
                continue;
            };
            let point = point(&report)?;
            writeln!(table, "| {} | {} |", line.name, cells(&report, &point)?)?;
            points.push(point);
        }
        lines.push((line, points));
    }
    draw(bench, &lines)?;
    // The largest networks have no proof.
    let planned = lines
        .iter()
        .filter(|(line, _)| line.planner != "grid-proof");
    let largest: Vec<(&str, &GrowthPoint)> = planned
        .flat_map(|(line, points)| points.iter().map(|point| (line.name, point)))
        .filter(|(_, point)| point.hosts >= 10_000.0)
        .collect();
    let row = |name, unit, goal, of: &dyn Fn(&GrowthPoint) -> f64, table: &str| -> Result<Row> {
        let worst = largest.iter().max_by(|a, b| of(a.1).total_cmp(&of(b.1)));
        let (line, worst) = worst.context("no planner has planned for 10,000 hosts")?;
        let hosts = worst.hosts;
        Ok(Row {
            name,
            value: Some(of(worst)),
            unit,
            goal: Goal::AtMost(goal),
            floor: None,
            note: format!("the worst from 10,000 hosts on: {line}, {hosts} hosts{table}"),
        })
    };
    Ok(vec![
        row("growth_s", "s", 30.0, &|point| point.seconds, "")?,
        row("growth_gb", "GB", 4.0, &|point| point.bytes / 1e9, &table)?,
    ])
}

fn point(report: &Value) -> Result<GrowthPoint> {
    let proof = report.pointer("/proof/cpu_s").and_then(Value::as_f64);
    Ok(GrowthPoint {
        hosts: number(report, "/hosts")?,
        seconds: number(report, "/plan/cpu_s")? + proof.unwrap_or(0.0),
        bytes: number(report, "/peak_bytes")?,
    })
}

fn cells(report: &Value, point: &GrowthPoint) -> Result<String> {
    let optional = |path: &str| report.pointer(path).and_then(Value::as_f64);
    let rate = optional("/rate_bps").map(|bps| format!("{:.2}", bps / 1e9));
    let worst = optional("/worst").map(|worst| format!("{:.1} %", 100.0 * worst));
    let gap = optional("/gap").map(|gap| format!("{gap:.3}"));
    let none = || "no plan found".to_owned();
    Ok(format!(
        "{} | {} | {:.3} | {:.1} | {} | {}",
        point.hosts,
        number(report, "/switches")?,
        point.seconds,
        point.bytes / 1_048_576.0,
        rate.or(worst).unwrap_or_else(none),
        gap.unwrap_or_default(),
    ))
}

fn draw(bench: &PlanningBench, lines: &[(&Line, Vec<GrowthPoint>)]) -> Result<()> {
    let curves = |of: &dyn Fn(&GrowthPoint) -> f64| -> Vec<Curve> {
        let curves = lines.iter().map(|(line, points)| Curve {
            name: line.name,
            color: line.color,
            points: points
                .iter()
                .map(|point| (point.hosts, of(point)))
                .collect(),
        });
        curves.collect()
    };
    bench.args.draw("planning-time.svg", || {
        let y = Axis::logarithmic("milliseconds on a processor");
        drawing_with(
            Axis::doubling("hosts"),
            y,
            &curves(&|point| point.seconds * 1e3),
            SeriesLabelPosition::LowerRight,
        )
    })?;
    bench.args.draw("planning-memory.svg", || {
        let y = Axis::logarithmic("peak memory, MiB");
        drawing(
            Axis::doubling("hosts"),
            y,
            &curves(&|point| point.bytes / 1_048_576.0),
        )
    })
}
