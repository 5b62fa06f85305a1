//! `qps`: ratio of the throughput of several queue pairs between two hosts to that of one queue
//! pair, through two spines with half the link rate of the hosts.
//!
//! The embedded switches distribute flows by their ports (ECMP), and each queue pair has a source
//! port of its own. Each count is a run of a scenario.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::super::row::{Goal, Row};
use super::scenario_run;

/// Numbers of queue pairs to each peer that are measured.
const COUNTS: [usize; 4] = [1, 2, 4, 8];
const RUNS: usize = 3;
/// Scenario in which links of spines carry 100 Mbit/s, and links of hosts 200 Mbit/s.
const SCENARIO: &str = "\
weir: 1
name: qps
topology:
  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 1, rate: 200Mbit/s, uplink_rate: 100Mbit/s, mtu: 4200}
routing: ecmp
workload:
  commands:
    - {name: rank0, host: h0-0, root: true, run: &perf \"weir agent collectives-perf alltoall --ranks 2 -b 16M -e 16M -n 4 -w 1 \\
        --store {dir.rank0}/store --json --seed SEED -q QPS --rank $(uname -n | cut -c2)\", metrics: &report {busbw: {json: /average_busbw_gb_per_s}}}
    - {name: rank1, host: h1-0, root: true, run: *perf, metrics: *report}
";

/// Row with the throughput of the most queue pairs over that of one queue pair; the row has no goal.
pub fn row(weir: &Path) -> Result<Row> {
    let mut of_each = Vec::new();
    for qps in COUNTS {
        let mut rates = Vec::new();
        for seed in 1..=RUNS {
            rates.push(megabits(weir, qps, seed)?);
        }
        rates.sort_by(f64::total_cmp);
        of_each.push(rates);
    }
    let median = |rates: &Vec<f64>| rates[RUNS / 2];
    let notes = COUNTS.iter().zip(&of_each).map(|(qps, rates)| {
        let (least, most) = (rates[0], rates[RUNS - 1]);
        format!(
            "{qps}: {:.0} Mbit/s ({least:.0} to {most:.0})",
            median(rates)
        )
    });
    let notes: Vec<String> = notes.collect();
    let last = of_each.last().context("counts")?;
    Ok(Row {
        name: "qps",
        value: Some(median(last) / median(&of_each[0])),
        unit: "times",
        goal: Goal::Nothing,
        floor: None,
        note: format!(
            "queue pairs a peer, two hosts at two leaves, two spines of 100 Mbit/s, all-to-all: {}",
            notes.join(", ")
        ),
    })
}

/// Throughput from each host to the other host, in Mbit/s.
fn megabits(weir: &Path, qps: usize, seed: usize) -> Result<f64> {
    let text = SCENARIO
        .replace("QPS", &qps.to_string())
        .replace("SEED", &seed.to_string());
    let report = scenario_run::report(weir, &text)?;
    for rank in ["command.rank0.exit", "command.rank1.exit"] {
        ensure!(report["metrics"][rank] == 0, "{rank}: {report:#}");
    }
    let rate = report["metrics"]["command.rank0.busbw"].as_f64();
    Ok(rate.with_context(|| format!("no rate in {report:#}"))? * 8e3)
}
