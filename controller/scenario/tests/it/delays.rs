//! Delays that are drawn: what 10^5 packets are told to wait, in virtual time, against the distribution that the file names.

use scenario::plan::TargetModel;
use scenario::replay::{Classified, Engine};
use scenario::{load, plan};

const PACKETS: usize = 100_000;

/// The delays of so many packets, 1 ms apart, as the model of the engine decides them.
fn decided(seed: u64, delay: &str) -> Vec<u64> {
    let text = format!(
        "weir: 1\nname: d\nseed: {seed}\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\n\
         flows: {{f: {{from: a, to: s}}}}\nfaults: [{{id: late, flows: f, effect: {{delay: {delay}}}}}]\n"
    );
    let scenario = load("d.yaml", &text).unwrap();
    let plan = plan(&scenario, &TargetModel::EMBEDDED).unwrap();
    let engine = Engine::new(&scenario, &plan, "sw").unwrap();
    let host = |name: &str| scenario.topology.host(name).unwrap();
    let (a, s) = (host("a"), host("s"));
    let mut frame = [s.mac.0, a.mac.0].concat();
    frame.extend([0x08, 0x00, 0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(a.ip.octets());
    frame.extend(s.ip.octets());
    frame.extend([0, 1, 0, 2, 0, 8, 0, 0]);
    let port = scenario.topology.next_hop("sw", "a").unwrap().number;
    let mut state = engine.start();
    let frame = engine.classify(&frame, port);
    let at = |number: usize| Classified {
        at_ns: 1_000_000 * number as u64,
        ..frame.clone()
    };
    let passages = (1..=PACKETS).map(|number| engine.pass(&mut state, &at(number), 1));
    passages
        .map(|passage| passage.ingress.fate.delay_ns)
        .collect()
}

/// Kolmogorov and Smirnov: the greatest distance between what was drawn and a distribution, times the root of how many.
fn kolmogorov_smirnov(mut drawn: Vec<u64>, distribution: impl Fn(f64) -> f64) -> f64 {
    drawn.sort_unstable();
    let count = drawn.len() as f64;
    // Values stand for 1/1,024 each: looked at where they change.
    let mut worst: f64 = 0.0;
    let mut below = 0;
    while below < drawn.len() {
        let value = drawn[below];
        let upto = drawn.partition_point(|other| *other <= value);
        // The middle of the step, where the distribution is half way up it.
        let middle = (below + upto) as f64 / 2.0 / count;
        worst = worst.max((middle - distribution(value as f64)).abs());
        below = upto;
    }
    worst * count.sqrt()
}

/// Of the standard normal distribution, by Simpson's rule.
fn normal(z: f64) -> f64 {
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let steps = 2_000;
    let width = z / f64::from(steps);
    let inner = (1..steps).map(|step| {
        let weight = if step % 2 == 1 { 4.0 } else { 2.0 };
        weight * density(width * f64::from(step))
    });
    0.5 + width / 3.0 * (density(0.0) + inner.sum::<f64>() + density(z))
}

/// 1 % of right tables are beyond this.
const BOUND: f64 = 1.63;

#[test]
fn drawn_delays_follow_their_distribution() {
    type Cumulative = Box<dyn Fn(f64) -> f64>;
    let shapes: [(&str, Cumulative); 6] = [
        ("{uniform: [5ms, 15ms]}", Box::new(|ns| (ns - 5e6) / 10e6)),
        (
            "{normal: {mean: 20ms, sd: 5ms}}",
            Box::new(|ns| normal((ns - 20e6) / 5e6)),
        ),
        (
            "{pareto: {scale: 1ms, shape: 3}}",
            Box::new(|ns| 1.0 - (1e6 / ns).powi(3)),
        ),
        (
            "{quantiles: [0s, 1ms, 51ms]}",
            Box::new(|ns| {
                if ns < 1e6 {
                    ns / 2e6
                } else {
                    0.5 + (ns - 1e6) / 100e6
                }
            }),
        ),
        (
            "{latency: 100ms, jitter: 10ms}",
            Box::new(|ns| (ns - 90e6) / 20e6),
        ),
        (
            "{latency: 100ms, jitter: 10ms, distribution: pareto}",
            Box::new(|ns| 1.0 - (1.5 + 0.75 * (ns - 100e6) / 10e6).powi(-3)),
        ),
    ];
    for (delay, distribution) in shapes {
        let distances: Vec<f64> = test_support::seeds(1..4)
            .map(|seed| kolmogorov_smirnov(decided(seed, delay), &distribution))
            .collect();
        assert!(
            distances.iter().all(|d| *d < BOUND),
            "{delay}: {distances:?}"
        );
    }
    // The test can fail: another mean, and another shape with the same mean and deviation.
    let off = kolmogorov_smirnov(decided(1, "{uniform: [5ms, 15ms]}"), |ns| {
        (ns - 5.2e6) / 10e6
    });
    assert!(off > BOUND, "{off}");
    let other = kolmogorov_smirnov(decided(1, "{normal: {mean: 20ms, sd: 5ms}}"), |ns| {
        ((ns - 20e6) / 5e6 / 12_f64.sqrt() + 0.5).clamp(0.0, 1.0)
    });
    assert!(other > BOUND, "{other}");
}

#[test]
fn kept_order_is_kept_and_free_order_is_not() {
    let leaving = |order: &str| -> Vec<u64> {
        let delay = format!("{{uniform: [0s, 20ms], order: {order}}}");
        let decided = decided(7, &delay).into_iter().zip(1..);
        decided
            .map(|(delay_ns, number)| delay_ns + 1_000_000 * number)
            .collect()
    };
    assert!(!leaving("free").is_sorted());
    let kept = leaving("kept");
    assert!(kept.is_sorted());
    // None waits longer than the longest of the distribution.
    let free = leaving("free");
    assert!(kept.iter().zip(&free).all(|(kept, free)| kept >= free));
    let waits = kept
        .iter()
        .zip(1..)
        .map(|(left, number)| left - 1_000_000 * number);
    assert!(waits.max() <= Some(20_000_000));
}
