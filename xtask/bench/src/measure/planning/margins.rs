//! Rows of GRID on the networks of its paper: gaps to the optimum, and ratios of its rate to other planners' rates.

use std::fmt::Write;

use anyhow::Result;
use plotters::style::RGBColor;
use serde_json::Value;

use super::PlanningBench;
use super::child::{count, list, mean, most, number, text};
use crate::measure::row::{Goal, Row};
use crate::plots::{Axis, Curve, drawing};

pub const NAMES: &[&str] = &[
    "gap_mean",
    "gap_worst",
    "over_capacity",
    "grid_over_atp",
    "grid_over_esa",
    "grid_over_switchml",
    "grid_over_geryon",
    "grid_over_lbmm",
    "grid_over_ring",
    "grid_over_halving",
];

/// Row name, planner that GRID is compared with, and the ratio in GRID's paper (16.9 Gbit/s over that planner's rate).
const OTHERS: [(&str, &str, Option<f64>); 7] = [
    ("grid_over_atp", "atp", Some(16.9 / 12.0)),
    ("grid_over_esa", "esa", None),
    ("grid_over_switchml", "switchml", Some(16.9 / 11.4)),
    ("grid_over_geryon", "geryon", Some(16.9 / 8.0)),
    ("grid_over_lbmm", "lbmm", None),
    ("grid_over_ring", "ring", None),
    ("grid_over_halving", "halving-doubling", None),
];

/// Names of the networks, as arguments of the measuring process.
const NETWORKS: [&str; 8] = [
    "fat-tree-racks-100",
    "fat-tree-racks-400",
    "fat-tree-20%-100",
    "fat-tree-20%-400",
    "leaf-spine-racks-100",
    "leaf-spine-racks-400",
    "leaf-spine-20%-100",
    "leaf-spine-20%-400",
];

/// Networks whose ratios are drawn: (network, label, color).
const DRAWN: [(&str, &str, RGBColor); 4] = [
    (
        "fat-tree-racks-100",
        "fat tree, racks",
        RGBColor(0x1f, 0x77, 0xb4),
    ),
    (
        "fat-tree-20%-100",
        "fat tree, 20 %",
        RGBColor(0x2c, 0xa0, 0x2c),
    ),
    (
        "leaf-spine-racks-100",
        "leaf-spine, racks",
        RGBColor(0xd6, 0x27, 0x28),
    ),
    (
        "leaf-spine-20%-100",
        "leaf-spine, 20 %",
        RGBColor(0x44, 0x44, 0x44),
    ),
];

pub fn run(bench: &PlanningBench) -> Result<Vec<Row>> {
    let seeds = bench.args.seeds.to_string();
    let networks = NETWORKS.map(|network| bench.child.run(&["gap", network, &seeds]));
    let networks = networks.into_iter().collect::<Result<Vec<Value>>>()?;
    bench
        .args
        .draw("planning-margins.svg", || margins_drawing(&networks))?;
    let mut rows = gaps(&networks)?;
    rows.extend(margins(&networks)?);
    Ok(rows)
}

/// Both kinds of GRID: (name in a table, name in the measuring process's output).
const BY: [(&str, &str); 2] = [("grid-push", "push"), ("grid", "round")];

fn gaps(networks: &[Value]) -> Result<Vec<Row>> {
    let mut tables = String::new();
    let mut all = Vec::new();
    for (name, by) in BY {
        write!(
            tables,
            "\n\n| {name}: network, server's link | Gbit/s | mean gap | worst gap (seed) | proven | plan, ms \
             | proof, ms, mean and worst | links passed |\n|---|---|---|---|---|---|---|---|\n"
        )?;
        for network in networks {
            let seeds = list(network, "/seeds")?;
            let of = |what: &str| format!("/{by}/{what}");
            let gap = |seed: &Value| number(seed, &of("gap"));
            let worst = most(seeds, gap)?;
            let at = seeds
                .iter()
                .find(|seed| worst > 0.0 && gap(seed).is_ok_and(|gap| gap == worst));
            let at = at.map(|seed| number(seed, "/seed")).transpose()?;
            writeln!(
                tables,
                "| {} | {:.1} | {:.4} | {worst:.3}{} | {} of {} | {:.1} | {:.0}, {:.0} | {:.1} |",
                text(network, "/network")?,
                mean(seeds, |seed| number(seed, &of("rate_bps")))? / 1e9,
                mean(seeds, gap)?,
                at.map_or(String::new(), |seed| format!(" ({seed})")),
                count(seeds, &of("proven"))?,
                seeds.len(),
                mean(seeds, |seed| number(seed, &of("plan/cpu_s")))? * 1e3,
                mean(seeds, |seed| number(seed, &of("proof/cpu_s")))? * 1e3,
                most(seeds, |seed| number(seed, &of("proof/cpu_s")))? * 1e3,
                mean(seeds, |seed| number(seed, &of("hops")))?,
            )?;
            for seed in seeds {
                all.extend(seed.get(by).cloned());
            }
        }
    }
    let row = |name, value, unit, most, note| Row {
        name,
        value: Some(value),
        unit,
        goal: Goal::AtMost(most),
        floor: None,
        note,
    };
    let plans = format!("{} plans on 8 networks, of both kinds", all.len());
    let gap = |plan: &Value| number(plan, "/gap");
    let mean_gap = 100.0 * mean(&all, gap)?;
    let over = count(&all, "/over_capacity")? as f64;
    Ok(vec![
        row("gap_mean", mean_gap, "%", 2.0, plans.clone() + &tables),
        row(
            "gap_worst",
            100.0 * most(&all, gap)?,
            "%",
            8.0,
            plans.clone(),
        ),
        row("over_capacity", over, "plans", 0.0, plans),
    ])
}

/// Ratio of GRID's rate to another planner's: of the workers' rate, or of a round's rate if the
/// other planner includes the return of sums.
fn ratio(seed: &Value, other: &str) -> Result<f64> {
    let of = match other {
        "ring" | "halving-doubling" => "round_bps",
        _ => "sent_bps",
    };
    rate_ratio(seed, of, other)
}

fn rate_ratio(seed: &Value, of: &str, other: &str) -> Result<f64> {
    Ok(number(seed, &format!("/{of}/grid"))? / number(seed, &format!("/{of}/{other}"))?)
}

fn margins(networks: &[Value]) -> Result<Vec<Row>> {
    let mut table = String::from("\n\n| network, server's link |");
    let mut papers = String::from("| the papers |");
    for (_, other, paper) in OTHERS {
        write!(table, " to {other} |")?;
        match paper {
            Some(paper) => write!(papers, " {paper:.2} |")?,
            None => papers.push_str(" |"),
        }
    }
    write!(table, "\n|---|{}\n", "---|".repeat(OTHERS.len()))?;
    let mut means = [0.0; OTHERS.len()];
    for network in networks {
        write!(table, "| {} |", text(network, "/network")?)?;
        let seeds = list(network, "/seeds")?;
        for ((_, other, _), sum) in OTHERS.iter().zip(&mut means) {
            let mean = mean(seeds, |seed| ratio(seed, other))?;
            *sum += mean / networks.len() as f64;
            write!(table, " {mean:.2} |")?;
        }
        table.push('\n');
    }
    writeln!(table, "{papers}")?;
    table += &rounds(networks)?;
    table += &rounding(networks)?;
    let rows = OTHERS.iter().zip(means).enumerate();
    let rows = rows.map(|(place, ((name, _, paper), value))| {
        let reference = match paper {
            Some(paper) => format!("; the paper's is {paper:.2}"),
            None => String::new(),
        };
        Row {
            name,
            value: Some(value),
            unit: "times",
            goal: Goal::Nothing,
            floor: None,
            note: format!(
                "mean over networks{reference}{}",
                if place == 0 { table.as_str() } else { "" }
            ),
        }
    });
    Ok(rows.collect())
}

/// Table of the rates of GRID and of the other planners, all with the return of sums.
fn rounds(networks: &[Value]) -> Result<String> {
    let others = [
        "push",
        "atp",
        "switchml",
        "geryon",
        "raw",
        "rgria",
        "ring",
        "halving-doubling",
    ];
    let heads = others.map(|other| format!(" to {other} |")).concat();
    let mut table = format!(
        "\n| a round: network, server's link | GRID, Gbit/s |{heads}\n|---|---|{}\n",
        "---|".repeat(others.len())
    );
    for network in networks {
        let seeds = list(network, "/seeds")?;
        let rate = mean(seeds, |seed| number(seed, "/round_bps/grid"))? / 1e9;
        write!(table, "| {} | {rate:.1} |", text(network, "/network")?)?;
        for other in others {
            let ratio = mean(seeds, |seed| rate_ratio(seed, "round_bps", other))?;
            write!(table, " {ratio:.2} |")?;
        }
        table.push('\n');
    }
    Ok(table)
}

/// Table of R-GRIA, the rounding in GRID's paper: how far it exceeds capacities, and its rate after the repair.
fn rounding(networks: &[Value]) -> Result<String> {
    let mut table = String::from(
        "\n| R-GRIA: network, server's link | relaxed λ, Gbit/s | exceeded: mean, most | repaired, sent | repaired, in a round |\n\
         |---|---|---|---|---|\n",
    );
    for network in networks {
        let seeds = list(network, "/seeds")?;
        let gbit = |what| Ok::<_, anyhow::Error>(mean(seeds, |seed| number(seed, what))? / 1e9);
        let exceeded = |seed: &Value| number(seed, "/exceeded");
        writeln!(
            table,
            "| {} | {:.1} | {:.2}, {:.2} | {:.1} | {:.1} |",
            text(network, "/network")?,
            gbit("/relaxed_bps")?,
            mean(seeds, exceeded)?,
            most(seeds, exceeded)?,
            gbit("/sent_bps/rgria")?,
            gbit("/round_bps/rgria")?,
        )?;
    }
    Ok(table)
}

/// Drawing: for each ratio of GRID's rate to ATP's, the share of seeds whose ratio is no greater.
fn margins_drawing(networks: &[Value]) -> Result<String> {
    let mut curves = Vec::new();
    for (network, name, color) in DRAWN {
        let found = networks
            .iter()
            .find(|of| text(of, "/network").is_ok_and(|of| of == network));
        let seeds = found.map_or(Ok([].as_slice()), |found| list(found, "/seeds"))?;
        let ratios: Result<Vec<f64>> = seeds.iter().map(|seed| ratio(seed, "atp")).collect();
        let mut ratios = ratios?;
        ratios.sort_by(f64::total_cmp);
        let count = ratios.len() as f64;
        let points = ratios.iter().zip(1..).flat_map(|(ratio, place)| {
            let before = f64::from(place - 1) / count;
            [
                (*ratio, 100.0 * before),
                (*ratio, 100.0 * f64::from(place) / count),
            ]
        });
        curves.push(Curve {
            name,
            color,
            points: points.collect(),
        });
    }
    drawing(
        Axis::linear("GRID's rate over ATP's"),
        Axis::linear("% of the seeds, up to"),
        &curves,
    )
}
