//! `cargo xtask`: the developer commands. Each command has a file of its name, or a crate of its name that this program builds
//! and starts: `weight`, and `bench` for the commands that need the product.

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
                 --no-install  install and build nothing
                 -- ARGS       arguments for `cargo test`, to select tests
  torch        Run the tests of the PyTorch backend with the newest PyTorch of PyPI
                 --version V   another version of PyTorch
                 --python P    Python for which PyTorch is installed [default: python3]
                 --no-install  use what an earlier call installed
  equivalence  Compare generated programs with the model over a million frames
  model-check  Explore all executions of aggregation's state machines, within bounds
                 NAME …        only these models, see docs/model-checking.md

Each of these has --help:
  weight       Print the size of the build, the sources and the tests, and the import cycles
  bench        Measure the switch, the agents and the planners
  conformance  Run the tests in a checkout of p4c against our compiler and switch
  fuzz         Run the fuzz targets, which need cargo-fuzz and a nightly toolchain
  plots        Draw the plots of docs/performance.md, measured in virtual time
  tofino       Ask Tofino's own compiler whether the shipped scenarios' programs fit
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

/// Parses and runs a command of `cargo xtask`; `Ok(false)` if a test or a check failed.
fn run(mut words: Vec<OsString>) -> Result<bool> {
    if words.is_empty() {
        bail!("no command; `cargo xtask help` lists them");
    }
    let name = words.remove(0).to_string_lossy().into_owned();
    Command::parse(&name, words)
        .and_then(Command::run)
        .with_context(|| format!("cargo xtask {name}"))
}

/// Developer command of `cargo xtask`, with its arguments.
enum Command {
    Test(test::Args),
    Torch(torch::Args),
    Equivalence,
    ModelCheck(Vec<OsString>),
    Weight(Vec<OsString>),
    /// Command of the crate `bench`: the command's name, then its arguments.
    Bench(Vec<OsString>),
    Help,
}

impl Command {
    fn parse(name: &str, mut args: Vec<OsString>) -> Result<Command> {
        // These commands print the list of all commands as their help.
        let is_listed = ["test", "torch", "equivalence", "model-check"].contains(&name);
        let mut own = args.iter().take_while(|arg| *arg != "--");
        if is_listed && own.any(is_help) {
            return Ok(Command::Help);
        }
        Ok(match name {
            "test" => Command::Test(test::Args::parse(args)?),
            "torch" => Command::Torch(torch::Args::parse(args)?),
            "equivalence" if args.is_empty() => Command::Equivalence,
            "equivalence" => bail!("`cargo xtask equivalence` takes no arguments"),
            "model-check" => Command::ModelCheck(args),
            "weight" => Command::Weight(args),
            "bench" | "conformance" | "fuzz" | "plots" | "tofino" => {
                args.insert(0, name.into());
                Command::Bench(args)
            }
            "help" | "--help" | "-h" => Command::Help,
            _ => bail!("no command is called `{name}`; `cargo xtask help` lists them"),
        })
    }

    fn run(self) -> Result<bool> {
        match self {
            Command::Test(args) => test::run(&args),
            Command::Torch(args) => torch::run(&args),
            Command::Equivalence => equivalence::run(),
            Command::ModelCheck(names) => model_check::run(&names),
            Command::Weight(args) => programs::cargo_run("dev", "weight", &args),
            Command::Bench(args) => {
                // `bench` measures the shipped build profile; printing help does not need that build.
                let is_shipped = args[0] == "bench" && !args.iter().any(is_help);
                programs::cargo_run(if is_shipped { "dist" } else { "release" }, "bench", &args)
            }
            Command::Help => {
                print!("{HELP}");
                Ok(true)
            }
        }
    }
}

fn is_help(arg: &OsString) -> bool {
    arg == "--help" || arg == "-h"
}
