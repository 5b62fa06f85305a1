//! Replays the fuzz targets' seeds and former findings, without libFuzzer.

#[path = "../../fuzz/src/packets.rs"]
mod packets;

use crate::support::aggregate;
use parser_gen::Arch;
use std::path::Path;
use test_support::corpus;

fn hold(arch: Arch, folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(folder);
    corpus::replay(&folder, |input| packets::run(arch, input));
}

#[test]
fn kept_packets_hold_under_psa() {
    hold(Arch::Psa, "packets_psa");
}

#[test]
fn kept_packets_hold_under_v1model() {
    hold(Arch::V1model, "packets_v1model");
}

#[test]
fn kept_packets_hold_under_tna() {
    hold(Arch::Tna, "packets_tna");
}
