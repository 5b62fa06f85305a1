//! `cargo xtask test`: installs what tests want, runs them all, names what was skipped.

use crate::environments::{self, Make};
use crate::packages;
use crate::wheel;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub struct Args {
    /// Install nothing, and build none of what is made in target/, whoever runs it
    #[arg(long)]
    no_install: bool,
    /// Further arguments for `cargo test`
    #[arg(trailing_var_arg = true)]
    cargo_args: Vec<String>,
}

/// Runs everything; `Ok(false)` if a test failed.
pub fn run(args: &Args) -> Result<bool> {
    let root = workspace_root();
    let make = match args.no_install {
        true => Make::Nothing,
        false => {
            packages::install_missing();
            Make::Missing
        }
    };
    let variables = environments::variables(&root, make);
    let torch = variables.iter().find(|(name, _)| *name == "WEIR_TORCH");
    let torch = torch.map(|(_, folder)| folder.join("python3"));

    let mut cargo = environments::cargo(&root);
    cargo
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(&args.cargo_args)
        .envs(variables);
    let (succeeded, totals, skipped) = counted(cargo, &root)?;

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
    // Who wants some tests alone does not want it.
    let has_wheel =
        !args.cargo_args.is_empty() || wheel::check(&root, torch.as_deref(), make == Make::Missing);
    println!("{totals}");
    Ok(succeeded && has_wheel)
}

/// Runs `cargo test`, whose lines are shown; whether it succeeded, what became of the tests, and what they skipped and why.
pub fn counted(mut cargo: Command, root: &Path) -> Result<(bool, Totals, BTreeSet<String>)> {
    let skips = tempfile(root)?;
    cargo.env("WEIR_TEST_SKIPS", &skips);
    // One pipe: which program a test belongs to stands in cargo's own lines, on the standard error.
    let (output, writer) = std::io::pipe().context("cannot make a pipe")?;
    cargo.stdout(writer.try_clone()?).stderr(writer);
    let mut child = cargo.spawn().context("cannot start cargo")?;
    // It holds the pipe open.
    drop(cargo);
    let mut totals = Totals::default();
    for line in BufReader::new(output).lines() {
        let line = line?;
        totals.read(&line);
        println!("{line}");
    }
    let status = child.wait()?;

    let notes = std::fs::read_to_string(&skips).unwrap_or_default();
    let _ = std::fs::remove_file(&skips);
    let skipped = totals.take_skips(&notes);
    Ok((status.success(), totals, skipped))
}

/// What became of the tests: each is counted once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Totals {
    passed: usize,
    failed: usize,
    skipped: usize,
    /// The program whose tests run.
    program: String,
    /// Program and test.
    failures: BTreeSet<(String, String)>,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
            ..
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl Totals {
    /// How many tests have run to their end.
    pub fn ran(&self) -> usize {
        self.passed + self.failed
    }

    /// A line of cargo's, or of a test program's.
    fn read(&mut self, line: &str) {
        // `Running tests/cli.rs (target/debug/deps/cli-0123456789abcdef)`
        if let Some(running) = line.trim_start().strip_prefix("Running ")
            && let Some((_, path)) = running.rsplit_once('(')
        {
            let path = Path::new(path.trim_end_matches(')'));
            let name = path.file_name().unwrap_or_default();
            self.program = name.to_string_lossy().into_owned();
        }
        if let Some(test) = line.strip_prefix("test ")
            && let Some(test) = test.strip_suffix(" ... FAILED")
        {
            let failure = (self.program.clone(), test.to_owned());
            self.failures.insert(failure);
        }
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.add(counts);
        }
    }

    /// `ok. 12 passed; 0 failed; 1 ignored; …`
    fn add(&mut self, counts: &str) {
        for part in counts.split([';', '.']) {
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
                "ignored" => self.skipped += count,
                _ => {}
            }
        }
    }

    /// Takes what tests have noted of skips, a line each: program, test, what was skipped and why. The harness has counted a
    /// test that skips as passed, which it is not; one that has failed has failed. Gives the reasons, in order.
    fn take_skips(&mut self, notes: &str) -> BTreeSet<String> {
        let mut tests = BTreeSet::new();
        let mut reasons = BTreeSet::new();
        for note in notes.lines() {
            let mut fields = note.splitn(3, '\t').map(str::to_owned);
            if let (Some(program), Some(test), Some(reason)) =
                (fields.next(), fields.next(), fields.next())
            {
                tests.insert((program, test));
                reasons.insert(reason);
            }
        }
        let skipped = tests.difference(&self.failures).count();
        self.passed = self.passed.saturating_sub(skipped);
        self.skipped += skipped;
        reasons
    }
}

/// The repository's root.
pub fn workspace_root() -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_is_counted_once() {
        let mut totals = Totals::default();
        let output = "   Compiling weir v0.1.0
     Running unittests src/lib.rs (target/debug/deps/weir-11)
running 3 tests
test a ... ok
test b ... ok
test c ... ignored, slow
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/cli.rs (target/debug/deps/cli-22)
running 3 tests
test a ... ok
test b ... FAILED
test c ... ok
test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        output.lines().for_each(|line| totals.read(line));
        assert_eq!((totals.passed, totals.failed, totals.skipped), (4, 1, 1));
        // `a` of one program skips, twice; so does a test that fails afterwards.
        let notes = "cli-22\ta\tfirst: no redis\ncli-22\ta\tsecond: no mn\ncli-22\tb\tb: no mn\n\n";
        let reasons = totals.take_skips(notes);
        let expected = ["b: no mn", "first: no redis", "second: no mn"];
        assert!(reasons.iter().eq(&expected), "{reasons:?}");
        assert_eq!((totals.passed, totals.failed, totals.skipped), (3, 1, 2));
    }
}
