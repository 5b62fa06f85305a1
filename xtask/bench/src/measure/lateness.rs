//! `cargo xtask bench lateness`: whether held packets leave within the plan's bound, run after run.
//!
//! Runs the shipped Redis scenario with the `weir` that lies beside this program. A run counts if the machine had nothing else to
//! do: load below 0.3 before it, less than 1 % of the processors' time stolen meanwhile. All runs are told.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const SCENARIO: &str = "testbeds/scenarios/redis-get-loss.yaml";
/// Above this the machine is busy with something else.
const QUIET_LOAD: f64 = 0.3;
const QUIET_STEAL: f64 = 0.01;
/// Between two looks at the load.
const LOOK: Duration = Duration::from_secs(5);

/// What one run showed.
#[derive(Debug, Clone, PartialEq)]
struct Run {
    latest_ns: u64,
    bound_ns: u64,
    load: f64,
    stolen: f64,
}

impl Run {
    /// From the object that `weir run --json` prints.
    fn read(report: &Value) -> Option<Run> {
        let faults = report["faults"].as_array()?;
        let late = |fault: &Value| {
            let bound = fault["lateness_bound_ns"].as_u64()?;
            Some((fault["latest_ns"].as_u64()?, bound))
        };
        let (latest_ns, bound_ns) = faults.iter().filter_map(late).max()?;
        let strain = &report["machine_strain"];
        Some(Run {
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

/// Carries the runs out; `Ok(false)` if one that counts passed its bound, or none counts.
pub fn run(runs: u32, patience: Duration) -> Result<bool> {
    let here = std::env::current_exe()?;
    let weir = here.with_file_name("weir");
    if !weir.is_file() {
        bail!("{} is missing: cargo build --bin weir", weir.display());
    }
    let folder = std::env::temp_dir().join(format!("weir-lateness-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut all = Vec::new();
    for number in 1..=runs {
        await_quiet(patience);
        let run = one(&weir, &folder)?;
        println!("run {number:2}: {}", line(&run));
        all.push(run);
    }
    std::fs::remove_dir_all(&folder)?;
    let (text, ok) = verdict(&all);
    println!("{text}");
    Ok(ok)
}

fn one(weir: &Path, folder: &Path) -> Result<Run> {
    let output = Command::new(weir)
        .args(["run", SCENARIO, "--json", "--report"])
        .arg(folder.join("report.html"))
        .output()
        .context("cannot run weir")?;
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("weir run: {}", said.trim())
    })?;
    Run::read(&report).context("the report has no delay with a bound")
}

/// Waits until little else runs, or patience is at its end.
fn await_quiet(patience: Duration) {
    let start = Instant::now();
    while load() >= QUIET_LOAD && start.elapsed() < patience {
        std::thread::sleep(LOOK);
    }
}

/// Processes that want a processor, on average over a minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn line(run: &Run) -> String {
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

/// In one line, and whether the goal is met.
fn verdict(all: &[Run]) -> (String, bool) {
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
    let text = format!(
        "{quiet_kept} of {quiet} quiet runs keep the bound, {busy_kept} of {busy} others; median {median:.3} ms"
    );
    (text, quiet > 0 && quiet_kept == quiet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(latest_ns: u64, load: f64, stolen: f64) -> Run {
        let report = serde_json::json!({
            "faults": [{"id": "lost"}, {"latest_ns": latest_ns, "lateness_bound_ns": 100}],
            "machine_strain": {"load_before": load, "stolen_share": stolen},
        });
        Run::read(&report).unwrap()
    }

    #[test]
    fn runs_on_a_busy_machine_do_not_count() {
        let good = report(100, 0.2, 0.0);
        let bad = report(101, 0.2, 0.0);
        let busy = [report(101, 0.3, 0.0), report(101, 0.2, 0.01)];
        assert!(verdict(&[good.clone(), busy[0].clone(), busy[1].clone()]).1);
        assert!(!verdict(&[good, bad]).1);
        assert!(!verdict(&busy).1, "nothing was shown");
    }
}
