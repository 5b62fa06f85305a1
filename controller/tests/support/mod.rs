//! Runs the real binary, and names what is skipped.
// Not every test file uses everything.
#![allow(dead_code, unused_imports)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub mod leftovers;
pub mod turn;
mod verdict;

pub use test_support::{has_program, skip};
pub use turn::{alone, beside};

/// Exit codes of `weir`.
pub const PASSED: i32 = 0;
/// An expectation failed.
pub const FAILED: i32 = 1;
/// Could not run.
pub const ERROR: i32 = 2;
/// A condition of the scenario's ended it.
pub const ABORTED: i32 = 3;

/// `weir` with arguments, in a folder of its own; it leaves the user's cache alone.
pub fn weir(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(args).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// A program that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs it to its end.
pub fn run(folder: &Path, args: &[&str]) -> Finished {
    let output = weir(folder, args).output().expect("weir starts");
    Finished::of(output)
}

/// What a run of `weir` said.
#[derive(Debug)]
pub struct Finished {
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Of what a process left.
    pub fn of(output: Output) -> Finished {
        Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Its standard output as one JSON object.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts the exit code. If it is another, shows the rest; of a run's JSON report only what failed.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        let stdout = || verdict::shortened(&self.stdout);
        assert_eq!(self.code, Some(code), "{}\n{}", stdout(), self.stderr);
        self
    }
}

/// Whether this machine lets us make namespaces; if not, the test is skipped by name.
pub fn has_namespaces(test: &str) -> bool {
    let allowed = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--net",
            "--pid",
            "--fork",
            "true",
        ])
        .output()
        .is_ok_and(|output| output.status.success());
    if !allowed {
        skip(test, "user, network and PID namespaces");
    }
    allowed
}

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The processes that descend from a process.
pub fn descendants(of: u32) -> Vec<u32> {
    let mut found = vec![of];
    let mut index = 0;
    while index < found.len() {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", found[index]))
            .into_iter()
            .flatten()
            .flatten();
        for task in tasks {
            let children =
                std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
        index += 1;
    }
    found.remove(0);
    found
}
