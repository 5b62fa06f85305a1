//! `cargo xtask bench collectives`: RDMA and what is made of it, beside bounds and rivals in the same run. Figures are kept in
//! docs/rdma.md.
//!
//! What measures is `host-agent/rdma/examples/measure`, built as what is shipped, in a namespace of its own; or `weir` beside this.

mod figures;
mod nics;
mod qps;
mod share;
mod write;

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::row::Row;

/// How a row is measured.
#[derive(Clone, Copy)]
enum How {
    /// By the measuring program; what makes a row of what it prints.
    Subject(fn(&str) -> Result<Row>),
    /// By runs of scenarios.
    Scenario(fn() -> Result<Row>),
}

const ROWS: &[(&str, How)] = &[
    ("write_cpu", How::Subject(write::row)),
    (
        "all_gather",
        How::Subject(|text| share::row("all_gather", text)),
    ),
    (
        "all_to_all",
        How::Subject(|text| share::row("all_to_all", text)),
    ),
    ("nics", How::Subject(nics::row)),
    ("qps", How::Scenario(qps::row)),
];

/// The rows whose names are wanted.
pub fn run(wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let chosen: Vec<_> = ROWS.iter().filter(|(name, _)| wanted(name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = ROWS.iter().map(|(name, _)| *name).collect();
        bail!("no row is called so; they are {}", names.join(", "));
    }
    if chosen.iter().any(|(_, how)| matches!(how, How::Subject(_))) {
        build()?;
    }
    let rows = chosen.into_iter().map(|(name, how)| {
        eprintln!("measuring {name} …");
        match how {
            How::Subject(read) => read(&measured(name)?),
            How::Scenario(run) => run(),
        }
    });
    rows.collect()
}

fn build() -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", "dist"]);
    cargo.args(["--package", "rdma", "--example", "measure"]);
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "the build with profile dist failed");
    Ok(())
}

/// What it prints of a subject.
fn measured(subject: &str) -> Result<String> {
    // Beside the folder that this program is in.
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(|folder| folder.parent());
    let example = target
        .context("no target folder")?
        .join("dist/examples/measure");
    let mut command = Command::new("unshare");
    command.args(["-rn", "--"]).arg(example).arg(subject);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cannot run unshare")?;
    ensure!(output.status.success(), "{subject} cannot be measured");
    Ok(String::from_utf8(output.stdout)?)
}
