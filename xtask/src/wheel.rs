//! The wheel of the Python package: made by maturin and installed as docs/pytorch.md says, then imported.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{done, output};

/// The versions are those of `host-agent/python/pyproject.toml`.
const MATURIN: &str = "maturin>=1.7,<2";
/// Says which package was found, if all of it can be imported.
const IMPORTED: &str = "import weir, weir.torch, weir.ps; print(weir.VERSION, weir.__file__)";

/// What became of it.
enum Wheel {
    /// It holds this version.
    Imported(String),
    /// It was not made.
    Skipped(&'static str),
}

/// Makes, installs and imports it in target/, for this Python, which has PyTorch; says how that went, and whether it did not fail.
pub fn check(root: &Path, python: Option<&Path>, may_install: bool) -> bool {
    let became = match python {
        Some(python) => imported(root, python, may_install),
        None => Ok(Wheel::Skipped("needs torch")),
    };
    match &became {
        Ok(Wheel::Imported(version)) => println!("wheel: weir {version}, installed and imported"),
        Ok(Wheel::Skipped(why)) => println!("skipped wheel: {why}"),
        Err(error) => println!("FAILED wheel: {error:#}"),
    }
    became.is_ok()
}

fn imported(root: &Path, python: &Path, may_install: bool) -> Result<Wheel> {
    let folder = root.join("target/test-wheel");
    let maker = folder.join("maturin");
    let maturin = maker.join("bin/maturin");
    if !maturin.is_file() {
        // Half an environment has no maturin.
        if !may_install || installs(python, &maker, MATURIN).is_err() {
            return Ok(Wheel::Skipped("needs maturin"));
        }
    }

    let wheels = folder.join("wheels");
    let _ = std::fs::remove_dir_all(&wheels);
    done(
        Command::new(maturin)
            .args(["build", "--release", "--quiet", "--manifest-path"])
            .arg("host-agent/python/Cargo.toml")
            .arg("--out")
            .arg(&wheels)
            .current_dir(root),
    )?;
    let made: Vec<PathBuf> = std::fs::read_dir(&wheels)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .context("maturin has made nothing")?;
    ensure!(made.len() == 1, "maturin has made {made:?}");

    let fresh = folder.join("fresh");
    installs(python, &fresh, &made[0])?;
    // An environment that is made of another has none of its packages.
    let told = output(
        Command::new(fresh.join("bin/python3"))
            .args(["-c", IMPORTED])
            .env("PYTHONPATH", folder_of_torch(python)?),
    )?;
    let (version, file) = told.split_once(' ').unwrap_or_default();
    ensure!(
        Path::new(file).starts_with(&fresh),
        "another package than the wheel's was imported: {told}"
    );
    Ok(Wheel::Imported(version.to_owned()))
}

/// Makes an environment of this Python anew, which has one package.
fn installs(python: &Path, environment: &Path, package: impl AsRef<std::ffi::OsStr>) -> Result<()> {
    done(
        Command::new(python)
            .args(["-m", "venv", "--clear"])
            .arg(environment),
    )?;
    done(
        Command::new(environment.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            // Where there is no index that is known soon.
            .args(["--retries", "1"])
            .arg(package),
    )
}

fn folder_of_torch(python: &Path) -> Result<String> {
    let told = "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))";
    output(Command::new(python).args(["-c", told]))
}
