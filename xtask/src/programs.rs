//! Runs other programs within time limits, for their effect or for their output.

use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Instant;

/// Time limit in seconds for all programs of [`limited`] together, such as apt: the tests run after these programs.
const ALL_S: u64 = 900;

pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Path of cargo's target folder for the repository at `root`.
pub fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// A call of the cargo that started this program, in the repository's root.
pub fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// Builds a package's program with a cargo profile and runs it in the repository's root;
/// `Ok(false)` if it exits with 1, an error for any other status except 0.
pub fn cargo_run(profile: &str, package: &str, args: &[impl AsRef<OsStr>]) -> Result<bool> {
    let mut cargo = cargo(&workspace_root());
    cargo.args(["run", "--profile", profile, "--package", package, "--"]);
    verdict(cargo.args(args))
}

/// Runs a program that exits with code 0 for yes and 1 for no; an error for any other exit code.
pub fn verdict(command: &mut Command) -> Result<bool> {
    let name = command.get_program().display().to_string();
    let status = command
        .status()
        .with_context(|| format!("cannot start {name}"))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("{name} ended with {status}"),
    }
}

/// Runs a program, which prints its own errors, and requires exit status 0.
pub fn done(command: &mut Command) -> Result<()> {
    let name = command.get_program().display().to_string();
    let status = command
        .status()
        .with_context(|| format!("cannot start {name}"))?;
    ensure!(status.success(), "{name} ended with {status}");
    Ok(())
}

/// Standard output of a program; if the program fails, its error output is the error.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Call of a program that is stopped after `seconds`, or [`ALL_S`] after the first such call. Its children may continue.
pub fn limited(seconds: u32, program: impl AsRef<std::ffi::OsStr>) -> Command {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let left = ALL_S.saturating_sub(BEGUN.elapsed().as_secs()).max(1);
    let seconds = u64::from(seconds).min(left);
    let mut command = Command::new("timeout");
    command
        // In our process group, so that stopping us from the terminal stops the program too.
        .args(["--foreground", "--kill-after=10"])
        .arg(seconds.to_string())
        .arg(program)
        .stdin(Stdio::null());
    command
}
