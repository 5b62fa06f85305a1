//! Builds the measured programs with the shipped profile `dist`, or finds them in the target folder (`--prebuilt`).

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A program of the workspace, or a library that another program loads.
pub struct Program {
    package: &'static str,
    /// Arguments that select the program in `cargo build`.
    target: &'static [&'static str],
    /// Path of the program in cargo's output folder of the profile.
    file: &'static str,
}

/// The controller with the embedded switch and the agents.
pub const WEIR: Program = Program {
    package: "controller",
    target: &["--bin", "weir"],
    file: "weir",
};

/// The program `weir-agent` alone.
pub const AGENT: Program = Program {
    package: "host-agent",
    target: &["--bin", "weir-agent"],
    file: "weir-agent",
};

/// The native half of the Python package for PyTorch.
pub const NATIVE: Program = Program {
    package: "weir-python",
    target: &["--lib"],
    file: "libweir_native.so",
};

/// Program of a member of a job that sums at full speed, to measure throughput.
pub const THROUGHPUT: Program = Program {
    package: "host-agent",
    target: &["--example", "throughput"],
    file: "examples/throughput",
};

/// Program that measures RDMA and collectives.
pub const RDMA: Program = Program {
    package: "rdma",
    target: &["--example", "measure"],
    file: "examples/measure",
};

impl Program {
    /// Builds the program unless `prebuilt` is set; returns its path.
    pub fn build(&self, prebuilt: bool) -> Result<PathBuf> {
        if !prebuilt {
            // One program at a time: together, each would get the features that the other needs of their dependencies.
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
            cargo.args(["build", "--profile", "dist", "--package", self.package]);
            cargo.args(self.target);
            cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
            let status = cargo.status().context("cannot run cargo")?;
            ensure!(status.success(), "cannot build {}: {status}", self.file);
        }
        let path = self.path()?;
        ensure!(
            path.exists(),
            "{} is missing; without --prebuilt, it is built",
            path.display()
        );
        Ok(path)
    }

    /// Path of the built program: cargo's folder of the profile `dist` is beside the folder of this program.
    pub fn path(&self) -> Result<PathBuf> {
        let this = std::env::current_exe()?;
        let target = this.parent().and_then(|folder| folder.parent());
        let target =
            target.with_context(|| format!("no target folder above {}", this.display()))?;
        Ok(target.join("dist").join(self.file))
    }
}
