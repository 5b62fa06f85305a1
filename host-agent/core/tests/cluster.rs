//! The protocol, checked over loss × duplication × reordering × death, by seed, in virtual time.

mod common;

use aggregation::cluster::{
    Compare, Config, Death, Faults, NetworkCounters, Node, Report, ServerEnd, SlotSwitch, WorkerEnd,
};
use aggregation::job::ChunkId;
use aggregation::server::Mode;
use aggregation::{Job, WorkerId};
use common::mutant::{Defect, Mutant};
use common::{expect_right, mix, run_reference, run_with, violations};

/// Every choice of a run follows from its seed.
fn chaotic(seed: u64) -> Config {
    let pick = |what: u64, options: u64| mix(seed, what, 0xC0FFEE) % options;
    let workers = match pick(1, 100) {
        0..=4 => 1,
        5..=92 => 2 + pick(2, 7) as u8,
        93..=97 => 9 + pick(2, 8) as u8,
        _ => 17 + pick(2, 16) as u8,
    };
    let mode = if pick(3, 3) == 0 { Mode::Direct } else { Mode::Switch };
    let mut config = Config::new(seed, workers, mode);
    config.job.window = 1 << pick(4, 5);
    config.job.values_per_packet = 1 + pick(5, 4) as u16;
    // From fewer chunks than slots to several windows, the last chunk often not full.
    let chunks = 1 + pick(6, 20) as usize;
    let size = usize::from(config.job.values_per_packet);
    config.job.values_per_round = (chunks * size).saturating_sub(pick(7, size as u64) as usize);
    config.rounds = 1 + pick(8, 3);
    config.job.first_chunk = match pick(9, 4) {
        0 => ChunkId(0),
        1 => ChunkId(u32::MAX - pick(10, 40) as u32),
        2 => ChunkId((1 << 31) - pick(10, 40) as u32),
        _ => ChunkId(pick(10, 1 << 32) as u32),
    };
    let share = |what: u64, percent: u64| (pick(what, 4) != 0) as u64 as f64 * pick(what + 1, percent + 1) as f64 / 100.0;
    config.faults = Faults {
        loss: share(20, 30),
        duplicate: share(22, 20),
        reorder: share(24, 50),
        // From a few frames to many windows.
        reorder_ns: 10_000 << pick(26, 9),
    };
    config.retransmission.fast_threshold = [0, 2, 8][pick(27, 3) as usize];
    config.compute_ns = 1000 << pick(28, 10);
    config
}

fn with_death(mut config: Config) -> Config {
    let pick = |what: u64, options: u64| mix(config.seed, what, 0xDEAD) % options;
    config.retransmission.max_timeouts = 12;
    let node = match pick(1, 8) {
        0 => Node::Server,
        _ => Node::Worker(WorkerId(pick(2, u64::from(config.job.workers)) as u8)),
    };
    let at_ns = pick(3, 200_000 << pick(4, 6));
    config.deaths.push(Death { node, at_ns });
    config
}

#[derive(Default)]
struct Totals {
    runs: u64,
    complete: u64,
    failed_workers: u64,
    deaths: u64,
    timeouts: u64,
    fast_retransmits: u64,
    retransmitted: u64,
    stale_or_duplicate: u64,
    longest_to_error_ns: u64,
    network: NetworkCounters,
}

impl Totals {
    fn add(&mut self, config: &Config, report: &Report) {
        self.runs += 1;
        self.deaths += report.deaths;
        self.network.add(&report.network);
        let all_finished = report.workers.iter().all(|w| w.end == WorkerEnd::Finished);
        self.complete += u64::from(all_finished);
        for worker in &report.workers {
            self.timeouts += worker.counters.timeouts;
            self.fast_retransmits += worker.counters.fast_retransmits;
            self.retransmitted += worker.counters.sent.retransmitted_frames;
            self.stale_or_duplicate += worker.counters.duplicates;
            if matches!(worker.end, WorkerEnd::Failed(_)) {
                self.failed_workers += 1;
                let since = worker.ended_ns - config.last_death_ns().unwrap_or(0);
                self.longest_to_error_ns = self.longest_to_error_ns.max(since);
            }
        }
        self.stale_or_duplicate += report.server.counters.stale + report.server.counters.duplicates;
        assert_eq!(report.server.counters.malformed, 0, "{config:#?}");
        for worker in &report.workers {
            assert_eq!(worker.counters.malformed, 0, "{config:#?}");
        }
    }

    fn print(&self, name: &str) {
        let n = &self.network;
        println!(
            "{name}: {} runs, {} complete, {} named errors; {} frames, {} dropped, {} duplicated, \
             {} reordered, {} deaths; {} timeouts, {} fast retransmits, {} retransmissions, \
             {} stale or duplicate; longest from death to error {} us",
            self.runs, self.complete, self.failed_workers, n.sent, n.dropped, n.duplicated, n.reordered,
            self.deaths, self.timeouts, self.fast_retransmits, self.retransmitted,
            self.stale_or_duplicate, self.longest_to_error_ns / 1000,
        );
    }
}

fn suite(name: &str, configs: impl Iterator<Item = Config>) -> Totals {
    let mut totals = Totals::default();
    for config in configs {
        let report = expect_right(&config);
        totals.add(&config, &report);
    }
    totals.print(name);
    totals
}

#[test]
fn loss_duplication_and_reordering_leave_the_sums_exact() {
    let totals = suite("chaos", (0..7000).map(chaotic));
    assert_eq!(totals.complete, totals.runs, "nobody died, so everybody finishes");
    assert!(totals.network.dropped > 100_000);
    assert!(totals.network.duplicated > 100_000);
    assert!(totals.network.reordered > 100_000);
    assert!(totals.fast_retransmits > 1000);
}

#[test]
fn a_death_leaves_exact_sums_or_named_errors() {
    let totals = suite("death", (100_000..102_500).map(chaotic).map(with_death));
    assert!(totals.deaths > 1500, "{} deaths came too late to matter", totals.deaths);
    assert!(totals.failed_workers > 2000);
}

#[test]
fn a_cluster_without_faults_retransmits_nothing() {
    for seed in 0..50 {
        for mode in [Mode::Switch, Mode::Direct] {
            let mut config = chaotic(seed);
            config.mode = mode;
            config.faults = Faults::NONE;
            config.compute_ns = 50_000;
            let workers = u64::from(config.job.workers);
            let report = expect_right(&config);
            let job = Job::new(config.job).unwrap();
            let chunks = config.rounds * job.numbers_per_round() + u64::from(job.window());
            for worker in &report.workers {
                assert_eq!(worker.counters.sent.frames, chunks);
                assert_eq!(worker.counters.sent.retransmitted_frames, 0);
            }
            let answers = if mode == Mode::Switch { chunks } else { chunks * workers };
            assert_eq!(report.server.counters.sent.frames, answers);
            assert_eq!(report.server.end, ServerEnd::Finished);
        }
    }
}

#[test]
fn a_run_follows_from_its_seed() {
    let config = chaotic(42);
    let [a, b] = [run_reference(&config), run_reference(&config)];
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
    let other = run_reference(&Config { seed: 43, ..config });
    assert_ne!(format!("{a:?}"), format!("{other:?}"));
}

/// How many of the seeds show the defect.
fn caught(defect: Defect, seeds: std::ops::Range<u64>) -> usize {
    let runs = seeds.map(|seed| Config { mode: Mode::Switch, ..chaotic(seed) }).filter(|config| {
        let mut config = config.clone();
        config.retransmission.max_timeouts = 30;
        // Thirty timeouts are enough only where little is lost.
        config.faults.loss = config.faults.loss.min(0.05);
        let mut switch = Mutant::new(Job::new(config.job).unwrap(), defect);
        let report = run_with(&config, &mut switch);
        !violations(&config, &report).is_empty()
    });
    runs.count()
}

#[test]
fn the_checker_catches_every_defect() {
    assert_eq!(caught(Defect::None, 0..300), 0, "the mutants' own code is right");
    for defect in [
        Defect::NoBitmap,
        Defect::NoStaleCheck,
        Defect::StaleValues,
        Defect::NeverFreed,
        Defect::ZeroIsFree,
        Defect::LittleEndian,
        Defect::NoAgain,
        Defect::OffByOne,
    ] {
        let caught = caught(defect, 0..300);
        println!("{defect:?}: caught in {caught} of 300 runs");
        assert!(caught > 0, "{defect:?} goes unnoticed");
    }
}

#[test]
fn comparing_two_switches_finds_a_difference_and_nothing_else() {
    let config = Config { mode: Mode::Switch, ..chaotic(5) };
    let job = Job::new(config.job).unwrap();
    let compare = |defect| {
        let mut both = Compare::new(job, SlotSwitch::new(job), Mutant::new(job, defect));
        run_with(&config, &mut both);
        assert!(both.compared > 100);
        both.mismatches
    };
    assert_eq!(compare(Defect::None), []);
    // In a frame; in a cell.
    let frame = compare(Defect::OffByOne);
    assert!(frame[0].what.starts_with("frames"), "{}", frame[0]);
    let cell = compare(Defect::StaleValues);
    assert!(cell.iter().any(|mismatch| mismatch.what.starts_with("cell")), "{cell:#?}");
}
