//! `allreduce/stream`: memory that a rank takes, beyond a tensor of 10⁹ values, while the tensor is summed.

use anyhow::{Context, Result};

use super::super::row::{Goal, Row};
use super::{AllReduceBench, AllReduceSetting};

pub const NAMES: &[&str] = &["allreduce/stream"];

pub const SETTING: AllReduceSetting = AllReduceSetting {
    name: "stream",
    script: "stream.py",
    ranks: 2,
    backends: &["weir"],
    values: 1_000_000_000,
    rounds: 1,
    ..AllReduceSetting::BASE
};

const MIB: f64 = (1 << 20) as f64;

pub fn run(bench: &AllReduceBench) -> Result<Vec<Row>> {
    let measured = bench.measure(&SETTING)?;
    let beyond = measured.counters["beyond_bytes"].as_f64();
    let round = measured.best("weir")?;
    let bytes = SETTING.bytes() as f64;
    Ok(vec![Row {
        name: NAMES[0],
        value: Some(beyond.context("beyond_bytes")? / MIB),
        unit: "MiB",
        // A tenth of the tensor.
        goal: Goal::AtMost(bytes / MIB / 10.0),
        floor: Some(f64::from(SETTING.window) * 1024.0 / MIB),
        note: format!(
            "rank 0 of {}, at most, beyond a tensor of {:.0} MiB; floor: a window of values; {:.0} s, {:.2} Gbit/s each way; {}",
            SETTING.ranks,
            bytes / MIB,
            round.seconds,
            8.0 * bytes / round.seconds / 1e9,
            measured.machine
        ),
    }])
}
