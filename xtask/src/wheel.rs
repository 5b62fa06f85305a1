//! Checks the wheel of weir's Python package: installs it in an environment of its own, and imports it.
//!
//! `cargo xtask test` packs the library that it has built for the tests; `cargo xtask torch` builds
//! it with maturin, as docs/pytorch.md recommends to users.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::environments::native_library;
use crate::programs::{done, output, target_folder};

/// Requirement of the wheel builder maturin, with the version range of `host-agent/python/pyproject.toml`.
const MATURIN: &str = "maturin>=1.7,<2";
/// Python program that imports all of weir's package, and prints the package's version and path.
const IMPORTED: &str = "import weir, weir.torch, weir.ps; print(weir.VERSION, weir.__file__)";
/// Version of the wheel: all packages of this workspace have one version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Result of checking the wheel.
enum Wheel {
    /// Version of the imported wheel.
    Imported(String),
    /// Reason why the wheel was not built.
    Skipped(&'static str),
}

/// Packs the library built for the tests, installs and imports the wheel, and prints the result;
/// returns false on failure. Without PyTorch the check is skipped by name.
pub fn check_packed(root: &Path, python: Option<&Path>) -> bool {
    print_result(match python {
        Some(python) => packed(root, python),
        None => Ok(Wheel::Skipped("needs torch")),
    })
}

/// Builds a wheel with maturin, then installs and imports it; skipped by name if maturin is missing and may not be installed.
pub fn check_built(root: &Path, python: &Path, may_install: bool) -> bool {
    print_result(built(root, python, may_install))
}

fn print_result(wheel: Result<Wheel>) -> bool {
    match &wheel {
        Ok(Wheel::Imported(version)) => println!("wheel: weir {version}, installed and imported"),
        Ok(Wheel::Skipped(why)) => println!("skipped wheel: {why}"),
        Err(error) => println!("FAILED wheel: {error:#}"),
    }
    wheel.is_ok()
}

fn packed(root: &Path, python: &Path) -> Result<Wheel> {
    if output(Command::new(python).args(["-c", "import wheel"])).is_err() {
        return Ok(Wheel::Skipped("needs Python's wheel"));
    }
    let folder = target_folder(root).join("test-wheel/packed");
    let _ = fs::remove_dir_all(&folder);
    let content = folder.join("content");
    let sources = root.join("host-agent/python/weir");
    copy_python(&sources, &content.join("weir"))?;
    fs::copy(native_library(root), content.join("weir/_native.abi3.so"))
        .context("the native library is not built: `cargo build -p weir-python` does")?;
    let information = content.join(format!("weir-{VERSION}.dist-info"));
    fs::create_dir(&information)?;
    let metadata = format!("Metadata-Version: 2.1\nName: weir\nVersion: {VERSION}\n");
    fs::write(information.join("METADATA"), metadata)?;
    // One binary for CPython 3.9 and later.
    let tag = format!("cp39-abi3-linux_{}", std::env::consts::ARCH);
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
    fs::write(information.join("WHEEL"), wheel)?;
    let mut pack = Command::new(python);
    pack.args(["-m", "wheel", "pack", "--dest-dir"])
        .arg(&folder);
    output(pack.arg(&content))?;
    fs::remove_dir_all(&content)?;
    imported(python, &folder, only_file(&folder)?)
}

fn built(root: &Path, python: &Path, may_install: bool) -> Result<Wheel> {
    let folder = target_folder(root).join("test-wheel/built");
    let maker = folder.join("maturin");
    let maturin = maker.join("bin/maturin");
    if !maturin.is_file() {
        // A partly created environment has no maturin.
        if !may_install || install(python, &maker, MATURIN).is_err() {
            return Ok(Wheel::Skipped("needs maturin"));
        }
    }
    let wheels = folder.join("wheels");
    let _ = fs::remove_dir_all(&wheels);
    done(
        Command::new(maturin)
            .args(["build", "--release", "--quiet", "--manifest-path"])
            .arg("host-agent/python/Cargo.toml")
            .arg("--out")
            .arg(&wheels)
            .current_dir(root),
    )?;
    imported(python, &folder, only_file(&wheels)?)
}

/// Installs a wheel in a fresh Python environment, and imports all of the package there.
fn imported(python: &Path, folder: &Path, wheel: PathBuf) -> Result<Wheel> {
    let fresh = folder.join("fresh");
    install(python, &fresh, &wheel)?;
    // An environment does not inherit the packages of the one that creates it.
    let printed = output(
        Command::new(fresh.join("bin/python3"))
            .args(["-c", IMPORTED])
            .env("PYTHONPATH", folder_of_torch(python)?),
    )?;
    let (version, file) = printed.split_once(' ').unwrap_or_default();
    ensure!(
        Path::new(file).starts_with(&fresh),
        "the imported package is not the wheel's: {printed}"
    );
    Ok(Wheel::Imported(version.to_owned()))
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let files: Vec<PathBuf> = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .with_context(|| format!("cannot list {}", folder.display()))?;
    let [file] = &files[..] else {
        anyhow::bail!("expected one wheel, found {files:?}");
    };
    Ok(file.clone())
}

/// Copies the Python files of a package and of its subpackages.
fn copy_python(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "__pycache__" {
            copy_python(&path, &to.join(name))?;
        } else if path.extension().is_some_and(|extension| extension == "py") {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// Recreates a Python environment that contains only the given package.
fn install(python: &Path, environment: &Path, package: impl AsRef<std::ffi::OsStr>) -> Result<()> {
    done(
        Command::new(python)
            .args(["-m", "venv", "--clear"])
            .arg(environment),
    )?;
    done(
        Command::new(environment.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            // One retry, so that a missing index fails soon.
            .args(["--retries", "1"])
            .arg(package),
    )
}

fn folder_of_torch(python: &Path) -> Result<String> {
    let script = "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))";
    output(Command::new(python).args(["-c", script]))
}
