//! Checks before a run that the programs of its scenario are installed.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use scenario::Scenario;
use scenario::model::workload::commands::CommandLine;
use scenario::model::workload::{Template, Variable};
use testbeds::command::{Missing, missing_of_line, missing_of_words};

use super::environment::{self, EnvironmentError};

/// Returns an error that names every program of the scenario that is not installed. Called before any program starts.
pub fn check_installed(scenario: &Scenario) -> Result<(), EnvironmentError> {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let mut missing = Vec::new();
    for command in environment::commands(scenario) {
        let here = environment::here(command.file.as_ref().unwrap_or(&scenario.file));
        let own = command.env.iter().find(|(name, _)| name == "PATH");
        if own.is_some_and(|(_, path)| !is_known(path)) {
            continue;
        }
        let filled = |path: &Template| path.expand(|_| here.display().to_string());
        let path = own.map(|(_, path)| OsString::from(filled(path)));
        let found = missing_of(&command.run, &here, path.as_ref().unwrap_or(&inherited));
        // A relative path is relative to the folder in which the command starts.
        let is_relative = |program: &str| program.contains('/') && !program.starts_with('/');
        let found = found.filter(|of| command.dir.is_none() || !is_relative(&of.program));
        missing.extend(found.map(|of| (format!("command `{}`", command.name), of)));
    }
    for (probe, run) in environment::programs(scenario) {
        let here = environment::here(probe.file.as_ref().unwrap_or(&scenario.file));
        let found = missing_of(run, &here, &inherited);
        missing.extend(found.map(|of| (format!("probe `{}`", probe.name), of)));
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(EnvironmentError::NotInstalled(missing)),
    }
}

/// The program of a command line if it is not installed; `None` if it is, or if its path is not known before the run.
fn missing_of(run: &CommandLine, here: &Path, path: &OsStr) -> Option<Missing> {
    let filled = |template: &Template| template.expand(|_| here.display().to_string());
    match run {
        CommandLine::Line(line) => missing_of_line(&filled(line), path),
        CommandLine::Words(words) => match words.first() {
            Some(program) if is_known(program) => missing_of_words(&filled(program), path),
            _ => None,
        },
    }
}

/// Whether the path of a program is known before the run: the contents of a program's own folder (`{dir}`) are not.
fn is_known(template: &Template) -> bool {
    let mut variables = template.variables().iter();
    variables.all(|(_, variable)| *variable == Variable::Here)
}
