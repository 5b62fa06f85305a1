//! The protocol, checked over loss × duplication × reordering × death, by seed, in virtual time.

use crate::common::mutant::{Defect, Mutant};
use crate::common::{expect_right, run_reference, run_with, violations};
use aggregation::job::CellIndex;
use aggregation::server::{Mode, Part};
use aggregation::{Job, JobId, Retransmission, WorkerId};
use cluster::drawn::{self, mix};
use cluster::{
    CellState, Compare, Config, Faults, Forwarder, NetworkCounters, Node, PartSwitches, Replan,
    Report, ServerEnd, SlotSwitch, SwitchModel, Violation, WorkerEnd,
};
use std::ops::Range;
use test_support::seeds;
use wire::{Kind, Packet};

/// Every choice of a run follows from its seed.
fn chaotic(seed: u64) -> Config {
    let pick = |what: u64, options: u64| drawn::pick(seed, 0x10B, what, options);
    let workers = match pick(1, 100) {
        0..=4 => 1,
        5..=92 => 2 + pick(2, 7) as u16,
        93..=97 => 9 + pick(2, 8) as u16,
        _ => 17 + pick(2, 16) as u16,
    };
    let mode = if pick(3, 3) == 0 {
        Mode::Direct
    } else {
        Mode::Switch
    };
    let mut config = Config::new(seed, workers, mode);
    config.job.window = 1 << pick(4, 5);
    config.job.values_per_packet = 1 + pick(5, 4) as u16;
    // From fewer chunks than slots to several windows, the last chunk often not full.
    let chunks = 1 + pick(6, 20) as usize;
    let size = usize::from(config.job.values_per_packet);
    config.job.values_per_round = (chunks * size).saturating_sub(pick(7, size as u64) as usize);
    config.fixed_window = pick(8, 2) == 0;
    drawn::chaotic(config)
}

/// Divides the job: up to three switches sum a part each, and the server sums the parts and the workers in no part.
fn in_parts(mut config: Config) -> Config {
    let drawn = |worker: u16| drawn::pick(config.seed, 0x10B, 10 + u64::from(worker), 4);
    let part = |number: u64| Part {
        number: JobId(100 + number as u16),
        workers: (0..config.job.workers)
            .filter(|worker| drawn(*worker) == number)
            .map(WorkerId)
            .collect(),
    };
    let parts: Vec<Part> = (0..3).map(part).collect();
    config.parts = parts
        .into_iter()
        .filter(|part| !part.workers.is_empty())
        .collect();
    config.mode = Mode::Switch;
    config
}

/// Divides the job. The first part's switch dies up to three times, and then the rest of the network gets another plan.
fn replanned(config: Config) -> Config {
    let mut config = in_parts(config);
    let seed = config.seed;
    let drawn = |what: u64, options: u64| drawn::pick(seed, 0x4E9, what, options);
    let length_ns = 200_000 << drawn(0, 6);
    let mut at_ns = 0;
    for replan in 0..1 + drawn(1, 3) {
        at_ns += drawn(2 + replan, length_ns);
        let part = |number: u64| Part {
            number: JobId((200 + 10 * replan + number) as u16),
            workers: (0..config.job.workers)
                .filter(|worker| drawn(100 * (replan + 1) + u64::from(*worker), 4) == number)
                .map(WorkerId)
                .collect(),
        };
        let parts = (0..3).map(part).filter(|part| !part.workers.is_empty());
        let parts = parts.collect();
        config.replans.push(Replan {
            at_ns,
            server_after_ns: drawn(30 + replan, 200_000),
            parts,
            told_within_ns: 1 + drawn(20 + replan, 300_000),
        });
    }
    config
}

/// Switches of parts, in which the first part's switch is dead from a time on: forever, or until there is another plan; then
/// it is back and does not know the new plan.
struct Dying {
    switches: PartSwitches,
    first: Option<JobId>,
    is_for_good: bool,
    from_ns: u64,
}

impl SwitchModel for Dying {
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        let packet = Packet::new_checked(payload).unwrap();
        let is_first = self.first == Some(JobId(packet.job()));
        if !is_first || now_ns < self.from_ns {
            self.switches.handle(now_ns, from, payload, out);
        }
    }

    fn cell(&self, cell: CellIndex) -> Option<CellState> {
        self.switches.cell(cell)
    }

    fn replan(&mut self, parts: &[Part]) {
        self.switches.replan(parts);
        self.first = self.first.filter(|_| self.is_for_good);
    }
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
            self.runs,
            self.complete,
            self.failed_workers,
            n.sent,
            n.dropped,
            n.duplicated,
            n.reordered,
            self.deaths,
            self.timeouts,
            self.fast_retransmits,
            self.retransmitted,
            self.stale_or_duplicate,
            self.longest_to_error_ns / 1000,
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
    let totals = suite("chaos", seeds(0..7000).map(chaotic));
    assert_eq!(
        totals.complete, totals.runs,
        "nobody died, so everybody finishes"
    );
    assert!(totals.network.dropped > 14 * totals.runs);
    assert!(totals.network.duplicated > 14 * totals.runs);
    assert!(totals.network.reordered > 14 * totals.runs);
    assert!(totals.fast_retransmits * 7 > totals.runs);
}

#[test]
fn a_server_that_sums_the_sums_of_parts_is_right() {
    let totals = suite("parts", seeds(0..3000).map(chaotic).map(in_parts));
    assert_eq!(
        totals.complete, totals.runs,
        "nobody died, so everybody finishes"
    );
    assert!(totals.network.dropped > 13 * totals.runs);
    assert!(totals.retransmitted > 13 * totals.runs);
    let deaths = seeds(100_000..101_000).map(chaotic).map(in_parts);
    let totals = suite("death in parts", deaths.map(drawn::deadly));
    assert!(totals.failed_workers * 5 > 4 * totals.runs);
}

#[test]
fn another_plan_in_the_middle_of_a_round_changes_no_sum() {
    let (mut totals, mut alone, mut stuck) = (Totals::default(), 0, 0);
    for config in seeds(0..3000).map(chaotic).map(replanned) {
        let replan_ns = config.replans[0].at_ns;
        let dying = |from_ns| Dying {
            switches: PartSwitches::new(config.job, &config.parts).unwrap(),
            first: config.parts.first().map(|part| part.number),
            is_for_good: config.seed % 2 == 0,
            from_ns,
        };
        let from_ns = drawn::pick(config.seed, 0x4E9, 50, replan_ns + 1);
        let report = run_with(&config, &mut dying(from_ns));
        let violations = violations(&config, &report);
        assert!(
            violations.is_empty(),
            "{config:#?}: {violations:#?}\n{report:#?}"
        );
        totals.add(&config, &report);
        // Without the other plan, the run would not finish.
        if config.seed % 10 == 0 {
            alone += 1;
            let config = Config {
                replans: Vec::new(),
                deaths: Vec::new(),
                retransmission: Retransmission {
                    max_timeouts: 5,
                    ..config.retransmission
                },
                ..config.clone()
            };
            let report = run_with(&config, &mut dying(from_ns));
            stuck += u64::from(report.server.end != ServerEnd::Finished);
        }
    }
    totals.print("other plans");
    assert_eq!(totals.complete, totals.runs, "everybody finishes");
    assert!(
        stuck * 3 > alone,
        "only {stuck} of {alone} needed the other plan"
    );
}

#[test]
fn a_death_leaves_exact_sums_or_named_errors() {
    let totals = suite(
        "death",
        seeds(100_000..102_500).map(chaotic).map(drawn::deadly),
    );
    assert!(
        totals.deaths * 5 > 3 * totals.runs,
        "{} deaths came too late to matter",
        totals.deaths
    );
    assert!(totals.failed_workers * 5 > 4 * totals.runs);
}

#[test]
fn a_cluster_without_faults_retransmits_nothing() {
    for seed in seeds(0..50) {
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
            let answers = if mode == Mode::Switch {
                chunks
            } else {
                chunks * workers
            };
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

/// A switch that forgets all cells after a number of frames.
struct Forgetful {
    job: Job,
    switch: SlotSwitch,
    frames_left: u64,
}

impl SwitchModel for Forgetful {
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        if self.frames_left == 0 {
            self.switch = SlotSwitch::new(self.job);
        }
        self.frames_left = self.frames_left.wrapping_sub(1);
        self.switch.handle(now_ns, from, payload, out);
    }

    fn cell(&self, cell: CellIndex) -> Option<CellState> {
        self.switch.cell(cell)
    }
}

#[test]
fn a_switch_that_restarts_sums_nothing_twice() {
    let (mut runs, mut survived) = (0, 0);
    for seed in seeds(0..500) {
        runs += 1;
        let mut config = Config {
            mode: Mode::Switch,
            ..chaotic(seed)
        };
        config.retransmission.max_timeouts = 30;
        let job = Job::new(config.job).unwrap();
        let frames_left = mix(seed, 1, 1) % 300;
        let mut switch = Forgetful {
            job,
            switch: SlotSwitch::new(job),
            frames_left,
        };
        let report = run_with(&config, &mut switch);
        let violations = violations(&config, &report);
        survived += u64::from(violations.is_empty());
        let bad = violations.iter().find(|violation| {
            !matches!(
                violation,
                Violation::NeedlessFailure(..) | Violation::NeedlessServerFailure(_)
            )
        });
        assert_eq!(bad, None, "{config:#?}");
    }
    println!("{survived} of {runs} runs survived the restart");
    assert!(survived * 5 > runs);
}

/// A switch that sends every node, in addition to the correct frames, noise, truncated frames, frames of another job, and
/// well-formed frames of the kind that the node expects, from beyond the job's end.
struct Noisy<S> {
    switch: S,
    job: Job,
    to_server: Kind,
    beyond: u32,
    heard: u64,
}

impl<S: SwitchModel> Noisy<S> {
    fn new(config: &Config, switch: S) -> Self {
        let job = Job::new(config.job).unwrap();
        let to_server = match config.mode {
            Mode::Switch => Kind::Sum,
            Mode::Direct => Kind::Update,
        };
        // A distance in chunk numbers that leaves slot and version unchanged.
        let numbers = (config.rounds + 1) * job.numbers_per_round();
        let beyond = (numbers as u32).next_multiple_of(2 * job.window());
        Self {
            switch,
            job,
            to_server,
            beyond,
            heard: 0,
        }
    }
}

impl<S: SwitchModel> SwitchModel for Noisy<S> {
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        self.switch.handle(now_ns, from, payload, out);
        self.heard += 1;
        let heard = self.heard;
        let noise: Vec<u8> = (0..heard % 40).map(|i| mix(heard, i, 9) as u8).collect();
        let cut = payload[..heard as usize % payload.len()].to_vec();
        let mut foreign = payload.to_vec();
        Packet::new_unchecked(&mut foreign[..]).set_job(8);

        let rank = (heard % u64::from(self.job.workers())) as u16;
        for (to, kind) in [
            (Node::Server, self.to_server),
            (Node::Worker(WorkerId(rank)), Kind::Result),
        ] {
            let mut wild = payload.to_vec();
            let mut packet = Packet::new_unchecked(&mut wild[..]);
            packet.set_kind(kind);
            packet.set_worker(rank);
            packet.set_contributors(self.job.everyone().0);
            packet.set_chunk(packet.chunk().wrapping_add(self.beyond));
            let bad = [noise.clone(), cut.clone(), foreign.clone(), wild];
            out.extend(bad.into_iter().map(|bytes| (to, bytes)));
        }
    }

    fn cell(&self, cell: CellIndex) -> Option<CellState> {
        self.switch.cell(cell)
    }
}

#[test]
fn noise_on_every_port_has_no_effect() {
    for seed in seeds(0..300) {
        for mode in [Mode::Switch, Mode::Direct] {
            let mut config = Config {
                mode,
                ..chaotic(seed)
            };
            config.faults.loss = config.faults.loss.min(0.1);
            let job = Job::new(config.job).unwrap();
            let report = match mode {
                Mode::Switch => run_with(&config, &mut Noisy::new(&config, SlotSwitch::new(job))),
                Mode::Direct => run_with(&config, &mut Noisy::new(&config, Forwarder::new(job))),
            };
            let violations = violations(&config, &report);
            assert!(violations.is_empty(), "{config:#?}: {violations:#?}");
            let server = report.server.counters;
            assert!(server.malformed > 0 && server.not_ours > 0);
            assert!(
                report
                    .workers
                    .iter()
                    .all(|worker| worker.counters.malformed > 0)
            );
        }
    }
}

/// The seeds, in order, of runs that reveal the defect.
fn caught(
    defect: Defect,
    seeds: Range<u64>,
    faults: impl Fn(Faults) -> Faults,
) -> impl Iterator<Item = u64> {
    seeds.filter(move |seed| {
        let mut config = Config {
            mode: Mode::Switch,
            // More chunks in flight reveal more.
            fixed_window: true,
            ..chaotic(*seed)
        };
        config.retransmission.max_timeouts = 40;
        config.faults = faults(config.faults);
        let mut switch = Mutant::new(Job::new(config.job).unwrap(), defect);
        let report = run_with(&config, &mut switch);
        !violations(&config, &report).is_empty()
    })
}

#[test]
fn the_checker_catches_every_defect() {
    // Forty timeouts are enough only if losses are moderate.
    let mild = |faults: Faults| Faults {
        loss: faults.loss.min(0.05),
        ..faults
    };
    let drawn = seeds(0..300);
    let runs = drawn.clone().count();
    let caught = |defect| caught(defect, drawn.clone(), mild).count();
    assert_eq!(caught(Defect::None), 0, "the mutants' own code is right");
    for defect in [
        Defect::NoBitmap,
        Defect::StaleValues,
        Defect::NeverFreed,
        Defect::ZeroIsFree,
        Defect::LittleEndian,
        Defect::NoAgain,
        Defect::OffByOne,
    ] {
        let caught = caught(defect);
        println!("{defect:?}: caught in {caught} of {runs} runs");
        assert!(caught * 6 > runs, "{defect:?} goes unnoticed");
    }
}

/// A stale frame does harm only between a chunk's completion and a lost answer: the other workers' updates are forgotten, and
/// a worker that has the answer does not send its update again.
#[test]
fn the_checker_catches_a_missing_stale_check() {
    let late = |_| Faults {
        loss: 0.1,
        duplicate: 0.3,
        reorder: 0.3,
        reorder_ns: 1_000_000,
    };
    assert_eq!(caught(Defect::None, seeds(0..300), late).next(), None);
    // Few runs reveal it: the third one ends the search.
    let third = caught(Defect::NoStaleCheck, 0..300, late).nth(2);
    println!("NoStaleCheck: caught for the third time by seed {third:?}");
    assert!(third.is_some(), "a missing stale check goes unnoticed");
}

#[test]
fn comparing_two_switches_finds_differences_only() {
    let config = Config {
        mode: Mode::Switch,
        ..chaotic(5)
    };
    let job = Job::new(config.job).unwrap();
    let compare = |defect| {
        let mut both = Compare::new(job, SlotSwitch::new(job), Mutant::new(job, defect));
        run_with(&config, &mut both);
        assert!(both.compared > 100);
        both.mismatches
    };
    assert_eq!(compare(Defect::None), []);
    // The first defect shows in a frame, the second one in a cell.
    let frame = compare(Defect::OffByOne);
    assert!(frame[0].what.starts_with("frames"), "{}", frame[0]);
    let cell = compare(Defect::StaleValues);
    assert!(
        cell.iter()
            .any(|mismatch| mismatch.what.starts_with("cell")),
        "{cell:#?}"
    );
}
