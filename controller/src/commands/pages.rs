//! Prints or writes generated texts: completion scripts and manual pages, the JSON Schema and reference of YAML files.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;

use super::{fail, print};
use crate::cli::Cli;

/// Prints a completion script for a shell.
pub fn completions(shell: clap_complete::Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "weir", &mut script);
    print(String::from_utf8_lossy(&script)).map_or_else(|code| code, |()| ExitCode::SUCCESS)
}

/// Prints the JSON Schema of scenario files or of workload files, or the reference of both.
pub fn schema(reference: bool, workload: bool) -> ExitCode {
    let printed = match (reference, workload) {
        (true, _) => print(format!("{REFERENCE}{}", scenario::reference())),
        (false, true) => print(format!("{:#}\n", scenario::workload_json_schema())),
        (false, false) => print(format!("{:#}\n", scenario::json_schema())),
    };
    printed.map_or_else(|code| code, |()| ExitCode::SUCCESS)
}

/// The text at the top of the reference of scenario files.
const REFERENCE: &str = "\
# Reference of scenario files

Look up any key of a scenario, or of a [workload file](#a-workload-file), and its default, which
follows a semicolon. [scenarios.md](scenarios.md), [faults.md](faults.md) and
[filters.md](filters.md) explain the keys. `weir schema --reference` writes this page.
";

/// Writes the manual pages `weir.1`, `weir-demo.1`, … into a folder.
pub fn manual(folder: &Path) -> ExitCode {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format_args!(
            "cannot write manual pages into {}: {error}",
            folder.display()
        )),
    }
}
