//! `cargo xtask fuzz`: builds and runs the fuzz targets, and says what became of them (docs/fuzzing.md).

use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub struct Args {
    /// Only this one
    target: Option<String>,
    /// How long each runs
    #[arg(long, default_value_t = 1)]
    minutes: u64,
    /// Print the figures as one last line of JSON
    #[arg(long)]
    json: bool,
}

struct Target {
    name: &'static str,
    /// The crate whose `fuzz` folder has it.
    krate: &'static str,
    /// Besides `fuzz/seeds/NAME`: folders with inputs, in the crate.
    more_seeds: &'static [&'static str],
    /// In the fuzz folder.
    dictionary: Option<&'static str>,
    max_len: usize,
}

const PIPELINE: &str = "testbeds/softswitch/pipeline";

const TARGETS: &[Target] = &[
    Target {
        name: "p4_source",
        krate: "p4src/lang",
        more_seeds: &["tests/corpus/pass", "tests/corpus/fail"],
        dictionary: Some("p4.dict"),
        max_len: 8192,
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
    },
];

const fn packets(name: &'static str) -> Target {
    Target {
        name,
        krate: PIPELINE,
        more_seeds: &[],
        dictionary: None,
        max_len: 16_384,
    }
}

/// What one run gave.
struct Outcome {
    name: &'static str,
    runs: u64,
    seconds: f64,
    /// Edges of the code that inputs reached.
    coverage: u64,
    crashes: Vec<PathBuf>,
}

/// Runs them one after the other; `Ok(false)` if one of them crashed.
pub fn run(args: &Args) -> Result<bool> {
    let wanted = |t: &&Target| args.target.as_ref().is_none_or(|name| t.name == name);
    let targets: Vec<&Target> = TARGETS.iter().filter(wanted).collect();
    if targets.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
        bail!("no such target; there are {}", names.join(", "));
    }
    let has_cargo_fuzz = Command::new("cargo").args(["fuzz", "--version"]).output();
    if !has_cargo_fuzz.is_ok_and(|output| output.status.success()) {
        bail!("cargo-fuzz is missing: `cargo install cargo-fuzz`, and a nightly toolchain");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().context("the workspace's folder")?;
    let mut outcomes = Vec::new();
    for target in targets {
        eprintln!("fuzzing {} …", target.name);
        outcomes.push(target.run(&root, args.minutes)?);
    }
    print!("{}", table(&outcomes));
    if args.json {
        println!("{}", json(&outcomes));
    }
    Ok(outcomes.iter().all(|outcome| outcome.crashes.is_empty()))
}

impl Target {
    fn run(&self, root: &Path, minutes: u64) -> Result<Outcome> {
        let krate = root.join(self.krate);
        let fuzz = krate.join("fuzz");
        // What is found goes here; what is worth keeping is copied to the seeds by hand.
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
            .arg(self.name)
            .arg(&corpus)
            .arg(fuzz.join("seeds").join(self.name))
            .args(self.more_seeds.iter().map(|folder| krate.join(folder)))
            .arg("--")
            .arg(format!("-max_total_time={}", minutes * 60))
            .arg(format!("-max_len={}", self.max_len))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args(["-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"]);
        if let Some(dictionary) = self.dictionary {
            cargo.arg(format!("-dict={}", fuzz.join(dictionary).display()));
        }
        let before = files(&artifacts)?;
        let started = std::time::Instant::now();
        let output = cargo.output().context("cannot run cargo fuzz")?;
        let log = String::from_utf8_lossy(&output.stderr);
        std::fs::write(work.join("log"), log.as_bytes())?;
        let mut crashes = files(&artifacts)?;
        crashes.retain(|path| !before.contains(path));
        let runs = statistic(&log, "stat::number_of_executed_units:").unwrap_or(0);
        if !output.status.success() && crashes.is_empty() {
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            bail!("{} did not run:\n{}", self.name, tail.join("\n"));
        }
        let done = log.lines().find_map(|line| line.strip_prefix("Done "));
        let seconds = done
            .and_then(|line| line.split_whitespace().rev().nth(1)?.parse().ok())
            .unwrap_or(started.elapsed().as_secs_f64());
        Ok(Outcome {
            name: self.name,
            runs,
            seconds,
            coverage: log.lines().filter_map(coverage).max().unwrap_or(0),
            crashes,
        })
    }
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

/// `#12 NEW    cov: 345 ft: …`
fn coverage(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(" cov: ")?;
    rest.split_whitespace().next()?.parse().ok()
}

fn table(outcomes: &[Outcome]) -> String {
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

fn json(outcomes: &[Outcome]) -> serde_json::Value {
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
    fn a_log_is_read() {
        let log = "#2\tINITED cov: 12 ft: 3\n#9\tNEW    cov: 345 ft: 15 corp: 2/3b\nDone 62286 runs in 1902 second(s)\nstat::number_of_executed_units: 62286\n";
        assert_eq!(log.lines().filter_map(coverage).max(), Some(345));
        assert_eq!(
            statistic(log, "stat::number_of_executed_units:"),
            Some(62_286)
        );
    }

    #[test]
    fn every_target_has_its_crate_and_seeds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for target in TARGETS {
            let fuzz = root.join(target.krate).join("fuzz");
            let main = fuzz.join(format!("fuzz_targets/{}.rs", target.name));
            assert!(main.is_file(), "{}", main.display());
            let seeds = fuzz.join("seeds").join(target.name);
            assert!(files(&seeds).is_ok_and(|files| !files.is_empty()));
        }
    }
}
