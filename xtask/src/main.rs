//! `cargo xtask`: developer commands. This program is light; commands that need the product start another program.

mod environments;
mod equivalence;
mod model_check;
mod packages;
mod programs;
mod test;
mod torch;
mod totals;
mod wheel;

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::process::ExitCode;

const HELP: &str = "\
Developer commands of weir

Usage: cargo xtask COMMAND [ARGUMENTS]

Commands:
  test         Install the tests' packages (as root on Debian), build everything once, and run the tests
                 --all         all seeds and slow forms; without it, a tenth of the seeds
                 --machines    also the tests that boot virtual machines
                 --no-install  install and prepare nothing
                 -- ARGS       only these tests: arguments for `cargo test`
  torch        Run the tests of the PyTorch backend with the newest PyTorch of PyPI
                 --version V   this version instead
                 --python P    the Python for which PyTorch is installed [default: python3]
                 --no-install  use the installation of an earlier call
  equivalence  Compare generated programs with the model over a million frames
  model-check  Explore every behavior of aggregation's state machines, within bounds
                 NAME …        only these rows, see docs/model-checking.md

Each of these has --help:
  weight       Print the size of the build, the sources and the tests, and the import cycles
  bench        Measure the switch, the agents and the planners
  conformance  Run the tests in a checkout of p4c against our compiler and switch
  fuzz         Run the fuzz targets, which need cargo-fuzz and a nightly toolchain
  plots        Measure in virtual time, and draw, the plots of docs/performance.md
  tofino       Check with Tofino's own compiler whether the shipped scenarios' programs fit
";

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1).collect()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Carries out one command; `Ok(false)` if a test or a check failed.
fn run(mut args: Vec<OsString>) -> Result<bool> {
    if args.is_empty() {
        bail!("no command; `cargo xtask help` lists them");
    }
    let command = args.remove(0).to_string_lossy().into_owned();
    // These commands print the list of all commands as their help.
    let is_listed = ["test", "torch", "equivalence", "model-check"].contains(&command.as_str());
    let mut own = args.iter().take_while(|arg| *arg != "--");
    if is_listed && own.any(|arg| arg == "--help" || arg == "-h") {
        print!("{HELP}");
        return Ok(true);
    }
    match command.as_str() {
        "test" => test::run(&test::Args::parse(args)?),
        "torch" => torch::run(&torch::Args::parse(args)?),
        "equivalence" if !args.is_empty() => bail!("`cargo xtask equivalence` takes no arguments"),
        "equivalence" => equivalence::run(),
        "model-check" => model_check::run(&args),
        "weight" => programs::cargo_run("dev", "weight", &args),
        "bench" | "conformance" | "fuzz" | "plots" | "tofino" => {
            // `bench` measures the shipped build profile; printing help does not need that build.
            let asks_help = args.iter().any(|arg| arg == "--help" || arg == "-h");
            let is_shipped = command == "bench" && !asks_help;
            args.insert(0, command.clone().into());
            programs::cargo_run(if is_shipped { "dist" } else { "release" }, "bench", &args)
        }
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(true)
        }
        _ => bail!("no command is called `{command}`; `cargo xtask help` lists them"),
    }
    .with_context(|| format!("cargo xtask {command}"))
}
