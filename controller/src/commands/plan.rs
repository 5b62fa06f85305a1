//! `weir plan FILE`

use std::path::Path;
use std::process::ExitCode;

use parser_gen::Arch;
use scenario::{Plan, TargetModel};

use super::topology::Network;
use super::{fail, load, print, print_json, show};
use crate::cli;
use controller::experiment::program;

/// Shows what a scenario would do.
pub fn main(args: &cli::Plan) -> ExitCode {
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => code,
    }
}

fn run(args: &cli::Plan) -> Result<(), ExitCode> {
    let scenario = load(&args.file)?;
    let plan = scenario::plan_to_prove(&scenario, &TargetModel::EMBEDDED)
        .map_err(|diagnostics| show(&diagnostics, &scenario.file, &scenario.text))?;
    if args.topology {
        print_json(&Network::of(&scenario))?;
    } else if args.json {
        print_json(&plan)?;
    } else {
        print(&plan)?;
    }
    match &args.emit_p4 {
        Some(folder) => emit(&plan, folder),
        None => Ok(()),
    }
}

/// Writes each switch's whole program, ready for p4c.
fn emit(plan: &Plan, folder: &Path) -> Result<(), ExitCode> {
    for switch in &plan.switches {
        let program = program::build(Arch::Psa, switch, None).map_err(fail)?;
        for (path, text) in &program.sources {
            let file = folder.join(&switch.name).join(path);
            let written = file
                .parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| std::fs::write(&file, text));
            written
                .map_err(|error| fail(format_args!("cannot write {}: {error}", file.display())))?;
        }
    }
    Ok(())
}
