//! `weir simulate FILE`: simulates the training or job of a scenario in virtual time.

use std::process::ExitCode;

use controller::simulation::{self, AllReduce, Options, SimulateError};

use super::{FAILED, fail, load, print, print_json, show};
use crate::cli::simulate::Simulate;

/// Performs `weir simulate`.
pub fn main(args: &Simulate) -> ExitCode {
    match run(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(code) => code,
    }
}

/// Simulates the scenario, prints the results, and returns whether the server, workers and ranks all finished.
fn run(args: &Simulate) -> Result<bool, ExitCode> {
    let scenario = load(&args.file, &args.protocols.protocols)?;
    let options = Options {
        processors: args.processors.map(usize::from),
        compute_ns: args.compute.as_nanos() as u64,
        evaluate_ns: args.evaluate.as_nanos() as u64,
        all_reduce: args.all_reduce.map(|values| AllReduce {
            values: values as usize,
            operations: args.operations,
        }),
    };
    let report = simulation::simulate(&scenario, &options).map_err(|refused| match refused {
        SimulateError::Plan(diagnostics) | SimulateError::Unknown(diagnostics) => {
            show(&diagnostics, &scenario.file, &scenario.text)
        }
        other => fail(other),
    })?;
    match args.json {
        true => print_json(&report)?,
        false => print(&report)?,
    }
    Ok(report.is_whole)
}
