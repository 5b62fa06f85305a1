//! `cargo xtask model-check`: explores all that can happen to aggregation's state machines, within bounds
//! (docs/model-checking.md). The tests of the crate `check` do the small ones.

use anyhow::Result;
use std::ffi::OsString;

use crate::programs::{cargo, verdict, workspace_root};

/// Builds the checker optimized and runs it on the named models, or on all; `Ok(false)` if it found something wrong, or nothing
/// where something is.
pub fn run(names: &[OsString]) -> Result<bool> {
    let mut cargo = cargo(&workspace_root());
    cargo.args(["run", "--quiet", "--profile", "dist", "--package", "check"]);
    cargo.args(["--example", "model_check", "--"]).args(names);
    verdict(&mut cargo)
}
