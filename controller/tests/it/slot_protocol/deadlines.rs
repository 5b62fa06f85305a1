//! Chunks that are closed before all have contributed: the P4 text of the architectures that have it, against the slots in Rust.

use aggregation::Destination;
use aggregation::job::{CellIndex, ChunkId, Job, WorkerId};
use aggregation::rank::{Carry, Reduction};
use cluster::drawn::mix;
use cluster::ranks::{self, AllReduceConfig, Deadline, RankEnd, RankSlotSwitch, RankSwitch, Steps};
use cluster::{CellState, SwitchModel};
use parser_gen::Arch;
use wire::{Flags, Kind, Packet, Repr};

use super::all_reduce::{config, input};
use super::p4_switch::{Admission, Outcome, P4Switch, Patch, VALUES, compile};

/// The architectures whose cells have space for deadlines.
const ARCHS: [Arch; 2] = [Arch::Psa, Arch::V1model];
const AGGREGATE: &str = "common/aggregate.p4";
const SLOTS: &str = "psa/slots.p4";

/// Two switches that are to do the same.
struct Both {
    p4: P4Switch,
    slots: RankSlotSwitch,
    differences: Vec<String>,
}

impl Both {
    fn new(mut p4: P4Switch, job: Job, is_opened: bool) -> Self {
        p4.admit_until(job, Admission::Cleared, is_opened);
        let slots = RankSlotSwitch::new(job);
        Self {
            p4,
            slots: match is_opened {
                true => slots.with_deadlines(),
                false => slots.with_deadlines_unopened(),
            },
            differences: Vec::new(),
        }
    }

    fn compare(&mut self, cell: CellIndex) {
        let own = self.p4.cell(cell);
        let (is_opened, is_closed) = self.p4.marks(cell);
        let Some(view) = self.slots.cell(cell) else {
            return;
        };
        if (is_opened, is_closed) != (view.is_opened, view.is_closed) {
            let marks = (view.is_opened, view.is_closed);
            self.differences.push(format!(
                "{cell:?}: {:?} and {marks:?}",
                (is_opened, is_closed)
            ));
        }
        // The content of a cell without contributors has no meaning.
        let other = CellState::from(view);
        if !other.contributors.is_empty() && own.as_ref() != Some(&other) {
            self.differences
                .push(format!("{cell:?}: {own:?} and {other:?}"));
        }
    }
}

impl RankSwitch for Both {
    fn handle(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    ) {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        RankSwitch::handle(&mut self.p4, now_ns, from, to, payload, &mut own);
        self.slots.handle(now_ns, from, to, payload, &mut others);
        own.sort();
        others.sort();
        if own != others {
            let sent = |frames: &[(WorkerId, Vec<u8>)]| -> Vec<_> {
                let parsed = frames.iter();
                parsed
                    .map(|(to, bytes)| (*to, Repr::parse(&Packet::new_unchecked(&bytes[..]))))
                    .collect()
            };
            self.differences
                .push(format!("{:?} and {:?}", sent(&own), sent(&others)));
        }
        if let Ok(packet) = Packet::new_checked(payload)
            && packet.kind() == Kind::Update
        {
            let job = self.p4.job();
            self.compare(job.cell(ChunkId(packet.chunk())));
        }
        out.extend(own);
    }
}

fn until(seed: u64) -> AllReduceConfig {
    let mut config = config(seed);
    config.job.workers = config.job.workers.max(2);
    let quorum = 1 + mix(seed, 1, 1) % u64::from(config.job.workers - 1);
    config.steps = Some(Steps {
        compute_ns: 50_000,
        stall_ns: 5_000_000,
        stalls: 0.2,
    });
    config.deadline = Some(Deadline {
        after_ns: [0, 300_000][(seed % 2) as usize],
        quorum: quorum as u16,
        carry: Carry::NextRound,
        keeps: None,
    });
    config.reduction = Reduction {
        key: Some(1),
        ..Reduction::default()
    };
    config
}

#[test]
fn ranks_out_of_step_have_the_sums_of_the_reference() {
    for arch in ARCHS {
        let mut p4 = P4Switch::load(compile(arch, &[]));
        let (mut partial, mut late) = (0, 0);
        for seed in 0..15 {
            let config = until(seed);
            let job = Job::new(config.job).expect("a job");
            // In some the switch has opened no cell: it has been restarted.
            let is_opened = seed % 5 != 4;
            let mut both = Both::new(p4, job, is_opened);
            let inputs = |operation: usize, rank: WorkerId| input(seed, operation, rank);
            let report = ranks::run(&config, &mut both, 6, &inputs).expect("a job");
            let differences = &both.differences;
            assert!(
                differences.is_empty(),
                "{arch:?}, {seed}: {}",
                differences[0]
            );
            let done = report.ends.iter().all(|end| *end == RankEnd::Done);
            assert!(done, "{arch:?}, seed {seed}: {:?}", report.ends);
            for sums in &report.sums {
                assert_eq!(*sums, report.sums[0], "{arch:?}, seed {seed}");
            }
            both.p4.assert_neighbours_untouched();
            for counters in &report.counters {
                partial += counters.partial_chunks;
                late += counters.late_chunks;
                assert_eq!(counters.malformed, 0, "{arch:?}, seed {seed}");
                assert!(is_opened || counters.partial_chunks == 0);
            }
            p4 = both.p4;
        }
        assert!(partial > 100 && late > 50, "{arch:?}: {partial}, {late}");
        for outcome in [Outcome::Closed, Outcome::Late, Outcome::Forgotten] {
            assert!(p4.outcomes(outcome) > 2, "{arch:?}: {outcome:?}");
        }
    }
}

/// Frames that no rank would send in such an order: any chunk near the owner, any flags, other ranks' ports.
fn wild(job: &Job, seed: u64, step: u64) -> (WorkerId, Destination, Vec<u8>) {
    let pick = |what: u64, options: u64| mix(seed, step, what) % options;
    let ranks = u64::from(job.workers());
    let sequence = step / (6 * ranks) + pick(1, 3 * u64::from(job.window()));
    let chunk = job.first_chunk().plus(sequence as u32);
    let worker = WorkerId(pick(2, ranks) as u16);
    let from = match pick(3, 30) {
        0 => WorkerId(pick(4, ranks) as u16),
        _ => worker,
    };
    let (is_probe, scale_only) = (pick(5, 4) == 0, pick(6, 6) == 0);
    let header = Repr {
        kind: Kind::Update,
        flags: Flags::NONE
            .with(Flags::VERSION, job.version(chunk).0)
            .with(Flags::PROBE, is_probe)
            .with(Flags::SCALE_ONLY, scale_only)
            .with(Flags::NON_FINITE, pick(7, 10) == 0)
            .with(Flags::TIMED, pick(8, 5) > 0)
            .with(Flags::CLOSE, pick(9, 6) == 0)
            .with(Flags::KEPT, pick(10, 9) == 0),
        job: job.id().0,
        chunk: chunk.0,
        slot: job.slot(chunk).0,
        worker: worker.0,
        transmission: pick(11, 64) as u8,
        contributors: 1 << worker.0,
        scale: if is_probe { 0 } else { pick(12, 256) as u8 },
        next_scale: pick(13, 256) as u8,
        count: match is_probe || scale_only {
            true => 0,
            false => VALUES as u16,
        },
    };
    let mut payload = vec![0; header.buffer_len()];
    let mut packet = Packet::new_unchecked(&mut payload[..]);
    header.emit(&mut packet);
    packet.write_i32((0..u64::from(header.count)).map(|i| mix(seed, step, 1000 + i) as i32));
    let to = match is_probe || pick(14, 5) == 0 {
        true => Destination::Worker(from),
        false => Destination::All,
    };
    (from, to, payload)
}

/// How often the switches differ.
fn wild_differences(p4: P4Switch, seed: u64, steps: u64) -> (P4Switch, Vec<String>) {
    let job = Job::new(until(seed).job).expect("a job");
    let mut both = Both::new(p4, job, seed.is_multiple_of(2));
    for step in 0..steps {
        let (from, to, payload) = wild(&job, seed, step);
        both.handle(step, from, to, &payload, &mut Vec::new());
    }
    both.p4.assert_neighbours_untouched();
    (both.p4, both.differences)
}

#[test]
fn wild_frames_do_the_same_in_both() {
    for arch in ARCHS {
        let mut p4 = P4Switch::load(compile(arch, &[]));
        for seed in 0..30 {
            let differences;
            (p4, differences) = wild_differences(p4, seed, 500);
            let first = differences.first();
            assert!(first.is_none(), "{arch:?}, seed {seed}: {first:?}");
        }
        let counts = Outcome::ALL.map(|outcome| (outcome, p4.outcomes(outcome)));
        for (outcome, count) in counts {
            let is_possible = !matches!(outcome, Outcome::Passed | Outcome::Malformed);
            assert!(count > 15 || !is_possible, "{arch:?}: {counts:?}");
        }
    }
}

const MUTANTS: &[(&str, Patch)] = &[
    (
        "what is closed is added to",
        (
            AGGREGATE,
            "if (mark == MARK_CLOSED || mark == MARK_FORGOTTEN) {",
            "if (false) {",
        ),
    ),
    (
        "a late frame overwrites nothing, but adds",
        (
            AGGREGATE,
            "presence = PRESENT_ITSELF;",
            "presence = PRESENT_OTHERS;",
        ),
    ),
    (
        "a cell stays closed when it is taken over",
        (SLOTS, "stored = stored & 2;", ""),
    ),
    (
        "a cell that was forgotten counts all the same",
        (SLOTS, "deadline[0:0] == 1 && stored[1:1] == 0", "false"),
    ),
    (
        "everybody is told that a chunk is closed once more",
        (
            AGGREGATE,
            "(0, MARK_CLOSES, WAY_GROUP)",
            "(0, _, WAY_GROUP)",
        ),
    ),
    (
        "a sum names all",
        (
            AGGREGATE,
            "outcome = OUTCOME_CLOSED;
        hdr.ethernet.dst[47:40] = 0x01;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) present;",
            "outcome = OUTCOME_CLOSED;
        hdr.ethernet.dst[47:40] = 0x01;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) all_workers;",
        ),
    ),
    (
        "a probe is not told that the cell is opened",
        (AGGREGATE, "hdr.agg.deadline = 2w0 ++ opened;", ""),
    ),
    (
        "any frame that closes opens",
        (
            SLOTS,
            "probe == 1 && deadline[1:1] == 1",
            "deadline[1:1] == 1",
        ),
    ),
    (
        "a probe closes",
        (
            SLOTS,
            "deadline[1:0] == 3 && probe == 0",
            "deadline[1:0] == 3",
        ),
    ),
];

#[test]
fn every_mutant_of_what_closes_is_caught() {
    for (name, patch) in MUTANTS {
        let mut p4 = P4Switch::load(compile(Arch::Psa, &[*patch]));
        let mut caught = 0;
        for seed in 0..4 {
            let differences;
            (p4, differences) = wild_differences(p4, seed, 300);
            caught += differences.len();
        }
        assert!(caught > 0, "{name}");
    }
}

/// To a job without deadlines their flags mean nothing.
#[test]
fn others_ignore_the_flags() {
    for arch in super::p4_switch::ARCHS {
        let mut p4 = P4Switch::load(compile(arch, &[]));
        for seed in 0..10 {
            let job = Job::new(until(seed).job).expect("a job");
            p4.admit(job, Admission::Cleared);
            let mut slots = RankSlotSwitch::new(job);
            for step in 0..200 {
                let (from, to, payload) = wild(&job, seed, step);
                let (mut own, mut others) = (Vec::new(), Vec::new());
                RankSwitch::handle(&mut p4, step, from, to, &payload, &mut own);
                slots.handle(step, from, to, &payload, &mut others);
                own.sort();
                others.sort();
                assert_eq!(own, others, "{arch:?}, seed {seed}, {step}");
            }
        }
    }
}
