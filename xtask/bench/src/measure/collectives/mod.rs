//! `cargo xtask bench collectives`: measures RDMA and the collectives on it, beside bounds and
//! other programs. docs/rdma.md keeps the figures.
//!
//! `host-agent/rdma/examples/measure`, `weir` with a scenario, or other people's programs measure,
//! each in a namespace of its own. Our programs are built with the shipped profile.

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

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Args;
use super::allreduce::machine::{self, CpuSnapshot};
use super::driver::{self, Group};
use super::programs::{AGENT, RDMA, WEIR};
use super::row::Row;

pub fn run(args: &Args) -> Result<bool> {
    let groups = vec![
        Group::one("write_cpu", |args| {
            measure_subject(args, "write_cpu", write::row)
        }),
        Group::one("all_gather", |args| {
            measure_subject(args, "all_gather", |text| share::row("all_gather", text))
        }),
        Group::one("all_to_all", |args| {
            measure_subject(args, "all_to_all", |text| share::row("all_to_all", text))
        }),
        Group::one("nics", |args| measure_subject(args, "nics", nics::row)),
        Group::one("qps", |args: &Args| qps::row(&WEIR.build(args.prebuilt)?)),
        Group::new(sums::NAMES, |args: &Args| {
            WEIR.build(args.prebuilt)?;
            sums::run()
        }),
        Group::one(rxe::ROLE, |args: &Args| {
            WEIR.build(args.prebuilt)?;
            AGENT.build(args.prebuilt)?;
            rxe::row()
        }),
        Group::one("lost_write", |args| lost::WRITE.measure(args)),
        Group::one("lost_read", |args| lost::READ.measure(args)),
        Group::new(lost::machines::NAMES, lost::machines::rows),
        Group::one("goodput", goodput::row),
    ];
    driver::measure(args, groups, || Ok(args.clone()))
}

/// Measures a row in this process, in a network namespace; returns the row's figures as text.
pub fn run_role(role: &str) -> Result<String> {
    match role {
        rxe::ROLE => rxe::measure(),
        lost::machines::ROLE => lost::machines::measure(),
        role => Ok(sums::measure(role)?.to_string()),
    }
}

/// Runs the measuring program for a subject, and makes a row from the program's output.
fn measure_subject(args: &Args, subject: &str, row: fn(&str) -> Result<Row>) -> Result<Row> {
    let example = RDMA.build(args.prebuilt)?;
    let mut command = Command::new("unshare");
    command.args(["-rn", "--"]).arg(example).arg(subject);
    let before = CpuSnapshot::now()?;
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cannot run unshare")?;
    ensure!(
        output.status.success(),
        "{subject} cannot be measured: {}",
        output.status
    );
    let load = machine::note(&before.usage_since()?);
    let mut row = row(&String::from_utf8(output.stdout)?)?;
    row.note = format!("{}; {load}", row.note);
    Ok(row)
}
