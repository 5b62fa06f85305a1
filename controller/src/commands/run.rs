//! `weir run FILE`, and the client that it starts.

use std::path::Path;
use std::process::ExitCode;

use controller::target::Kind;
use testbeds::bed::Wiring;
use testbeds::redis::{ClientArgs, run_client};

use super::{FAILED, ReportFile, enter_sandbox, fail, load, print, print_json, show};
use crate::cli::Run;
use crate::experiment::{Conditions, Planned};
use crate::progress::Progress;
use crate::scenario_run;

/// Runs a scenario.
pub fn main(args: &Run) -> ExitCode {
    run(args).unwrap_or_else(|code| code)
}

fn run(args: &Run) -> Result<ExitCode, ExitCode> {
    // Checked before the sandbox is entered: what is wrong with the file needs no network to be said.
    let planned = plan(&args.file, args.target.kind)?;
    let switches = args.target.switches().map_err(fail)?;
    enter_sandbox()?;
    let report = ReportFile::open(&args.report)?;
    let conditions = Conditions {
        wiring: Wiring::Veth,
        p4src: args.p4src.as_deref(),
        switches: &switches,
        stall_switch: false,
    };
    let mut progress = Progress::new(args.json);
    let result = scenario_run::run(&planned, conditions, &mut progress).map_err(fail)?;
    let page = scenario_run::page(&planned, &result).map_err(fail)?;
    if args.json {
        print_json(&result)?;
    } else {
        print(scenario_run::show(&result))?;
        for expectation in result
            .expectations
            .iter()
            .filter_map(|expectation| expectation.diagnostic.as_ref())
        {
            softswitch::stderr::tell(format_args!(
                "{}\n",
                expectation.render(&planned.scenario.source())
            ));
        }
    }
    report.write(&page, args.json)?;
    Ok(if result.ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}

fn plan(file: &Path, kind: Kind) -> Result<Planned, ExitCode> {
    let scenario = load(file)?;
    let (name, text) = (scenario.file.clone(), scenario.text.clone());
    Planned::of(scenario, kind).map_err(|diagnostics| show(&diagnostics, &name, &text))
}

/// A client of a workload, in its host.
pub fn client(args: &ClientArgs) -> ExitCode {
    match run_client(args) {
        Ok(report) => match serde_json::to_string(&report) {
            Ok(line) => {
                println!("{line}");
                ExitCode::SUCCESS
            }
            Err(error) => fail(error),
        },
        Err(error) => fail(error),
    }
}
