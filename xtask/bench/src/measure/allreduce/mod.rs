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

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::driver::{self, Group};
use super::programs::{NATIVE, THROUGHPUT, WEIR};
use super::{Args, veth};
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

/// What is measured, and how.
struct Bench {
    weir: PathBuf,
    args: Args,
}

/// Measures what `args` asks for.
pub fn run(args: &Args) -> Result<bool> {
    let groups = vec![
        Group::new(shaped::NAMES, shaped::run),
        Group::new(loss::NAMES, loss::run),
        Group::new(loss::SLOW_NAMES, loss::run_slow),
        Group::new(bulk::NAMES, bulk::run),
        Group::new(bulk::JUMBO_NAMES, bulk::run_jumbo),
        Group::new(latency::NAMES, latency::run),
        Group::new(stream::NAMES, stream::run),
        Group::new(ps_bytes::NAMES, ps_bytes::run),
        Group::new(jobs::NAMES, jobs::run),
        Group::new(ddp::NAMES, ddp::run),
    ];
    driver::measure(args, groups, || {
        ensure!(
            ranks::have_torch(),
            "ranks want PyTorch: apt-get install python3-torch"
        );
        for program in [NATIVE, THROUGHPUT] {
            program.build(args.prebuilt)?;
        }
        Ok(Bench {
            weir: WEIR.build(args.prebuilt)?,
            args: args.clone(),
        })
    })
}

impl Bench {
    /// A setting, in a namespace of its own.
    fn measure(&self, setting: &Setting) -> Result<Measured> {
        Measured::parse(setting, &self.said(setting.name)?)
    }

    /// What is said by the process of this name, in a namespace of its own.
    fn said(&self, name: &str) -> Result<Value> {
        eprintln!("  {name} …");
        let text = veth::in_namespace("allreduce", name, None)?;
        serde_json::from_str(&text).with_context(|| format!("{name} said {text:?}"))
    }
}

/// In the namespace: what the setting of this name, or the jobs, came to, in JSON.
pub fn play(role: &str) -> Result<String> {
    Ok(measure(role)?.to_string())
}

fn measure(role: &str) -> Result<Value> {
    let weir = WEIR.path()?;
    if let Some(by) = jobs::By::named(role) {
        return jobs::measure(by, &weir, &THROUGHPUT.path()?);
    }
    let native = NATIVE.path()?;
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
