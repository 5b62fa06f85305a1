//! Completions and manual pages, both from the command line's own description.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;

use super::{fail, print};
use crate::cli::Cli;

/// Prints a completion script.
pub fn completions(shell: clap_complete::Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "weir", &mut script);
    print(String::from_utf8_lossy(&script)).map_or_else(|code| code, |()| ExitCode::SUCCESS)
}

/// Writes `weir.1`, `weir-demo.1`, …
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
