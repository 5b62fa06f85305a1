//! Finds the path (modules and name) of the test that is running.

use std::process::Command;

/// Path of the calling test, as for `--exact`: the name of the thread, which the test harness sets. `None` in other
/// threads.
pub fn running_test() -> Option<String> {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main");
    name.map(str::to_owned)
}

/// Path of the calling test, whose name is `name`. With `--test-threads=1` the harness runs tests in its main thread,
/// so this function searches the program's list of tests.
///
/// # Panics
/// The list does not have exactly one test with that name.
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
