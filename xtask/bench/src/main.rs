//! Developer commands that need the product: a file or folder for each command. `cargo xtask` starts this program
//! with the user's arguments, built with profile `dist` for `bench` and `release` for the other commands.

mod conformance;
mod fluid;
mod fuzz;
mod measure;
mod plots;
mod tofino;

use clap::{Parser, Subcommand};
use measure::planning::point;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Measurements and long checks of weir")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the switch, the agents and the planners
    Bench(measure::Args),
    /// Run the tests in a checkout of p4c against our compiler and switch
    Conformance(conformance::Args),
    /// Run the fuzz targets, which need cargo-fuzz and a nightly toolchain
    Fuzz(fuzz::Args),
    /// Measure one point of `bench planning`, and print it as JSON
    #[command(name = point::COMMAND, hide = true)]
    PlanningPoint(point::Args),
    /// Draw the plots of docs/performance.md, measured in virtual time
    Plots(plots::Args),
    /// Check with Tofino's own compiler whether the shipped scenarios' programs fit
    Tofino(tofino::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bench(args) => measure::run(&args),
        Command::Conformance(args) => conformance::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::PlanningPoint(args) => point::run(&args),
        Command::Plots(args) => plots::run(&args),
        Command::Tofino(args) => tofino::run(&args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(2)
        }
    }
}
