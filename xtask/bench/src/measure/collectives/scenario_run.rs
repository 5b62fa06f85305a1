//! Runs `weir run` with a scenario, and reads its report.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::files;

/// Runs a scenario, which may fail, in a folder of its own, and returns its report. If there is no
/// report, the error is the error output of `weir run`.
pub fn report(weir: &Path, scenario: &str) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    files::write(folder.path().join("s.yaml"), scenario)?;
    let mut command = Command::new(weir);
    command.args(["run", "s.yaml", "--json", "--report", "page.html"]);
    command.current_dir(folder.path());
    // Commands of the scenario call `weir` by name.
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let beside = weir.parent().map(Into::into).into_iter();
    let paths = std::env::join_paths(beside.chain(std::env::split_paths(&paths)))?;
    let output = command.env("PATH", paths).output();
    let output = output.context("cannot run weir")?;
    let report = serde_json::from_slice(&output.stdout);
    report.with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}
