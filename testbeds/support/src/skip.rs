//! What a machine lacks is skipped by name, and never in silence.

use std::io::Write;

/// Notes, in the test command's summary, that something was not tested.
pub fn skip(test: &str, missing: &str) {
    println!("SKIPPED {test}: {missing}");
    if let Some(path) = std::env::var_os("WEIR_TEST_SKIPS")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path)
    {
        let _ = writeln!(file, "SKIPPED {test}: {missing}");
    }
}

/// Whether a program is on the PATH; if not, the test is skipped by name.
pub fn has_program(test: &str, program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    });
    if !found {
        skip(test, program);
    }
    found
}
