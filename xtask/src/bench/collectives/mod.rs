//! `cargo xtask bench collectives`: RDMA and what is made of it, beside bounds and rivals in the same run. Figures are kept in
//! docs/rdma.md.
//!
//! What measures is `host-agent/rdma/examples/measure`, in a namespace of its own, or `weir run`; both are built as what is
//! shipped.

mod figures;
mod goodput;
mod lost;
mod share;
mod write;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::row::Row;

/// What makes a row of what was measured.
type Reading = fn(&str) -> Result<Row>;

const ROWS: &[(&str, Reading)] = &[
    ("write_cpu", write::row),
    ("all_gather", |text| share::row("all_gather", text)),
    ("all_to_all", |text| share::row("all_to_all", text)),
];

/// What runs scenarios, and makes a row of their reports; drawings go into the folder.
type Running = fn(&Path, Option<&Path>) -> Result<Row>;

const RUN_ROWS: &[(&str, Running)] = &[
    (lost::SUBJECTS[0].name, |weir, plots| lost::SUBJECTS[0].measure(weir, plots)),
    (lost::SUBJECTS[1].name, |weir, plots| lost::SUBJECTS[1].measure(weir, plots)),
    ("goodput", goodput::row),
];

/// The rows whose names are wanted.
pub fn run(wanted: &dyn Fn(&str) -> bool, plots: Option<&Path>) -> Result<Vec<Row>> {
    let chosen: Vec<_> = ROWS.iter().filter(|(name, _)| wanted(name)).collect();
    let runs: Vec<_> = RUN_ROWS.iter().filter(|(name, _)| wanted(name)).collect();
    if chosen.is_empty() && runs.is_empty() {
        let names = ROWS.iter().map(|(name, _)| *name);
        let names: Vec<&str> = names.chain(RUN_ROWS.iter().map(|(name, _)| *name)).collect();
        bail!("no row is called so; they are {}", names.join(", "));
    }
    let mut rows = Vec::new();
    if !chosen.is_empty() {
        build(&["--package", "rdma", "--example", "measure"])?;
    }
    for (name, read) in chosen {
        eprintln!("measuring {name} …");
        rows.push(read(&measured(name)?)?);
    }
    if !runs.is_empty() {
        build(&["--package", "controller", "--bin", "weir"])?;
    }
    for (name, row) in runs {
        eprintln!("measuring {name} …");
        rows.push(row(&as_shipped("weir")?, plots)?);
    }
    Ok(rows)
}

fn build(what: &[&str]) -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", "dist"]).args(what);
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "the build with profile dist failed");
    Ok(())
}

/// What was built, beside the folder that this program is in.
fn as_shipped(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(|folder| folder.parent());
    Ok(target.context("no target folder")?.join("dist").join(name))
}

/// What it prints of a subject.
fn measured(subject: &str) -> Result<String> {
    let mut command = Command::new("unshare");
    command.args(["-rn", "--"]).arg(as_shipped("examples/measure")?).arg(subject);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cannot run unshare")?;
    ensure!(output.status.success(), "{subject} cannot be measured");
    Ok(String::from_utf8(output.stdout)?)
}
