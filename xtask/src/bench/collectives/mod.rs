//! `cargo xtask bench collectives`: RDMA and what is made of it, beside bounds and rivals in the same run. Figures are kept in
//! docs/rdma.md.
//!
//! What measures is `host-agent/rdma/examples/measure`, built as what is shipped, in a namespace of its own; and, of sums by the
//! switch, the shipped `weir`.

mod figures;
mod share;
mod sums;
mod write;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::{row::Row, veth};

/// What makes a row of what was measured.
type Reading = fn(&str) -> Result<Row>;

const ROWS: &[(&str, Reading)] = &[
    ("write_cpu", write::row),
    ("all_gather", |text| share::row("all_gather", text)),
    ("all_to_all", |text| share::row("all_to_all", text)),
];

/// The rows whose names are wanted.
pub fn run(wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Row>> {
    if let Some(role) = veth::role() {
        println!("{}", sums::measure(&role, &built("weir")?)?);
        std::process::exit(0);
    }
    let chosen: Vec<_> = ROWS.iter().filter(|(name, _)| wanted(name)).collect();
    let sums = sums::NAMES.iter().any(|name| wanted(name));
    if chosen.is_empty() && !sums {
        let names = ROWS.iter().map(|(name, _)| name).chain(sums::NAMES);
        let names: Vec<&str> = names.copied().collect();
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
    if sums {
        build(&["--package", "controller", "--bin", "weir"])?;
        eprintln!("measuring {} …", sums::NAMES.join(", "));
        rows.extend(sums::run()?.into_iter().filter(|row| wanted(row.name)));
    }
    Ok(rows)
}

/// What is shipped lies beside the folder that this program is in.
fn built(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(|folder| folder.parent());
    Ok(target.context("no target folder")?.join("dist").join(name))
}

fn build(what: &[&str]) -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", "dist"]);
    cargo.args(what);
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "the build with profile dist failed");
    Ok(())
}

/// What it prints of a subject.
fn measured(subject: &str) -> Result<String> {
    let mut command = Command::new("unshare");
    command.args(["-rn", "--"]).arg(built("examples/measure")?);
    command.arg(subject);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cannot run unshare")?;
    ensure!(output.status.success(), "{subject} cannot be measured");
    Ok(String::from_utf8(output.stdout)?)
}
