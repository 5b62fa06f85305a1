//! `cargo xtask bench SUBJECT`: measures a subject and prints rows of figures. docs/performance.md,
//! docs/planning.md and docs/rdma.md keep the figures.
//!
//! Each subject has a file or folder of its name, which lists groups of rows; the [driver] measures them. `cargo xtask` builds
//! this program with the shipped profile (`dist`), and this program builds the other programs that it measures ([programs]).

mod allreduce;
mod between;
mod bmv2;
mod clock;
mod collectives;
mod driver;
mod faults;
mod files;
mod hosts;
mod lateness;
pub mod planning;
mod programs;
mod qq;
mod quantise;
mod row;
mod simulator;
mod support;
mod switch;
mod veth;

use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// Options of `cargo xtask bench`.
#[derive(clap::Args, Clone)]
pub struct Args {
    /// Subject to measure
    #[arg(value_enum)]
    subject: Subject,
    /// lateness, faults: number of runs
    #[arg(long, default_value_t = 20)]
    runs: u32,
    /// lateness: seconds to wait before each run for a load below 0.3
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    patience: u64,
    /// faults: number of packets of a row
    #[arg(long, default_value_t = 1_000_000)]
    packets: u32,
    /// faults: minutes of virtual time to judge in the long run
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Write drawings into this folder: faults the Q–Q plot of delays (jitter-qq.svg), allreduce the losses of both
    /// trainings (ddp-loss.svg), planning time and memory over the size of networks, and GRID's margins
    /// (planning-*.svg), simulator simulated over measured times (simulator.svg), collectives the cost of losses
    /// (lost_*.svg, rdma-goodput.svg)
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// planning: number of seeds of each network
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// Build nothing: use the programs that are already in the target folder's dist
    #[arg(long)]
    prebuilt: bool,
    /// Print the figures as JSON in the last line
    #[arg(long)]
    json: bool,
    /// Measure only the rows whose name contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    row: Vec<String>,
    /// Look for BMv2 and p4c in this folder before the PATH (and WEIR_BMV2_DIR); may be repeated
    #[arg(long, value_name = "FOLDER")]
    bmv2_dir: Vec<PathBuf>,
    /// Output of p4c-bm2-ss for xtask/bench/src/measure/p4/l2.p4, for a simple_switch without p4c
    #[arg(long, value_name = "FILE")]
    bmv2_json: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Subject {
    Switch,
    Lateness,
    Faults,
    Between,
    Quantise,
    Allreduce,
    Planning,
    Simulator,
    Collectives,
}

impl Args {
    /// Writes a drawing into the folder of `--plots`, if that is given.
    fn draw(&self, name: &str, svg: impl FnOnce() -> Result<String>) -> Result<()> {
        if let Some(folder) = &self.plots {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            files::write(folder.join(name), svg()?)?;
            eprintln!("  {}", folder.join(name).display());
        }
        Ok(())
    }
}

/// Measures the rows that `args` selects; `Ok(false)` if a row misses its goal.
pub fn run(args: &Args) -> Result<bool> {
    if let Some(role) = veth::role() {
        print!("{}", run_role(args.subject, &role)?);
        return Ok(true);
    }
    match args.subject {
        Subject::Switch => switch::run(args),
        Subject::Lateness => lateness::run(args),
        Subject::Faults => faults::run(args),
        Subject::Between => between::run(args),
        Subject::Quantise => quantise::run(args),
        Subject::Allreduce => allreduce::run(args),
        Subject::Planning => planning::run(args),
        Subject::Simulator => simulator::run(args),
        Subject::Collectives => collectives::run(args),
    }
}

/// Measures a role of a subject in this process, which runs in a namespace; returns the figures as text for its parent process.
fn run_role(subject: Subject, role: &str) -> Result<String> {
    match (subject, role) {
        (Subject::Switch, role) => switch::run_role(role),
        (Subject::Faults, faults::ROLE) => faults::measure_role(),
        (Subject::Between, between::ROLE) => between::measure(),
        (Subject::Between, between::LONG_ROLE) => between::measure_long(),
        (Subject::Between, between::OFFLOADS_ROLE) => between::measure_offloads(),
        (Subject::Allreduce, role) => allreduce::run_role(role),
        (Subject::Collectives, role) => collectives::run_role(role),
        _ => bail!("no role of this subject is called {role}"),
    }
}
