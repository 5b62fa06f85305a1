//! Whole training runs over a network that loses, duplicates and reorders, every packet through the P4 text and through
//! the Rust slots; frames and the cell are compared after each, and the sums are checked at the end.

use std::sync::Arc;
use std::time::Instant;
use test_support::{cases, seeds};

use aggregation::CellIndex;
use cluster::{
    CellState, Compare, Config, NetworkCounters, Report, SlotSwitch, SwitchModel, WorkerEnd,
};
use parser_gen::{Arch, FrameValues};

use super::p4_switch::{Admission, Outcome, P4Switch, compile, compile_of};
use super::runs::{chaotic, chaotic_of, deadly, late, run, run_in_used_cells};

/// What a suite met.
#[derive(Default)]
struct Totals {
    runs: u64,
    complete: u64,
    errors: u64,
    deaths: u64,
    compared: u64,
    network: NetworkCounters,
    outcomes: [u64; Outcome::ALL.len()],
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.complete += other.complete;
        self.errors += other.errors;
        self.deaths += other.deaths;
        self.compared += other.compared;
        self.network.add(&other.network);
        for (sum, n) in self.outcomes.iter_mut().zip(other.outcomes) {
            *sum += n;
        }
    }

    fn add_run(&mut self, report: &Report) {
        let ends = || report.workers.iter().map(|worker| worker.end);
        self.runs += 1;
        self.complete += u64::from(ends().all(|end| end == WorkerEnd::Finished));
        self.errors += ends()
            .filter(|end| matches!(end, WorkerEnd::Failed(_)))
            .count() as u64;
        self.deaths += report.deaths;
        self.network.add(&report.network);
    }

    fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    fn print(&self, name: &str, since: Instant) {
        let n = &self.network;
        println!(
            "{name}: {} runs, {} complete, {} named errors; {} frames, {} dropped, {} duplicated, {} reordered, \
             {} deaths; {} packets compared; P4 {}; {:.1} s",
            self.runs,
            self.complete,
            self.errors,
            n.sent,
            n.dropped,
            n.duplicated,
            n.reordered,
            self.deaths,
            self.compared,
            Outcome::ALL
                .map(|outcome| format!("{outcome:?} {}", self.of(outcome)))
                .join(", "),
            since.elapsed().as_secs_f64(),
        );
    }
}

/// Runs each configuration on the P4 program with the Rust slots beside it, and wants no difference and no wrong sum. All have
/// as many values a frame as the first.
fn expect_equal(
    arch: Arch,
    name: &str,
    configure: impl Fn(u64) -> Config + Sync,
    seeds: std::ops::Range<u64>,
) -> Totals {
    let since = Instant::now();
    let values = configure(seeds.start).job.values_per_packet;
    let values = FrameValues::ALL
        .into_iter()
        .find(|of| of.count() == values)
        .expect("a size of frames");
    let program = compile_of(arch, values, &[]);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let part = |first: u64| {
        let mut totals = Totals::default();
        let mut p4 = P4Switch::load(Arc::clone(&program));
        for seed in seeds.clone().skip(first as usize).step_by(threads as usize) {
            let config = configure(seed);
            let job = config.checked_job().expect("a job");
            p4.admit(job, Admission::Cleared);
            let mut both = Compare::new(job, p4, SlotSwitch::new(job));
            let (report, violations) = run(&config, &mut both);
            let differences = &both.mismatches;
            assert!(differences.is_empty(), "{config:#?}\n{}", differences[0]);
            assert!(violations.is_empty(), "{config:#?}\n{violations:#?}");
            for cell in (0..job.cells() as u32).map(CellIndex) {
                assert_eq!(
                    used(&both.first, cell),
                    used(&both.second, cell),
                    "{config:#?}"
                );
            }
            both.first.assert_neighbours_untouched();
            totals.add_run(&report);
            totals.compared += both.compared;
            p4 = both.first;
        }
        totals.outcomes = Outcome::ALL.map(|outcome| p4.outcomes(outcome));
        totals
    };
    let mut totals = Totals::default();
    std::thread::scope(|scope| {
        let part = &part;
        let parts: Vec<_> = (0..threads).map(|n| scope.spawn(move || part(n))).collect();
        for part in parts {
            match part.join() {
                Ok(part) => totals.add(&part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    let values = values.count();
    totals.print(&format!("{name} on {arch:?}, {values} values"), since);
    totals
}

/// A cell, if anybody has contributed to it: else its content means nothing.
fn used(switch: &impl SwitchModel, cell: CellIndex) -> Option<CellState> {
    switch
        .cell(cell)
        .filter(|state| !state.contributors.is_empty())
}

#[test]
fn p4_and_rust_slots_agree_after_every_packet() {
    let totals = expect_equal(Arch::Psa, "chaos", chaotic, seeds(0..1500));
    let tenths = u64::from(cases(10));
    assert_eq!(
        totals.complete, totals.runs,
        "nobody died, so everybody finishes"
    );
    assert!(totals.network.dropped > 1_000 * tenths);
    assert!(totals.network.duplicated > 500 * tenths);
    assert!(totals.network.reordered > 1_000 * tenths);
    for outcome in [Outcome::Again, Outcome::Duplicate] {
        assert!(
            totals.of(outcome) > 1_000 * tenths,
            "{outcome:?} is hardly met"
        );
    }
    assert!(totals.of(Outcome::Stale) > 5 * tenths);
    for outcome in [Outcome::Foreign, Outcome::Malformed, Outcome::Passed] {
        assert_eq!(totals.of(outcome), 0, "{outcome:?}");
    }
}

#[test]
fn p4_and_rust_slots_agree_when_a_node_dies() {
    let totals = expect_equal(Arch::Psa, "death", deadly, 100_000..100_400);
    assert!(
        totals.deaths > 200,
        "{} deaths came too late to matter",
        totals.deaths
    );
    assert!(totals.errors > 300);
}

#[test]
fn p4_and_rust_slots_agree_on_late_copies() {
    let totals = expect_equal(Arch::Psa, "late", late, 150_000..150_200);
    assert_eq!(totals.complete, 200, "nobody died, so everybody finishes");
    assert!(totals.of(Outcome::Stale) > 1000, "hardly any was late");
}

#[test]
fn tofinos_program_and_rust_slots_agree() {
    expect_equal_in_fewer_runs(Arch::Tna);
}

#[test]
fn v1models_program_and_rust_slots_agree() {
    expect_equal_in_fewer_runs(Arch::V1model);
}

/// Fewer runs of each kind: what a program shares with PSA's has been through those above.
fn expect_equal_in_fewer_runs(arch: Arch) {
    let chaos = expect_equal(arch, "chaos", chaotic, 400_000..400_200);
    assert_eq!(chaos.complete, 200, "nobody died, so everybody finishes");
    for outcome in [Outcome::Again, Outcome::Duplicate] {
        assert!(chaos.of(outcome) > 1_000, "{outcome:?} is hardly met");
    }
    let death = expect_equal(arch, "death", deadly, 500_000..500_060);
    assert!(death.deaths > 20 && death.errors > 20, "{}", death.deaths);
    let late = expect_equal(arch, "late", late, 550_000..550_040);
    assert!(late.of(Outcome::Stale) > 200, "hardly any was late");
}

/// All that differs from 256 values are blocks: how they are parsed, summed and put back. Their number is what is run here.
#[test]
fn programs_of_2048_values_and_rust_slots_agree() {
    for arch in [Arch::Psa, Arch::V1model] {
        let of_2048 = |seed| Config {
            rounds: 2,
            ..chaotic_of(2048, seed)
        };
        let totals = expect_equal(arch, "chaos", of_2048, seeds(600_000..600_120));
        assert_eq!(
            totals.complete, totals.runs,
            "nobody died, so everybody finishes"
        );
        for outcome in [Outcome::Again, Outcome::Duplicate] {
            assert!(totals.of(outcome) > 20, "{outcome:?} is hardly met");
        }
    }
}

#[test]
fn nothing_is_added_to_what_another_job_left() {
    used_cells(Arch::Psa, 200);
    used_cells(Arch::V1model, 60);
    used_cells(Arch::Tna, 60);
}

fn used_cells(arch: Arch, runs: u64) {
    let since = Instant::now();
    let mut totals = Totals::default();
    let mut p4 = P4Switch::load(compile(arch, &[]));
    for seed in 200_000..200_000 + runs {
        let config = chaotic(seed);
        let (back, report, compared, right) = run_in_used_cells(p4, &config);
        assert!(right, "{config:#?}");
        totals.add_run(&report);
        totals.compared += compared;
        p4 = back;
    }
    totals.outcomes = Outcome::ALL.map(|outcome| p4.outcomes(outcome));
    totals.print(&format!("used cells on {arch:?}"), since);
}
