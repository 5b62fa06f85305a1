//! `weir demo`: runs the demo, and prints and writes its report.

use std::path::Path;
use std::process::ExitCode;

use controller::demo::{self, Settings};
use controller::experiment::Conditions;
use controller::progress::Progress;
use testbeds::bed::Wiring;
use testbeds::sandbox;

use super::colour::stdout_colour;
use super::report_file::ReportFile;
use super::{FAILED, fail, print, print_json};
use crate::cli::{Demo, Links};

/// Performs `weir demo`.
pub fn main(args: &Demo) -> ExitCode {
    run(args).unwrap_or_else(|code| code)
}

fn run(args: &Demo) -> Result<ExitCode, ExitCode> {
    let wiring = match args.links {
        Links::Veth => {
            sandbox::enter().map_err(fail).inspect_err(|_| {
                cli_io::stderr::tell(format_args!(
                    "hint: `weir demo --links memory` needs no namespaces\n"
                ))
            })?;
            Wiring::Veth
        }
        Links::Memory => Wiring::Memory,
    };
    let report = ReportFile::open(&args.report)?;
    let settings = Settings {
        wiring,
        p4src: args.p4src.as_deref(),
        seed: args.seed,
        iterations: args.iterations,
        weir: Path::new(Conditions::ITSELF),
    };
    let mut progress = Progress::new(args.json);
    let result = demo::run(&settings, &mut progress).map_err(fail)?;
    let page = demo::page(&result);
    if args.json {
        print_json(&demo::json(&result))?;
    } else {
        print(demo::show(&result, stdout_colour()))?;
    }
    report.write(&page, args.json)?;
    Ok(match result.verdict.is_ok() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}
