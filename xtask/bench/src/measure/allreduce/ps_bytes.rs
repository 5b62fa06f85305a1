//! `allreduce/ps_bytes`: share of bytes that the switch saves a parameter server's link, by the counters of `weir
//! demo`.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::row::{Goal, Row};
use super::AllReduceBench;

pub const NAMES: &[&str] = &["allreduce/ps_bytes"];

pub fn run(bench: &AllReduceBench) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let mut weir = Command::new(&bench.weir);
    weir.args(["demo", "--json"]).current_dir(folder.path());
    let output = weir.output().context("cannot run weir")?;
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("weir demo: {}", errors.trim())
    })?;
    let share = report["server_bytes_removed_share"].as_f64();
    let share = share.context("server_bytes_removed_share")?;
    let workers = report["workers"].as_u64().context("workers")?;
    ensure!(workers > 0, "a demo without workers");
    let bytes = |name: &str| {
        let runs = report["runs"].as_array().into_iter().flatten();
        let mut of = runs.filter(|run| run["name"] == name);
        of.next().and_then(|run| run["server_link_bytes"].as_u64())
    };
    let (with, without) = (bytes("aggregated"), bytes("server_only"));
    Ok(vec![Row {
        name: NAMES[0],
        value: Some(100.0 * share),
        unit: "%",
        goal: Goal::AtLeast(86.5),
        floor: Some(100.0 * (1.0 - 1.0 / workers as f64)),
        note: format!(
            "of the bytes on the server's link, {workers} workers, parameter-server mode: {} of {}; floor: n - 1 of n",
            with.context("aggregated")?,
            without.context("server_only")?
        ),
    }])
}
