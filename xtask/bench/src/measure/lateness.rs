//! `cargo xtask bench lateness`: measures whether held packets leave within the plan's bound, in repeated runs.
//!
//! `weir` runs the shipped Redis scenario. A run counts if the machine was quiet: load below 0.3
//! before the run, less than 1 % of the processors' time stolen during it. All runs are printed.

use super::Args;
use super::driver::{self, Group};
use super::programs::WEIR;
use super::row::{Goal, Row};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SCENARIO: &str = "testbeds/scenarios/redis-get-loss.yaml";
/// Machine load (average number of runnable processes) from which a machine counts as busy.
const QUIET_LOAD: f64 = 0.3;
const QUIET_STEAL: f64 = 0.01;
/// Time between two readings of the machine load.
const LOOK: Duration = Duration::from_secs(5);

/// Lateness of held packets in one run, and the machine load during the run.
#[derive(Debug, Clone, PartialEq)]
struct LatenessRun {
    latest_ns: u64,
    bound_ns: u64,
    load: f64,
    stolen: f64,
}

impl LatenessRun {
    /// Reads the JSON object that `weir run --json` prints.
    fn read(report: &Value) -> Option<LatenessRun> {
        let faults = report["faults"].as_array()?;
        let late = |fault: &Value| {
            let bound = fault["lateness_bound_ns"].as_u64()?;
            Some((fault["latest_ns"].as_u64()?, bound))
        };
        let (latest_ns, bound_ns) = faults.iter().filter_map(late).max()?;
        let strain = &report["machine_strain"];
        Some(LatenessRun {
            latest_ns,
            bound_ns,
            load: strain["load_before"].as_f64()?,
            stolen: strain["stolen_share"].as_f64()?,
        })
    }

    fn is_quiet(&self) -> bool {
        self.load < QUIET_LOAD && self.stolen < QUIET_STEAL
    }

    fn keeps_its_bound(&self) -> bool {
        self.latest_ns <= self.bound_ns
    }
}

pub fn run(args: &Args) -> Result<bool> {
    let (runs, patience) = (args.runs, Duration::from_secs(args.patience));
    let group = Group::one("lateness", move |weir: &PathBuf| {
        lateness(weir, runs, patience)
    });
    driver::measure(args, vec![group], || WEIR.build(args.prebuilt))
}

fn lateness(weir: &Path, runs: u32, patience: Duration) -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let mut all = Vec::new();
    for number in 1..=runs {
        wait_until_quiet(patience);
        let run = run_once(weir, folder.path()).with_context(|| format!("run {number}"))?;
        println!("run {number:2}: {}", line(&run));
        all.push(run);
    }
    Ok(row(&all))
}

fn run_once(weir: &Path, folder: &Path) -> Result<LatenessRun> {
    let output = Command::new(weir)
        .args(["run", SCENARIO, "--json", "--report"])
        .arg(folder.join("report.html"))
        .output()
        .context("cannot run weir")?;
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("weir run: {}", errors.trim())
    })?;
    LatenessRun::read(&report).context("the report has no delay with a bound")
}

/// Waits until the machine load is low, for `patience` at most.
fn wait_until_quiet(patience: Duration) {
    let start = Instant::now();
    while load() >= QUIET_LOAD && start.elapsed() < patience {
        std::thread::sleep(LOOK);
    }
}

/// Machine load: average number of processes that need a processor, over the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn line(run: &LatenessRun) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    format!(
        "latest {:.3} ms, bound {:.3} ms{}; load {:.2}, stolen {:.1} %{}",
        ms(run.latest_ns),
        ms(run.bound_ns),
        if run.keeps_its_bound() {
            ""
        } else {
            ": BEYOND"
        },
        run.load,
        run.stolen * 100.0,
        if run.is_quiet() { "" } else { ", not quiet" },
    )
}

/// Row with the share of the quiet runs that keep their bound; without a value if no run was quiet.
fn row(all: &[LatenessRun]) -> Row {
    let kept = |quiet: bool| {
        let of = || all.iter().filter(move |run| run.is_quiet() == quiet);
        (
            of().filter(|run| run.keeps_its_bound()).count(),
            of().count(),
        )
    };
    let ((quiet_kept, quiet), (busy_kept, busy)) = (kept(true), kept(false));
    let mut latest: Vec<u64> = all.iter().map(|run| run.latest_ns).collect();
    latest.sort_unstable();
    let median = latest.get(latest.len() / 2).copied().unwrap_or(0) as f64 / 1e6;
    Row {
        name: "lateness",
        value: (quiet > 0).then(|| quiet_kept as f64 / quiet as f64),
        unit: "of quiet runs",
        goal: Goal::AtLeast(1.0),
        floor: None,
        note: format!(
            "{quiet_kept} of {quiet} quiet runs keep the bound, {busy_kept} of {busy} others; median {median:.3} ms"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(latest_ns: u64, load: f64, stolen: f64) -> LatenessRun {
        let report = serde_json::json!({
            "faults": [{"id": "lost"}, {"latest_ns": latest_ns, "lateness_bound_ns": 100}],
            "machine_strain": {"load_before": load, "stolen_share": stolen},
        });
        LatenessRun::read(&report).unwrap()
    }

    #[test]
    fn runs_on_a_busy_machine_do_not_count() {
        let good = report(100, 0.2, 0.0);
        let bad = report(101, 0.2, 0.0);
        let busy = [report(101, 0.3, 0.0), report(101, 0.2, 0.01)];
        assert!(row(&[good.clone(), busy[0].clone(), busy[1].clone()]).ok());
        assert!(!row(&[good, bad]).ok());
        assert!(!row(&busy).ok(), "nothing was shown");
    }
}
