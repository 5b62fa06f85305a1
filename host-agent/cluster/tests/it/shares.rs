//! Ranks that only contribute values, or only take sums: reduces and broadcasts among all-reduces.

use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Carry, Fallback, NonFinite, Share, Sums, Values};
use cluster::Faults;
use cluster::drawn::{mix, pick};
use cluster::ranks::{
    AllReduceConfig, AllReduceReport, Deadline, Racks, RankEnd, RankSlotSwitch, Steps, run,
};
use test_support::seeds;

const MS: u64 = 1_000_000;
const OPERATIONS: usize = 18;
const WORKERS: u16 = 4;
const SALT: u64 = 0x5A;

fn config(seed: u64, faults: Faults) -> AllReduceConfig {
    let job = JobConfig {
        job: JobId(5),
        workers: WORKERS,
        window: 1 << pick(seed, SALT, 1, 4),
        values_per_packet: 8,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    };
    AllReduceConfig::new(seed, job, faults)
}

/// Alternates between all-reduce, reduce and broadcast, with changing roots.
fn share(operation: usize, rank: WorkerId) -> Share {
    let is_root = operation / 3 % usize::from(WORKERS) == usize::from(rank.0);
    match (operation % 3, is_root) {
        (0, _) | (1, true) => Share::GivesAndTakes,
        (1, false) | (2, true) => Share::Gives,
        _ => Share::Takes,
    }
}

/// Values in a rank's memory, whether or not it contributes them. Some are not finite, also at ranks that contribute none.
fn input(seed: u64, operation: usize, rank: WorkerId) -> Values {
    let of = |what: u64, options: u64| pick(seed, SALT + operation as u64, what, options);
    let length = 1 + of(1, 200) as usize;
    let salt = (operation as u64) << 16 | u64::from(rank.0);
    let words = (0..length).map(|index| mix(seed, salt, index as u64) as u32);
    let broken = of(2, 8) == 0 && of(3, u64::from(WORKERS)) == u64::from(rank.0);
    match of(4, 2) {
        0 => Values::Integers(words.map(|word| word as i32).collect()),
        _ => {
            let floats = words.map(|word| (word as f32 / 2_f32.powi(31) - 1.0) * 1e-3);
            let mut floats: Vec<f32> = floats.collect();
            if broken {
                floats[length / 2] = f32::NAN;
            }
            Values::Floats(floats)
        }
    }
}

/// The equivalent input for a rank that always contributes and takes: zeros if it contributes nothing.
fn plainly(seed: u64, operation: usize, rank: WorkerId) -> Values {
    match (share(operation, rank), input(seed, operation, rank)) {
        (Share::Takes, Values::Integers(values)) => Values::Integers(vec![0; values.len()]),
        (Share::Takes, values) => Values::Floats(vec![0.0; values.len()]),
        (_, values) => values,
    }
}

fn outcomes(report: &AllReduceReport) -> &[Vec<Result<Sums, NonFinite>>] {
    let done = report.ends.iter().all(|end| *end == RankEnd::Done);
    assert!(done, "{:?}", report.ends);
    &report.sums
}

/// A rank that takes sums has the same sums as with plain all-reduces; a rank that does not keeps its values.
fn check(
    config: &AllReduceConfig,
    plain: &AllReduceReport,
    shared: &AllReduceReport,
) -> (usize, usize) {
    let seed = config.seed;
    let (mut failed, mut kept) = (0, 0);
    for rank in 0..WORKERS {
        let of = usize::from(rank);
        for operation in 0..OPERATIONS {
            let own = &outcomes(shared)[of][operation];
            let expected = &outcomes(plain)[of][operation];
            let place = format!("seed {seed}, operation {operation}, rank {rank}");
            match (own, share(operation, WorkerId(rank)).takes()) {
                (Err(_), _) => failed += 1,
                (Ok(_), true) => {}
                (Ok(sums), false) => {
                    kept += 1;
                    assert_eq!(
                        sums.values,
                        input(seed, operation, WorkerId(rank)),
                        "{place}"
                    );
                    assert_eq!(sums.error_bound, 0.0, "{place}");
                    assert!(expected.is_ok(), "{place}");
                    continue;
                }
            }
            assert_eq!(own, expected, "{place}");
        }
        // The values of a broadcast are exactly the root's; they are not divided.
        let broadcasts = (2..OPERATIONS).step_by(3);
        for operation in broadcasts.filter(|_| !config.reduction.average) {
            let root = WorkerId((operation / 3 % usize::from(WORKERS)) as u16);
            let given = input(seed, operation, root);
            if let (Values::Integers(_), Ok(sums)) = (&given, &outcomes(shared)[of][operation]) {
                assert_eq!(sums.values, given, "seed {seed}, operation {operation}");
            }
        }
    }
    (failed, kept)
}

fn both(
    config: &AllReduceConfig,
    switch: impl Fn() -> RankSlotSwitch,
) -> (AllReduceReport, AllReduceReport) {
    let seed = config.seed;
    let plain = run(config, &mut switch(), OPERATIONS, &|operation, rank| {
        plainly(seed, operation, rank)
    });
    let mut config = config.clone();
    config.share = share;
    let shared = run(&config, &mut switch(), OPERATIONS, &|operation, rank| {
        input(seed, operation, rank)
    });
    (plain.unwrap(), shared.unwrap())
}

#[test]
fn reduces_and_broadcasts_are_all_reduces_of_zeros() {
    let (mut failed, mut kept, mut runs) = (0, 0, 0);
    for seed in seeds(0..60) {
        runs += 1;
        let faults = match seed % 3 {
            0 => Faults::NONE,
            _ => Faults {
                loss: 0.1,
                duplicate: 0.1,
                reorder: 0.2,
                reorder_ns: 300_000,
            },
        };
        let mut config = config(seed, faults);
        config.reduction.average = seed % 2 == 0;
        let job = Job::new(config.job).unwrap();
        let racks = Racks { size: 2 };
        let is_tree = seed % 4 == 3;
        config.racks = is_tree.then_some(racks);
        let (plain, shared) = both(&config, || match is_tree {
            true => RankSlotSwitch::tree(job, racks),
            false => RankSlotSwitch::new(job),
        });
        if faults == Faults::NONE {
            // On the wire, all shares are alike.
            assert_eq!(plain.counters, shared.counters, "seed {seed}");
        }
        let seen = check(&config, &plain, &shared);
        (failed, kept) = (failed + seen.0, kept + seen.1);
    }
    assert!(
        3 * failed > 5 * runs && 3 * kept > 50 * runs,
        "{failed} {kept}"
    );
}

/// The switch restarts now and then, or is silent while the ranks sum themselves.
#[test]
fn a_restarted_or_dead_switch_changes_no_bit() {
    let mut by_hosts = 0;
    for seed in seeds(0..30) {
        let faults = Faults {
            loss: 0.05,
            ..Faults::NONE
        };
        let mut config = config(seed, faults);
        config.fallback = Some(Fallback {
            at_once: seed % 2 == 0,
            ..Fallback::IF_SILENT
        });
        config.dead_after_ns = Some(1000 * MS);
        let job = Job::new(config.job).unwrap();
        let (plain, shared) = both(&config, || {
            (1..10).fold(RankSlotSwitch::new(job), |switch, turn| {
                switch.restarting(turn * 150_000, 0)
            })
        });
        check(&config, &plain, &shared);
        let counters = shared.counters.iter();
        by_hosts += counters.map(|counters| counters.by_hosts).sum::<u64>();
    }
    assert!(by_hosts > 0);
}

/// With deadlines: late values join the next operation to which the rank contributes, and nothing is lost on the way.
#[test]
fn late_values_skip_operations_without_a_contribution() {
    /// Every second operation has values of one rank only.
    fn share(operation: usize, rank: WorkerId) -> Share {
        match (operation % 2, rank.0) {
            (0, _) => Share::GivesAndTakes,
            (_, 0) => Share::Gives,
            _ => Share::Takes,
        }
    }
    const LENGTH: usize = 50;
    let (mut late, mut carried, mut runs) = (0, 0, 0);
    for seed in seeds(0..40) {
        runs += 1;
        let mut config = config(seed, Faults::NONE);
        config.steps = Some(Steps {
            compute_ns: 100_000,
            stall_ns: 10 * MS,
            stalls: 0.2,
        });
        config.deadline = Some(Deadline {
            after_ns: MS / 2,
            quorum: 2,
            carry: Carry::NextRound,
            keeps: None,
        });
        config.reduction.key = Some(3);
        config.share = share;
        let word = |operation: usize, rank: WorkerId, index: usize| {
            let salt = (operation as u64) << 16 | u64::from(rank.0);
            mix(seed, salt, index as u64) as i32
        };
        let job = Job::new(config.job).unwrap();
        let mut switch = RankSlotSwitch::new(job).with_deadlines();
        let report = run(&config, &mut switch, OPERATIONS, &|operation, rank| {
            Values::Integers(
                (0..LENGTH)
                    .map(|index| word(operation, rank, index))
                    .collect(),
            )
        });
        let report = report.unwrap();
        // Rank 1 takes all sums. All contributed values are in them, or wait for the next operation.
        let mut left = vec![0_i32; LENGTH];
        let mut add = |values: &Values, sign: i32| {
            let Values::Integers(values) = values else {
                panic!("other values");
            };
            let pairs = left.iter_mut().zip(values);
            pairs.for_each(|(left, value)| *left = left.wrapping_add(value.wrapping_mul(sign)));
        };
        for operation in 0..OPERATIONS {
            add(
                &outcomes(&report)[1][operation].as_ref().unwrap().values,
                -1,
            );
            for rank in (0..WORKERS).map(WorkerId) {
                if share(operation, rank).gives() {
                    let given = (0..LENGTH).map(|index| word(operation, rank, index));
                    add(&Values::Integers(given.collect()), 1);
                }
            }
        }
        let residuals = report.residuals.iter().flatten();
        residuals.for_each(|(_, residual)| add(residual, -1));
        assert_eq!(left, vec![0; LENGTH], "seed {seed}");
        for counters in &report.counters {
            assert_eq!(counters.lost_residuals, 0, "seed {seed}");
            late += counters.late_chunks;
            carried += counters.carried;
        }
    }
    assert!(2 * late > runs && 2 * carried > runs, "{late} {carried}");
}
