//! `cargo xtask bench collectives`: RDMA and what is made of it, beside bounds and rivals in the same run. Figures are kept in
//! docs/rdma.md.
//!
//! What measures is `host-agent/rdma/examples/measure`, or `weir` with a scenario, or programs of others; ours are built as what
//! is shipped, and all are in namespaces of their own.

mod figures;
mod goodput;
mod lost;
mod nics;
mod qps;
mod rxe;
mod scenario_run;
mod share;
mod sums;
mod write;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::row::{Goal, Row, report};
use super::veth;

/// What measures rows; drawings go into the folder.
type Measure = fn(plots: Option<&Path>) -> Result<Vec<Row>>;

/// The names of rows that are measured together, and what measures them.
const ROWS: &[(&[&str], Measure)] = &[
    (&["write_cpu"], |_| one(write::row(&measured("write_cpu")?))),
    (&["all_gather"], |_| {
        one(share::row("all_gather", &measured("all_gather")?))
    }),
    (&["all_to_all"], |_| {
        one(share::row("all_to_all", &measured("all_to_all")?))
    }),
    (&["nics"], |_| one(nics::row(&measured("nics")?))),
    (&["qps"], |_| one(qps::row(&weir()?))),
    (sums::NAMES, |_| {
        weir()?;
        sums::run()
    }),
    (&["rxe"], |_| one(rxe::row())),
    (&["lost_write"], |plots| {
        one(lost::WRITE.measure(&weir()?, plots))
    }),
    (&["lost_read"], |plots| {
        one(lost::READ.measure(&weir()?, plots))
    }),
    (lost::machines::NAMES, |plots| {
        weir()?;
        lost::machines::rows(plots)
    }),
    (&["goodput"], |plots| one(goodput::row(&weir()?, plots))),
];

fn one(row: Result<Row>) -> Result<Vec<Row>> {
    Ok(vec![row?])
}

/// The rows whose names are wanted.
pub fn run(wanted: &dyn Fn(&str) -> bool, plots: Option<&Path>) -> Result<Vec<Row>> {
    if let Some(role) = veth::role() {
        // What is run there was built outside of the namespace.
        match role.as_str() {
            rxe::ROLE => print!("{}", rxe::measure()?),
            lost::machines::ROLE => print!("{}", lost::machines::measure()?),
            role => println!("{}", sums::measure(role, &place("--bin", "weir")?)?),
        }
        std::process::exit(0);
    }
    let chosen = ROWS
        .iter()
        .filter(|(names, _)| names.iter().any(|name| wanted(name)));
    let mut rows = Vec::new();
    for (names, measure) in chosen {
        eprintln!("measuring {} …", names.join(", "));
        let measured = measure(plots).unwrap_or_else(|error| {
            // What fails takes no other figure with it.
            let unmeasured = |name: &&'static str| Row {
                name,
                value: None,
                unit: "-",
                goal: Goal::AtLeast(0.0),
                floor: None,
                note: format!("{error:#}"),
            };
            names.iter().map(unmeasured).collect()
        });
        for row in measured.into_iter().filter(|row| wanted(row.name)) {
            eprint!("{}", report(std::slice::from_ref(&row)));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        let names: Vec<&str> = ROWS.iter().flat_map(|(names, _)| *names).copied().collect();
        bail!("no row is called so; they are {}", names.join(", "));
    }
    Ok(rows)
}

fn weir() -> Result<PathBuf> {
    shipped("controller", "--bin", "weir")
}

/// Builds a program as what is shipped; where it lies then.
fn shipped(package: &str, kind: &str, program: &str) -> Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--profile", "dist"]);
    cargo.args(["--package", package, kind, program]);
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "the build with profile dist failed");
    place(kind, program)
}

fn place(kind: &str, program: &str) -> Result<PathBuf> {
    // Beside the folder that this program is in.
    let this = std::env::current_exe()?;
    let target = this.parent().and_then(|folder| folder.parent());
    let built = target.context("no target folder")?.join("dist");
    Ok(match kind {
        "--example" => built.join("examples").join(program),
        _ => built.join(program),
    })
}

/// What the measuring program prints of a subject.
fn measured(subject: &str) -> Result<String> {
    let example = shipped("rdma", "--example", "measure")?;
    let mut command = Command::new("unshare");
    command.args(["-rn", "--"]).arg(example).arg(subject);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cannot run unshare")?;
    ensure!(output.status.success(), "{subject} cannot be measured");
    Ok(String::from_utf8(output.stdout)?)
}
