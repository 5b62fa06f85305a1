//! `cargo xtask model-check`: explores all executions of aggregation's state machines, within bounds
//! (docs/model-checking.md). The tests of the crate `check` cover the small models.

use anyhow::Result;
use std::ffi::OsString;

use crate::programs::{cargo, verdict, workspace_root};

/// Builds the model checker optimized and runs it on the named models, or on all models;
/// `Ok(false)` if it found an error in a correct model, or none in a faulty model.
pub fn run(names: &[OsString]) -> Result<bool> {
    let mut cargo = cargo(&workspace_root());
    cargo.args(["run", "--quiet", "--profile", "dist", "--package", "check"]);
    cargo.args(["--example", "model_check", "--"]).args(names);
    verdict(&mut cargo)
}
