//! `allreduce/latency`: time of an all-reduce of 4 KB by 4 ranks, over 10,000 calls.

use anyhow::Result;

use super::super::row::{Goal, Row};
use super::{AllReduceBench, AllReduceSetting, BackendRounds};

pub const NAMES: &[&str] = &["allreduce/latency", "allreduce/latency_p99"];

pub const SETTING: AllReduceSetting = AllReduceSetting {
    name: "latency",
    ranks: 4,
    values: 1024,
    rounds: 10,
    calls: 1000,
    ..AllReduceSetting::BASE
};

pub fn run(bench: &AllReduceBench) -> Result<Vec<Row>> {
    let measured = bench.measure(&SETTING)?;
    let [weir, gloo] = ["weir", "gloo"].map(|backend| sorted(&measured, backend));
    let row = |name, share: usize, goal| {
        let at = |took: &[f64]| took[(took.len() * share / 100).min(took.len() - 1)];
        Row {
            name,
            value: Some(at(&weir)),
            unit: "us",
            goal,
            floor: None,
            note: format!(
                "{} ranks, {} bytes, {} calls at each: {share} of 100; Gloo through the same switch {:.0}; {}",
                SETTING.ranks,
                SETTING.bytes(),
                SETTING.rounds * SETTING.calls,
                at(&gloo),
                measured.machine
            ),
        }
    };
    let median_of_gloo = gloo[gloo.len() / 2];
    Ok(vec![
        row(NAMES[0], 50, Goal::AtMost(median_of_gloo)),
        row(NAMES[1], 99, Goal::Nothing),
    ])
}

/// Times of a backend's calls at all ranks in microseconds, sorted.
fn sorted(measured: &BackendRounds, backend: &str) -> Vec<f64> {
    let rounds = measured.rounds(backend);
    let mut took: Vec<f64> = rounds
        .flat_map(|round| round.took_ns.iter().flatten())
        .map(|took_ns| *took_ns as f64 / 1e3)
        .collect();
    took.sort_by(f64::total_cmp);
    took
}
