//! `cargo xtask conformance DIR`: runs other people's tests, from a checkout of p4lang/p4c that the user names.
//!
//! Each file of this folder runs parts of the checkout as [`Suite`]s; this file prints their
//! results. Nothing of the checkout is stored: a test's text becomes a pass or a reason.

mod corpus;
mod errors;
mod p4info;
mod samples;
mod stf;
mod suite;
mod tna;

use anyhow::{Result, bail};
use corpus::Corpus;
use std::path::PathBuf;
use suite::Suite;

/// Options of `cargo xtask conformance`.
#[derive(clap::Args)]
pub struct Args {
    /// Path of a checkout of p4lang/p4c
    dir: PathBuf,
    /// Print the figures as JSON in the last line
    #[arg(long)]
    json: bool,
    /// Run only suites whose name contains this
    #[arg(long, value_name = "NAME", default_value = "")]
    suite: String,
    /// Run only the cases whose name contains this (the figures then measure nothing)
    #[arg(long, value_name = "NAME", default_value = "")]
    case: String,
    /// Executor of the programs; with `both`, a difference is a miss
    #[arg(long, value_enum, default_value_t = Executor::Fast)]
    executor: Executor,
    /// Path of a checkout of p4lang/p4app-switchML, for tna_programs
    #[arg(long, value_name = "DIR")]
    switchml: Option<PathBuf>,
    /// Path of a checkout of Fangjin98/distributed-training-INA, for tna_programs
    #[arg(long, value_name = "DIR")]
    nga: Option<PathBuf>,
    /// Path of the folder p4-tests/p4_16 in a checkout of p4lang/bf-p4c, for stf_tna
    #[arg(long, value_name = "DIR")]
    tofino: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Executor {
    /// The register machine
    Fast,
    /// The reference interpreter
    Reference,
    /// Both, compared block by block
    Both,
}

/// Names of the suites in a file of this folder, and the function that runs the suites.
type Runner = (&'static [&'static str], fn(&Corpus) -> Result<Vec<Suite>>);

/// Functions that run all suites, in the order of the printed table.
const RUNNERS: &[Runner] = &[
    (samples::NAMES, samples::run),
    (errors::NAMES, errors::run),
    (p4info::NAMES, p4info::run),
    (stf::NAMES, stf::run),
];

/// Runs all selected suites; `Ok(false)` if a suite misses its goal.
pub fn run(args: &Args) -> Result<bool> {
    let mut corpus = Corpus::open(&args.dir, &args.case)?;
    corpus.executor = match args.executor {
        Executor::Fast => pipeline::Executor::Fast,
        Executor::Reference => pipeline::Executor::Reference,
        Executor::Both => pipeline::Executor::Both,
    };
    let wanted = |name: &&str| name.contains(&args.suite);
    let mut suites = Vec::new();
    for (names, runner) in RUNNERS {
        if names.iter().any(wanted) {
            suites.extend(runner(&corpus)?.into_iter().filter(|s| wanted(&s.name)));
        }
    }
    let mut skipped = Vec::new();
    if wanted(&tna::NAME) {
        let dirs = [&args.switchml, &args.nga].map(|dir| dir.as_deref());
        let programs = tna::run(dirs, &args.case, corpus.executor);
        suites.extend(programs.suite);
        skipped.extend(programs.skipped.into_iter().map(|what| (tna::NAME, what)));
    }
    if wanted(&stf::tofino::NAME) {
        let found = stf::tofino::run(args.tofino.as_deref(), &args.case, corpus.executor);
        suites.extend(found.suite);
        skipped.extend(
            found
                .skipped
                .into_iter()
                .map(|what| (stf::tofino::NAME, what)),
        );
    }
    if suites.is_empty() && skipped.is_empty() {
        bail!(
            "no suite has `{}` in its name; leave --suite out to run all",
            args.suite
        );
    }
    print!("{}", suite::report(&corpus.commit, &suites));
    for (name, what) in skipped {
        println!("{name}: skipped: {what}");
    }
    if args.json {
        println!("{}", suite::json(&suites));
    }
    Ok(suites.iter().all(Suite::is_met))
}
