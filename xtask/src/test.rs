//! `cargo xtask test`: installs the tests' programs while cargo builds everything once, runs the tests, and names skipped tests.

use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use crate::environments::{self, Make};
use crate::packages;
use crate::programs::{cargo, target_folder, workspace_root};
use crate::totals::Totals;
use crate::wheel;

/// Options of `cargo xtask test`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// Whether to run all seeds, and tests that take minutes.
    all: bool,
    /// Whether to run the tests that boot virtual machines too.
    machines: bool,
    /// Whether to install nothing, and build no environments in target/.
    no_install: bool,
    /// Arguments for `cargo test`, which select tests.
    cargo_args: Vec<OsString>,
}

impl Args {
    /// Parses the words after `test`. Words after `--` are for `cargo test`, and so are all from
    /// the first word that is not an option of `test`.
    ///
    /// # Errors
    /// If that first word begins with `--`: it may be a misspelled option of this command.
    pub fn parse(words: Vec<OsString>) -> Result<Args> {
        let mut args = Args::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.to_str() {
                Some("--all") => args.all = true,
                Some("--machines") => args.machines = true,
                Some("--no-install") => args.no_install = true,
                Some("--") => args.cargo_args.extend(words.by_ref()),
                Some(option) if option.starts_with("--") => bail!(
                    "no option is called `{option}`; arguments for `cargo test` follow after `--`"
                ),
                _ => {
                    args.cargo_args.push(word);
                    args.cargo_args.extend(words.by_ref());
                }
            }
        }
        Ok(args)
    }

    fn make(&self) -> Make {
        match self.no_install {
            true => Make::Nothing,
            false => Make::Missing,
        }
    }
}

/// Builds and runs the tests; `Ok(false)` if a test or the build failed.
pub fn run(args: &Args) -> Result<bool> {
    let root = workspace_root();
    let begun = Instant::now();
    let phase = |name: &str| println!("xtask: {name} ({} s)", begun.elapsed().as_secs());
    let is_whole = args.cargo_args.is_empty();

    phase(match is_whole {
        true => {
            "phase 1 of 3: build all packages with their tests; meanwhile install programs for the tests"
        }
        false => "phase 1 of 2: install programs for the tests",
    });
    let (built, mut variables) = std::thread::scope(|scope| {
        let installed = scope.spawn(|| {
            if args.make() == Make::Missing {
                packages::install_missing();
            }
            environments::variables(&root, args.make())
        });
        let built = is_whole.then(|| {
            let build = ["build", "--workspace", "--all-targets"];
            cargo(&root).args(build).status()
        });
        if let Some(status) = &built
            && !installed.is_finished()
        {
            phase(match status.as_ref().is_ok_and(ExitStatus::success) {
                true => "built; the installation continues",
                false => "the build failed; the installation still has to finish",
            });
        }
        (built.transpose(), installed.join())
    });
    if built
        .context("cannot start cargo")?
        .is_some_and(|status| !status.success())
    {
        // cargo has printed the reason.
        return Ok(false);
    }
    let variables = variables
        .as_mut()
        .expect("the installing thread does not panic");
    if args.machines {
        phase("build the image of the virtual machines");
        variables.push(("WEIR_MACHINES", environments::machines(&root, args.make())));
    } else if is_whole {
        // Empty: skip virtual machines even where their image exists.
        variables.push(("WEIR_MACHINES", PathBuf::new()));
    }
    if args.all {
        variables.push(("WEIR_TEST_ALL", "1".into()));
    } else if std::env::var_os("PROPTEST_CASES").is_none() {
        // A tenth of proptest's default number of cases.
        variables.push(("PROPTEST_CASES", "26".into()));
    }
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        // Many tests wait for packets and timers more than they compute.
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        variables.push(("RUST_TEST_THREADS", (2 * processors).to_string().into()));
    }
    let torch = environments::torch_for_tests(&root);
    if let Some(python) = &torch {
        variables.push(("WEIR_TORCH", python.parent().unwrap_or(python).to_owned()));
    }

    phase(match is_whole {
        true => "phase 2 of 3: run the tests",
        false => "phase 2 of 2: build and run the tests",
    });
    let mut cargo = cargo(&root);
    cargo
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(&args.cargo_args)
        .envs(variables.iter().map(|(name, value)| (name, value)));
    let (succeeded, totals, skipped) = run_counted(cargo, &root)?;

    // A selection of tests does not include the wheel.
    let mut has_wheel = true;
    if is_whole {
        phase("phase 3 of 3: the Python package's wheel");
        has_wheel = wheel::check_packed(&root, torch.as_deref());
    }

    phase("summary");
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
    for (program, test) in totals.failures() {
        println!("FAILED {program}: {test}");
    }
    if !args.all {
        println!("--all runs all seeds instead of a tenth");
    }
    if !args.machines {
        println!("--machines also boots virtual machines, for RDMA with Debian's kernel");
    }
    println!("{totals}");
    Ok(succeeded && has_wheel)
}

/// Runs `cargo test` and shows its output lines; returns whether it succeeded, the totals, and the reasons of skipped tests.
pub fn run_counted(mut cargo: Command, root: &Path) -> Result<(bool, Totals, BTreeSet<String>)> {
    let skips = skip_notes(root)?;
    cargo.env("WEIR_TEST_SKIPS", &skips);
    // One pipe for both: cargo names the program of the following tests in its own lines, on the standard error.
    let (output, writer) = std::io::pipe().context("cannot make a pipe")?;
    cargo.stdout(writer.try_clone()?).stderr(writer);
    let mut child = cargo.spawn().context("cannot start cargo")?;
    // The command holds the pipe open.
    drop(cargo);
    let mut totals = Totals::read(BufReader::new(output).lines(), |line| println!("{line}"))?;
    let status = child.wait()?;

    let notes = std::fs::read_to_string(&skips).unwrap_or_default();
    let _ = std::fs::remove_file(&skips);
    let skipped = totals.take_skips(&notes);
    Ok((status.success(), totals, skipped))
}

/// Path of the file in which tests note what they skipped (the test harness captures the tests' output).
fn skip_notes(root: &Path) -> Result<PathBuf> {
    let folder = target_folder(root);
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("skipped-{}.txt", std::process::id()));
    std::fs::write(&path, "")?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Args {
        Args::parse(words.split_whitespace().map(OsString::from).collect()).expect("no misspelling")
    }

    #[test]
    fn other_words_go_to_cargo() {
        assert_eq!(parsed(""), Args::default());
        let args = parsed("--all --no-install -p scenario --all");
        assert!(args.all && args.no_install && !args.machines);
        assert_eq!(args.cargo_args, ["-p", "scenario", "--all"]);
        assert_eq!(parsed("-- -p wire -- --nocapture").cargo_args.len(), 4);
    }

    #[test]
    fn misspelled_options_are_refused() {
        let error = Args::parse(vec!["--machine".into(), "-p".into()]).unwrap_err();
        assert!(error.to_string().contains("`--machine`"), "{error}");
    }
}
