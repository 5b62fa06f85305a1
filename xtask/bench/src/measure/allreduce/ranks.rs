//! Starts the rank processes, which run the setting's script, and reads their reports.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use testbeds::host::{Output, Process};

use super::super::clock::cpu_ns;
use super::machine::{self, CpuSnapshot};
use super::network::{Fabric, RankNetwork, copy_package};
use super::{AllReduceSetting, monotonic_ns};

/// Path of Debian's Python, for which Debian's PyTorch is built.
pub const PYTHON: &str = "/usr/bin/python3";
/// Time between two samples of the switch's processor time.
const SAMPLED: Duration = Duration::from_millis(20);
/// Maximum error of a sum, relative to the largest sum: binary32 has a precision of 2^-24.
const OFF: f64 = 1e-6;

pub fn has_torch() -> bool {
    let mut python = Command::new(PYTHON);
    let output = python.args(["-c", "import torch.distributed"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Creates the network in the namespace and runs the ranks; returns the ranks' reports.
pub fn measure(setting: &AllReduceSetting, weir: &Path, native: &Path) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    copy_package(folder.path(), native)?;
    let network = RankNetwork::create(setting, weir)?;
    let before = CpuSnapshot::now()?;
    let mut ranks = Vec::new();
    for rank in 0..setting.ranks {
        ranks.push(start(setting, &network, folder.path(), rank)?);
    }
    let ends = AtomicBool::new(false);
    let switch = network.switch_id();
    let (report, samples) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(switch, &ends));
        let report = read_all_ranks(&mut ranks, setting.patience);
        ends.store(true, Ordering::Relaxed);
        let samples = sampler.join().map_err(|_| anyhow::anyhow!("a panic"))?;
        anyhow::Ok((report?, samples?))
    })?;
    Ok(json!({
        "ranks": report,
        "switch": samples,
        "machine": before.usage_since()?,
    }))
}

/// Samples the switch's processor time until `ends` is set: (time, processor time) in ns. The ranks do not know the latter.
fn sample(switch: Option<u32>, ends: &AtomicBool) -> Result<Vec<(u64, u64)>> {
    let mut samples = Vec::new();
    let Some(switch) = switch else {
        return Ok(samples);
    };
    while !ends.load(Ordering::Relaxed) {
        samples.push((monotonic_ns()?, cpu_ns(switch)?));
        std::thread::sleep(SAMPLED);
    }
    Ok(samples)
}

fn read_all_ranks(ranks: &mut [Process], patience: Duration) -> Result<Vec<Vec<Value>>> {
    let deadline = Instant::now() + patience;
    let report = ranks.iter_mut().enumerate();
    report
        .map(|(rank, process)| {
            let lines = read_lines(process, deadline);
            lines.with_context(|| format!("rank {rank}, time limit {patience:?}"))
        })
        .collect()
}

fn start(
    setting: &AllReduceSetting,
    network: &RankNetwork,
    folder: &Path,
    rank: usize,
) -> Result<Process> {
    let host = &network.hosts[rank];
    let mut command = Command::new(PYTHON);
    command.arg(setting.script).current_dir(folder);
    command.args(["--backends", &setting.backends.join(",")]);
    let first = &network.scenario.topology.hosts[0];
    let (store, interface) = match setting.through {
        Fabric::Loopback => ("127.0.0.1:29500".to_owned(), "lo"),
        _ => (format!("{}:29500", first.ip), "eth0"),
    };
    for (name, value) in [
        ("--values", setting.values),
        ("--rounds", setting.rounds),
        ("--calls", setting.calls),
        ("--rank", rank),
        ("--ranks", setting.ranks),
    ] {
        command.args([name, &value.to_string()]);
    }
    command.args(["--at", &store]);
    command.env("PYTHONPATH", folder);
    command.env("GLOO_SOCKET_IFNAME", interface);
    let job = network.scenario.jobs.first().context("a job")?;
    command.envs(job.environment(&format!("r{rank}")));
    Ok(host.spawn(command)?)
}

/// All output lines of a rank's process, which must exit successfully; each line is JSON.
pub fn read_lines(process: &mut Process, deadline: Instant) -> Result<Vec<Value>> {
    let mut lines = Vec::new();
    loop {
        match process.next_line(deadline.saturating_duration_since(Instant::now())) {
            Output::Line(line) => lines.push(serde_json::from_str(&line).context(line)?),
            Output::TimedOut => bail!("it does not finish in time"),
            Output::End => break,
        }
    }
    let ended = process.wait(Duration::from_secs(30))?;
    ensure!(
        ended.is_some_and(|status| status.success()),
        "{}",
        process.stderr().trim()
    );
    Ok(lines)
}

/// Result of a setting: all rounds of all backends.
pub struct BackendRounds {
    rounds: Vec<BackendRound>,
    /// Counters of our Python package at rank 0.
    pub counters: Value,
    /// Machine load during the measurement, as text.
    pub machine: String,
}

/// One round of a backend, with the figures of all ranks combined.
#[derive(Debug, Clone)]
pub struct BackendRound {
    backend: String,
    /// Time from the first rank's start to the last rank's end.
    pub seconds: f64,
    /// Time of each call in nanoseconds, by rank.
    pub took_ns: Vec<Vec<u64>>,
    /// Processor time of all ranks in user mode, in seconds; `system_s` is that in the kernel.
    pub user_s: f64,
    pub system_s: f64,
    /// Processor time of the switch in this round, in seconds.
    pub switch_s: f64,
    /// Digest of the sums, equal at all ranks.
    pub digest: String,
}

impl BackendRounds {
    /// Parses the output of [`measure`], and verifies the sums.
    pub fn parse(setting: &AllReduceSetting, report: &Value) -> Result<BackendRounds> {
        let ranks = report["ranks"].as_array().context("ranks")?;
        let ranks: Vec<&Vec<Value>> = ranks.iter().filter_map(Value::as_array).collect();
        let count = setting.rounds * setting.backends.len();
        ensure!(
            ranks.len() == setting.ranks && ranks.iter().all(|lines| lines.len() == count + 1),
            "a rank printed too few lines"
        );
        let samples = samples(&report["switch"]);
        let round = |number: usize| {
            let lines: Vec<&Value> = ranks.iter().map(|lines| &lines[number]).collect();
            BackendRound::of(&lines, &samples)
                .with_context(|| format!("{}, round {number}", setting.name))
        };
        Ok(BackendRounds {
            rounds: (0..count).map(round).collect::<Result<_>>()?,
            counters: ranks[0][count]["counters"].clone(),
            machine: machine::note(&report["machine"]),
        })
    }

    pub fn rounds<'a>(&'a self, backend: &'a str) -> impl Iterator<Item = &'a BackendRound> {
        let of = move |round: &&BackendRound| round.backend == backend;
        self.rounds.iter().filter(of)
    }

    /// The fastest round of a backend: other processes on the machine only add to its time.
    pub fn best(&self, backend: &str) -> Result<&BackendRound> {
        let rounds = self.rounds.iter();
        rounds
            .filter(|round| round.backend == backend)
            .min_by(|a, b| a.seconds.total_cmp(&b.seconds))
            .with_context(|| format!("no round of {backend}"))
    }

    /// Seconds of all rounds of a backend, as text for a note.
    pub fn seconds(&self, backend: &str) -> String {
        let seconds = self
            .rounds(backend)
            .map(|round| format!("{:.2}", round.seconds));
        seconds.collect::<Vec<_>>().join(", ")
    }
}

impl BackendRound {
    fn of(ranks: &[&Value], samples: &[(f64, f64)]) -> Result<BackendRound> {
        let first = ranks.first().context("no rank")?;
        let backend = first["backend"].as_str().context("backend")?;
        let digest = first["digest"].as_str().context("digest")?;
        let number = |name: &'static str| {
            ranks
                .iter()
                .map(move |rank| rank[name].as_f64().unwrap_or(f64::NAN))
        };
        let worst = number("off").fold(0.0, f64::max);
        ensure!(
            number("off").all(|off| off <= OFF),
            "{backend}: sums are off by up to {worst:e} of the largest"
        );
        ensure!(
            ranks.iter().all(|rank| rank["digest"] == first["digest"]),
            "{backend}: the sums of the ranks have different bits"
        );
        let begun = number("begun_ns").fold(f64::INFINITY, f64::min);
        let ended = number("ended_ns").fold(0.0, f64::max);
        let took = |rank: &&Value| {
            let took = rank["took_ns"].as_array()?;
            took.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>()
        };
        let took_ns = ranks.iter().map(took).collect::<Option<Vec<_>>>();
        Ok(BackendRound {
            backend: backend.to_owned(),
            seconds: (ended - begun) / 1e9,
            took_ns: took_ns.context("took_ns")?,
            user_s: number("user_s").sum(),
            system_s: number("system_s").sum(),
            switch_s: (switch_time_at(samples, ended) - switch_time_at(samples, begun)) / 1e9,
            digest: digest.to_owned(),
        })
    }
}

fn samples(report: &Value) -> Vec<(f64, f64)> {
    let pairs = report.as_array().into_iter().flatten();
    pairs
        .filter_map(|pair| Some((pair[0].as_f64()?, pair[1].as_f64()?)))
        .collect()
}

/// Processor time of the switch at the time `time_ns`, interpolated between two samples.
fn switch_time_at(samples: &[(f64, f64)], time_ns: f64) -> f64 {
    let next = samples.partition_point(|(at_ns, _)| *at_ns < time_ns);
    match (samples.get(next.wrapping_sub(1)), samples.get(next)) {
        (Some(before), Some(after)) => {
            let share = (time_ns - before.0) / (after.0 - before.0).max(1.0);
            before.1 + share * (after.1 - before.1)
        }
        (Some(only), None) | (None, Some(only)) => only.1,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(backend: &str, off: f64, digest: &str, from_ns: u64) -> Value {
        json!({
            "backend": backend, "round": 0, "begun_ns": from_ns, "ended_ns": from_ns + 1_000_000_000, "took_ns": [5],
            "user_s": 0.5, "system_s": 0.25, "off": off, "digest": digest,
        })
    }

    fn measured(second: Value) -> Result<BackendRounds> {
        let setting = AllReduceSetting {
            ranks: 2,
            rounds: 1,
            backends: &["weir"],
            ..AllReduceSetting::BASE
        };
        let counters = json!({"counters": {"probes": 3}});
        let report = json!({
            "ranks": [[line("weir", 0.0, "a", 2_000_000_000), counters], [second, counters]],
            "switch": [[1_000_000_000u64, 0], [5_000_000_000u64, 4_000_000_000u64]],
            "machine": {"load_before": "1", "busy": 0.5, "stolen": 0.0},
        });
        BackendRounds::parse(&setting, &report)
    }

    #[test]
    fn a_round_is_from_the_first_begin_to_the_last_end() {
        let measured = measured(line("weir", 1e-7, "a", 2_500_000_000)).unwrap();
        let best = measured.best("weir").unwrap();
        assert_eq!((best.seconds, best.user_s, best.switch_s), (1.5, 1.0, 1.5));
        assert_eq!(measured.counters["probes"], 3);
        assert!(measured.best("gloo").is_err());
    }

    #[test]
    fn wrong_sums_and_different_bits_are_errors() {
        let off = measured(line("weir", 1e-3, "a", 0)).err().unwrap();
        assert!(format!("{off:#}").contains("off by"), "{off:#}");
        let nan = measured(line("weir", f64::NAN, "a", 0)).err().unwrap();
        assert!(format!("{nan:#}").contains("off by"), "{nan:#}");
        let other = measured(line("weir", 0.0, "b", 0)).err().unwrap();
        assert!(format!("{other:#}").contains("different bits"), "{other:#}");
    }
}
