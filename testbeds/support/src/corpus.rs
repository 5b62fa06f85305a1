//! Kept inputs of a fuzz target, given to its body without libFuzzer.

use std::path::Path;

/// Runs every file of a folder, in the order of their names, each named on the standard output first; how many there were.
///
/// # Panics
/// If the folder or a file cannot be read, or there is none.
pub fn replay(folder: &Path, run: impl Fn(&[u8])) -> usize {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    for path in &paths {
        println!("{}", path.display());
        run(&std::fs::read(path).expect("a readable file"));
    }
    paths.len()
}
