//! `cargo xtask bench switch`: what the embedded switch costs. Figures are kept in docs/performance.md.
//!
//! A file a subject; each gives [`Row`]s. Runs optimised: an unoptimised xtask builds and runs itself again in release.

mod aggregate;
mod clock;
mod filters;
mod idle;
mod load;
mod lpm;
mod router;
mod row;
mod support;
mod ternary;
mod veth;
mod writes;

use anyhow::{Context, Result, bail};
use row::Row;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct Args {
    /// What to measure
    #[arg(value_parser = ["switch"])]
    subject: String,
    /// Print the figures as one last line of JSON
    #[arg(long)]
    json: bool,
    /// Measure only the rows whose name contains this
    #[arg(long, value_name = "NAME", default_value = "")]
    row: String,
}

/// The names of a file's rows, and what measures them.
type Bench = (&'static [&'static str], fn() -> Result<Vec<Row>>);

/// In the order of the printed table.
const BENCHES: &[Bench] = &[
    (router::NAMES, router::run),
    (aggregate::NAMES, aggregate::run),
    (filters::NAMES, filters::run),
    (ternary::NAMES, ternary::run),
    (lpm::NAMES, lpm::run),
    (load::NAMES, load::run),
    (writes::NAMES, writes::run),
    (veth::NAMES, veth::run),
    (idle::NAMES, idle::run),
];

/// Measures everything; `Ok(false)` if a figure was not reached.
pub fn run(args: &Args) -> Result<bool> {
    if cfg!(debug_assertions) {
        return in_release(args);
    }
    let wanted = |name: &&str| name.contains(&args.row);
    let mut rows = Vec::new();
    for (names, bench) in BENCHES {
        if names.iter().any(wanted) {
            eprintln!("measuring {} …", names.join(", "));
            rows.extend(bench()?.into_iter().filter(|r| wanted(&r.name)));
        }
    }
    if rows.is_empty() {
        bail!("no row is called {}", args.row);
    }
    print!("{}", row::report(&rows));
    if args.json {
        println!("{}", row::json(&rows));
    }
    Ok(rows.iter().all(Row::ok))
}

/// The same in a release build. Exit status 1 is a figure that was not reached; what else goes wrong has been said.
fn in_release(args: &Args) -> Result<bool> {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--release", "--package", "xtask", "--"]);
    cargo.args(["bench", &args.subject, "--row", &args.row]);
    cargo.args(args.json.then_some("--json"));
    let status = cargo.status().context("cannot run cargo")?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("the release build of xtask failed"),
    }
}
