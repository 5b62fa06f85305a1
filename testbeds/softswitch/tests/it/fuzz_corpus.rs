//! Replays the fuzz target's seeds and former findings, without libFuzzer.

#[path = "../../fuzz/src/p4runtime.rs"]
mod p4runtime;

use std::path::Path;
use test_support::corpus;

#[test]
fn kept_calls_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/p4runtime");
    corpus::replay(&folder, p4runtime::run);
}
