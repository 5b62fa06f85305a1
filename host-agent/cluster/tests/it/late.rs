//! Deadlines in virtual time: ranks out of step, partial sums, and the late values.

use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Carry, Partial, RankCounters, Reduction, Sums, Values};
use cluster::Faults;
use cluster::drawn::{mix, pick};
use cluster::ranks::Racks;
use cluster::ranks::{
    self, AllReduceConfig, AllReduceReport, Deadline, RankEnd, RankSlotSwitch, Steps,
};
use test_support::seeds;

const MS: u64 = 1_000_000;
const OPERATIONS: usize = 12;
/// Salt of the random choices.
const SALT: u64 = 0x1A7E;

/// Small jobs with wrapping chunk numbers, in which one or another rank stalls for the time of several operations.
fn config(seed: u64, carry: Carry, faults: bool) -> AllReduceConfig {
    let pick = |what: u64, options: u64| pick(seed, SALT, what, options);
    let share = |what: u64| match faults {
        true => pick(what, 15) as f64 / 100.0,
        false => 0.0,
    };
    let workers = 2 + pick(1, 6) as u16;
    let job = JobConfig {
        job: JobId(9),
        workers,
        window: 1 << pick(2, 4),
        values_per_packet: 8,
        values_per_round: 0,
        first_chunk: ChunkId((pick(3, 1 << 32) as u32).wrapping_sub(20)),
    };
    let faults = Faults {
        loss: share(5),
        duplicate: share(6),
        reorder: share(7),
        reorder_ns: 200_000,
    };
    let mut config = AllReduceConfig::new(seed, job, faults);
    config.steps = Some(Steps {
        compute_ns: 100_000,
        stall_ns: 10 * MS,
        stalls: 0.2,
    });
    config.deadline = Some(Deadline {
        after_ns: [0, MS / 2, 2 * MS][pick(8, 3) as usize],
        quorum: 1 + pick(9, u64::from(workers) - 1) as u16,
        carry,
        keeps: [None, Some(2), Some(4)][pick(10, 3) as usize],
    });
    config.reduction = Reduction {
        key: Some(3),
        ..Reduction::default()
    };
    config
}

/// Number of values, one or several chunks, equal for all operations.
fn length(seed: u64) -> usize {
    1 + pick(seed, SALT, 20, 100) as usize
}

fn integers(seed: u64) -> impl Fn(usize, WorkerId) -> Values {
    let length = length(seed);
    move |operation, rank| {
        let word = |index: usize| {
            mix(
                seed,
                (operation as u64) << 16 | u64::from(rank.0),
                index as u64,
            )
        };
        Values::Integers((0..length).map(|index| word(index) as i32).collect())
    }
}

fn floats(seed: u64) -> impl Fn(usize, WorkerId) -> Values {
    let length = length(seed);
    move |operation, rank| {
        let salt = (operation as u64) << 16 | u64::from(rank.0);
        // Magnitudes change with each operation, so that a late rank's values exceed the exponent that the others agreed on.
        let unit = 2_f32.powi((mix(seed, salt, 1 << 40) % 12) as i32 - 6);
        let word = |index: usize| mix(seed, salt, index as u64) as u32;
        let value = |index: usize| (word(index) as f32 / 2_f32.powi(31) - 1.0) * unit;
        Values::Floats((0..length).map(value).collect())
    }
}

fn run(config: &AllReduceConfig, inputs: &dyn Fn(usize, WorkerId) -> Values) -> AllReduceReport {
    let job = Job::new(config.job).expect("a job");
    let mut switch = RankSlotSwitch::new(job).with_deadlines();
    run_with(config, &mut switch, inputs)
}

/// Runs a configuration, and checks that all ranks finish with the same sums of the same contributors.
fn run_with(
    config: &AllReduceConfig,
    switch: &mut RankSlotSwitch,
    inputs: &dyn Fn(usize, WorkerId) -> Values,
) -> AllReduceReport {
    let seed = config.seed;
    let report = ranks::run(config, switch, OPERATIONS, inputs).expect("a job");
    let done = report.ends.iter().all(|end| *end == RankEnd::Done);
    assert!(done, "seed {seed}: {:?}", report.ends);
    for sums in &report.sums {
        assert_eq!(*sums, report.sums[0], "seed {seed}");
    }
    for counters in &report.counters {
        assert_eq!(counters.malformed, 0, "seed {seed}");
    }
    report
}

fn sums(report: &AllReduceReport) -> impl Iterator<Item = &Sums> {
    report.sums[0]
        .iter()
        .map(|sums| sums.as_ref().expect("finite"))
}

fn totals(all: &mut [u64; 6], report: &AllReduceReport) {
    for counters in &report.counters {
        let RankCounters {
            partial_chunks,
            late_chunks,
            clipped_chunks,
            early,
            forgotten,
            carried,
            ..
        } = *counters;
        let counts = [
            partial_chunks,
            late_chunks,
            clipped_chunks,
            early,
            forgotten,
            carried,
        ];
        all.iter_mut()
            .zip(counts)
            .for_each(|(sum, count)| *sum += count);
    }
}

/// Each chunk's sum is exactly that of the reported contributors, and their number reaches the quorum.
#[test]
fn a_partial_sum_is_of_those_it_names() {
    let (mut all, mut runs) = ([0; 6], 0);
    for seed in seeds(0..300) {
        runs += 1;
        let config = config(seed, Carry::Drop, seed % 2 == 1);
        let inputs = integers(seed);
        let report = run(&config, &inputs);
        let quorum = config.deadline.expect("one").quorum;
        for (operation, sums) in sums(&report).enumerate() {
            let Values::Integers(values) = &sums.values else {
                panic!("of another type");
            };
            // The first word of an operation is the digest.
            for index in 0..(values.len() + 1).div_ceil(8) {
                let places = (8 * index).saturating_sub(1)..(8 * index + 7).min(values.len());
                let is_of = |partial: &&Partial| partial.index == index;
                let partial = sums.partial.iter().find(is_of);
                let in_it = |rank: WorkerId| {
                    partial.is_none_or(|partial| partial.contributors.contains(rank))
                };
                let count = (0..config.job.workers)
                    .map(WorkerId)
                    .filter(|rank| in_it(*rank));
                assert!(count.count() >= usize::from(quorum), "seed {seed}");
                for at in places {
                    let ranks = (0..config.job.workers)
                        .map(WorkerId)
                        .filter(|rank| in_it(*rank));
                    let own = |rank| match inputs(operation, rank) {
                        Values::Integers(values) => values[at],
                        _ => 0,
                    };
                    let right = ranks.map(own).fold(0_i32, i32::wrapping_add);
                    assert_eq!(
                        values[at], right,
                        "seed {seed}, operation {operation}, {index}"
                    );
                }
            }
        }
        totals(&mut all, &report);
    }
    let [partial, late, _, early, forgotten, carried] = all;
    assert!(
        partial > 33 * runs && late > 6 * runs && early > 3 * runs,
        "{all:?}"
    );
    assert_eq!((forgotten, carried), (0, 0));
}

/// Late values join the next operation: nothing is lost, and nothing is counted twice.
#[test]
fn late_values_join_the_next_operation() {
    let (mut all, mut runs) = ([0; 6], 0);
    for seed in seeds(0..200) {
        runs += 1;
        let config = config(seed, Carry::NextRound, seed % 2 == 1);
        let inputs = integers(seed);
        let report = run(&config, &inputs);
        let mut given = vec![0_i32; length(seed)];
        let mut taken = given.clone();
        let add = |to: &mut Vec<i32>, values: &Values| match values {
            Values::Integers(values) => {
                let pairs = to.iter_mut().zip(values);
                pairs.for_each(|(sum, value)| *sum = sum.wrapping_add(*value));
            }
            _ => panic!("of another type"),
        };
        for rank in (0..config.job.workers).map(WorkerId) {
            (0..OPERATIONS).for_each(|operation| add(&mut given, &inputs(operation, rank)));
        }
        sums(&report).for_each(|sums| add(&mut taken, &sums.values));
        let left = report.residuals.iter().flatten();
        left.for_each(|(_, values)| add(&mut taken, values));
        assert_eq!(given, taken, "seed {seed}");
        totals(&mut all, &report);
    }
    let [_, late, _, _, _, carried] = all;
    assert!(late > 5 * runs && 2 * carried > 3 * runs, "{all:?}");
}

/// Late and clipped floating point values join the next operation: nothing is lost, within the error bounds of the sums.
#[test]
fn clipped_values_join_the_next_operation() {
    let (mut all, mut runs) = ([0; 6], 0);
    for seed in seeds(0..200) {
        runs += 1;
        let mut config = config(seed, Carry::NextRound, seed % 2 == 1);
        if seed % 4 > 1 {
            // Exact sums clip nothing.
            (config.reduction.exact, config.job.values_per_packet) = (true, 32);
        }
        let inputs = floats(seed);
        let report = run(&config, &inputs);
        let mut off = vec![0.0_f64; length(seed)];
        let add = |to: &mut Vec<f64>, values: &Values, sign: f64| match values {
            Values::Floats(values) => {
                let pairs = to.iter_mut().zip(values);
                pairs.for_each(|(sum, value)| *sum += sign * f64::from(*value));
            }
            _ => panic!("of another type"),
        };
        for rank in (0..config.job.workers).map(WorkerId) {
            (0..OPERATIONS).for_each(|operation| add(&mut off, &inputs(operation, rank), 1.0));
        }
        sums(&report).for_each(|sums| add(&mut off, &sums.values, -1.0));
        let left = report.residuals.iter().flatten();
        left.for_each(|(_, values)| add(&mut off, values, -1.0));
        let bound: f64 = sums(&report).map(|sums| sums.error_bound).sum();
        // Residuals are added to values in binary32: half a unit for each operation, at values of at most 64 times the number
        // of operations.
        let ranks = f64::from(config.job.workers);
        let largest = 64.0 * OPERATIONS as f64 * ranks;
        let of_residuals = OPERATIONS as f64 * ranks * largest * 2_f64.powi(-24);
        for value in off {
            assert!(value.abs() <= bound + of_residuals, "seed {seed}: {value}");
        }
        totals(&mut all, &report);
    }
    let [_, late, clipped, _, _, carried] = all;
    assert!(
        late > 5 * runs && 10 * clipped > runs && 2 * carried > 3 * runs,
        "{all:?}"
    );
}

/// A mean is divided by the number of contributors.
#[test]
fn a_mean_is_of_its_contributors() {
    let (mut partial, mut runs) = (0, 0);
    for seed in seeds(0..50) {
        runs += 1;
        let mut config = config(seed, Carry::Drop, false);
        config.reduction.average = true;
        let length = length(seed);
        let report = run(&config, &|_, _| Values::Floats(vec![3.0; length]));
        for sums in sums(&report) {
            let Values::Floats(values) = &sums.values else {
                panic!("of another type");
            };
            assert!(
                values.iter().all(|mean| (mean - 3.0).abs() <= 1e-6),
                "seed {seed}: {values:?}"
            );
            partial += sums.partial.len();
        }
    }
    assert!(partial > 10 * runs, "{partial}");
}

/// A switch that restarts forgets which chunks it closed. Still, all ranks have the same sums, and from then on sums of all
/// ranks.
#[test]
fn a_restart_makes_no_second_sum() {
    let (mut all, mut runs) = ([0; 6], 0);
    for seed in seeds(0..300) {
        runs += 1;
        let mut config = config(seed, Carry::NextRound, seed % 2 == 1);
        // These numbers are newer than zeroed registers.
        config.job.first_chunk = ChunkId(pick(seed, SALT, 30, 1000) as u32);
        let job = Job::new(config.job).expect("a job");
        let at_ns = 200_000 + pick(seed, SALT, 31, 20 * MS);
        let mut switch = RankSlotSwitch::new(job)
            .with_deadlines()
            .restarting(at_ns, 0);
        let report = run_with(&config, &mut switch, &integers(seed));
        totals(&mut all, &report);
    }
    let [partial, late, _, _, forgotten, _] = all;
    assert!(
        partial > 10 * runs && 3 * late > 5 * runs && 3 * forgotten > 5 * runs,
        "{all:?}"
    );
}

/// A rank that is behind stops the others before a sum that it needs is discarded.
#[test]
fn no_rank_runs_ahead_of_the_kept_sums() {
    for keeps in [2, 3, 7] {
        let mut config = config(1, Carry::Drop, false);
        config.job.workers = 3;
        config.job.window = 1;
        config.dead_after_ns = None;
        config.deadline_ns = 2000 * MS;
        config.deaths = vec![(WorkerId(1), 1)];
        config.deadline = Some(Deadline {
            after_ns: MS,
            quorum: 2,
            carry: Carry::Drop,
            keeps: Some(keeps),
        });
        let job = Job::new(config.job).expect("a job");
        let mut switch = RankSlotSwitch::new(job).with_deadlines();
        // One chunk, including the digest.
        let one = |_, _| Values::Integers(vec![1; 7]);
        let report = ranks::run(&config, &mut switch, OPERATIONS, &one).expect("a job");
        for rank in [0, 2] {
            assert_eq!(report.ends[rank], RankEnd::Hung);
            assert_eq!(report.sums[rank].len(), keeps as usize, "rank {rank}");
        }
    }
}

/// Ranks in step wait for each other, and none is late.
#[test]
fn ranks_in_step_have_whole_sums() {
    for seed in seeds(0..30) {
        let mut config = config(seed, Carry::Drop, false);
        config.steps = Some(Steps {
            compute_ns: 100_000,
            stall_ns: 0,
            stalls: 0.0,
        });
        config.deadline = config.deadline.map(|deadline| Deadline {
            after_ns: MS,
            ..deadline
        });
        let report = run(&config, &integers(seed));
        let closes: u64 = report.counters.iter().map(|counters| counters.closes).sum();
        assert_eq!(closes, 0, "seed {seed}");
        assert!(
            sums(&report).all(|sums| sums.partial.is_empty()),
            "seed {seed}"
        );
    }
}

/// A switch without deadlines announces it, and the ranks wait for all.
#[test]
fn without_opened_cells_all_are_waited_for() {
    for seed in seeds(0..30) {
        let config = config(seed, Carry::Drop, seed % 2 == 1);
        let job = Job::new(config.job).expect("a job");
        let report = run_with(&config, &mut RankSlotSwitch::new(job), &integers(seed));
        assert!(
            sums(&report).all(|sums| sums.partial.is_empty()),
            "seed {seed}"
        );
    }
}

#[test]
fn a_tree_has_no_deadlines() {
    let mut config = config(1, Carry::Drop, false);
    config.job.workers = 4;
    config.racks = Some(Racks { size: 2 });
    let job = Job::new(config.job).expect("a job");
    let refused = ranks::run(&config, &mut RankSlotSwitch::new(job), 1, &integers(1));
    let error = refused.expect_err("refused");
    assert_eq!(
        error,
        ranks::AllReduceConfigError::Lateness(aggregation::rank::LatenessError::Tree)
    );
}
