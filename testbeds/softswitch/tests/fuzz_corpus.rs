//! What the fuzz target is kept for: its seeds, and what it once found, without libFuzzer.
#![allow(missing_docs)]

#[path = "../fuzz/src/p4runtime.rs"]
mod p4runtime;

use std::path::Path;

#[test]
fn kept_calls_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/p4runtime");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder of inputs")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        println!("{}", path.display());
        p4runtime::run(&std::fs::read(&path).expect("readable"));
    }
}
