//! What each command of the command line does: read its input, call the module that knows, print, choose the exit code.

pub mod control;
pub mod demo;
mod fmt;
pub mod p4;
pub mod pages;
pub mod plan;
pub mod run;
mod topology;
pub mod validate;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use scenario::diagnostic::Source;
use scenario::{Diagnostics, Scenario};
use testbeds::sandbox;

/// An expectation was not met.
pub const FAILED: u8 = 1;
/// Could not run.
pub const ERROR: u8 = 2;

/// One message for people, exit code 2.
pub fn fail(message: impl std::fmt::Display) -> ExitCode {
    softswitch::stderr::tell(format_args!("weir: {message}\n"));
    ExitCode::from(ERROR)
}

/// The text of a scenario or program.
fn read(path: &Path) -> Result<String, ExitCode> {
    softswitch::disk::bytes(path)
        .and_then(|bytes| std::io::read_to_string(&bytes[..]))
        .map_err(|error| cannot_read(path, &error))
}

fn cannot_read(path: &Path, error: &std::io::Error) -> ExitCode {
    fail(format_args!("cannot read {}: {error}", path.display()))
}

/// Reads and checks a scenario; shows what is wrong with it.
fn load(path: &Path) -> Result<Scenario, ExitCode> {
    let text = read(path)?;
    let file = path.display().to_string();
    let scenario =
        scenario::load(&file, &text).map_err(|diagnostics| show(&diagnostics, &file, &text))?;
    if !scenario.warnings.0.is_empty() {
        show(&scenario.warnings, &file, &text);
    }
    Ok(scenario)
}

/// Shows diagnostics of one file; the exit code for when they are errors.
fn show(diagnostics: &Diagnostics, file: &str, text: &str) -> ExitCode {
    let source = Source { file, text };
    for diagnostic in &diagnostics.0 {
        softswitch::stderr::tell(format_args!("{}\n", diagnostic.render(&source)));
    }
    ExitCode::from(ERROR)
}

/// Enters namespaces of our own; returns only inside.
fn enter_sandbox() -> Result<(), ExitCode> {
    sandbox::enter().map(drop).map_err(fail)
}

/// Prints to the standard output. A reader that went away has seen what it wanted.
fn print(text: impl std::fmt::Display) -> Result<(), ExitCode> {
    print_bytes(text.to_string().as_bytes())
}

/// As [`print()`].
fn print_bytes(bytes: &[u8]) -> Result<(), ExitCode> {
    let mut output = std::io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(fail(format_args!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// The file of a report, opened before what it reports on begins: a run is not to be lost for a wrong path.
struct ReportFile<'a> {
    path: &'a Path,
    file: File,
    /// It was not there before, and is empty.
    is_new: bool,
}

impl<'a> ReportFile<'a> {
    /// Leaves what an earlier run has written until [`Self::write`].
    fn open(path: &'a Path) -> Result<Self, ExitCode> {
        let is_new = !path.exists();
        let opened = File::options().append(true).create(true).open(path);
        let file = opened.map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path, file, is_new })
    }

    /// Writes the report, and says where it is.
    fn write(mut self, html: &str, quiet: bool) -> Result<(), ExitCode> {
        // What is no file, such as a pipe, cannot be shortened, and has nothing to lose.
        let cut = match self.file.metadata() {
            Ok(metadata) if metadata.is_file() => self.file.set_len(0),
            other => other.map(drop),
        };
        let written = cut.and_then(|()| self.file.write_all(html.as_bytes()));
        written.map_err(|error| cannot_write(self.path, &error))?;
        self.is_new = false;
        if quiet {
            Ok(())
        } else {
            print(format_args!("report: {}\n", self.path.display()))
        }
    }
}

impl Drop for ReportFile<'_> {
    fn drop(&mut self) {
        if self.is_new {
            // Nothing was reported.
            let _ = std::fs::remove_file(self.path);
        }
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> ExitCode {
    fail(format_args!(
        "cannot write the report {}: {error}",
        path.display()
    ))
}

/// Prints one JSON object.
fn print_json(value: &impl serde::Serialize) -> Result<(), ExitCode> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| fail(format_args!("cannot write JSON: {error}")))?;
    print(format_args!("{text}\n"))
}
