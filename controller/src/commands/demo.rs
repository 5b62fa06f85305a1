//! `weir demo`

use std::process::ExitCode;

use testbeds::bed::Wiring;

use super::{FAILED, ReportFile, enter_sandbox, fail, print, print_json};
use crate::cli::{Demo, Links};
use crate::demo::{self, Settings};
use crate::progress::Progress;

/// Runs the demo.
pub fn main(args: &Demo) -> ExitCode {
    run(args).unwrap_or_else(|code| code)
}

fn run(args: &Demo) -> Result<ExitCode, ExitCode> {
    let wiring = match args.links {
        Links::Veth => {
            enter_sandbox().inspect_err(|_| {
                softswitch::stderr::tell(format_args!(
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
        tamper_register: args.tamper_register,
        tamper_counter: args.tamper_counter,
        kill_worker: args.kill_worker,
        stall_switch: args.stall_switch,
    };
    let mut progress = Progress::new(args.json);
    let result = demo::run(&settings, &mut progress).map_err(fail)?;
    let page = demo::page(&result).map_err(fail)?;
    if args.json {
        print_json(&result)?;
    } else {
        print(demo::show(&result))?;
    }
    report.write(&page, args.json)?;
    Ok(if result.ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}
