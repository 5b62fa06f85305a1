//! Which test runs.

/// Path of the calling test in its program, as `--exact` takes it: the harness names the test's thread after it. `None` in a
/// thread of another name.
pub fn running_test() -> Option<String> {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main");
    name.map(str::to_owned)
}
