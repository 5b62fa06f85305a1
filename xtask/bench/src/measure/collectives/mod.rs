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

use super::allreduce::machine::{self, Look};
use super::row::{Goal, Row, report};
use super::veth;

/// What rows are measured with.
#[derive(Debug, Clone, Copy)]
pub struct With<'a> {
    /// Drawings go there.
    pub plots: Option<&'a Path>,
    /// Programs are there already: where they are measured there is no cargo.
    pub prebuilt: bool,
}

/// What measures rows.
type Measure = fn(With) -> Result<Vec<Row>>;

/// The names of rows that are measured together, and what measures them.
const ROWS: &[(&[&str], Measure)] = &[
    (&["write_cpu"], |with| {
        with.measured("write_cpu", write::row)
    }),
    (&["all_gather"], |with| {
        with.measured("all_gather", |text| share::row("all_gather", text))
    }),
    (&["all_to_all"], |with| {
        with.measured("all_to_all", |text| share::row("all_to_all", text))
    }),
    (&["nics"], |with| with.measured("nics", nics::row)),
    (&["qps"], |with| one(qps::row(&with.weir()?))),
    (sums::NAMES, |with| {
        with.weir()?;
        sums::run()
    }),
    (&["rxe"], |with| {
        one(rxe::row(&with.shipped(
            "host-agent",
            "--bin",
            "weir-agent",
        )?))
    }),
    (&["lost_write"], |with| {
        one(lost::WRITE.measure(&with.weir()?, with.plots))
    }),
    (&["lost_read"], |with| {
        one(lost::READ.measure(&with.weir()?, with.plots))
    }),
    (lost::machines::NAMES, |with| {
        with.weir()?;
        lost::machines::rows(with.plots)
    }),
    (&["goodput"], |with| {
        one(goodput::row(&with.weir()?, with.plots))
    }),
];

fn one(row: Result<Row>) -> Result<Vec<Row>> {
    Ok(vec![row?])
}

/// The rows whose names are wanted.
pub fn run(wanted: &dyn Fn(&str) -> bool, with: With) -> Result<Vec<Row>> {
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
        let measured = measure(with).unwrap_or_else(|error| {
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

impl With<'_> {
    fn weir(self) -> Result<PathBuf> {
        self.shipped("controller", "--bin", "weir")
    }

    /// Builds a program as what is shipped; where it lies then.
    fn shipped(self, package: &str, kind: &str, program: &str) -> Result<PathBuf> {
        let place = place(kind, program)?;
        if self.prebuilt {
            ensure!(place.exists(), "{} is missing", place.display());
            return Ok(place);
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--profile", "dist"]);
        cargo.args(["--package", package, kind, program]);
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let status = cargo.status().context("cannot run cargo")?;
        ensure!(status.success(), "the build with profile dist failed");
        Ok(place)
    }

    /// The row of what the measuring program prints of a subject.
    fn measured(self, subject: &str, row: fn(&str) -> Result<Row>) -> Result<Vec<Row>> {
        let example = self.shipped("rdma", "--example", "measure")?;
        let mut command = Command::new("unshare");
        command.args(["-rn", "--"]).arg(example).arg(subject);
        let before = Look::now()?;
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.context("cannot run unshare")?;
        ensure!(output.status.success(), "{subject} cannot be measured");
        let told = machine::told(&before.until_now()?);
        let mut row = row(&String::from_utf8(output.stdout)?)?;
        row.note = format!("{}; {told}", row.note);
        one(Ok(row))
    }
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
