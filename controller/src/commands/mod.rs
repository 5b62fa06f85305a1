//! The commands of `weir`: each reads its input, calls a module of the controller, prints, and chooses the exit code.

#[cfg(feature = "testbed")]
pub mod between;
pub mod collectives;
mod colour;
pub mod control;
#[cfg(feature = "testbed")]
pub mod demo;
pub mod doctor;
mod file_kind;
mod fmt;
#[cfg(feature = "testbed")]
pub mod job;
pub mod p4;
pub mod pages;
pub mod plan;
mod protocols;
#[cfg(feature = "testbed")]
pub mod replay;
#[cfg(feature = "testbed")]
mod report_file;
pub mod route;
#[cfg(feature = "testbed")]
pub mod run;
pub mod simulate;
mod topology;
pub mod validate;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use file_kind::FileKind;
use planner::Network;
use scenario::diagnostic::Source;
use scenario::{Diagnostics, Scenario};

/// Exit code of a command that found a failure, such as an expectation that was not met.
pub const FAILED: u8 = 1;
/// Exit code of a command that could not do its work.
pub const ERROR: u8 = 2;

/// Exit code of a run that a condition of its scenario aborted.
pub const ABORTED: u8 = 3;

/// The exit code for a run: 0 (passed), 1 (failed) or 3 (aborted).
#[cfg(feature = "testbed")]
fn exit_code(judged: &controller::scenario_run::ScenarioRun) -> ExitCode {
    match (&judged.run.carried_out.aborted, judged.verdict.is_ok()) {
        (Some(_), _) => ExitCode::from(ABORTED),
        (None, true) => ExitCode::SUCCESS,
        (None, false) => ExitCode::from(FAILED),
    }
}

/// Prints an error message on the standard error, and returns exit code 2.
pub fn fail(message: impl std::fmt::Display) -> ExitCode {
    cli_io::stderr::tell(format_args!("weir: {message}\n"));
    ExitCode::from(ERROR)
}

/// Reads the text of a file; `-` is the standard input.
fn read(path: &Path) -> Result<String, ExitCode> {
    cli_io::disk::text(path).map_err(|error| cannot_read(path, &error))
}

fn cannot_read(path: &Path, error: &std::io::Error) -> ExitCode {
    match cli_io::disk::is_stdin(path) {
        true => fail(format_args!("cannot read the standard input: {error}")),
        false => fail(format_args!("cannot read {}: {error}", path.display())),
    }
}

/// Reads and checks a scenario; prints its errors and warnings.
///
/// `protocols`: folders of protocol files.
fn load(path: &Path, protocols: &[PathBuf]) -> Result<Scenario, ExitCode> {
    let text = read(path)?;
    let file = match cli_io::disk::is_stdin(path) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let given = protocols::given(path, &text, protocols)?;
    let scenario = scenario::load_with(&file, &text, &given).map_err(|diagnostics| {
        let code = refuse(&diagnostics, &file, &text, FileKind::Scenario);
        if let Some(hint) = file_kind::hint(path, &diagnostics) {
            cli_io::stderr::tell(format_args!("weir: {hint}\n"));
        }
        code
    })?;
    show(&scenario.warnings, &scenario.file, &scenario.text);
    Ok(scenario)
}

/// Reads the network in a topology file; prints the file's errors and warnings.
fn network(path: &Path) -> Result<Network, ExitCode> {
    let text = read(path)?;
    let file = path.display().to_string();
    let given = protocols::given(path, &text, &[])?;
    let (topology, warnings) = scenario::load_topology(&file, &text, &given)
        .map_err(|diagnostics| refuse(&diagnostics, &file, &text, FileKind::Topology))?;
    show(&warnings, &file, &text);
    scenario::topology_network(&topology).map_err(fail)
}

/// Prints why a file is refused: because it is of another kind than `wanted`, or else its diagnostics. Returns exit code 2.
fn refuse(diagnostics: &Diagnostics, file: &str, text: &str, wanted: FileKind) -> ExitCode {
    match file_kind::instead(file, text, wanted) {
        Some(message) => fail(message),
        None => show(diagnostics, file, text),
    }
}

/// Prints the diagnostics of a file; returns exit code 2, which applies if the diagnostics are errors.
fn show(diagnostics: &Diagnostics, file: &str, text: &str) -> ExitCode {
    let source = Source { file, text };
    for diagnostic in &diagnostics.0 {
        cli_io::stderr::tell(format_args!("{}\n", diagnostic.render(&source)));
    }
    ExitCode::from(ERROR)
}

/// Prints text to the standard output; it is no error if the reader has closed the pipe.
fn print(text: impl std::fmt::Display) -> Result<(), ExitCode> {
    print_bytes(text.to_string().as_bytes())
}

/// Prints bytes to the standard output; it is no error if the reader has closed the pipe.
fn print_bytes(bytes: &[u8]) -> Result<(), ExitCode> {
    let mut output = std::io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(fail(format_args!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON object to the standard output.
fn print_json(value: &impl serde::Serialize) -> Result<(), ExitCode> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| fail(format_args!("cannot write JSON: {error}")))?;
    print(format_args!("{text}\n"))
}
