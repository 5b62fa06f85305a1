//! `goodput`: goodput of WRITEs while a share of their packets is lost, over goodput without losses, beside the bound
//! of go-back-N: 1 / (1 + p · W), where a loss costs the W packets of a window.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use plotters::prelude::*;

use super::super::Args;
use super::super::programs::WEIR;
use super::super::row::{Goal, Row};
use super::scenario_run;
use crate::plots::{Axis, Curve, drawing_with};

/// Shares of packets that are lost.
const LOSSES: [f64; 7] = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];
/// Number of packets in flight.
const WINDOW: f64 = 128.0;
/// Number of rounds over all loss shares; the median of each share counts.
const ROUNDS: usize = 3;
/// Number of messages, 64 KiB each.
const MESSAGES: u32 = 500;

fn scenario(loss: f64, seed: usize) -> String {
    let perf = "weir, agent, rdma-perf, write";
    let options = format!("--way, rings, -n, \"{MESSAGES}\", -m, \"1024\"");
    let faults = match loss {
        0.0 => String::new(),
        _ => format!(
            "faults: [{{id: lost, flows: data, effect: drop, select: {{probability: {loss}}}}}]\n\
             expect: [fault.lost.fired >= 0]\n"
        ),
    };
    format!(
        "weir: 1
name: goodput
seed: {seed}
topology: {{star: {{hosts: [c, s], switch: sw, rate: 200Mbit/s}}}}
workload:
  commands:
    - {{name: server, host: s, root: true, run: [{perf}, {options}]}}
    - name: client
      host: c
      root: true
      run: [{perf}, \"{{host.s.ip}}\", {options}, --json]
      metrics: {{rate: {{json: /average_mib_per_s}}}}
flows:
  data: {{from: c, to: s, filter: \"roce.opcode in {{6..11}}\"}}
{faults}"
    )
}

/// Goodput of WRITEs in MiB/s while the share `loss` of packets is lost.
fn goodput(weir: &Path, loss: f64, seed: usize) -> Result<f64> {
    let report = scenario_run::report(weir, &scenario(loss, seed))
        .with_context(|| format!("loss {loss}"))?;
    ensure!(
        report["metrics"]["flow.data.sent"].as_f64() > Some(0.0),
        "no packet passed the switch"
    );
    let rate = report["metrics"]["command.client.rate"].as_f64();
    rate.with_context(|| format!("loss {loss}: no rate: {report:#}"))
}

/// Measures the goodput at all loss shares in turn.
pub fn row(args: &Args) -> Result<Row> {
    let weir = &WEIR.build(args.prebuilt)?;
    let mut rates = vec![Vec::new(); LOSSES.len() + 1];
    for round in 0..ROUNDS {
        for (rates, loss) in rates.iter_mut().zip([0.0].iter().chain(&LOSSES)) {
            rates.push(goodput(weir, *loss, round + 1)?);
        }
    }
    let middle = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[ROUNDS / 2]
    };
    let whole = middle(&mut rates[0]);
    ensure!(whole > 0.0, "the goodput without losses is 0");
    let shares: Vec<f64> = rates[1..]
        .iter_mut()
        .map(|rates| middle(rates) / whole)
        .collect();
    let of_window = |loss: f64| 1.0 / (1.0 + loss * WINDOW);
    args.draw("rdma-goodput.svg", || {
        let of = |values: Vec<f64>| LOSSES.into_iter().zip(values).collect();
        let curves = [
            Curve {
                name: "roce",
                color: RGBColor(9, 105, 218),
                points: of(shares.clone()),
            },
            Curve {
                name: "1 / (1 + p W), W = 128",
                color: RGBColor(140, 149, 159),
                points: of(LOSSES.map(of_window).to_vec()),
            },
        ];
        drawing_with(
            Axis::logarithmic("share of packets lost"),
            Axis::logarithmic("goodput, share of that without losses"),
            &curves,
            SeriesLabelPosition::LowerLeft,
        )
    })?;
    let notes = LOSSES.iter().zip(&shares);
    let notes = notes.map(|(loss, share)| format!("{loss}: {share:.3} ({:.3})", of_window(*loss)));
    let notes: Vec<String> = notes.collect();
    // The row's value is the share at 1 % loss.
    let at = LOSSES
        .iter()
        .position(|loss| *loss == 1e-2)
        .context("LOSSES has no 1e-2")?;
    Ok(Row {
        name: "goodput",
        value: Some(shares[at]),
        unit: "share",
        goal: Goal::Nothing,
        floor: Some(of_window(LOSSES[at])),
        note: format!(
            "at a loss of 0.01, of the goodput without ({whole:.1} MiB/s, 200 Mbit/s); at losses of {}, in brackets \
             1 / (1 + p W)",
            notes.join(", ")
        ),
    })
}
