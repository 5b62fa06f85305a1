//! `cargo xtask test`: installs what tests want, runs them all, names what was skipped.

use crate::packages;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub struct Args {
    /// Install nothing, whoever runs it
    #[arg(long)]
    no_install: bool,
    /// Further arguments for `cargo test`
    #[arg(trailing_var_arg = true)]
    cargo_args: Vec<String>,
}

/// A test that skips prints a line that starts so; the rest of the line names the test and what it lacks.
const SKIPPED: &str = "SKIPPED ";

/// Runs everything; `Ok(false)` if a test failed.
pub fn run(args: &Args) -> Result<bool> {
    let root = workspace_root();
    if !args.no_install {
        packages::install_missing();
    }
    let venv = python_environment(&root);

    let skips = tempfile(&root)?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(&root)
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(&args.cargo_args)
        .env("WEIR_TEST_SKIPS", &skips)
        .stdout(Stdio::piped());
    if let Some(venv) = &venv {
        cargo.env("WEIR_PYTHON", venv.join("bin/python3"));
    }
    let mut child = cargo.spawn().context("cannot start cargo")?;
    let mut totals = Totals::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            totals.read(&line);
            println!("{line}");
        }
    }
    let status = child.wait()?;

    let mut skipped: Vec<String> = std::fs::read_to_string(&skips)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_prefix(SKIPPED).map(str::to_owned))
        .collect();
    let _ = std::fs::remove_file(&skips);
    skipped.sort();
    skipped.dedup();

    println!();
    for wanted in packages::WANTED.iter().chain(packages::OPTIONAL) {
        if !packages::found(wanted.program) {
            println!(
                "missing {} ({}): {}",
                wanted.program, wanted.package, wanted.purpose
            );
        }
    }
    for line in &skipped {
        println!("skipped {line}");
    }
    println!(
        "{} passed, {} failed, {} skipped",
        totals.passed,
        totals.failed,
        totals.ignored + skipped.len()
    );
    Ok(status.success())
}

#[derive(Default)]
struct Totals {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Totals {
    /// `test result: ok. 12 passed; 0 failed; 1 ignored; …`
    fn read(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else {
            return;
        };
        for part in rest.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(count) = count.parse::<usize>() else {
                continue;
            };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The file in which tests note what they skipped (test output itself is captured by the harness).
fn tempfile(root: &Path) -> Result<PathBuf> {
    let dir = root.join("target");
    std::fs::create_dir_all(&dir)?;
    let path = dir.join(format!("skipped-{}.txt", std::process::id()));
    std::fs::write(&path, "")?;
    Ok(path)
}

/// A virtual environment with p4runtime-shell in target/; `None` where it cannot be made, and its tests are skipped.
fn python_environment(root: &Path) -> Option<PathBuf> {
    let venv = root.join("target/test-venv");
    let python = venv.join("bin/python3");
    let has_shell = |python: &Path| {
        Command::new(python)
            .args(["-c", "import p4runtime_sh.shell"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if python.exists() && has_shell(&python) {
        return Some(venv);
    }
    println!("preparing p4runtime-shell in target/test-venv");
    let quiet = |command: &mut Command| {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let made = quiet(Command::new("python3").args(["-m", "venv"]).arg(&venv))
        && quiet(Command::new(&python).args([
            "-m",
            "pip",
            "install",
            "-q",
            "p4runtime-shell==0.0.6",
        ]));
    (made && has_shell(&python)).then_some(venv)
}
