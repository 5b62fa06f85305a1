//! `weir validate FILE…`: checks each scenario file alone, then all files together.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use parser_gen::Arch;
use scenario::{Plan, Scenario, TargetModel};

use super::{ERROR, load, print, show};
use crate::cli::Validate;
use controller::program;

/// Performs `weir validate`: checks scenario files.
pub fn main(args: &Validate) -> ExitCode {
    let mut planned: Vec<(Scenario, Plan)> = Vec::new();
    let mut refused = 0;
    for path in &args.files {
        match check(path, &args.protocols.protocols) {
            Ok(pair) => planned.push(pair),
            Err(_) => refused += 1,
        }
    }
    let pairs: Vec<(&Scenario, &Plan)> = planned
        .iter()
        .map(|(scenario, plan)| (scenario, plan))
        .collect();
    let together = scenario::check_together(&pairs, &TargetModel::EMBEDDED);
    for diagnostic in &together.0 {
        if let Some((scenario, _)) = planned
            .iter()
            .find(|(scenario, _)| scenario.file == diagnostic.file)
        {
            cli_io::stderr::tell(format_args!("{}\n", diagnostic.render(&scenario.source())));
        }
    }
    if !together.0.is_empty() {
        print_injection_points(&pairs);
    }
    if refused > 0 || !together.0.is_empty() {
        return ExitCode::from(ERROR);
    }
    for (scenario, plan) in &planned {
        let faults = scenario.faults.len() + scenario.disruptions.len();
        let flows = scenario.flows.len();
        let counts = [
            (faults, "fault"),
            (flows, "flow"),
            (plan.switches.len(), "switch"),
        ]
        .map(count)
        .join(", ");
        if let Err(code) = print(format_args!("{}: valid ({counts})\n", scenario.file)) {
            return code;
        }
    }
    ExitCode::SUCCESS
}

/// Prints on which switches faults would act if the scenarios ran together, where they differ from those of each alone.
fn print_injection_points(pairs: &[(&Scenario, &Plan)]) {
    let scenarios: Vec<&Scenario> = pairs.iter().map(|(scenario, _)| *scenario).collect();
    let Ok(plans) = scenario::plan_together(&scenarios, &TargetModel::EMBEDDED) else {
        return;
    };
    for ((scenario, alone), together) in pairs.iter().zip(&plans) {
        let mut printed: Vec<&str> = Vec::new();
        for point in &together.injections {
            if alone.injections.contains(point) || printed.contains(&point.fault.as_str()) {
                continue;
            }
            printed.push(&point.fault);
            cli_io::stderr::tell(format_args!(
                "help: planned together, fault `{}` of {} acts on switch `{}` (`where`)\n",
                point.fault, scenario.file, point.switch
            ));
        }
    }
}

/// Formats a number with its noun: "1 fault", "2 switches".
fn count((number, what): (usize, &str)) -> String {
    let plural = match (number, what) {
        (1, _) => "",
        (_, "switch") => "es",
        _ => "s",
    };
    format!("{number} {what}{plural}")
}

fn check(path: &Path, protocols: &[PathBuf]) -> Result<(Scenario, Plan), ExitCode> {
    let scenario = load(path, protocols)?;
    let plan = scenario::plan_to_prove(&scenario, &TargetModel::EMBEDDED)
        .map_err(|diagnostics| show(&diagnostics, &scenario.file, &scenario.text))?;
    for switch in &plan.switches {
        program::build(Arch::Psa, switch, None).map_err(super::fail)?;
    }
    Ok((scenario, plan))
}
