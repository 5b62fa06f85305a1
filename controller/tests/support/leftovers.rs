//! Runs `weir` to its end, and holds that nothing of it is left: no process, namespace, interface or file.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::support::{Finished, weir};

const MARK: &str = "WEIR_TEST_RUN";

/// A run of `weir` whose processes can be told from all others, by a variable that they inherit.
pub struct Watched {
    mark: String,
    command: Command,
    temporary: tempfile::TempDir,
    before: BTreeSet<String>,
}

impl Watched {
    /// `weir` with arguments, in a folder.
    pub fn weir(folder: &Path, args: &[&str]) -> Watched {
        Watched::command(weir(folder, args))
    }

    /// Some other command that ends up as `weir`.
    pub fn command(mut command: Command) -> Watched {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!(
            "{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let temporary = tempfile::tempdir().unwrap();
        command
            .env(MARK, &mark)
            .env("TMPDIR", temporary.path())
            .env("RUST_BACKTRACE", "1");
        Watched {
            mark,
            command,
            temporary,
            before: host_state(),
        }
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Watched {
        self.command.env(name, value);
        self
    }

    /// Runs it to its end; nothing is left then, and nothing panicked.
    #[track_caller]
    pub fn run(self) -> Finished {
        self.run_while(|_| {})
    }

    /// The same, while something is done to it.
    #[track_caller]
    pub fn run_while(mut self, during: impl FnOnce(&mut Child)) -> Finished {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("it starts");
        during(&mut child);
        let output = child.wait_with_output().expect("it ends");
        let finished = Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        for trace in ["panicked", "backtrace", "RUST_BACKTRACE"] {
            assert!(
                !finished.stderr.contains(trace) && !finished.stdout.contains(trace),
                "{finished:?}"
            );
        }
        // The kernel takes a namespace's processes down when its init ends: at once, but not in the same instant.
        let deadline = Instant::now() + Duration::from_secs(5);
        while !processes(&self.mark).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(
            processes(&self.mark),
            Vec::<String>::new(),
            "processes are left"
        );
        let new: Vec<_> = host_state().difference(&self.before).cloned().collect();
        assert!(new.is_empty(), "left behind: {new:?}");
        let files: Vec<_> = std::fs::read_dir(self.temporary.path())
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert!(files.is_empty(), "left behind: {files:?}");
        finished
    }
}

/// Interfaces and named network namespaces of the machine.
fn host_state() -> BTreeSet<String> {
    let folders = ["/sys/class/net", "/run/netns"];
    let entries = folders
        .into_iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.path().display().to_string())
        .collect()
}

/// Command lines of the processes that carry the mark.
fn processes(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let marked = pids.filter(|pid| {
        let environment = std::fs::read(pid.path().join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    });
    marked
        .map(|pid| {
            std::fs::read_to_string(pid.path().join("cmdline"))
                .unwrap_or_default()
                .replace('\0', " ")
        })
        .collect()
}

/// Names of the files in a folder, in order.
pub fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
