//! Replays the fuzz target's seeds and earlier findings, without libFuzzer.

#[path = "../../fuzz/src/p4_source.rs"]
mod p4_source;

use std::path::Path;
use test_support::corpus;

#[test]
fn kept_inputs_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [
        "fuzz/seeds/p4_source",
        "tests/corpus/pass",
        "tests/corpus/fail",
    ] {
        let inputs = corpus::replay(&root.join(folder), p4_source::run);
        assert!(inputs > 5, "{folder}: {inputs}");
    }
}
