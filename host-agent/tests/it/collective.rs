//! Ranks in threads, over cables to a switch with the reference slots.

use std::time::{Duration, Instant};

use crate::support::{JOB, Switch, endpoint, job, next};
use aggregation::Destination;
use aggregation::job::TreePosition;
use aggregation::job::{ChunkId, WorkerId};
use aggregation::rank::{Carry, Lateness, Reduction, Setup, Sums, Values, f16};
use aggregation::rto::Retransmission;
use cluster::ranks::{RankSlotSwitch, RankSwitch};
use host_agent::collective::{CollectiveError, Config, Member, open_job};
use host_agent::frames::{Cable, Endpoint, Frames, WhenFull, asking, build, open};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use wire::{Packet, Repr};

/// Members at a switch that loses every `loses`th frame that it sends.
fn network(workers: u16, loses: Option<u64>) -> (Switch, Vec<Member>) {
    network_until(workers, loses, None)
}

/// Members at such a switch, with a deadline, a quorum and a treatment of late values if `until` is given.
fn network_until(
    workers: u16,
    loses: Option<u64>,
    until: Option<(Duration, u16, Carry)>,
) -> (Switch, Vec<Member>) {
    let job = job(workers);
    let mut ports = Vec::new();
    let mut members = Vec::new();
    let retransmission = Retransmission {
        floor_ns: 20_000_000,
        initial_ns: 50_000_000,
        ..Retransmission::of_ranks()
    };
    let peers: Vec<Endpoint> = (0..workers).map(endpoint).collect();
    for rank in 0..workers {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (a, b) = socketpair(AddressFamily::Unix, SockType::Datagram, None, flags).unwrap();
        // A switch loses frames for a full link. If it blocked, it would wait for ranks that wait for it.
        fcntl(&a, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        ports.push(Cable::new(a, "cable", WhenFull::Wait));
        let config = Config {
            setup: Setup {
                dead_after_ns: Some(1_000_000_000),
                lateness: until.map(|(after, quorum, carry)| {
                    let place = TreePosition::under_one_switch(&job, WorkerId(rank));
                    let after_ns = after.as_nanos() as u64;
                    Lateness::new(&job, place, after_ns, quorum, carry).unwrap()
                }),
                ..Setup::under_one_switch(job, WorkerId(rank), retransmission)
            },
            me: endpoint(rank),
            peers: peers.clone(),
        };
        members.push(Member::start(config, Cable::new(b, "cable", WhenFull::Wait)).unwrap());
    }
    let slots = match until {
        None => RankSlotSwitch::new(job),
        Some(_) => RankSlotSwitch::new(job).with_deadlines(),
    };
    (Switch::start(ports, slots, loses), members)
}

fn values(rank: usize, operation: usize, length: usize) -> Values {
    let value = |index: usize| (index as f32 - 300.0) * (rank + 1) as f32 / (operation + 1) as f32;
    Values::Floats((0..length).map(value).collect())
}

#[test]
fn sums_are_the_same_at_all_ranks() {
    for loses in [None, Some(7)] {
        let (_switch, members) = network(3, loses);
        let lengths = [1, 700, 100_000, 5];
        let pending: Vec<Vec<_>> = members
            .iter()
            .enumerate()
            .map(|(rank, member)| {
                let all = lengths.iter().enumerate();
                let all = all.map(|(operation, length)| {
                    member.all_reduce(values(rank, operation, *length)).unwrap()
                });
                all.collect()
            })
            .collect();
        let sums: Vec<Vec<Sums>> = pending
            .into_iter()
            .map(|pending| {
                let sums = pending
                    .into_iter()
                    .map(|sum| sum.wait(Duration::from_secs(60)).unwrap());
                sums.collect()
            })
            .collect();
        assert!(sums.iter().all(|own| *own == sums[0]));
        for (operation, length) in lengths.iter().enumerate() {
            let bound = sums[0][operation].error_bound;
            let Values::Floats(sums) = &sums[0][operation].values else {
                panic!("other values");
            };
            assert_eq!(sums.len(), *length);
            for (index, sum) in sums.iter().enumerate() {
                let exact = (index as f64 - 300.0) * 6.0 / (operation + 1) as f64;
                // The values are rounded to binary32 before they are summed.
                let own = 3.0 * f64::from(f32::EPSILON) * exact.abs();
                assert!(
                    (f64::from(*sum) - exact).abs() <= bound + own,
                    "{sum} {exact} {bound}"
                );
                assert!(bound < 0.1, "{bound}");
            }
        }
        let asked: u64 = members
            .iter()
            .map(|member| member.counters().0.probes)
            .sum();
        // On a slow machine, ranks may send probes without a loss, too.
        assert!(asked > 0 || loses.is_none(), "{asked}");
    }
}

/// The missing rank is named, and the wait ends.
#[test]
fn a_rank_that_does_not_come_is_named() {
    let (_switch, members) = network(3, None);
    let first = members[0].all_reduce(values(0, 0, 10)).unwrap();
    let second = members[2].all_reduce(values(2, 0, 10)).unwrap();
    let error = first.wait(Duration::from_millis(400)).unwrap_err();
    assert!(matches!(error, CollectiveError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("waits for worker 1"), "{error}");
    // The rank joins late: the other wait continues.
    let third = members[1].all_reduce(values(1, 0, 10)).unwrap();
    assert!(second.wait(Duration::from_secs(10)).is_ok());
    assert!(third.wait(Duration::from_secs(10)).is_ok());
}

/// All ranks get the error about a value of one of them that is not finite, and the next operation has its sums.
#[test]
fn a_value_that_is_not_finite_fails_one_operation_at_all_ranks() {
    for length in [3, 40_000] {
        let (_switch, members) = network(3, None);
        let halves = |value: f32| Values::Float16s(vec![f16::from_f32(value); length]);
        let average = Reduction {
            average: true,
            ..Reduction::default()
        };
        let pending: Vec<_> = members
            .iter()
            .enumerate()
            .map(|(rank, member)| {
                let broken = if rank == 1 { f32::INFINITY } else { 1.0 };
                let broken = member.all_reduce(halves(broken)).unwrap();
                (
                    broken,
                    member.all_reduce_as(halves(60_000.0), average).unwrap(),
                )
            })
            .collect();
        for (broken, next) in pending {
            let error = broken.wait(Duration::from_secs(60)).unwrap_err();
            assert!(
                matches!(error, CollectiveError::NonFinite(at) if at.operation == 0 && at.index == 0),
                "{error}"
            );
            let sums = next.wait(Duration::from_secs(60)).unwrap();
            assert_eq!(sums.values, halves(60_000.0));
            assert!(sums.error_bound <= 32.0, "{}", sums.error_bound);
        }
        for member in &members {
            // A caller that has its sums finds them counted.
            let (counters, _) = member.counters();
            assert_eq!((counters.operations, counters.non_finite), (1, 1));
        }
    }
}

/// A late rank is left out, of all chunks alike; its values join the next sum.
#[test]
fn a_late_rank_is_not_waited_for() {
    let until = (Duration::from_millis(20), 2, Carry::NextRound);
    let (_switch, members) = network_until(3, None, Some(until));
    let reduction = Reduction {
        key: Some(7),
        ..Reduction::default()
    };
    let give = |rank: usize, value: i32| {
        let values = Values::Integers(vec![value; 30_000]);
        members[rank].all_reduce_as(values, reduction).unwrap()
    };
    let wait = Duration::from_secs(60);
    let early: Vec<_> = [0, 1].map(|rank| give(rank, 1)).into_iter().collect();
    let sums: Vec<Sums> = early
        .into_iter()
        .map(|sum| sum.wait(wait).unwrap())
        .collect();
    // The rank joins when the others have their sums.
    let late = give(2, 100).wait(wait).unwrap();
    for sums in sums.iter().chain([&late]) {
        assert_eq!(sums.values, Values::Integers(vec![2; 30_000]));
        assert_eq!(sums.partial, late.partial);
        assert_eq!(sums.partial.len(), 30_000_usize.div_ceil(256));
    }
    let counters = members[2].counters().0;
    assert_eq!(counters.late_chunks, late.partial.len() as u64);
    assert_eq!((counters.dropped_chunks, counters.carried), (0, 0));
    let next: Vec<_> = [(2, 100), (0, 1), (1, 1)]
        .map(|(rank, value)| give(rank, value))
        .into();
    for sums in next {
        let sums = sums.wait(wait).unwrap();
        // On a slow machine, the others may have been late for some chunks.
        if sums.partial.is_empty() {
            assert_eq!(sums.values, Values::Integers(vec![202; 30_000]));
        }
    }
    assert_eq!(members[2].counters().0.carried, 1);
}

/// An observer sees a rank's counters and missing ranks, also after the rank has given up or was dropped.
#[test]
fn a_rank_reports_its_unfinished_chunk() {
    let (_switch, members) = network(3, None);
    let observer = members[0].observer();
    let idle = observer.status();
    assert_eq!(
        (idle.job, idle.rank, idle.child),
        (3, Some(0), Some((0, 3)))
    );
    assert_eq!((&idle.waits, &idle.failed), (&None, &None));
    let first = members[0].all_reduce(values(0, 0, 10)).unwrap();
    let second = members[2].all_reduce(values(2, 0, 10)).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let waits = loop {
        match observer.status().waits {
            Some(waits) if !waits.misses.is_empty() => break waits,
            // The switch is probed after a timeout.
            waits => assert!(Instant::now() < until, "{waits:?}"),
        }
        std::thread::yield_now();
    };
    // Rank 0 waits only for rank 1 once rank 2's values have arrived.
    assert!(
        waits.misses.contains(&1) && !waits.misses.contains(&0),
        "{waits:?}"
    );
    assert_eq!((waits.chunk, waits.slot), (0, 0));
    assert!(waits.since_ms > 1.0, "{waits:?}");
    let third = members[1].all_reduce(values(1, 0, 10)).unwrap();
    for pending in [first, second, third] {
        pending.wait(Duration::from_secs(10)).unwrap();
    }
    let done = observer.status();
    assert_eq!(done.waits, None);
    assert_eq!(done.counters["weir_operations_total"], 1);
    let sent = done.counters["weir_sent_frames_total"];
    assert!(sent > done.counters["weir_probes_total"] && done.counters["weir_probes_total"] > 0);
    // A whole frame has 42 bytes of outer headers; a probe has 24 bytes behind them.
    assert!(done.counters["weir_sent_bytes_total"] >= 66 * sent);
    assert!(done.counters["weir_received_frames_total"] > 0);

    // Rank 1 leaves in the middle: after a second of silence the others fail, and continue to show the reason.
    let mut members = members;
    let waiting = members[0].all_reduce(values(0, 1, 10)).unwrap();
    members.remove(1);
    assert!(waiting.wait(Duration::from_secs(20)).is_err());
    let failed = observer.status();
    assert!(
        failed
            .failed
            .as_ref()
            .is_some_and(|why| why.contains("rank 1 is unreachable")),
        "{failed:?}"
    );
    assert_eq!(failed.waits, None);
    drop(members);
    assert_eq!(observer.status().failed, failed.failed);
}

/// The ranks of a job are unknown before it begins: a switch answers with the header of the probe, and no other sender is
/// trusted.
#[test]
fn opening_a_job_trusts_only_the_switch() {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (switch, rank) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
    let (me, stranger) = (endpoint(0), endpoint(7));
    let job = job(4);
    let answers = std::thread::spawn(move || {
        let (mut port, mut slots) = (
            Cable::new(switch, "cable", WhenFull::Wait),
            RankSlotSwitch::new(job),
        );
        let (mut frame, mut forged) = (Vec::new(), 0);
        // Until the cable is unplugged.
        while let Ok(came) = next(&mut port, Duration::from_secs(60)) {
            let asked = open(&came.unwrap(), asking(JOB, me)).unwrap().to_vec();
            let mut out = Vec::new();
            slots.handle(
                0,
                WorkerId(0),
                Destination::Worker(WorkerId(0)),
                &asked,
                &mut out,
            );
            for (_, payload) in out {
                // As if the cell were far ahead.
                let mut other = payload.clone();
                let mut repr = Repr::parse(&Packet::new_checked(&payload[..]).unwrap());
                (repr.scale, repr.contributors) = (255, u64::from(u32::MAX - 100_000));
                repr.emit(&mut Packet::new_unchecked(&mut other[..]));
                for (from, payload) in [(stranger, other), (me, payload)] {
                    build(&mut frame, from, me, &payload);
                    let _ = port.send(&frame);
                }
                forged += 1;
            }
        }
        forged
    });
    let retransmission = Retransmission::of_ranks();
    let setup = Setup::under_one_switch(job, WorkerId(0), retransmission);
    let mut frames = Cable::new(rank, "cable", WhenFull::Wait);
    let first = open_job(&setup, me, &mut frames).unwrap();
    drop(frames);
    assert!(answers.join().unwrap() >= 128);
    assert_eq!(first, ChunkId(0));
}
