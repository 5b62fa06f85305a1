//! `cargo xtask model-check`: explores all that can happen to aggregation's state machines, within bounds
//! (docs/model-checking.md). The tests of the crate `check` do the small ones.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// Options of `cargo xtask model-check`.
#[derive(clap::Args)]
pub struct Args {
    /// Only these: names of docs/model-checking.md, or `rules` for what is found of the prototype, and of ours without each rule
    names: Vec<String>,
}

/// Builds the checker optimised and runs it; `Ok(false)` if it found something wrong, or nothing where something is.
pub fn run(args: &Args) -> Result<bool> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--quiet", "--profile", "dist", "--package", "check"]);
    cargo.args(["--example", "model_check", "--"]);
    let status = cargo
        .args(&args.names)
        .status()
        .context("cannot start cargo")?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("the model checker could not run: {status}"),
    }
}
