//! Runs the body of a fuzz target on stored inputs, without libFuzzer.

use std::path::Path;

/// Passes each file of a folder to `run`, in the order of names; prints each name first. Returns the number of files.
///
/// # Panics
/// The folder or a file cannot be read, or the folder is empty.
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
