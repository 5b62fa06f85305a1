//! `cargo xtask bench switch`: what the embedded switch costs. Figures are kept in docs/performance.md. `cargo xtask bench
//! lateness`: whether what it holds leaves in time. `faults`: what their runs prove. `between`: what a wire costs.
//! `quantise`: values into frames, beside memcpy.
//! `allreduce`: sums by the switch beside Gloo's. `planning`: what planners reach. `simulator`: `weir simulate` beside a testbed.
//!
//! A file a subject; each gives [`Row`]s. `cargo xtask` builds this program as what is shipped (profile `dist`).

mod aggregate;
mod allreduce;
mod between;
mod bmv2;
mod clock;
mod collateral;
mod collectives;
mod faults;
mod filters;
mod idle;
mod jitter;
mod lateness;
mod load;
mod lpm;
mod planning;
mod qq;
mod quantise;
mod router;
mod row;
mod simulator;
mod support;
mod ternary;
mod veth;
mod writes;

use anyhow::{Result, bail};
use row::Row;
use std::path::PathBuf;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Args {
    /// What to measure
    #[arg(value_parser = ["switch", "lateness", "faults", "between", "quantise", "allreduce", "planning", "simulator", "collectives"])]
    subject: String,
    /// Of lateness, and of replays: how many runs
    #[arg(long, default_value_t = 20)]
    runs: u32,
    /// Of lateness: how many seconds to wait before each run for a load below 0.3
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    patience: u64,
    /// Of faults: how many packets a row has
    #[arg(long, default_value_t = 1_000_000)]
    packets: u32,
    /// Of faults: write the Q–Q plot of measured delays into this folder, as jitter-qq.svg; of allreduce: the losses of both
    /// trainings, as ddp-loss.svg; of planning: time and memory over networks' sizes, and GRID's margins, as planning-*.svg;
    /// of simulator: simulated over measured, as simulator.svg; of collectives: what losses cost, as lost_*.svg and rdma-goodput.svg
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// Of planning: how many seeds each network has
    #[arg(long, default_value_t = 100)]
    seeds: u32,
    /// Of collectives: the programs are in the target folder's dist already, with or without sources and cargo
    #[arg(long)]
    prebuilt: bool,
    /// Print the figures as one last line of JSON
    #[arg(long)]
    json: bool,
    /// Measure only the rows whose name contains this
    #[arg(long, value_name = "NAME", default_value = "")]
    row: String,
    /// Look for BMv2 and p4c in this folder before the PATH (and in WEIR_BMV2_DIR), may be repeated
    #[arg(long, value_name = "FOLDER")]
    bmv2_dir: Vec<PathBuf>,
    /// What p4c-bm2-ss made of xtask/bench/src/measure/p4/l2.p4, for a simple_switch without p4c
    #[arg(long, value_name = "FILE")]
    bmv2_json: Option<PathBuf>,
}

/// The names of a file's rows, and what measures them.
type Bench = (&'static [&'static str], fn(&Args) -> Result<Vec<Row>>);

/// In the order of the printed table.
const BENCHES: &[Bench] = &[
    (router::NAMES, |_| router::run()),
    (aggregate::NAMES, |_| aggregate::run()),
    (filters::NAMES, |_| filters::run()),
    (ternary::NAMES, |_| ternary::run()),
    (lpm::NAMES, |_| lpm::run()),
    (load::NAMES, |_| load::run()),
    (writes::NAMES, writes::run),
    (veth::NAMES, veth::run),
    (idle::NAMES, |_| idle::run()),
];

/// Those of `quantise`.
const OF_NUMBERS: &[Bench] = &[(quantise::NAMES, |_| quantise::run())];

/// Measures everything; `Ok(false)` if a goal was missed.
pub fn run(args: &Args) -> Result<bool> {
    if args.subject == "lateness" {
        return lateness::run(args.runs, std::time::Duration::from_secs(args.patience));
    }
    if args.subject == "faults" {
        return faults(args);
    }
    if args.subject == "between" {
        let rows = between::run()?;
        print!("{}", row::report(&rows));
        if args.json {
            println!("{}", row::json(&rows));
        }
        return Ok(rows.iter().all(Row::ok));
    }
    if args.subject == "allreduce" {
        return allreduce(args);
    }
    if args.subject == "planning" {
        return planning(args);
    }
    if args.subject == "collectives" {
        return collectives(args);
    }
    if args.subject == "simulator" {
        return simulated(args);
    }
    let wanted = |name: &&str| name.contains(&args.row);
    let mut rows = Vec::new();
    let benches = match args.subject.as_str() {
        "quantise" => OF_NUMBERS,
        _ => BENCHES,
    };
    for (names, bench) in benches {
        if names.iter().any(wanted) {
            eprintln!("measuring {} …", names.join(", "));
            rows.extend(bench(args)?.into_iter().filter(|r| wanted(&r.name)));
        }
    }
    if rows.is_empty() {
        bail!("no row is called {}", args.row);
    }
    print!("{}", row::report(&rows));
    if args.json {
        println!("{}", row::json(&rows));
    }
    Ok(rows.iter().all(Row::ok))
}

/// Runs of scenarios, by the `weir` that lies beside this program.
fn faults(args: &Args) -> Result<bool> {
    let wanted = |name: &str| name.contains(&args.row);
    if !faults::names().into_iter().any(wanted) {
        bail!(
            "no row is called {}; they are {}",
            args.row,
            faults::names().join(", ")
        );
    }
    let rows = faults::run(&wanted, args.packets, args.runs, args.plots.as_deref())?;
    print!("{}", row::report(&rows));
    if args.json {
        println!("{}", row::json(&rows));
    }
    Ok(rows.iter().all(Row::ok))
}

/// RDMA, by what is built for it.
fn collectives(args: &Args) -> Result<bool> {
    let with = collectives::With {
        plots: args.plots.as_deref(),
        prebuilt: args.prebuilt,
    };
    let rows = collectives::run(&|name| name.contains(&args.row), with)?;
    print!("{}", row::report(&rows));
    if args.json {
        println!("{}", row::json(&rows));
    }
    Ok(rows.iter().all(Row::ok))
}

/// Runs of scenarios beside their simulation, by the `weir` that lies beside this program.
fn simulated(args: &Args) -> Result<bool> {
    let rows = simulator::run(&|name| name.contains(&args.row), args.plots.as_deref())?;
    print!("{}", row::report(&rows));
    if args.json {
        println!("{}", row::json(&rows));
    }
    Ok(rows.iter().all(Row::ok))
}

/// All-reduces, by what is built for it.
fn allreduce(args: &Args) -> Result<bool> {
    let wanted = |name: &str| name.contains(&args.row);
    // In a namespace `row` is what the process is to do there.
    if veth::role().is_none() && !allreduce::names().into_iter().any(wanted) {
        bail!(
            "no row is called {}; they are {}",
            args.row,
            allreduce::names().join(", ")
        );
    }
    let rows = allreduce::run(&wanted, args.plots.clone())?;
    print!("{}", row::report(&rows));
    if args.json {
        println!("{}", row::json(&rows));
    }
    Ok(rows.iter().all(Row::ok))
}

/// Planners, by a program that is built for it.
fn planning(args: &Args) -> Result<bool> {
    let wanted = |name: &str| name.contains(&args.row);
    if !planning::names().into_iter().any(wanted) {
        bail!(
            "no row is called {}; they are {}",
            args.row,
            planning::names().join(", ")
        );
    }
    let rows = planning::run(&wanted, args.seeds.max(1), args.plots.clone())?;
    print!("{}", row::report(&rows));
    if args.json {
        println!("{}", row::json(&rows));
    }
    Ok(rows.iter().all(Row::ok))
}
