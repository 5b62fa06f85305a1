//! What the fuzz target is kept for: its seeds, and what it once found, without libFuzzer.
#![allow(clippy::disallowed_methods)] // The crate is pure; its tests read files.

#[path = "../fuzz/src/p4_source.rs"]
mod p4_source;

use std::path::Path;

#[test]
fn kept_inputs_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = [
        "fuzz/seeds/p4_source",
        "tests/corpus/pass",
        "tests/corpus/fail",
    ]
    .iter()
    .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("a folder of inputs"))
    .map(|entry| entry.expect("an entry").path())
    .collect();
    paths.sort();
    assert!(paths.len() > 20, "{}", paths.len());
    for path in paths {
        println!("{}", path.display());
        p4_source::run(&std::fs::read(&path).expect("readable"));
    }
}
