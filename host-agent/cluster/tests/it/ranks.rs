//! All-reduces over a network that misbehaves: every rank has the sums, the same to the bit.

use aggregation::job::{ChunkId, JobConfig, JobId, WorkerId};
use aggregation::quantise::{self, Exponent};
use aggregation::rank::Values;
use cluster::Faults;
use cluster::ranks::{Config, RankEnd, Report, SlotSwitch, run};
use proptest::prelude::*;

fn config(seed: u64, workers: u8, window: u32, faults: Faults) -> Config {
    let job = JobConfig {
        job: JobId(7),
        workers,
        window,
        values_per_packet: 4,
        values_per_round: 0,
        first_chunk: ChunkId(u32::MAX - 40),
    };
    Config::new(seed, job, faults)
}

/// Numbers of very different size, by seed: of each operation another length.
fn input(seed: u64, operation: usize, rank: WorkerId) -> Values {
    let mut state = (seed + 1) * 0x9E37_79B9 + operation as u64 * 7919;
    let mut draw = |salt: u64| {
        state = state
            .wrapping_add(salt)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u32
    };
    let length = 1 + draw(0) as usize % 60;
    let (is_integer, size) = (draw(0) % 4 == 0, draw(0) % 60);
    let own = u64::from(rank.0) + 1;
    match is_integer {
        true => Values::Integers((0..length).map(|_| draw(own) as i32).collect()),
        false => {
            let unit = 2_f32.powi(size as i32 - 30);
            let value = |word: u32| (word as f32 / 2_f32.powi(31) - 0.5) * unit;
            Values::Floats((0..length).map(|_| value(draw(own))).collect())
        }
    }
}

fn check(config: &Config, report: &Report, operations: usize) {
    let workers = config.job.workers;
    assert!(
        report.ends.iter().all(|end| *end == RankEnd::Done),
        "{:?}",
        report.ends
    );
    for operation in 0..operations {
        let ours: Vec<Values> = (0..workers)
            .map(|rank| input(config.seed, operation, WorkerId(rank)))
            .collect();
        for sums in &report.sums {
            assert_eq!(
                sums[operation], report.sums[0][operation],
                "operation {operation}"
            );
        }
        match &report.sums[0][operation] {
            Values::Integers(sums) => {
                for (index, sum) in sums.iter().enumerate() {
                    let of = |values: &Values| match values {
                        Values::Integers(values) => values[index],
                        Values::Floats(_) => unreachable!(),
                    };
                    let expected = ours.iter().map(of).fold(0_i32, i32::wrapping_add);
                    assert_eq!(*sum, expected);
                }
            }
            Values::Floats(sums) => {
                let size = usize::from(config.job.values_per_packet);
                for (index, sum) in sums.iter().enumerate() {
                    let of = |values: &Values| match values {
                        Values::Floats(values) => values.clone(),
                        Values::Integers(_) => unreachable!(),
                    };
                    let all: Vec<Vec<f32>> = ours.iter().map(of).collect();
                    let exact: f64 = all.iter().map(|values| f64::from(values[index])).sum();
                    let chunk = index / size * size;
                    let largest = all.iter().filter_map(|values| {
                        Exponent::of(&values[chunk..(chunk + size).min(values.len())])
                    });
                    // A guess may be so much above what is wanted.
                    let largest = largest.max().unwrap_or_default();
                    let used = Exponent::from_bits(largest.bits().saturating_add(6));
                    let bound = quantise::step(used, workers) * f64::from(workers) / 2.0;
                    let off = (f64::from(*sum) - exact).abs();
                    let own = f64::from(f32::EPSILON) * exact.abs();
                    assert!(
                        off <= bound + own,
                        "{index}: {sum} for {exact}, {off} > {bound}"
                    );
                }
            }
        }
    }
}

#[test]
fn without_faults_nothing_is_sent_twice() {
    let mut guesses = 0;
    for seed in 0..20 {
        let config = config(seed, 4, 4, Faults::NONE);
        let job = aggregation::Job::new(config.job).unwrap();
        let report = run(
            &config,
            &mut SlotSwitch::new(job),
            30,
            &|operation, rank| input(seed, operation, rank),
        );
        let report = report.unwrap();
        check(&config, &report, 30);
        let again: u64 = report
            .counters
            .iter()
            .map(|counters| counters.sent.retransmitted_frames)
            .sum();
        assert_eq!(
            again,
            report
                .counters
                .iter()
                .map(|counters| counters.probes)
                .sum::<u64>()
        );
        guesses += report
            .counters
            .iter()
            .map(|counters| counters.repeated_guesses)
            .sum::<u64>();
    }
    assert!(guesses > 0);
}

/// What is lost is sent again, and little else: of values no more than what was lost of them.
#[test]
fn loss_costs_what_was_lost() {
    let faults = Faults {
        loss: 0.05,
        ..Faults::NONE
    };
    let (mut values, mut first) = (0, 0);
    for seed in 0..20 {
        let mut config = config(seed, 8, 16, faults);
        config.job.values_per_packet = 256;
        let job = aggregation::Job::new(config.job).unwrap();
        let long = |operation: usize, rank: WorkerId| {
            let value = |index: usize| (index + operation) as f32 * f32::from(rank.0 + 1);
            Values::Floats((0..100_000).map(value).collect())
        };
        let report = run(&config, &mut SlotSwitch::new(job), 2, &long).unwrap();
        assert!(
            report.ends.iter().all(|end| *end == RankEnd::Done),
            "{:?}",
            report.ends
        );
        for counters in &report.counters {
            first += counters.sent.bytes - counters.sent.retransmitted_bytes;
            values += counters.sent.bytes;
        }
    }
    let load = values as f64 / first as f64;
    // 5 % of the updates are lost, and 5 % of the sums, which are fetched by updates, of which again 5 % …
    assert!(load < 1.13, "{load}");
}

/// A timeout is long where a window passes in milliseconds: what is lost is found out by what comes behind it, also if the
/// question was lost, or the answer, or what was sent again.
#[test]
fn few_chunks_wait_for_a_timeout() {
    const CHUNKS: usize = 3000;
    let faults = Faults {
        loss: 0.05,
        ..Faults::NONE
    };
    let mut config = config(1, 8, 64, faults);
    config.job.values_per_packet = 8;
    config.retransmission = aggregation::Retransmission::default();
    config.delay_ns = 1_000_000;
    let job = aggregation::Job::new(config.job).unwrap();
    let long = |_: usize, rank: WorkerId| Values::Integers(vec![i32::from(rank.0); 8 * CHUNKS]);
    let report = run(&config, &mut SlotSwitch::new(job), 1, &long).unwrap();
    assert!(report.ends.iter().all(|end| *end == RankEnd::Done));
    let timeouts: u64 = report.counters.iter().map(|counted| counted.timeouts).sum();
    let share = timeouts as f64 / (8 * CHUNKS) as f64;
    // The last window has nothing behind it.
    assert!(share < 0.01, "{share}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_rank_has_the_same_sums(
        seed in 0_u64..1_000_000,
        workers in 1_u8..6,
        window in 0_u32..5,
        loss in 0.0..0.2_f64,
        duplicate in 0.0..0.2_f64,
        reorder in 0.0..0.3_f64,
    ) {
        let faults = Faults { loss, duplicate, reorder, reorder_ns: 300_000 };
        let config = config(seed, workers, 1 << window, faults);
        let job = aggregation::Job::new(config.job).unwrap();
        let report = run(&config, &mut SlotSwitch::new(job), 12, &|operation, rank| {
            input(seed, operation, rank)
        }).unwrap();
        check(&config, &report, 12);
    }
}
