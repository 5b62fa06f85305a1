//! `weir p4 run`: sends packets through a P4 program, and prints the packets that leave it.

use std::path::Path;
use std::process::ExitCode;

use softswitch::p4_run::{self, ControlState, Error};

use super::super::{FAILED, cannot_read, fail, print};
use super::compile;
use crate::cli::p4::{Executor, P4Run};
use crate::commands::colour::coloured;

/// Reads the table entries of `--entries`; this file may exceed the size limit of P4 programs.
fn written(path: &Path) -> Result<ControlState, ExitCode> {
    let text = std::fs::read_to_string(path).map_err(|error| cannot_read(path, &error))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    ControlState::parse(text).map_err(|error| fail(format_args!("{}: {error}", path.display())))
}

/// Performs `weir p4 run`.
pub fn run(args: &P4Run) -> Result<(), ExitCode> {
    let compiled = compile(&args.source)?;
    let written = match &args.entries {
        None => ControlState::default(),
        Some(path) => written(path)?,
    };
    let looks = args.trace.is_some() || args.poison.is_some();
    if args.executor == Executor::Both && looks {
        return Err(fail(
            "--executor both: --trace and --poison use the reference only; leave them out, or use `--executor reference`",
        ));
    }
    let options = p4_run::Options {
        executor: match args.executor {
            Executor::Fast => p4_run::Executor::Fast,
            Executor::Reference => p4_run::Executor::Reference,
            Executor::Both => p4_run::Executor::Both,
        },
        packets: args.packets.iter().map(|p| p.0.clone()).collect(),
        port: args.port,
        written,
        trace: args.trace,
        poison: args.poison,
        colour: coloured(args.source.color, &std::io::stdout()),
    };
    match p4_run::run(compiled.program.into(), &options) {
        Ok(outcome) => {
            print(&outcome.text)?;
            for difference in &outcome.differences {
                cli_io::stderr::tell(format_args!("weir: the executors differ: {difference}\n"));
            }
            if let Some((number, rounds)) = outcome.given_up {
                cli_io::stderr::tell(format_args!(
                    "weir: packet {number} was dropped after {rounds} recirculations; the packets after it were not sent\n"
                ));
            }
            if outcome.differences.is_empty() && outcome.given_up.is_none() {
                Ok(())
            } else {
                Err(ExitCode::from(FAILED))
            }
        }
        Err(Error::Entry(error)) => {
            let file = args.entries.as_deref().unwrap_or(&args.source.file);
            Err(fail(format_args!("{}: {error}", file.display())))
        }
        Err(Error::Port(error)) => Err(fail(format_args!("--port: {error}"))),
        Err(Error::Program(error)) => Err(fail(format_args!(
            "the switch cannot run {}\n{error}",
            args.source.file.display()
        ))),
    }
}
