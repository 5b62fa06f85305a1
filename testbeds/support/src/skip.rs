//! Skips tests whose requirements the computer lacks. Each skipped test is reported by name.

use std::io::Write;

use crate::running_test;

/// Reports in the summary of `cargo xtask test` that `what` was not tested because of what is `missing`. The calling test then counts
/// as skipped, even if it tested something else.
pub fn skip(what: &str, missing: &str) {
    println!("SKIPPED {what}: {missing}");
    if let Some(path) = std::env::var_os("WEIR_TEST_SKIPS")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path)
    {
        let binary = std::env::current_exe().unwrap_or_default();
        let binary = binary.file_name().unwrap_or_default().to_string_lossy();
        let test = running_test().unwrap_or_else(|| what.to_owned());
        // One write: tests of other threads and processes append to the same file.
        let note = format!("{binary}\t{test}\t{what}: {missing}\n");
        let _ = file.write_all(note.as_bytes());
    }
}

/// Returns whether `program` is on the PATH; if not, reports that `test` is skipped.
pub fn has_program(test: &str, program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    });
    if !found {
        skip(test, program);
    }
    found
}
