//! `cargo xtask equivalence`: a million frames and more, by chance, through programs by chance: the P4 text that is generated
//! against a plain evaluation in Rust, on all architectures.

use anyhow::{Context, Result};

use crate::programs::{cargo, workspace_root};

/// A crate, its test program, and the test in it: too long for `cargo xtask test`, which runs a small form of each.
const SUITES: [(&str, &str, &str); 2] = [
    // Which class of flows a frame belongs to.
    ("parser-gen", "it", "executed::a_million_frames"),
    // What leaves of it: filters, selections, keys, effects and triggers together.
    (
        "controller",
        "it",
        "fault_engine::equivalence::a_million_frames_through_programs_by_chance",
    ),
];

/// Runs both; `Ok(false)` if one found a difference.
pub fn run() -> Result<bool> {
    let mut equal = true;
    for (package, program, test) in SUITES {
        let mut cargo = cargo(&workspace_root());
        cargo.args(["test", "--package", package, "--test", program, "--"]);
        cargo.args(["--ignored", "--exact", "--nocapture", test]);
        equal &= cargo.status().context("cannot start cargo")?.success();
    }
    Ok(equal)
}
