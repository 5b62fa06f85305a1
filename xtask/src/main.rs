//! `cargo xtask`: the project's own commands.

mod bench;
mod conformance;
mod environments;
mod equivalence;
mod fuzz;
mod model_check;
mod packages;
mod plots;
mod programs;
mod test;
mod tofino;
mod torch;
mod wheel;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of weir")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all tests; as root on Debian, first install the packages that they want
    Test(test::Args),
    /// Measure what the embedded switch costs
    Bench(bench::Args),
    /// Run p4c's own tests, from a checkout of it, against our compiler and switch
    Conformance(conformance::Args),
    /// Hold generated programs against the model over a million frames
    Equivalence,
    /// Run the fuzz targets, which want cargo-fuzz and a nightly toolchain
    Fuzz(fuzz::Args),
    /// Explore all that can happen to aggregation's state machines, within bounds
    ModelCheck(model_check::Args),
    /// Measure in virtual time what docs/performance.md plots, and draw it
    Plots(plots::Args),
    /// Ask Tofino's own compiler whether the shipped scenarios' programs fit
    Tofino(tofino::Args),
    /// Run the tests of the PyTorch backend with the newest PyTorch of PyPI, or another
    Torch(torch::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Test(args) => test::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Conformance(args) => conformance::run(&args),
        Command::Equivalence => equivalence::run(),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::ModelCheck(args) => model_check::run(&args),
        Command::Plots(args) => plots::run(&args),
        Command::Tofino(args) => tofino::run(&args),
        Command::Torch(args) => torch::run(&args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}
