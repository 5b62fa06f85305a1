//! The user's checkout of p4c: finds its files and its commit, and runs its test cases.

use super::suite::Case;
use anyhow::{Context, Result, bail};
use pipeline::Executor;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Stack size of threads that run cases: programs nest deeply, and recursive checks need a stack for the deepest program.
const STACK_BYTES: usize = 256 << 20;

pub struct Corpus {
    root: PathBuf,
    filter: String,
    /// Commit of the checkout and its date; "unknown …" if git does not know it.
    pub commit: String,
    pub executor: Executor,
}

impl Corpus {
    /// Opens the checkout at `root`; only cases whose name contains `filter` are run.
    pub fn open(root: &Path, filter: &str) -> Result<Corpus> {
        let root = root
            .canonicalize()
            .with_context(|| format!("cannot open {}", root.display()))?;
        if !root.join("testdata/p4_16_samples").is_dir() {
            bail!(
                "{} has no testdata/p4_16_samples: not a checkout of p4lang/p4c",
                root.display()
            );
        }
        let commit = Command::new("git")
            .arg("-C")
            .arg(&root)
            .args(["log", "-1", "--format=%H %cs"])
            .output()
            .ok()
            .filter(|out| out.status.success())
            .map_or_else(
                || "unknown (not a git checkout)".to_owned(),
                |out| String::from_utf8_lossy(&out.stdout).trim().to_owned(),
            );
        Ok(Corpus {
            root,
            filter: filter.to_owned(),
            commit,
            executor: Executor::Fast,
        })
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Files in a folder of the checkout and below it whose names have this ending and pass the filter,
    /// sorted by path. Below the folder, a file that another file includes is not a test case of its own.
    pub fn files(&self, folder: &str, ending: &str) -> Result<Vec<PathBuf>> {
        let top = self.path(folder);
        let (mut found, mut parts) = (Vec::new(), BTreeSet::new());
        let mut folders = vec![top.clone()];
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir(&folder)
                .with_context(|| format!("cannot read {}", folder.display()))?;
            for entry in entries {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if file_name(&path).ends_with(ending) {
                    if folder != top {
                        parts.extend(included_files(&path));
                    }
                    found.push(path);
                }
            }
        }
        found.retain(|path| file_name(path).contains(&self.filter) && !parts.contains(path));
        found.sort();
        Ok(found)
    }

    /// Programs, as paths in the checkout, that the build file of p4c's BMv2 back ends expects to fail.
    pub fn expected_failures(&self) -> BTreeSet<String> {
        let text =
            std::fs::read_to_string(self.path("backends/bmv2/CMakeLists.txt")).unwrap_or_default();
        // Comments contain brackets, so they are removed first.
        let text: String = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(""))
            .flat_map(|line| [line, "\n"])
            .collect();
        text.split("XFAIL_TESTS")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .flat_map(str::split_whitespace)
            .filter(|word| word.starts_with("testdata/"))
            .map(str::to_owned)
            .collect()
    }
}

/// Paths of the files beside or below a program that the program includes.
fn included_files(program: &Path) -> Vec<PathBuf> {
    let bytes = std::fs::read(program).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let local = text.lines().filter_map(included).filter_map(|name| {
        let path = program.with_file_name("").join(name);
        path.canonicalize().ok().filter(|path| path.is_file())
    });
    local.collect()
}

/// Name of the file that an `#include` line names; `None` for any other line.
pub fn included(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix('#')?.trim_start();
    let name = rest.strip_prefix("include")?.trim();
    let end = match name.chars().next()? {
        '<' => '>',
        '"' => '"',
        _ => return None,
    };
    name[1..].split(end).next()
}

/// The path relative to a folder of the checkout, as the name of a test case.
pub fn name_below(path: &Path, folder: &Path) -> String {
    let below = path.strip_prefix(folder).unwrap_or(path);
    below.to_string_lossy().into_owned()
}

/// The last component of a path: the name of the file.
pub fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Compiles a program of the checkout with our own include files.
pub fn compile(
    path: &Path,
) -> std::result::Result<p4lang::Compiled, p4lang::diagnostics::Diagnostics> {
    compile_with(path, &p4lang::Options::default())
}

/// Compiles a program with options, such as macros or include folders.
pub fn compile_with(
    path: &Path,
    options: &p4lang::Options,
) -> std::result::Result<p4lang::Compiled, p4lang::diagnostics::Diagnostics> {
    let loader = |path: &str| std::fs::read_to_string(path).ok();
    p4lang::compile(&loader, &path.to_string_lossy(), options)
}

/// Runs `test` over all items on all processors; a panic is a failed case. Cases keep the order of the items.
pub fn run_cases<T: Sync>(
    items: &[T],
    name: impl Fn(&T) -> String + Sync,
    test: impl Fn(&T) -> std::result::Result<(), String> + Sync,
) -> Vec<Case> {
    let next = Mutex::new(0usize);
    let done: Mutex<Vec<(usize, Case)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let at = {
                let mut next = next.lock().unwrap_or_else(|e| e.into_inner());
                *next += 1;
                *next - 1
            };
            let Some(item) = items.get(at) else { return };
            let missed = match catch_unwind(AssertUnwindSafe(|| test(item))) {
                Ok(result) => result.err(),
                Err(panic) => Some(format!("panic: {}", message(panic.as_ref()))),
            };
            let case = Case {
                name: name(item),
                missed,
            };
            done.lock()
                .unwrap_or_else(|e| e.into_inner())
                .push((at, case));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let spawned = std::thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, work);
            if spawned.is_err() {
                break;
            }
        }
    });
    // This thread does the work for which no thread could be started.
    work();
    let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, case)| case).collect()
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_a_case_in_its_place() {
        let items: Vec<u32> = (0..100).collect();
        let cases = run_cases(&items, u32::to_string, |n| {
            if n % 10 == 3 {
                Err(format!("{n} is odd"))
            } else {
                Ok(())
            }
        });
        assert_eq!(cases.len(), 100);
        assert!(
            cases
                .iter()
                .enumerate()
                .all(|(i, c)| c.name == i.to_string())
        );
        assert_eq!(cases[13].missed.as_deref(), Some("13 is odd"));
        assert_eq!(cases.iter().filter(|c| c.missed.is_some()).count(), 10);
    }

    #[test]
    fn includes_are_read_off_their_lines() {
        assert_eq!(included("#include <core.p4>"), Some("core.p4"));
        assert_eq!(included("  # include \"a/b.p4\" // why"), Some("a/b.p4"));
        assert_eq!(included("#define include"), None);
        assert_eq!(included("#include MACRO"), None);
    }

    #[test]
    fn programs_below_are_cases_and_their_parts_are_not() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let samples = dir.path().join("testdata/p4_16_samples");
        std::fs::create_dir_all(samples.join("big/include"))?;
        for (name, text) in [
            ("part.p4", ""),
            ("top.p4", "#include \"part.p4\""),
            ("big/whole.p4", "#include \"include/a.p4\""),
            ("big/include/a.p4", "#include \"b.p4\""),
            ("big/include/b.p4", ""),
            ("big/whole.stf", ""),
        ] {
            std::fs::write(samples.join(name), text)?;
        }
        let corpus = Corpus::open(dir.path(), "")?;
        let samples = corpus.path("testdata/p4_16_samples");
        let names = |ending: &str| -> Result<Vec<String>> {
            let files = corpus.files("testdata/p4_16_samples", ending)?;
            Ok(files.iter().map(|f| name_below(f, &samples)).collect())
        };
        assert_eq!(names(".p4")?, ["big/whole.p4", "part.p4", "top.p4"]);
        assert_eq!(names(".stf")?, ["big/whole.stf"]);
        Ok(())
    }

    #[test]
    fn a_panic_is_a_miss() {
        let cases = run_cases(&[0], u32::to_string, |_| panic!("boom"));
        assert_eq!(cases[0].missed.as_deref(), Some("panic: boom"));
    }
}
