//! `cargo xtask bench collectives`: RDMA and what is made of it, beside bounds and rivals in the same run. Figures are kept in
//! docs/rdma.md.
//!
//! What measures is `host-agent/rdma/examples/measure`, or, of `rxe`, programs; built as what is shipped, in a namespace of its own.

mod figures;
mod rxe;
mod share;
mod write;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::row::Row;

/// What measures a row.
type Measure = fn() -> Result<Row>;

const ROWS: &[(&str, Measure)] = &[
    ("write_cpu", || write::row(&measured("write_cpu")?)),
    ("all_gather", || {
        share::row("all_gather", &measured("all_gather")?)
    }),
    ("all_to_all", || {
        share::row("all_to_all", &measured("all_to_all")?)
    }),
    ("rxe", rxe::row),
];

/// The rows whose names are wanted.
pub fn run(wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    let chosen: Vec<_> = ROWS.iter().filter(|(name, _)| wanted(name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = ROWS.iter().map(|(name, _)| *name).collect();
        bail!("no row is called so; they are {}", names.join(", "));
    }
    let rows = chosen.into_iter().map(|(name, measure)| {
        eprintln!("measuring {name} …");
        measure()
    });
    rows.collect()
}

/// Builds a program as what is shipped; where it lies then.
fn shipped(package: &str, kind: &str, program: &str) -> Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", "dist"]);
    cargo.args(["--package", package, kind, program]);
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "the build with profile dist failed");
    // Beside the folder that this program is in.
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(|folder| folder.parent());
    let built = target.context("no target folder")?.join("dist");
    Ok(match kind {
        "--example" => built.join("examples").join(program),
        _ => built.join(program),
    })
}

/// What it prints of a subject.
fn measured(subject: &str) -> Result<String> {
    let example = shipped("rdma", "--example", "measure")?;
    let mut command = Command::new("unshare");
    command.args(["-rn", "--"]).arg(example).arg(subject);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cannot run unshare")?;
    ensure!(output.status.success(), "{subject} cannot be measured");
    Ok(String::from_utf8(output.stdout)?)
}
