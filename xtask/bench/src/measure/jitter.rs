//! Delays that are drawn: those that packets are told in virtual time, against the distribution that the file names, and
//! those that captures see of them.
//!
//! The distributions are computed here once more, from their formulas and not from the quantiles that a switch looks up: so a
//! table that is wrong is found. A delay is one of 1,024, each the middle of its 1,024th, and is held against the continuous
//! distribution all the same: that alone puts half a step, 0.0005, between the two.

use anyhow::{Context, Result};
use scenario::plan::TargetModel;
use scenario::replay::{Classified, Engine};
use scenario::{load, plan};
use serde_json::Value;

use super::driver::Group;
use super::qq;
use super::row::{Goal, Row};

/// So many packets are told how long to wait.
const DECIDED: usize = 100_000;
/// 1 of 100 samples of a right distribution is further from it than this: D times the root of how many there are (Kolmogorov).
const ONE_PERCENT: f64 = 1.628;
/// Between the middle of a step and its ends.
const HALF_A_STEP: f64 = 0.5 / 1024.0;

/// A distribution: its row, how it is written, and which share of delays is at most so many nanoseconds.
type Shape = (&'static str, &'static str, fn(f64) -> f64);

const SHAPES: [Shape; 5] = [
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

/// The row of what captures see.
pub const MEASURED: &str = "faults/jitter_measured";
/// The delay of that, its mean and its deviation.
pub const MEASURED_DELAY: &str = "{latency: 20ms, jitter: 5ms, distribution: normal}";
const MEAN_NS: f64 = 20e6;
const DEVIATION_NS: f64 = 5e6;

/// A row for each distribution.
pub fn decided<C>() -> Vec<Group<C>> {
    let group = |shape: Shape| Group::one(shape.0, move |_| distance_from(shape));
    SHAPES.map(group).into()
}

/// The distance between a distribution and the delays of 10⁵ packets.
fn distance_from((name, delay, distribution): Shape) -> Result<Row> {
    // Each draws for itself: with the same words all would be as far off.
    let id = name.trim_start_matches("faults/");
    let text = format!(
        "weir: 1\nname: jitter\nseed: 7\ntopology: {{star: {{hosts: [a, b], switch: sw}}}}\n\
         flows: {{stream: {{from: a, to: b}}}}\n\
         faults: [{{id: {id}, flows: stream, effect: {{delay: {delay}}}}}]\n"
    );
    let mut delays = told(&text, DECIDED)?;
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

/// What captures saw of the packets of a run with [`MEASURED_DELAY`]: how far its quantiles are from those of what was
/// decided. With the drawing of them against the distribution.
pub fn measured(text: &str, events: &[Value], report: &Value) -> Result<(Row, String)> {
    let mut delays: Vec<f64> = events
        .iter()
        .filter_map(|event| {
            let left = event["left"][0]["at_ns"][0].as_u64()?;
            Some(left.saturating_sub(event["at_ns"].as_u64()?) as f64)
        })
        .collect();
    delays.sort_by(f64::total_cmp);
    let mut told: Vec<f64> = told(text, delays.len())?
        .into_iter()
        .map(|ns| ns as f64)
        .collect();
    told.sort_by(f64::total_cmp);
    let count = delays.len();
    let apart = delays
        .iter()
        .zip(&told)
        .map(|(delay, told)| (delay - told).abs());
    // The ends are single packets.
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

/// How long a scenario's first packets of 72 bytes to port 5201 are told to wait, as the model of the engine decides.
fn told(text: &str, packets: usize) -> Result<Vec<u64>> {
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

/// Kolmogorov's: the greatest distance between a sample and a distribution, on both sides of each value.
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

/// The standard normal distribution, by Simpson's rule.
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

/// Of netem's table: Pareto's with the shape 3, less its mean of 1.5, by 4/3.
fn pareto(jitters: f64) -> f64 {
    1.0 - (1.5 + 0.75 * jitters).max(1.0).powi(-3)
}

/// A quarter of a normal deviate and three quarters of a Pareto's, both of one draw: what grows is found by halving.
fn paretonormal(jitters: f64) -> f64 {
    let of = |z: f64| {
        let tail = (1.0 - normal(z)).max(1e-15);
        0.25 * z + 0.75 * (tail.powf(-1.0 / 3.0) - 1.5) * 4.0 / 3.0
    };
    normal(halved(-8.0, 8.0, |z| of(z) < jitters))
}

fn inverse_normal(p: f64) -> f64 {
    halved(-8.0, 8.0, |z| normal(z) < p)
}

/// Where what was so is so no more.
fn halved(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
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
        // The least of a Pareto's is 1, and half of it is below 2 to the power of 1/3.
        assert_eq!(pareto(-2.0 / 3.0), 0.0);
        let median = (2_f64.powf(1.0 / 3.0) - 1.5) * 4.0 / 3.0;
        assert!((pareto(median) - 0.5).abs() < 1e-12);
        assert!((paretonormal(0.75 * median) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_distance_is_that_of_both_sides() {
        let uniform = |x: f64| x / 100.0;
        let mut middles: Vec<u64> = (0..100).collect();
        assert!((distance(&mut middles, |x| uniform(x + 0.5)) - 0.005).abs() < 1e-12);
        let mut one = vec![30; 50];
        assert!((distance(&mut one, uniform) - 0.7).abs() < 1e-12);
    }

    /// What is decided passes, and what is decided by another distribution does not.
    #[test]
    fn the_rows_can_fail() {
        let row = distance_from(SHAPES[0]).unwrap();
        assert!(row.ok(), "{row:?}");
        let text = "weir: 1\nname: j\nseed: 7\ntopology: {star: {hosts: [a, b], switch: sw}}\n\
                    flows: {f: {from: a, to: b}}\n\
                    faults: [{id: x, flows: f, effect: {delay: {latency: 100ms, jitter: 10ms, distribution: normal}}}]\n";
        let mut delays = told(text, 20_000).unwrap();
        let (_, _, uniform) = SHAPES[0];
        assert!(distance(&mut delays, uniform) > 0.05);
    }
}
