//! What the fuzz targets are kept for: their seeds, and what they once found, without libFuzzer.
#![allow(missing_docs)]
#![allow(clippy::disallowed_methods)] // The crate is pure; its tests read files.

#[path = "../fuzz/src/packets.rs"]
mod packets;

use parser_gen::Arch;
use std::path::Path;

#[track_caller]
fn hold(arch: Arch, folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder of inputs")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        println!("{}", path.display());
        packets::run(arch, &std::fs::read(&path).expect("readable"));
    }
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
