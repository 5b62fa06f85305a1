//! `cargo xtask bench allreduce`: sums by the switch and by Gloo, side by side in one run. Figures are kept in
//! docs/performance.md.
//!
//! Ranks are processes of Debian's PyTorch, each in a namespace of its own ([`bed`]), and run one script by both backends in
//! turn ([`ranks`]). What is measured is built first, as it is shipped. Each row looks at the sums: all ranks' bits are the
//! same, and the values are right; else it is an error and no figure.

mod bed;
mod bulk;
mod latency;
mod loss;
mod machine;
mod ps_bytes;
mod ranks;
mod shaped;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::row::Row;
use super::veth;
use bed::Through;
use ranks::Measured;

/// All-reduces in one network.
#[derive(Debug, Clone, Copy)]
struct Setting {
    /// What the process that measures is called by.
    name: &'static str,
    through: Through,
    ranks: usize,
    /// In turn.
    backends: &'static [&'static str],
    /// Values of 4 bytes.
    values: usize,
    /// How often each backend has its turn, and how often it sums then.
    rounds: usize,
    calls: usize,
    /// Of each link, in both directions.
    rate_bps: Option<u64>,
    /// The share of updates, and of sums, that the switch drops.
    loss: Option<f64>,
    window: u32,
    mtu: u32,
}

impl Setting {
    /// Float32 that is summed once a round, between hosts with what a network card has.
    const BASE: Setting = Setting {
        name: "",
        through: Through::Switch,
        ranks: 8,
        backends: &["weir", "gloo"],
        values: 16_000_000,
        rounds: 3,
        calls: 1,
        rate_bps: None,
        loss: None,
        window: 256,
        mtu: 1500,
    };

    fn bytes(&self) -> usize {
        4 * self.values
    }
}

/// All settings, so that a process in a namespace finds its own.
fn settings() -> Vec<Setting> {
    let mut all = vec![shaped::SETTING];
    all.extend(loss::SETTINGS.into_iter().flatten());
    all.extend(bulk::SETTINGS);
    all.push(latency::SETTING);
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
    (ps_bytes::NAMES, ps_bytes::run),
];

/// The names of all rows.
pub fn names() -> Vec<&'static str> {
    ROWS.iter().flat_map(|(names, _)| *names).copied().collect()
}

/// What was built to be measured.
struct Bench {
    weir: PathBuf,
}

impl Bench {
    /// A setting, in a namespace of its own.
    fn measure(&self, setting: &Setting) -> Result<Measured> {
        eprintln!("  {} …", setting.name);
        let text = veth::in_namespace_as("allreduce", setting.name, None)
            .with_context(|| setting.name.to_owned())?;
        let measured = serde_json::from_str(&text)
            .with_context(|| format!("{} said {text:?}", setting.name))?;
        Measured::parse(setting, &measured)
    }
}

/// Measures the rows that are wanted.
pub fn run(wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let folder = built_folder()?;
    if let Some(role) = veth::role() {
        let setting = settings().into_iter().find(|setting| setting.name == role);
        let setting = setting.with_context(|| format!("no setting is called {role}"))?;
        let native = folder.join("libweir_native.so");
        println!(
            "{}",
            ranks::measure(&setting, &folder.join("weir"), &native)?
        );
        std::process::exit(0);
    }
    ensure!(
        ranks::have_torch(),
        "ranks want PyTorch: apt-get install python3-torch"
    );
    build()?;
    let bench = Bench {
        weir: folder.join("weir"),
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

/// Where what is shipped lies: beside the folder that this program is in.
fn built_folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(|folder| folder.parent());
    Ok(target.context("no target folder")?.join("dist"))
}

/// The switch, the controller and the native half of the package.
fn build() -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", "dist"]);
    cargo.args(["--package", "controller", "--bin", "weir"]);
    cargo.args(["--package", "weir-python", "--lib"]);
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "the build with profile dist failed");
    Ok(())
}
