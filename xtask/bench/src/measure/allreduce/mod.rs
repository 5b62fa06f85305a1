//! `cargo xtask bench allreduce`: measures sums by the switch and by Gloo, side by side in one run.
//! docs/performance.md keeps the figures.
//!
//! Ranks are processes of Debian's PyTorch, each in a namespace of its own ([`network`]), and run one script with
//! both backends in turn ([`ranks`]). This program first builds the measured programs with the shipped profile.
//! Each row verifies the sums: if the bits of the ranks differ or a value is wrong, the row is an error.

mod bulk;
mod ddp;
mod jobs;
mod latency;
mod loss;
mod loss_plot;
pub(super) mod machine;
pub(super) mod network;
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
use network::Fabric;
use ranks::BackendRounds;
use scenario::model::job::Transport;

/// All-reduces to measure, and the network in which they run.
#[derive(Debug, Clone, Copy)]
pub(super) struct AllReduceSetting {
    /// Name of the setting, and of the role in which this program measures it in the network namespace.
    pub name: &'static str,
    /// File of the ranks' script in `host-agent/python/bench`.
    pub script: &'static str,
    pub through: Fabric,
    pub jobs: usize,
    /// Number of ranks of each job.
    pub ranks: usize,
    /// Number of hosts that are not ranks; these hosts follow the ranks.
    pub servers: usize,
    /// Backends that sum, in turn; `gloo_offloads` is Gloo between hosts that leave TCP's segments unfinished.
    pub backends: &'static [&'static str],
    /// Number of values in a sum, 4 bytes each.
    pub values: usize,
    /// Number of rounds of each backend; `calls` is the number of sums in a round.
    pub rounds: usize,
    pub calls: usize,
    /// Rate of each link in bits a second, in both directions; `None`: links are not shaped.
    pub rate_bps: Option<u64>,
    /// Burst size of a shaped link, in bytes.
    pub burst_bytes: u32,
    /// Queue size of a shaped link, in bytes.
    pub queue_bytes: u32,
    /// Share of updates, and of sums, that the switch drops; `None`: the switch drops none.
    pub loss: Option<f64>,
    pub transport: Transport,
    pub window: u32,
    pub mtu: u32,
    /// Time limit of the ranks.
    pub patience: Duration,
}

impl AllReduceSetting {
    /// Base of all settings: one float32 sum in each round, between hosts with queues like those of a network card.
    pub const BASE: AllReduceSetting = AllReduceSetting {
        name: "",
        script: "allreduce.py",
        through: Fabric::Switch,
        jobs: 1,
        ranks: 8,
        servers: 0,
        backends: &["weir", "gloo"],
        values: 16_000_000,
        rounds: 3,
        calls: 1,
        rate_bps: None,
        // A thousandth of a round's bytes, and more than the timer's tick.
        burst_bytes: 64 << 10,
        // A testbed's queue.
        queue_bytes: 4 << 20,
        loss: None,
        transport: Transport::Udp,
        window: 256,
        mtu: 1500,
        // A round of the slowest row takes about 30 s on an idle machine.
        patience: Duration::from_secs(900),
    };

    pub fn bytes(&self) -> usize {
        4 * self.values
    }
}

/// All settings, among which a process in a namespace finds the setting that it measures.
fn settings() -> Vec<AllReduceSetting> {
    let mut all = vec![shaped::SETTING];
    all.extend(loss::SETTINGS.into_iter().flatten());
    all.extend(bulk::SETTINGS);
    all.extend([latency::SETTING, stream::SETTING]);
    all
}

struct AllReduceBench {
    weir: PathBuf,
    args: Args,
}

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
            ranks::has_torch(),
            "ranks need PyTorch: apt-get install python3-torch"
        );
        for program in [NATIVE, THROUGHPUT] {
            program.build(args.prebuilt)?;
        }
        Ok(AllReduceBench {
            weir: WEIR.build(args.prebuilt)?,
            args: args.clone(),
        })
    })
}

impl AllReduceBench {
    /// Measures a setting in a network namespace of its own.
    fn measure(&self, setting: &AllReduceSetting) -> Result<BackendRounds> {
        BackendRounds::parse(setting, &self.run_in_namespace(setting.name)?)
    }

    /// Runs this program in the role `name` in a network namespace of its own; returns its output.
    fn run_in_namespace(&self, name: &str) -> Result<Value> {
        eprintln!("  {name} …");
        let text = veth::in_namespace("allreduce", name, None)?;
        serde_json::from_str(&text).with_context(|| format!("{name} printed {text:?}"))
    }
}

/// Measures the setting or the jobs that the role names, in the network namespace; returns JSON.
pub fn run_role(role: &str) -> Result<String> {
    Ok(measure(role)?.to_string())
}

fn measure(role: &str) -> Result<Value> {
    let weir = WEIR.path()?;
    if let Some(by) = jobs::SummingParty::from_role(role) {
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

/// Monotonic time in nanoseconds, by the clock that all processes of the machine share.
pub(super) fn monotonic_ns() -> Result<u64> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
    Ok(Duration::from(now).as_nanos() as u64)
}
