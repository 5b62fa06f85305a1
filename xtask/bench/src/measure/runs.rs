//! Runs of scenarios, by `weir run`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Args;
use super::files::write;
use super::programs::WEIR;

/// Where runs are kept while they are looked at.
pub struct Bench {
    pub weir: PathBuf,
    pub folder: tempfile::TempDir,
    pub args: Args,
}

/// A run's folder, and what it reported.
pub struct Ran {
    pub folder: PathBuf,
    /// What it printed.
    pub report: Value,
}

impl Bench {
    /// Builds what is measured.
    pub fn new(args: &Args) -> Result<Bench> {
        Ok(Bench {
            weir: WEIR.build(args.prebuilt)?,
            folder: tempfile::tempdir()?,
            args: args.clone(),
        })
    }

    /// Runs a scenario, and keeps its folder until this program ends.
    pub fn carry_out(&self, name: &str, text: &str) -> Result<Ran> {
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
            let said = String::from_utf8_lossy(&output.stderr);
            format!("weir run {name}: {}", said.trim())
        })?;
        Ok(Ran { folder, report })
    }
}
