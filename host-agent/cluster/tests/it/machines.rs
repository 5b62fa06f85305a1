//! Worker and server in isolation: bad input, errors, limits.

use crate::common;
use crate::common::{expect_right, run_reference};
use aggregation::job::{ChunkId, Job, JobConfig, JobError, JobId, Position, RoundPart, WorkerSet};
use aggregation::server::{self, Mode, Server, ServerError};
use aggregation::worker::{StartError, Worker, WorkerError, WorkerEvent, WorkerFrame};
use aggregation::{Destination, Mark, Retransmission, WorkerId};
use cluster::{self, Config, Death, Faults, Forwarder, Node, ServerEnd, SlotSwitch, WorkerEnd};
use proptest::prelude::*;
use wire::{Flags, Kind, Packet, Repr};

const MS: u64 = 1_000_000;

fn job(workers: u16, window: u32, values: usize) -> Job {
    Job::new(config(workers, window, values)).unwrap()
}

fn config(workers: u16, window: u32, values: usize) -> JobConfig {
    JobConfig {
        job: JobId(1),
        workers,
        window,
        values_per_packet: 2,
        values_per_round: values,
        first_chunk: ChunkId(0),
    }
}

fn transmit(worker: &mut Worker, now_ns: u64) -> Vec<Vec<u8>> {
    let mut buffer = Vec::new();
    std::iter::from_fn(|| {
        let to = worker.poll_transmit(now_ns, &mut buffer)?;
        assert_eq!(to, Destination::Server);
        Some(buffer.clone())
    })
    .collect()
}

/// The RESULT that answers an UPDATE with the UPDATE's own values.
fn answer(update: &[u8]) -> Vec<u8> {
    let mut result = update.to_vec();
    let mut packet = Packet::new_unchecked(&mut result[..]);
    packet.set_kind(Kind::Result);
    packet.set_worker(wire::ALL_WORKERS);
    result
}

#[test]
fn settings_that_are_no_job_are_refused() {
    assert_eq!(Job::new(config(0, 1, 2)), Err(JobError::Workers(0)));
    assert_eq!(Job::new(config(1025, 1, 2)), Err(JobError::Workers(1025)));
    assert_eq!(Job::new(config(1, 3, 2)), Err(JobError::Window(3)));
    assert_eq!(Job::new(config(1, 0, 2)), Err(JobError::Window(0)));
    assert_eq!(
        Job::new(config(1, 1 << 16, 2)),
        Err(JobError::Window(1 << 16))
    );
    let none = JobConfig {
        values_per_packet: 0,
        ..config(1, 1, 2)
    };
    assert_eq!(Job::new(none), Err(JobError::ValuesPerPacket));
}

#[test]
fn a_worker_opens_with_a_window_of_scale_only_frames() {
    let mut worker = Worker::new(job(2, 2, 5), WorkerId(1), Retransmission::default());
    assert_eq!(
        worker.start_round(&[0.0; 4]),
        Err(StartError::Length {
            got: 4,
            expected: 5
        })
    );
    worker.start_round(&[1.0, -3.0, 0.25, 0.0, 100.0]).unwrap();
    assert_eq!(worker.close(), Err(StartError::NotIdle));
    let frames = transmit(&mut worker, 0);
    let reprs: Vec<_> = frames
        .iter()
        .map(|frame| Repr::parse(&Packet::new_checked(&frame[..]).unwrap()))
        .collect();
    assert_eq!(reprs.len(), 2);
    for (i, repr) in reprs.iter().enumerate() {
        assert_eq!(repr.kind, Kind::Update);
        assert_eq!(repr.flags, Flags::SCALE_ONLY);
        assert_eq!(
            (repr.chunk, repr.slot, repr.worker),
            (i as u32, i as u16, 1)
        );
        assert_eq!((repr.count, repr.contributors, repr.scale), (0, 2, 0));
    }
    assert_eq!(
        reprs.iter().map(|repr| repr.next_scale).collect::<Vec<_>>(),
        [129, 125]
    );

    // The answer carries the exponent; another worker requested a larger one.
    let mut result = answer(&frames[0]);
    Packet::new_unchecked(&mut result[..]).set_next_scale(131);
    assert_eq!(
        worker.handle_packet(MS, Mark::None, &result),
        WorkerFrame::Answer
    );
    assert_eq!(
        worker.handle_packet(MS, Mark::None, &result),
        WorkerFrame::Duplicate
    );
    let next = transmit(&mut worker, MS);
    assert_eq!(next.len(), 1);
    let packet = Packet::new_checked(&next[0][..]).unwrap();
    let repr = Repr::parse(&packet);
    assert_eq!(
        (repr.chunk, repr.slot, repr.scale, repr.count),
        (2, 0, 131, 2)
    );
    assert_eq!(repr.flags, Flags::VERSION);
    assert_eq!(repr.next_scale, 134, "what chunk 4 wants: 100 ≤ 2^7");
    let q = |x: f64| (x * f64::from(i32::MAX / 2) / 16.0).round_ties_even() as i32;
    assert_eq!(packet.values_i32().collect::<Vec<_>>(), [q(1.0), q(-3.0)]);
}

#[test]
fn an_unanswered_chunk_is_named_after_the_stated_timeouts() {
    let retransmission = Retransmission {
        max_timeouts: 3,
        ..Retransmission::default()
    };
    let mut worker = Worker::new(job(2, 1, 4), WorkerId(0), retransmission);
    worker.start_round(&[1.0; 4]).unwrap();
    let opening = transmit(&mut worker, 0);
    worker.handle_packet(10 * MS, Mark::None, &answer(&opening[0]));

    let mut sent = Vec::new();
    let mut now_ns = 10 * MS;
    let error = loop {
        sent.extend(
            transmit(&mut worker, now_ns)
                .into_iter()
                .map(|frame| (now_ns / MS, frame)),
        );
        now_ns = worker.poll_timeout().unwrap();
        worker.handle_timeout(now_ns);
        if let Some(event) = worker.poll_event() {
            break event;
        }
    };
    // The wake-up for the answered chunk's timeout, at 1000 ms, changes nothing.
    assert_eq!(
        sent.iter().map(|(ms, _)| *ms).collect::<Vec<_>>(),
        [10, 210, 610]
    );
    for (i, (_, frame)) in sent.iter().enumerate() {
        let packet = Packet::new_checked(&frame[..]).unwrap();
        assert_eq!(usize::from(packet.transmission()), i);
        assert_eq!(packet.flags().contains(Flags::AGAIN), i > 0);
        assert_eq!(
            frame[20..],
            sent[0].1[20..],
            "a retransmission has the same values"
        );
    }
    let position = Position {
        round: 0,
        part: RoundPart::Values(0),
    };
    let expected = WorkerError::Unanswered {
        position,
        chunk: ChunkId(1),
        timeouts: 3,
    };
    assert_eq!(error, WorkerEvent::Failed(expected));
    assert_eq!(
        expected.to_string(),
        "chunk 0 of round 0 (#1) was not answered within 3 timeouts"
    );
    assert_eq!(worker.poll_timeout(), None);
    assert_eq!(transmit(&mut worker, now_ns).len(), 0);
    assert_eq!(worker.start_round(&[0.0; 4]), Err(StartError::NotIdle));
}

#[test]
fn a_chunk_overtaken_often_enough_is_sent_again_once_at_once() {
    let retransmission = Retransmission {
        fast_threshold: 3,
        ..Retransmission::default()
    };
    let mut worker = Worker::new(job(2, 4, 200), WorkerId(0), retransmission);
    worker.start_round(&[1.0; 200]).unwrap();
    let mut frames: std::collections::VecDeque<_> = transmit(&mut worker, 0).into();
    let lost = frames.pop_front().unwrap();
    let mut again = Vec::new();
    for answered in 1..=20 {
        let frame = frames.pop_front().unwrap();
        assert_eq!(
            worker.handle_packet(MS, Mark::None, &answer(&frame)),
            WorkerFrame::Answer
        );
        for frame in transmit(&mut worker, MS) {
            if Packet::new_checked(&frame[..]).unwrap().chunk() == 0 {
                again.push(answered);
            } else {
                frames.push_back(frame);
            }
        }
    }
    assert_eq!(again, [3]);
    assert_eq!(worker.counters().fast_retransmits, 1);
    assert_eq!(worker.counters().sent.retransmitted_frames, 1);
    assert_eq!(worker.counters().timeouts, 0);
    assert_eq!(
        worker.handle_packet(MS, Mark::None, &answer(&lost)),
        WorkerFrame::Answer
    );
}

#[test]
fn a_dead_worker_is_named_by_a_server_that_sums() {
    let mut config = Config::new(11, 4, Mode::Direct);
    config.rounds = 50;
    config.retransmission.max_timeouts = 5;
    config.deaths.push(Death {
        node: Node::Worker(WorkerId(2)),
        at_ns: 2_000_000,
    });
    let report = expect_right(&config);
    let ServerEnd::Failed(ServerError::Incomplete { missing, .. }) = report.server.end else {
        panic!("{:?}", report.server.end)
    };
    assert_eq!(missing, WorkerSet::only(WorkerId(2)));
    assert_eq!(report.deaths, 1);
    let failed = report
        .workers
        .iter()
        .filter(|w| matches!(w.end, WorkerEnd::Failed(_)))
        .count();
    assert_eq!(failed, 3);
}

#[test]
fn a_dead_worker_behind_a_switch_silences_the_server() {
    let mut config = Config::new(12, 4, Mode::Switch);
    config.rounds = 50;
    config.retransmission.max_timeouts = 5;
    config.deaths.push(Death {
        node: Node::Worker(WorkerId(0)),
        at_ns: 2_000_000,
    });
    let report = expect_right(&config);
    assert!(matches!(
        report.server.end,
        ServerEnd::Failed(ServerError::Silent { .. })
    ));
}

#[test]
fn an_incomplete_sum_names_the_missing_workers() {
    let job = job(4, 1, 2);
    let retransmission = Retransmission::default();
    let apply = |_: server::Completed<'_>, _: &mut [u32]| {};
    let mut server = Server::new(job, Mode::Switch, retransmission, None, apply, 0);
    let mut worker = Worker::new(job, WorkerId(0), retransmission);
    worker.start_round(&[1.0; 2]).unwrap();
    let mut sum = transmit(&mut worker, 0).remove(0);
    let mut packet = Packet::new_unchecked(&mut sum[..]);
    packet.set_kind(Kind::Sum);
    packet.set_flags(Flags::SCALE_ONLY | Flags::AGAIN);
    packet.set_contributors(0b0101);
    assert_eq!(
        server.handle_packet(MS, Mark::None, &sum),
        server::ServerFrame::Duplicate
    );
    assert_eq!(server.poll_transmit(MS, &mut Vec::new()), None);
    server.handle_timeout(server.poll_timeout().unwrap());
    let Some(server::ServerEvent::Failed(error)) = server.poll_event() else {
        panic!()
    };
    assert_eq!(
        error.to_string(),
        "scale-only chunk 0 of round 0 (#0) waits for worker 1, worker 3"
    );
    assert_eq!(server.poll_timeout(), None);
}

#[test]
fn a_dead_server_is_an_error_at_every_worker() {
    for mode in [Mode::Switch, Mode::Direct] {
        let mut config = Config::new(13, 3, mode);
        config.rounds = 50;
        config.retransmission.max_timeouts = 5;
        config.deaths.push(Death {
            node: Node::Server,
            at_ns: 1_000_000,
        });
        let report = expect_right(&config);
        assert!(
            report
                .workers
                .iter()
                .all(|w| matches!(w.end, WorkerEnd::Failed(_)))
        );
    }
}

#[test]
fn a_value_that_is_not_finite_fails_its_chunk_at_every_rank() {
    for mode in [Mode::Switch, Mode::Direct] {
        for (seed, bad) in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY]
            .into_iter()
            .enumerate()
        {
            let mut config = Config::new(seed as u64, 4, mode);
            config.rounds = 3;
            config.faults = Faults {
                loss: 0.1,
                ..Faults::NONE
            };
            let good = cluster::drawn::inputs(&config);
            let inputs = |round, worker| {
                let mut values: Vec<f32> = good(round, worker);
                if round == 1 && worker == WorkerId(2) {
                    values[22] = bad; // chunk 5
                }
                values
            };
            let job = Job::new(config.job).unwrap();
            let answer = cluster::answer_with_sums;
            let report = match mode {
                Mode::Switch => cluster::run(&config, &mut SlotSwitch::new(job), answer, inputs),
                Mode::Direct => cluster::run(&config, &mut Forwarder::new(job), answer, inputs),
            }
            .unwrap();
            let position = Position {
                round: 1,
                part: RoundPart::Values(5),
            };
            let chunk = job.chunk(job.numbers_per_round() + u64::from(job.window()) + 5);
            let expected = WorkerError::NonFinite { position, chunk };
            for worker in &report.workers {
                assert_eq!(worker.end, WorkerEnd::Failed(expected), "{mode:?} {bad}");
                assert_eq!(worker.rounds.len(), 1);
            }
            let expected = ServerError::NonFinite { position, chunk };
            assert_eq!(report.server.end, ServerEnd::Failed(expected));
        }
    }
}

#[test]
fn a_server_that_misses_the_last_goodbye_still_finishes() {
    // The workers' closing frames never arrive at the server.
    let config = Config::new(14, 2, Mode::Switch);
    let job = Job::new(config.job).unwrap();
    struct NoGoodbye(SlotSwitch, u32);
    impl cluster::SwitchModel for NoGoodbye {
        fn handle(&mut self, now: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
            if Packet::new_checked(payload).unwrap().chunk() < self.1 {
                self.0.handle(now, from, payload, out);
            }
        }
        fn cell(&self, cell: aggregation::CellIndex) -> Option<cluster::CellState> {
            self.0.cell(cell)
        }
    }
    let first_closing = (config.rounds * job.numbers_per_round()) as u32;
    let mut switch = NoGoodbye(SlotSwitch::new(job), first_closing);
    let report = common::run_with(&config, &mut switch);
    assert_eq!(common::violations(&config, &report), []);
    assert_eq!(report.server.end, ServerEnd::Finished);
}

#[test]
fn a_server_applies_once_and_answers_as_often_as_asked() {
    let job = job(2, 1, 2);
    let mut applied = 0;
    let apply = |chunk: server::Completed<'_>, answer: &mut [u32]| {
        applied += 1;
        assert_eq!((chunk.round, chunk.index), (0, 0));
        answer.copy_from_slice(&[chunk.sums[0] as u32, 7]);
    };
    let mut server = Server::new(job, Mode::Switch, Retransmission::default(), None, apply, 0);
    let sum = |chunk: u32, again: bool, worker: u8| {
        let scale_only = chunk == 0;
        let repr = Repr {
            kind: Kind::Sum,
            flags: Flags::NONE
                .with(Flags::AGAIN, again)
                .with(Flags::SCALE_ONLY, scale_only)
                .with(Flags::VERSION, chunk & 1 != 0),
            job: 1,
            chunk,
            slot: 0,
            worker: u16::from(worker),
            transmission: 0,
            contributors: 3,
            scale: if scale_only { 0 } else { 140 },
            next_scale: if scale_only { 140 } else { 0 },
            count: if scale_only { 0 } else { 2 },
        };
        let mut bytes = vec![0; repr.buffer_len()];
        let mut packet = Packet::new_unchecked(&mut bytes[..]);
        repr.emit(&mut packet);
        packet.write_i32([41, 42]);
        bytes
    };
    let mut buffer = Vec::new();
    assert_eq!(
        server.handle_packet(0, Mark::None, &sum(1, false, 0)),
        server::ServerFrame::Malformed,
        "too early"
    );
    assert_eq!(
        server.handle_packet(0, Mark::None, &sum(0, false, 1)),
        server::ServerFrame::Applied
    );
    assert_eq!(server.poll_transmit(0, &mut buffer), Some(Destination::All));
    // The first sum was lost, or is late: the repetition serves as well.
    assert_eq!(
        server.handle_packet(0, Mark::None, &sum(1, true, 1)),
        server::ServerFrame::Applied
    );
    assert_eq!(server.poll_transmit(0, &mut buffer), Some(Destination::All));
    assert_eq!(
        server.handle_packet(0, Mark::None, &sum(1, false, 0)),
        server::ServerFrame::Duplicate
    );
    assert_eq!(server.poll_transmit(0, &mut buffer), None);
    assert_eq!(
        server.handle_packet(0, Mark::None, &sum(1, true, 1)),
        server::ServerFrame::Again
    );
    assert_eq!(
        server.poll_transmit(0, &mut buffer),
        Some(Destination::Worker(WorkerId(1)))
    );
    let packet = Packet::new_checked(&buffer[..]).unwrap();
    assert_eq!(packet.values_u32().collect::<Vec<_>>(), [41, 7]);
    assert_eq!((packet.worker(), packet.transmission()), (1, 1));
    assert!(packet.flags().contains(Flags::AGAIN));
    // Two frames added nothing.
    let repeated = 2 * sum(1, true, 1).len() as u64;
    assert_eq!(server.counters().repeated_bytes, repeated);
    // Unlimited requests do not consume unlimited memory.
    for _ in 0..1000 {
        server.handle_packet(0, Mark::None, &sum(1, true, 0));
    }
    let queued = std::iter::from_fn(|| server.poll_transmit(0, &mut buffer)).count();
    assert!(queued < 20 && server.counters().dropped == 1000 - queued as u64);
    drop(server);
    assert_eq!(applied, 1);
}

#[test]
fn many_chunks_of_full_size_cost_little() {
    // The size of the demo in one direction: a window of 64, 196 chunks of 256 values.
    let mut config = Config::new(15, 8, Mode::Switch);
    config.job.values_per_packet = 256;
    config.job.values_per_round = 50_000;
    config.job.window = 64;
    config.rounds = 1;
    let report = run_reference(&config);
    assert_eq!(report.workers[0].counters.sent.retransmitted_frames, 0);
    assert_eq!(report.workers[0].counters.sent.frames, 196 + 2 * 64);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Random bytes, and valid frames with a few bytes changed: nothing panics, and only an answer counts as one.
    #[test]
    fn garbage_stops_neither_worker_nor_server(
        noise in prop::collection::vec(any::<u8>(), 0..64),
        flips in prop::collection::vec((0..28usize, any::<u8>()), 0..4),
        which in 0..4usize,
        first in any::<u32>(),
    ) {
        let job = Job::new(JobConfig { first_chunk: ChunkId(first), ..config(2, 2, 8) }).unwrap();
        let mut worker = Worker::new(job, WorkerId(0), Retransmission::default());
        let apply = |_: server::Completed<'_>, _: &mut [u32]| {};
        let mut direct = Server::new(job, Mode::Direct, Retransmission::default(), Some(1), apply, 0);
        let mut summed = Server::new(job, Mode::Switch, Retransmission::default(), Some(1), apply, 0);
        worker.start_round(&[1.0; 8]).unwrap();
        let mut frames = transmit(&mut worker, 0);
        frames.extend(frames.clone().iter().map(|frame| answer(frame)));
        let mut frame = frames[which].clone();
        for (at, value) in &flips {
            if let Some(byte) = frame.get_mut(*at) {
                *byte ^= value;
            }
        }
        for bytes in [&noise, &frame] {
            worker.handle_packet(0, Mark::None, bytes);
            direct.handle_packet(0, Mark::None, bytes);
            summed.handle_packet(0, Mark::None, bytes);
        }
        let mut buffer = Vec::new();
        while direct.poll_transmit(0, &mut buffer).is_some() {}
        while summed.poll_transmit(0, &mut buffer).is_some() {}
        transmit(&mut worker, 0);
        for now_ns in [worker.poll_timeout(), direct.poll_timeout()].into_iter().flatten() {
            worker.handle_timeout(now_ns);
            direct.handle_timeout(now_ns);
            summed.handle_timeout(now_ns);
        }
    }
}
