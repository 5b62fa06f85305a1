//! `cargo xtask bench switch`: what the embedded switch costs. Figures are kept in docs/performance.md. `cargo xtask bench
//! lateness`: whether what it holds leaves in time. `faults`: what their runs prove. `between`: what a wire costs.
//! `quantise`: values into frames, beside memcpy.
//! `allreduce`: sums by the switch beside Gloo's. `planning`: what planners reach. `simulator`: `weir simulate` beside a testbed.
//!
//! A file a subject; each lists groups of rows, which the [driver] measures. `cargo xtask` builds this program as what is shipped
//! (profile `dist`), and this program builds the others that it measures ([programs]).

mod aggregate;
mod allreduce;
mod between;
mod bmv2;
mod clock;
mod collateral;
mod collectives;
mod driver;
mod faults;
mod files;
mod filters;
mod idle;
mod jitter;
mod judge;
mod lateness;
mod load;
mod long;
mod lpm;
pub mod planning;
mod programs;
mod qq;
mod quantise;
mod router;
mod row;
mod runs;
mod simulator;
mod support;
mod ternary;
mod veth;
mod writes;

use anyhow::{Context, Result, bail};
use driver::{Group, measure};
use std::path::PathBuf;

/// Options of `cargo xtask bench`.
#[derive(clap::Args, Clone)]
pub struct Args {
    /// Subject of the measurement
    #[arg(value_parser = ["switch", "lateness", "faults", "between", "quantise", "allreduce", "planning", "simulator", "collectives"])]
    subject: String,
    /// For lateness, and for replays: number of runs
    #[arg(long, default_value_t = 20)]
    runs: u32,
    /// For lateness: maximum time to wait before each run for a load below 0.3, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    patience: u64,
    /// For faults: number of packets of a row
    #[arg(long, default_value_t = 1_000_000)]
    packets: u32,
    /// For faults: virtual time of the long run, in minutes
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Folder for plots. For faults: the Q–Q plot of measured delays, jitter-qq.svg; for allreduce: the losses of both trainings,
    /// ddp-loss.svg; for planning: time and memory over the size of the network, and GRID's margins, planning-*.svg; for
    /// simulator: simulated over measured, simulator.svg; for collectives: the cost of losses, lost_*.svg and rdma-goodput.svg
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// For planning: number of seeds of each network
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// Build nothing, and measure the programs in the target folder's dist
    #[arg(long)]
    prebuilt: bool,
    /// Print the figures as one last line of JSON
    #[arg(long)]
    json: bool,
    /// Measure only rows whose name contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    row: Vec<String>,
    /// Folder in which BMv2 and p4c are looked up before PATH (and in WEIR_BMV2_DIR); may be repeated
    #[arg(long, value_name = "FOLDER")]
    bmv2_dir: Vec<PathBuf>,
    /// Output of p4c-bm2-ss for xtask/bench/src/measure/p4/l2.p4, for a simple_switch without p4c
    #[arg(long, value_name = "FILE")]
    bmv2_json: Option<PathBuf>,
}

impl Args {
    /// Writes a drawing into the folder of `--plots`, if there is one.
    fn draw(&self, name: &str, svg: impl FnOnce() -> Result<String>) -> Result<()> {
        if let Some(folder) = &self.plots {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            files::write(folder.join(name), svg()?)?;
            eprintln!("  {}", folder.join(name).display());
        }
        Ok(())
    }
}

/// Measures the rows that `args` asks for; `Ok(false)` if one misses its goal.
pub fn run(args: &Args) -> Result<bool> {
    if let Some(role) = veth::role() {
        print!("{}", play(&args.subject, &role)?);
        return Ok(true);
    }
    match args.subject.as_str() {
        "switch" => measure(args, switch(), || Ok(args.clone())),
        "quantise" => {
            let group = Group::new(quantise::NAMES, |()| quantise::run());
            measure(args, vec![group], || Ok(()))
        }
        "lateness" => lateness::run(args),
        "faults" => faults::run(args),
        "between" => between::run(args),
        "allreduce" => allreduce::run(args),
        "planning" => planning::run(args),
        "simulator" => simulator::run(args),
        "collectives" => collectives::run(args),
        subject => bail!("no subject is called {subject}"),
    }
}

/// In a namespace: measures what this process was started for; the figures, for the process that started it.
fn play(subject: &str, role: &str) -> Result<String> {
    match (subject, role) {
        ("switch", idle::ROLE) => idle::measure(),
        ("switch", role) => veth::play(role),
        ("faults", collateral::ROLE) => collateral::measure(),
        ("between", between::ROLE) => between::measure(),
        ("between", between::LONG_ROLE) => between::measure_long(),
        ("allreduce", role) => allreduce::play(role),
        ("collectives", role) => collectives::play(role),
        _ => bail!("{subject} has no role {role}"),
    }
}

/// The rows of the subject `switch`, in the order of the printed table.
fn switch() -> Vec<Group<Args>> {
    vec![
        Group::new(router::NAMES, |_| router::run()),
        Group::new(aggregate::NAMES, |_| aggregate::run()),
        Group::new(filters::NAMES, |_| filters::run()),
        Group::new(ternary::NAMES, |_| ternary::run()),
        Group::new(lpm::NAMES, |_| lpm::run()),
        Group::new(load::NAMES, |_| load::run()),
        Group::new(writes::NAMES, writes::run),
        Group::new(veth::NAMES, veth::run),
        Group::new(idle::NAMES, idle::run),
    ]
}
