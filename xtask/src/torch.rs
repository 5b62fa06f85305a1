//! `cargo xtask torch`: tests the PyTorch backend and its wheel with a PyTorch from PyPI instead of Debian's.

use anyhow::{Context, Result, ensure};
use lexopt::{Arg, ValueExt};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::programs::{cargo, done, output, target_folder, workspace_root};
use crate::{environments, test, wheel};

/// Parts of the names that select the PyTorch tests in `controller/tests/real_time/scenarios`.
const TESTS: [&str; 4] = ["torch::", "ddp", "parameter_server", "torchrun"];

/// Training frameworks on top of PyTorch that are tested (`host-agent/python/tests/frameworks.py`).
const FRAMEWORKS: [&str; 3] = ["accelerate", "transformers", "lightning"];

/// Options of `cargo xtask torch`.
#[derive(Debug, PartialEq, Eq)]
pub struct Args {
    /// Version of PyTorch to test; `None` for the newest version in the package index.
    version: Option<String>,
    /// Path or name of the Python for which PyTorch is installed.
    python: String,
    /// Whether to use the PyTorch of an earlier call, without a package index.
    no_install: bool,
}

impl Args {
    /// Parses the words after `torch`.
    pub fn parse(words: Vec<OsString>) -> Result<Args> {
        let (mut version, mut python, mut no_install) = (None, None, false);
        let mut parser = lexopt::Parser::from_args(words);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("version") => version = Some(parser.value()?.string()?),
                Arg::Long("python") => python = Some(parser.value()?.string()?),
                Arg::Long("no-install") => no_install = true,
                _ => return Err(argument.unexpected().into()),
            }
        }
        ensure!(
            !no_install || (version.is_none() && python.is_none()),
            "`--no-install` uses the installed PyTorch: leave `--version` and `--python` out"
        );
        Ok(Args {
            version,
            python: python.unwrap_or_else(|| "python3".to_owned()),
            no_install,
        })
    }
}

/// Installs PyTorch in target/, some 5 GB, and runs all tests of the backend; `Ok(false)` if a test failed.
pub fn run(args: &Args) -> Result<bool> {
    let root = workspace_root();
    let environment = target_folder(&root).join("test-torch");
    let python = environment.join("bin/python3");
    if !args.no_install {
        install(&environment, &python, args)?;
    }
    let versions = versions(&python)?;
    println!("{versions}");
    done(cargo(&root).args(["build", "--package", "weir-python"]))?;
    ensure!(
        environments::copy_native(&root),
        "the Python package's native half cannot be copied"
    );

    let mut cargo = cargo(&root);
    cargo.args([
        "test",
        "--package",
        "controller",
        "--test",
        "real_time",
        "--no-fail-fast",
        "--",
    ]);
    cargo.args(TESTS).env("WEIR_TORCH", environment.join("bin"));
    let (succeeded, totals, skipped) = test::run_counted(cargo, &root)?;
    println!();
    for line in &skipped {
        println!("skipped {line}");
    }
    let has_wheel = wheel::check_built(&root, &python, !args.no_install);
    println!("{versions}: {totals}");
    ensure!(!succeeded || totals.ran() > 0, "no test ran");
    Ok(succeeded && has_wheel)
}

/// Creates the Python environment with PyTorch, or changes the version of PyTorch in it.
fn install(environment: &Path, python: &Path, args: &Args) -> Result<()> {
    // The default folder in which pip unpacks may be too small.
    let unpacked = environment.join("tmp");
    done(
        Command::new(&args.python)
            .args(["-m", "venv"])
            .arg(environment),
    )?;
    std::fs::create_dir_all(&unpacked).context("cannot make a folder in target/")?;
    let torch = match &args.version {
        Some(version) => format!("torch=={version}"),
        None => "torch".to_owned(),
    };
    println!("installing {torch} in target/, some minutes the first time");
    let installed = done(
        Command::new(python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--upgrade",
                "--no-cache-dir",
                &torch,
                "numpy",
            ])
            .args(FRAMEWORKS)
            .env("TMPDIR", &unpacked),
    );
    let _ = std::fs::remove_dir_all(unpacked);
    installed
}

fn versions(python: &Path) -> Result<String> {
    let script = "import platform, torch; print(f'torch {torch.__version__}, Python {platform.python_version()}')";
    output(Command::new(python).args(["-c", script])).context("cannot import PyTorch from target/")
}
