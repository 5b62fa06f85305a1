//! `cargo xtask fuzz`: builds and runs the fuzz targets, and reports their crashes (docs/fuzzing.md).

use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time between two progress lines of a fuzz target.
const PROGRESS: Duration = Duration::from_secs(10);

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub struct Args {
    /// Run only these targets: p4_source, packets_psa, packets_v1model, packets_tna, p4runtime, bundles
    targets: Vec<String>,
    /// Duration of each target in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Duration of each target in minutes
    #[arg(long, conflicts_with = "seconds")]
    minutes: Option<u64>,
    /// Print the figures as JSON instead of a table
    #[arg(long)]
    json: bool,
}

struct Target {
    name: &'static str,
    /// Folder of the crate whose `fuzz` folder has the fuzz target.
    krate: &'static str,
    /// Folders of the crate with more inputs, besides those of `fuzz/seeds/NAME`.
    more_seeds: &'static [&'static str],
    /// Dictionary of libFuzzer for the target: a file in the crate's `fuzz` folder; `None` for no dictionary.
    dictionary: Option<&'static str>,
    max_len: usize,
    /// Whether libFuzzer traces comparisons. Tracing takes half the time, and helps little where
    /// the code reads its input as choices rather than as text.
    compares: bool,
}

const PIPELINE: &str = "testbeds/softswitch/pipeline";

const TARGETS: &[Target] = &[
    Target {
        name: "p4_source",
        krate: "p4src/lang",
        more_seeds: &["tests/corpus/pass", "tests/corpus/fail"],
        dictionary: Some("p4.dict"),
        max_len: 8192,
        compares: true,
    },
    packets("packets_psa"),
    packets("packets_v1model"),
    packets("packets_tna"),
    Target {
        name: "p4runtime",
        krate: "testbeds/softswitch",
        more_seeds: &[],
        dictionary: None,
        max_len: 8192,
        compares: true,
    },
    Target {
        name: "bundles",
        krate: "host-agent/frames",
        more_seeds: &[],
        dictionary: None,
        max_len: 8192,
        compares: true,
    },
];

const fn packets(name: &'static str) -> Target {
    Target {
        name,
        krate: PIPELINE,
        more_seeds: &[],
        dictionary: None,
        max_len: 16_384,
        compares: false,
    }
}

/// Result of one fuzz target.
struct TargetOutcome {
    name: &'static str,
    runs: u64,
    seconds: f64,
    /// Number of edges of the code's control flow that the inputs reached.
    coverage: u64,
    crashes: Vec<PathBuf>,
}

/// Runs the selected fuzz targets one after the other; `Ok(false)` if one crashed.
pub fn run(args: &Args) -> Result<bool> {
    let targets = choose_targets(&args.targets)?;
    require(
        &["fuzz", "--version"],
        "cargo-fuzz is missing: `cargo install cargo-fuzz`",
    )?;
    require(
        &["+nightly", "--version"],
        "libFuzzer's instrumentation wants a nightly compiler: `rustup toolchain install nightly`",
    )?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().context("the workspace's folder")?;
    let seconds = args.minutes.map_or(args.seconds, |minutes| minutes * 60);
    let mut outcomes = Vec::new();
    for target in targets {
        outcomes.push(target.run(&root, seconds)?);
    }
    match args.json {
        true => println!("{}", json(&outcomes)),
        false => print!("{}", table(&outcomes)),
    }
    Ok(outcomes.iter().all(|outcome| outcome.crashes.is_empty()))
}

/// Finds the fuzz targets of these names; without names, all targets.
fn choose_targets(names: &[String]) -> Result<Vec<&'static Target>> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    let named = |name: &String| {
        let found = TARGETS.iter().find(|target| target.name == name);
        found.with_context(|| {
            let all: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
            format!("no fuzz target `{name}`; there are {}", all.join(", "))
        })
    };
    names.iter().map(named).collect()
}

/// Fails with the message `otherwise` unless `cargo` can run the command of these words.
fn require(command: &[&str], otherwise: &str) -> Result<()> {
    let output = Command::new("cargo").args(command).output();
    if !output.is_ok_and(|output| output.status.success()) {
        bail!("{otherwise}");
    }
    Ok(())
}

impl Target {
    fn run(&self, root: &Path, seconds: u64) -> Result<TargetOutcome> {
        let krate = root.join(self.krate);
        let fuzz = krate.join("fuzz");
        // New inputs go here; those worth keeping are copied to the seeds by hand.
        let work = root.join("target/fuzz").join(self.name);
        let (corpus, artifacts) = (work.join("corpus"), work.join("artifacts"));
        std::fs::create_dir_all(&corpus)?;
        std::fs::create_dir_all(&artifacts)?;
        let mut cargo = Command::new("cargo");
        cargo
            .args([
                "+nightly",
                "fuzz",
                "run",
                "--sanitizer",
                "none",
                "--fuzz-dir",
            ])
            .arg(&fuzz)
            .arg("--target-dir")
            .arg(root.join("target/fuzz/build"))
            .args((!self.compares).then_some("--no-trace-compares"))
            .arg(self.name)
            .arg(&corpus)
            .arg(fuzz.join("seeds").join(self.name))
            .args(self.more_seeds.iter().map(|folder| krate.join(folder)))
            .arg("--")
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={}", self.max_len))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args(["-rss_limit_mb=2048", "-timeout=60", "-print_final_stats=1"]);
        if let Some(dictionary) = self.dictionary {
            cargo.arg(format!("-dict={}", fuzz.join(dictionary).display()));
        }
        let before = files(&artifacts)?;
        eprintln!("{}: building", self.name);
        let started = Instant::now();
        let (log, success) = self.run_logged(&mut cargo)?;
        std::fs::write(work.join("log"), log.as_bytes())?;
        let mut crashes = files(&artifacts)?;
        crashes.retain(|path| !before.contains(path));
        let runs = statistic(&log, "stat::number_of_executed_units:").unwrap_or(0);
        if !success && crashes.is_empty() {
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            bail!("{} did not run:\n{}", self.name, tail.join("\n"));
        }
        let done = log.lines().find_map(|line| line.strip_prefix("Done "));
        let seconds = done
            .and_then(|line| line.split_whitespace().rev().nth(1)?.parse().ok())
            .unwrap_or(started.elapsed().as_secs_f64());
        Ok(TargetOutcome {
            name: self.name,
            runs,
            seconds,
            coverage: log.lines().filter_map(coverage).max().unwrap_or(0),
            crashes,
        })
    }

    /// Runs a target's command and prints its progress; returns its log, and whether it succeeded.
    fn run_logged(&self, cargo: &mut Command) -> Result<(String, bool)> {
        let cargo = cargo.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = cargo.spawn().context("cannot run cargo fuzz")?;
        let stderr = child.stderr.take().context("no output of cargo fuzz")?;
        let (mut log, mut printed) = (String::new(), None::<Instant>);
        for line in BufReader::new(stderr).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            let due = printed.is_none_or(|at| at.elapsed() >= PROGRESS);
            if let (Some((runs, edges)), true) = (progress(&line), due) {
                eprintln!("{}: {runs} runs, {edges} edges", self.name);
                printed = Some(Instant::now());
            }
            log.push_str(&line);
            log.push('\n');
        }
        Ok((log, child.wait()?.success()))
    }
}

/// Parses libFuzzer's progress line `#12 NEW    cov: 345 ft: …`: number of executions (12), number of covered edges (345).
fn progress(line: &str) -> Option<(u64, u64)> {
    let runs = line.strip_prefix('#')?.split_whitespace().next()?;
    Some((runs.parse().ok()?, coverage(line)?))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    let mut paths: Vec<_> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

fn statistic(log: &str, name: &str) -> Option<u64> {
    let line = log.lines().rev().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

/// Parses the number of covered edges (345) in libFuzzer's line `#12 NEW    cov: 345 ft: …`.
fn coverage(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(" cov: ")?;
    rest.split_whitespace().next()?.parse().ok()
}

fn table(outcomes: &[TargetOutcome]) -> String {
    let mut out = format!(
        "{:<16} {:>10} {:>8} {:>9} {:>8}\n",
        "target", "runs", "runs/s", "coverage", "crashes"
    );
    for outcome in outcomes {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:<16} {:>10} {:>8.0} {:>9} {:>8}",
            outcome.name,
            outcome.runs,
            outcome.runs as f64 / outcome.seconds.max(1.0),
            outcome.coverage,
            outcome.crashes.len()
        );
        for crash in &outcome.crashes {
            let _ = writeln!(out, "  {}", crash.display());
        }
    }
    out
}

fn json(outcomes: &[TargetOutcome]) -> serde_json::Value {
    let all = outcomes.iter().map(|outcome| {
        json!({
            "target": outcome.name,
            "runs": outcome.runs,
            "seconds": outcome.seconds,
            "coverage": outcome.coverage,
            "crashes": outcome.crashes,
        })
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_parsed() {
        let log = "#2\tINITED cov: 12 ft: 3\n#9\tNEW    cov: 345 ft: 15 corp: 2/3b\nDone 62286 runs in 1902 second(s)\nstat::number_of_executed_units: 62286\n";
        assert_eq!(log.lines().filter_map(coverage).max(), Some(345));
        assert_eq!(
            statistic(log, "stat::number_of_executed_units:"),
            Some(62_286)
        );
        let printed: Vec<_> = log.lines().filter_map(progress).collect();
        assert_eq!(printed, [(2, 12), (9, 345)]);
    }

    #[test]
    fn targets_are_chosen_by_name() {
        let names = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            choose_targets(&names).map(|targets| targets.iter().map(|t| t.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap().len(), TARGETS.len());
        assert_eq!(names(&["p4runtime"]).unwrap(), ["p4runtime"]);
        let error = names(&["p4_sauce"]).unwrap_err().to_string();
        assert!(error.contains("no fuzz target `p4_sauce`; there are p4_source, "));
    }

    #[test]
    fn every_target_has_its_crate_and_seeds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for target in TARGETS {
            let fuzz = root.join(target.krate).join("fuzz");
            let main = fuzz.join(format!("fuzz_targets/{}.rs", target.name));
            assert!(main.is_file(), "{}", main.display());
            let seeds = fuzz.join("seeds").join(target.name);
            assert!(files(&seeds).is_ok_and(|files| !files.is_empty()));
        }
    }
}
