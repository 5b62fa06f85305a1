//! Rows of random delays: the delays that the fault engine decides in virtual time, compared with
//! the scenario's distribution, and the delays in captures.
//!
//! The distributions are computed here from their formulas, and not from the quantiles that a switch
//! looks up, so a wrong table is found. A delay is one of 1,024 values, each the middle of its 1,024th
//! of the distribution. The comparison with the continuous distribution adds half a step, 0.0005.

use anyhow::{Context, Result};
use scenario::plan::TargetModel;
use scenario::replay::{Classified, Engine};
use scenario::{load, plan};
use serde_json::Value;

use crate::measure::driver::Group;
use crate::measure::qq;
use crate::measure::row::{Goal, Row};

/// Number of packets for which the fault engine's model decides delays.
const DECIDED: usize = 100_000;
/// Critical value of Kolmogorov's D times the square root of the sample size: 1 % of correct samples exceed it.
const ONE_PERCENT: f64 = 1.628;
/// Distance between the middle of a step of the distribution and the step's ends.
const HALF_A_STEP: f64 = 0.5 / 1024.0;

/// Row name, YAML of the delay, and distribution function: the probability of at most this delay in nanoseconds.
type DelayDistribution = (&'static str, &'static str, fn(f64) -> f64);

const DISTRIBUTIONS: [DelayDistribution; 5] = [
    (
        "faults/jitter_uniform",
        "{latency: 100ms, jitter: 10ms}",
        |ns| ((ns - 90e6) / 20e6).clamp(0.0, 1.0),
    ),
    (
        "faults/jitter_normal",
        "{latency: 100ms, jitter: 10ms, distribution: normal}",
        |ns| normal((ns - 100e6) / 10e6),
    ),
    (
        "faults/jitter_pareto",
        "{latency: 100ms, jitter: 10ms, distribution: pareto}",
        |ns| pareto((ns - 100e6) / 10e6),
    ),
    (
        "faults/jitter_paretonormal",
        "{latency: 100ms, jitter: 10ms, distribution: paretonormal}",
        |ns| paretonormal((ns - 100e6) / 10e6),
    ),
    (
        "faults/jitter_quantiles",
        "{quantiles: [0s, 1ms, 51ms]}",
        |ns| match ns < 1e6 {
            true => ns / 2e6,
            false => 0.5 + (ns - 1e6) / 100e6,
        },
    ),
];

/// Name of the row for the delays in captures.
pub const MEASURED: &str = "faults/jitter_measured";
/// YAML of the delay in row [`MEASURED`]; the next constants are its mean and standard deviation.
pub const MEASURED_DELAY: &str = "{latency: 20ms, jitter: 5ms, distribution: normal}";
const MEAN_NS: f64 = 20e6;
const DEVIATION_NS: f64 = 5e6;

/// A row of decided delays for each distribution.
pub fn decided_rows<C>() -> Vec<Group<C>> {
    let group = |shape: DelayDistribution| Group::one(shape.0, move |_| distance_from(shape));
    DISTRIBUTIONS.map(group).into()
}

/// Row with the distance between a distribution and the decided delays of 10⁵ packets.
fn distance_from((name, delay, distribution): DelayDistribution) -> Result<Row> {
    // The id gives each row random numbers of its own; with equal ones all rows would have the same distance.
    let id = name.trim_start_matches("faults/");
    let text = format!(
        "weir: 1\nname: jitter\nseed: 7\ntopology: {{star: {{hosts: [a, b], switch: sw}}}}\n\
         flows: {{stream: {{from: a, to: b}}}}\n\
         faults: [{{id: {id}, flows: stream, effect: {{delay: {delay}}}}}]\n"
    );
    let mut delays = decided_delays(&text, DECIDED)?;
    let distance = distance(&mut delays, distribution);
    let root = (DECIDED as f64).sqrt();
    Ok(Row {
        name,
        value: Some(distance * root),
        unit: "sqrt(n) D",
        goal: Goal::AtMost(ONE_PERCENT),
        floor: Some(HALF_A_STEP * root),
        note: format!(
            "{DECIDED} decided delays of {delay}, seed 7, against the continuous distribution; D = {distance:.5}"
        ),
    })
}

/// Row and drawing of the delays that captures show in a run with [`MEASURED_DELAY`]: the distance between their
/// quantiles and those of the decided delays.
pub fn measured_row(text: &str, events: &[Value], report: &Value) -> Result<(Row, String)> {
    let mut delays: Vec<f64> = events
        .iter()
        .filter_map(|event| {
            let left = event["left"][0]["at_ns"][0].as_u64()?;
            Some(left.saturating_sub(event["at_ns"].as_u64()?) as f64)
        })
        .collect();
    delays.sort_by(f64::total_cmp);
    let mut decided: Vec<f64> = decided_delays(text, delays.len())?
        .into_iter()
        .map(|ns| ns as f64)
        .collect();
    decided.sort_by(f64::total_cmp);
    let count = delays.len();
    let apart = delays
        .iter()
        .zip(&decided)
        .map(|(delay, decided)| (delay - decided).abs());
    // The quantiles at the ends are single packets.
    let inner = apart.skip(count / 100).take(count - 2 * (count / 100));
    let worst_us = inner.fold(0.0, f64::max) / 1e3;
    let strain = &report["machine_strain"];
    let fault = &report["faults"][0];
    let bound_us = fault["lateness_bound_ns"].as_f64().context("a bound")? / 1e3;
    let share = strain["busy_share"].as_f64().unwrap_or(0.0);
    let note = format!(
        "{count} packets of {MEASURED_DELAY}, proved: {}; largest difference of quantiles from 1 % to 99 %; goal: the plan's \
         bound; load before {}, {:.0} % of the processors' time used",
        fault["proved"],
        strain["load_before"],
        share * 100.0
    );
    let expected =
        |n: usize| MEAN_NS + DEVIATION_NS * inverse_normal((n as f64 + 0.5) / count as f64);
    let points: Vec<(f64, f64)> = qq::thinned(count)
        .map(|n| (expected(n) / 1e6, delays[n] / 1e6))
        .collect();
    let title = format!(
        "Delays of {count} packets, seen by captures, against the normal distribution of 20 ms ± 5 ms"
    );
    let svg = qq::svg(
        &title,
        "ms, by the distribution",
        "ms, from captures",
        &points,
    );
    let row = Row {
        name: MEASURED,
        value: Some(worst_us),
        unit: "us",
        goal: Goal::AtMost(bound_us),
        floor: None,
        note,
    };
    Ok((row, svg))
}

/// Delays in nanoseconds that the fault engine's model decides for a scenario's first packets of 72 bytes to port 5201.
fn decided_delays(text: &str, packets: usize) -> Result<Vec<u64>> {
    let failed = |error: scenario::Diagnostics| anyhow::anyhow!("{error}");
    let scenario = load("jitter.yaml", text).map_err(failed)?;
    let plan = plan(&scenario, &TargetModel::EMBEDDED).map_err(failed)?;
    let engine = Engine::new(&scenario, &plan, "sw").context("a switch with faults")?;
    let host = |name: &str| scenario.topology.host(name).context("a host");
    let (a, b) = (host("a")?, host("b")?);
    let mut frame = [b.mac.0, a.mac.0].concat();
    frame.extend([0x08, 0x00, 0x45, 0, 0, 92, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(a.ip.octets());
    frame.extend(b.ip.octets());
    frame.extend([0x30, 0x39, 0x14, 0x51, 0, 72, 0, 0]);
    frame.resize(frame.len() + 64, 0);
    let port = scenario
        .topology
        .next_hop("sw", "a")
        .context("a port")?
        .number;
    let frame = engine.classify(&frame, port);
    let mut state = engine.start();
    let passages = (1..=packets).map(|number| {
        let frame = Classified {
            at_ns: 1_000_000 * number as u64,
            ..frame.clone()
        };
        engine.pass(&mut state, &frame, 1).ingress.fate.delay_ns
    });
    Ok(passages.collect())
}

/// Kolmogorov's D: the largest distance between a sample and a distribution, on both sides of each value.
fn distance(sample: &mut [u64], distribution: impl Fn(f64) -> f64) -> f64 {
    sample.sort_unstable();
    let count = sample.len() as f64;
    let (mut worst, mut below) = (0.0_f64, 0);
    while below < sample.len() {
        let value = sample[below];
        let upto = sample.partition_point(|other| *other <= value);
        let expected = distribution(value as f64);
        let sides = [below, upto].map(|side| (side as f64 / count - expected).abs());
        worst = sides.into_iter().fold(worst, f64::max);
        below = upto;
    }
    worst
}

/// Distribution function of the standard normal distribution, by Simpson's rule.
fn normal(z: f64) -> f64 {
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let steps = 200;
    let width = z.clamp(-9.0, 9.0) / f64::from(steps);
    let inner = (1..steps).map(|step| {
        let weight = if step % 2 == 1 { 4.0 } else { 2.0 };
        weight * density(width * f64::from(step))
    });
    let ends = density(0.0) + density(width * f64::from(steps));
    0.5 + width / 3.0 * (ends + inner.sum::<f64>())
}

/// Distribution function of netem's table: a Pareto distribution of shape 3, minus its mean of 1.5, times 4/3.
fn pareto(jitters: f64) -> f64 {
    1.0 - (1.5 + 0.75 * jitters).max(1.0).powi(-3)
}

/// Distribution function of a quarter of a normal plus three quarters of a Pareto deviate, both
/// from one draw. The sum increases with the draw, so bisection inverts it.
fn paretonormal(jitters: f64) -> f64 {
    let of = |z: f64| {
        let tail = (1.0 - normal(z)).max(1e-15);
        0.25 * z + 0.75 * (tail.powf(-1.0 / 3.0) - 1.5) * 4.0 / 3.0
    };
    normal(bisect(-8.0, 8.0, |z| of(z) < jitters))
}

fn inverse_normal(p: f64) -> f64 {
    bisect(-8.0, 8.0, |z| normal(z) < p)
}

/// Bisects between `low` and `high` for the value at which `is_below` becomes false.
fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        match is_below(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_shares_are_met() {
        for (z, share) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746),
            (-2.0, 0.022_750_132),
            (3.0, 0.998_650_102),
        ] {
            assert!((normal(z) - share).abs() < 1e-8, "{z}");
            assert!((inverse_normal(share) - z).abs() < 1e-6, "{share}");
        }
        // The minimum of the Pareto distribution is 1, its median the cube root of 2.
        assert_eq!(pareto(-2.0 / 3.0), 0.0);
        let median = (2_f64.powf(1.0 / 3.0) - 1.5) * 4.0 / 3.0;
        assert!((pareto(median) - 0.5).abs() < 1e-12);
        assert!((paretonormal(0.75 * median) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_distance_counts_both_sides() {
        let uniform = |x: f64| x / 100.0;
        let mut middles: Vec<u64> = (0..100).collect();
        assert!((distance(&mut middles, |x| uniform(x + 0.5)) - 0.005).abs() < 1e-12);
        let mut one = vec![30; 50];
        assert!((distance(&mut one, uniform) - 0.7).abs() < 1e-12);
    }

    /// Delays of the right distribution pass, delays of another one fail.
    #[test]
    fn the_rows_can_fail() {
        let row = distance_from(DISTRIBUTIONS[0]).unwrap();
        assert!(row.ok(), "{row:?}");
        let text = "weir: 1\nname: j\nseed: 7\ntopology: {star: {hosts: [a, b], switch: sw}}\n\
                    flows: {f: {from: a, to: b}}\n\
                    faults: [{id: x, flows: f, effect: {delay: {latency: 100ms, jitter: 10ms, distribution: normal}}}]\n";
        let mut delays = decided_delays(text, 20_000).unwrap();
        let (_, _, uniform) = DISTRIBUTIONS[0];
        assert!(distance(&mut delays, uniform) > 0.05);
    }
}
