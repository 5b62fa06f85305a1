//! `cargo xtask bench allreduce`: sums by the switch and by Gloo, side by side in one run. Figures are kept in
//! docs/performance.md.
//!
//! Ranks are processes of Debian's PyTorch, each in a namespace of its own ([`bed`]), and run one script by both backends in
//! turn ([`ranks`]). What is measured is built first, as it is shipped. Each row looks at the sums: all ranks' bits are the
//! same, and the values are right; else it is an error and no figure.

pub(super) mod bed;
mod bulk;
mod ddp;
mod jobs;
mod latency;
mod loss;
mod loss_plot;
pub(super) mod machine;
mod ps_bytes;
pub(super) mod ranks;
mod shaped;
mod stream;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::row::Row;
use super::veth;
use bed::Through;
use ranks::Measured;
use scenario::job::Transport;

/// All-reduces in one network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    /// What the process that measures is called by.
    pub name: &'static str,
    /// What each rank runs, of `host-agent/python/bench`.
    pub script: &'static str,
    pub through: Through,
    pub jobs: usize,
    /// Of each job.
    pub ranks: usize,
    /// Hosts that are no ranks, after all those that are.
    pub servers: usize,
    /// In turn.
    pub backends: &'static [&'static str],
    /// Values of 4 bytes.
    pub values: usize,
    /// How often each backend has its turn, and how often it sums then.
    pub rounds: usize,
    pub calls: usize,
    /// Of each link, in both directions.
    pub rate_bps: Option<u64>,
    /// What may leave a shaped link at once.
    pub burst_bytes: u32,
    /// What may wait for it.
    pub queue_bytes: u32,
    /// The share of updates, and of sums, that the switch drops.
    pub loss: Option<f64>,
    pub transport: Transport,
    pub window: u32,
    pub mtu: u32,
}

impl Setting {
    /// Float32 that is summed once a round, between hosts with what a network card has.
    pub const BASE: Setting = Setting {
        name: "",
        script: "allreduce.py",
        through: Through::Switch,
        jobs: 1,
        ranks: 8,
        servers: 0,
        backends: &["weir", "gloo"],
        values: 16_000_000,
        rounds: 3,
        calls: 1,
        rate_bps: None,
        // A thousandth of what a round sends, and more than the timer's tick.
        burst_bytes: 64 << 10,
        // What a testbed's may.
        queue_bytes: 4 << 20,
        loss: None,
        transport: Transport::Udp,
        window: 256,
        mtu: 1500,
    };

    pub fn bytes(&self) -> usize {
        4 * self.values
    }
}

/// All settings, so that a process in a namespace finds its own.
fn settings() -> Vec<Setting> {
    let mut all = vec![shaped::SETTING];
    all.extend(loss::SETTINGS.into_iter().flatten());
    all.extend(bulk::SETTINGS);
    all.extend([latency::SETTING, stream::SETTING]);
    all
}

/// A row's names, and what measures it.
type Measure = (&'static [&'static str], fn(&Bench) -> Result<Vec<Row>>);

const ROWS: &[Measure] = &[
    (shaped::NAMES, shaped::run),
    (loss::NAMES, loss::run),
    (loss::SLOW_NAMES, loss::run_slow),
    (bulk::NAMES, bulk::run),
    (bulk::JUMBO_NAMES, bulk::run_jumbo),
    (latency::NAMES, latency::run),
    (stream::NAMES, stream::run),
    (ps_bytes::NAMES, ps_bytes::run),
    (jobs::NAMES, jobs::run),
    (ddp::NAMES, ddp::run),
];

/// The names of all rows.
pub fn names() -> Vec<&'static str> {
    ROWS.iter().flat_map(|(names, _)| *names).copied().collect()
}

/// What was built to be measured.
struct Bench {
    weir: PathBuf,
    /// Where drawings go, if any are wanted.
    plots: Option<PathBuf>,
}

impl Bench {
    /// A setting, in a namespace of its own.
    fn measure(&self, setting: &Setting) -> Result<Measured> {
        Measured::parse(setting, &self.said(setting.name)?)
    }

    /// What is said by the process of this name, in a namespace of its own.
    fn said(&self, name: &str) -> Result<Value> {
        eprintln!("  {name} …");
        let text = veth::in_namespace_as("allreduce", name, None);
        let text = text.with_context(|| name.to_owned())?;
        serde_json::from_str(&text).with_context(|| format!("{name} said {text:?}"))
    }
}

/// Measures the rows that are wanted.
pub fn run(wanted: &dyn Fn(&str) -> bool, plots: Option<PathBuf>) -> Result<Vec<Row>> {
    let folder = built_folder()?;
    if let Some(role) = veth::role() {
        println!("{}", measure(&role, &folder)?);
        std::process::exit(0);
    }
    ensure!(
        ranks::have_torch(),
        "ranks want PyTorch: apt-get install python3-torch"
    );
    build()?;
    let bench = Bench {
        weir: folder.join("weir"),
        plots,
    };
    let mut rows = Vec::new();
    for (names, measure) in ROWS {
        if names.iter().any(|name| wanted(name)) {
            eprintln!("measuring {} …", names.join(", "));
            rows.extend(measure(&bench)?.into_iter().filter(|row| wanted(row.name)));
        }
    }
    Ok(rows)
}

/// In the namespace: what this process was started for.
fn measure(role: &str, folder: &Path) -> Result<Value> {
    let (weir, native) = (folder.join("weir"), folder.join("libweir_native.so"));
    if let Some(by) = jobs::By::named(role) {
        return jobs::measure(by, &weir, &folder.join("examples/throughput"));
    }
    if role == ddp::SETTING.name {
        return ddp::measure(&weir, &native);
    }
    let setting = settings().into_iter().find(|setting| setting.name == role);
    let setting = setting.with_context(|| format!("no setting is called {role}"))?;
    ranks::measure(&setting, &weir, &native)
}

/// Now, by the clock that all processes of the machine share.
pub(super) fn monotonic_ns() -> Result<u64> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
    Ok(Duration::from(now).as_nanos() as u64)
}

/// Where what is shipped lies: beside the folder that this program is in.
fn built_folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(|folder| folder.parent());
    Ok(target.context("no target folder")?.join("dist"))
}

/// The switch, the controller, the native half of the package, and members of jobs without PyTorch.
fn build() -> Result<()> {
    let shipped = "--package controller --bin weir --package weir-python --lib";
    // By itself: an example takes what tests want along.
    for wanted in [shipped, "--package host-agent --example throughput"] {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--profile", "dist"]);
        cargo.args(wanted.split_whitespace());
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let status = cargo.status().context("cannot run cargo")?;
        ensure!(status.success(), "the build with profile dist failed");
    }
    Ok(())
}
