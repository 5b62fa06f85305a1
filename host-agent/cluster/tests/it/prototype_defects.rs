//! Defects of the prototype that this project replaces, with one test each that they are absent here.

use crate::common::mutant::{Defect, Mutant};
use crate::common::{expect_right, run_with, violations};
use aggregation::job::{CellIndex, ChunkId, Job, WorkerSet};
use aggregation::quantise::{Exponent, limit, quantise};
use aggregation::server::Mode;
use aggregation::slot::{Outcome, SlotTable};
use aggregation::{JobId, WorkerId};
use cluster::{Config, Faults, SlotSwitch, SwitchModel, WorkerEnd};
use test_support::seeds;
use wire::{Flags, Kind, Packet, Repr};

fn job(workers: u16, window: u32) -> Job {
    let mut config = Config::new(0, workers, Mode::Switch).job;
    config.job = JobId(7);
    config.window = window;
    config.values_per_packet = 2;
    Job::new(config).unwrap()
}

fn update(job: &Job, worker: u16, chunk: u32, values: [i32; 2]) -> Vec<u8> {
    let chunk = ChunkId(chunk);
    let repr = Repr {
        kind: Kind::Update,
        flags: Flags::NONE.with(Flags::VERSION, job.version(chunk).0),
        job: job.id().0,
        chunk: chunk.0,
        slot: job.slot(chunk).0,
        worker,
        transmission: 0,
        contributors: WorkerSet::only(WorkerId(worker)).0,
        scale: 127,
        next_scale: worker as u8,
        count: 2,
    };
    let mut bytes = vec![0; repr.buffer_len()];
    let mut packet = Packet::new_unchecked(&mut bytes[..]);
    repr.emit(&mut packet);
    packet.write_i32(values);
    bytes
}

fn put(slots: &mut SlotTable, frame: &[u8]) -> Outcome {
    slots.update(&Packet::new_checked(frame).unwrap())
}

fn sum(slots: &SlotTable, cell: CellIndex) -> &[i32] {
    slots.cell(cell).unwrap().values
}

#[test]
fn a_duplicate_is_counted_once() {
    let job = job(3, 1);
    let mut slots = SlotTable::new(job);
    let cell = CellIndex(0);
    let first = update(&job, 0, 0, [1, 10]);
    assert_eq!(put(&mut slots, &first), Outcome::TakenOver(cell));
    assert_eq!(put(&mut slots, &first), Outcome::DuplicateIncomplete(cell));
    assert_eq!(put(&mut slots, &first), Outcome::DuplicateIncomplete(cell));
    assert_eq!(
        put(&mut slots, &update(&job, 1, 0, [2, 20])),
        Outcome::Absorbed(cell)
    );
    assert_eq!(
        put(&mut slots, &update(&job, 2, 0, [4, 40])),
        Outcome::Completed(cell)
    );
    assert_eq!(sum(&slots, cell), [7, 70]);
    assert_eq!(put(&mut slots, &first), Outcome::Again(cell));
    assert_eq!(sum(&slots, cell), [7, 70], "and a late one changes nothing");

    // A whole training in which every frame is duplicated.
    let mut config = Config::new(1, 4, Mode::Switch);
    config.faults = Faults {
        duplicate: 1.0,
        ..Faults::NONE
    };
    let report = expect_right(&config);
    assert!(report.network.duplicated > 100);
}

#[test]
fn a_loss_does_not_stall_for_ever() {
    // The first frame of each kind is lost on each link, in one run or another.
    for seed in seeds(0..200) {
        let mut config = Config::new(seed, 2, Mode::Switch);
        config.faults = Faults {
            loss: 0.3,
            ..Faults::NONE
        };
        let report = expect_right(&config);
        assert!(
            report
                .workers
                .iter()
                .all(|worker| worker.end == WorkerEnd::Finished)
        );
    }
}

#[test]
fn slots_are_freed_by_the_next_chunk() {
    // One slot, two cells, 50 chunks; and at least 524,288 values, in chunks of 256 through 16 slots.
    let mut config = Config::new(2, 2, Mode::Switch);
    config.job.window = 1;
    config.job.values_per_round = 200;
    expect_right(&config);

    config.job.window = 16;
    config.job.values_per_packet = 256;
    config.job.values_per_round = 600_000;
    config.rounds = 1;
    expect_right(&config);

    let mut stuck = Mutant::new(Job::new(config.job).unwrap(), Defect::NeverFreed);
    config.job.values_per_round = 60_000;
    config.retransmission.max_timeouts = 5;
    let report = run_with(&config, &mut stuck);
    assert!(
        !violations(&config, &report).is_empty(),
        "a switch that never frees is found out"
    );
}

#[test]
fn chunk_0_is_a_chunk_like_any_other() {
    let job = job(2, 1);
    let mut slots = SlotTable::new(job);
    let cell = CellIndex(0);
    assert_eq!(
        put(&mut slots, &update(&job, 0, 0, [1, 1])),
        Outcome::TakenOver(cell)
    );
    assert_eq!(
        put(&mut slots, &update(&job, 1, 0, [1, 1])),
        Outcome::Completed(cell)
    );
    assert_eq!(slots.cell(cell).unwrap().owner, ChunkId(0));
    assert_eq!(
        put(&mut slots, &update(&job, 1, 0, [1, 1])),
        Outcome::Again(cell)
    );

    // Chunk 0 in the middle of a job, where numbers wrap.
    for first in [
        0,
        u32::MAX,
        u32::MAX - 7,
        u32::MAX - 20,
        1 << 31,
        (1 << 31) - 9,
    ] {
        let mut config = Config::new(3, 3, Mode::Switch);
        config.job.first_chunk = ChunkId(first);
        config.faults = Faults {
            loss: 0.1,
            duplicate: 0.1,
            reorder: 0.3,
            reorder_ns: 1_000_000,
        };
        expect_right(&config);
    }
}

#[test]
fn bytes_have_one_order() {
    let job = job(1, 1);
    let frame = update(&job, 0, 0x0000_0000, [0x0102_0304, -2]);
    assert_eq!(
        frame[wire::HEADER_LEN..],
        [1, 2, 3, 4, 0xFF, 0xFF, 0xFF, 0xFE]
    );
    let config = Config::new(4, 2, Mode::Switch);
    let mut little = Mutant::new(Job::new(config.job).unwrap(), Defect::LittleEndian);
    let report = run_with(&config, &mut little);
    assert!(
        !violations(&config, &report).is_empty(),
        "a switch of another order is found out"
    );
}

#[test]
fn degree_1_does_not_add_to_stale_data() {
    let job = job(1, 1);
    let mut slots = SlotTable::new(job);
    for chunk in 0..10 {
        let outcome = put(&mut slots, &update(&job, 0, chunk, [5, 6]));
        let Outcome::Completed(cell) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(sum(&slots, cell), [5, 6]);
    }
    for window in [1, 4] {
        let mut config = Config::new(5, 1, Mode::Switch);
        config.job.window = window;
        config.faults = Faults {
            loss: 0.1,
            duplicate: 0.2,
            reorder: 0.2,
            reorder_ns: 500_000,
        };
        expect_right(&config);
    }
}

#[test]
fn sums_cannot_overflow() {
    let largest = [f32::MAX, -f32::MAX];
    for workers in [1u16, 2, 3, 31, 32, 63, 64] {
        let job = job(workers, 1);
        let exponent = Exponent::bounding(&largest).unwrap();
        let q: Vec<i32> = quantise(&largest, exponent, workers).collect();
        let mut slots = SlotTable::new(job);
        let mut outcome = Outcome::Stale;
        for worker in 0..workers {
            outcome = put(&mut slots, &update(&job, worker, 0, [q[0], q[1]]));
        }
        let Outcome::Completed(cell) = outcome else {
            panic!("{outcome:?}")
        };
        let exact = i64::from(q[0]) * i64::from(workers);
        assert_eq!(
            sum(&slots, cell)
                .iter()
                .map(|s| i64::from(*s))
                .collect::<Vec<_>>(),
            [exact, -exact]
        );
        assert!(q[0] <= limit(workers) && exact <= i64::from(i32::MAX));
    }
}

#[test]
fn results_are_multicast() {
    let config = Config::new(6, 8, Mode::Switch);
    let report = expect_right(&config);
    let job = Job::new(config.job).unwrap();
    let chunks = config.rounds * job.numbers_per_round() + u64::from(job.window());
    assert_eq!(
        report.server.counters.sent.frames, chunks,
        "one frame answers a chunk for all"
    );

    let mut switch = SlotSwitch::new(job);
    let mut result = update(&job, wire::ALL_WORKERS & 7, 0, [0, 0]);
    let mut packet = Packet::new_unchecked(&mut result[..]);
    packet.set_kind(Kind::Result);
    packet.set_worker(wire::ALL_WORKERS);
    let mut out = Vec::new();
    switch.handle(0, cluster::Node::Server, &result, &mut out);
    assert_eq!(out.len(), 8);

    // Repeated requests compensate for a switch that does not multicast, at a cost.
    let mut single = Mutant::new(job, Defect::NoMulticast);
    let report = run_with(&config, &mut single);
    assert_eq!(violations(&config, &report), []);
    assert!(report.server.counters.sent.frames > 7 * chunks);
}
