//! Runs scenarios by `weir run`, and keeps their folders.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::measure::Args;
use crate::measure::files::write;
use crate::measure::programs::WEIR;

/// Builds and runs `weir`; the folders of the runs live as long as this value.
pub struct ScenarioRunner {
    pub weir: PathBuf,
    pub folder: tempfile::TempDir,
    pub args: Args,
}

pub struct CompletedRun {
    pub folder: PathBuf,
    /// JSON that `weir run --json` printed.
    pub report: Value,
}

impl ScenarioRunner {
    /// Builds the program `weir`, by which scenarios are run.
    pub fn new(args: &Args) -> Result<ScenarioRunner> {
        Ok(ScenarioRunner {
            weir: WEIR.build(args.prebuilt)?,
            folder: tempfile::tempdir()?,
            args: args.clone(),
        })
    }

    /// Runs a scenario by `weir run`. The run's folder lives as long as `self`.
    pub fn run(&self, name: &str, text: &str) -> Result<CompletedRun> {
        let name = name.replace('/', "-");
        let file = self.folder.path().join(format!("{name}.yaml"));
        let folder = self.folder.path().join(&name);
        write(&file, text)?;
        let mut weir = Command::new(&self.weir);
        weir.arg("run")
            .arg(&file)
            .arg("--json")
            .arg("--out")
            .arg(&folder);
        let output = weir.output().context("cannot run weir")?;
        let report = serde_json::from_slice(&output.stdout).with_context(|| {
            let errors = String::from_utf8_lossy(&output.stderr);
            format!("weir run {name}: {}", errors.trim())
        })?;
        Ok(CompletedRun { folder, report })
    }
}
