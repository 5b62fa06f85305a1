//! What the cluster tests share.
#![allow(dead_code)] // each test program uses its own part

pub mod mutant;

use aggregation::server::Mode;
use aggregation::{Job, WorkerId};
use cluster::{self, Config, Forwarder, Report, SlotSwitch, Violation};

/// A small mixing function (splitmix64's finaliser): inputs and choices that follow from a seed.
pub fn mix(seed: u64, a: u64, b: u64) -> u64 {
    let mut x =
        seed ^ a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A worker's values of a round: many magnitudes, some blocks of zeros.
pub fn inputs(config: &Config) -> impl Fn(u64, WorkerId) -> Vec<f32> + Copy {
    let (seed, length, size) = (
        config.seed,
        config.job.values_per_round,
        usize::from(config.job.values_per_packet),
    );
    move |round, worker| {
        (0..length)
            .map(|index| {
                let block = (index / size) as u64;
                if mix(seed, block, round).is_multiple_of(7) {
                    return 0.0;
                }
                let bits = mix(seed, round << 8 | u64::from(worker.0), index as u64);
                let unit = (bits >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
                unit * 2f32.powi((mix(seed, block, 3) % 40) as i32 - 20)
            })
            .collect()
    }
}

/// Runs the reference: its slots in the switch or in the server.
pub fn run_reference(config: &Config) -> Report {
    let job = Job::new(config.job).unwrap();
    match config.mode {
        Mode::Switch => run_with(config, &mut SlotSwitch::new(job)),
        Mode::Direct => run_with(config, &mut Forwarder::new(job)),
    }
}

/// Runs any switch.
pub fn run_with(config: &Config, switch: &mut impl cluster::SwitchModel) -> Report {
    cluster::run(config, switch, cluster::answer_with_sums, inputs(config)).unwrap()
}

/// What is wrong with a run.
pub fn violations(config: &Config, report: &Report) -> Vec<Violation> {
    cluster::check(config, inputs(config), report)
}

/// Runs the reference and wants it right.
pub fn expect_right(config: &Config) -> Report {
    let report = run_reference(config);
    let violations = violations(config, &report);
    assert!(
        violations.is_empty(),
        "{config:#?}: {violations:#?}\n{report:#?}"
    );
    report
}
