//! `weir run FILE`: runs a scenario; also the client process that a Redis workload starts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use controller::experiment::prepare::Record;
use controller::experiment::{Conditions, Planned};
use controller::progress::Progress;
use controller::{run_folder, scenario_run};
use testbeds::bed::Wiring;
use testbeds::redis::{ClientArgs, run_client};
use testbeds::sandbox;

use super::colour::stdout_colour;
use super::report_file::ReportFile;
use super::{exit_code, fail, load, print, print_json, show};
use crate::cli::Run;

/// Performs `weir run`.
pub fn main(args: &Run) -> ExitCode {
    run(args, Printed::All).unwrap_or_else(|code| code)
}

/// Whether the results of a run are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    /// The report on the run is printed.
    All,
    /// Nothing is printed, because another command reports on the run.
    Nothing,
}

/// Runs a scenario, writes its reports, and returns the exit code for its result.
pub fn run(args: &Run, printed: Printed) -> Result<ExitCode, ExitCode> {
    // The file is checked before the sandbox is entered: errors in it need no network.
    let planned = plan(args)?;
    let switches = args.target.switches().map_err(fail)?;
    sandbox::enter().map_err(fail)?;
    // First, because other outputs may go into this folder.
    let out = args.out.as_deref();
    let _begun = out
        .map(|folder| run_folder::begin(folder, &planned.scenario))
        .transpose()
        .map_err(fail)?;
    // The folder of a run has its own report page.
    let page_path = match (&args.report, &args.out) {
        (Some(path), _) => Some(path.clone()),
        (None, Some(_)) => None,
        (None, None) => Some(PathBuf::from("weir-run.html")),
    };
    let report = page_path.as_deref().map(ReportFile::open).transpose()?;
    let conditions = Conditions {
        between: None,
        wiring: Wiring::Veth,
        p4src: args.p4src.as_deref(),
        switches: &switches,
        record: Record::for_run(&planned.scenario),
        out: args.out.as_deref(),
        weir: Path::new(Conditions::ITSELF),
    };
    let is_quiet = args.json || printed == Printed::Nothing;
    let mut progress = Progress::new(is_quiet);
    let result = scenario_run::run(&planned, conditions, &mut progress).map_err(fail)?;
    let page = scenario_run::page(&planned, &result);
    if let Some(folder) = &args.out {
        let target = args.target.kind.to_string();
        run_folder::write(folder, &target, &planned, &result, &page).map_err(fail)?;
    }
    if printed == Printed::Nothing {
        return Ok(exit_code(&result));
    }
    if args.json {
        print_json(&scenario_run::json(&planned, &result))?;
    } else {
        print(scenario_run::show(&planned, &result, stdout_colour()))?;
        for expectation in result
            .expectations
            .iter()
            .filter_map(|expectation| expectation.diagnostic.as_ref())
        {
            cli_io::stderr::tell(format_args!(
                "{}\n",
                expectation.render(&planned.scenario.source())
            ));
        }
    }
    if let Some(report) = report {
        report.write(&page, args.json)?;
    } else if let Some(folder) = args.out.as_ref().filter(|_| !args.json) {
        print(format_args!("run: {}\n", folder.display()))?;
    }
    Ok(exit_code(&result))
}

fn plan(args: &Run) -> Result<Planned, ExitCode> {
    let scenario = load(&args.file, &args.protocols.protocols)?;
    if scenario.topology.wire {
        return Err(fail(format_args!(
            "{}: its topology is a wire between existing machines: use `weir between IF1 IF2 --scenario FILE`",
            scenario.file
        )));
    }
    let (name, text) = (scenario.file.clone(), scenario.text.clone());
    let scenario = scenario.with_captures(args.captures);
    Planned::new(scenario, args.target.kind).map_err(|diagnostics| show(&diagnostics, &name, &text))
}

/// Performs the hidden command of a Redis workload's client, which runs on its host.
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
