//! `cargo xtask equivalence`: more than a million random frames through random programs: compares the generated P4 text with a
//! plain evaluation in Rust, on all architectures.

use anyhow::{Context, Result};

use crate::programs::{cargo, workspace_root};

/// The two tests: crate, test program, test name. They take too long for `cargo xtask test`, which runs small forms of them.
const SUITES: [(&str, &str, &str); 2] = [
    // Classification: the flows that a frame belongs to.
    ("parser-gen", "it", "executed::a_million_frames"),
    // Departing frames: filters, selections, keys, effects and triggers together.
    (
        "controller",
        "it",
        "fault_engine::equivalence::a_million_frames_through_programs_by_chance",
    ),
];

/// Runs both tests of equivalence; `Ok(false)` if a test found a difference.
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
