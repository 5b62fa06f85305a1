//! Replays the fuzz target's seeds and earlier findings, and random inputs, without libFuzzer.

#[path = "../../fuzz/src/bundles.rs"]
mod bundles;

use proptest::prelude::*;
use std::path::Path;
use test_support::corpus;

#[test]
fn kept_bundles_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/bundles");
    let inputs = corpus::replay(&folder, bundles::run);
    assert!(inputs > 5, "{inputs}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(20_000)))]

    #[test]
    fn random_bundles_hold(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        bundles::run(&bytes);
    }
}
