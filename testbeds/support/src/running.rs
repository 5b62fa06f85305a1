//! Which test runs.

use std::process::Command;

/// Path of the calling test in its program, as `--exact` takes it: the harness names the test's thread after it. `None` in a
/// thread of another name.
pub fn running_test() -> Option<String> {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main");
    name.map(str::to_owned)
}

/// Path of the calling test, whose name is `name`. With `--test-threads=1` the harness runs tests in its own thread, which is
/// named after none; then the program's list of tests is asked for the one of that name.
///
/// # Panics
/// If the program has none, or several, of that name.
pub fn path_of_test(name: &str) -> String {
    if let Some(path) = running_test() {
        return path;
    }
    let this = std::env::current_exe().expect("the test's own binary");
    let list = Command::new(this).arg("--list").output();
    let list = list.expect("the test's own binary starts").stdout;
    let list = String::from_utf8_lossy(&list);
    let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let is_named = |path: &&str| path.rsplit("::").next() == Some(name);
    let named: Vec<&str> = tests.filter(is_named).collect();
    assert!(named.len() == 1, "tests that are called {name}: {named:?}");
    named[0].to_owned()
}
