//! Ranks over RDMA in threads, over cables and in real time: a member's own thread, from the opening of the job on.

use std::time::Duration;

use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Setup, Sums, Values};
use aggregation::{Destination, Retransmission};
use cluster::ranks::{RankSlotSwitch, RankSwitch};
use host_agent::collective::{CollectiveError, Config, Member, Rdma, open_job_by};
use host_agent::frames::{Cable, Endpoint, WhenFull};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use wire::{Flags, Kind, Packet, Repr};

use super::network::provider;
use crate::support::roce::Switch;
use crate::support::{JOB, endpoint};

const RANKS: u16 = 3;
const WAIT: Duration = Duration::from_secs(60);

fn job(first_chunk: ChunkId) -> Job {
    let config = JobConfig {
        job: JobId(JOB),
        workers: RANKS,
        window: 16,
        values_per_packet: 256,
        values_per_round: 0,
        first_chunk,
    };
    Job::new(config).unwrap()
}

/// Two ends of a cable; the first loses frames if the other is full, as a switch does.
fn cable() -> [Cable; 2] {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (near, far) = socketpair(AddressFamily::Unix, SockType::Datagram, None, flags).unwrap();
    fcntl(&near, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    [near, far].map(|fd| Cable::new(fd, "cable", WhenFull::Wait))
}

fn setup(rank: u16, first: ChunkId) -> Setup {
    let retransmission = Retransmission {
        floor_ns: 20_000_000,
        initial_ns: 50_000_000,
        ..Retransmission::of_ranks()
    };
    Setup {
        dead_after_ns: Some(5_000_000_000),
        ..Setup::under_one_switch(job(first), WorkerId(rank), retransmission)
    }
}

/// Simulates an earlier use of the job, which has advanced a cell to chunk 1000.
fn leave_used(slots: &mut RankSlotSwitch) {
    let probe = Repr {
        kind: Kind::Update,
        flags: Flags::PROBE,
        job: JOB,
        chunk: 1000,
        slot: 1000 % 16,
        worker: 0,
        transmission: 0,
        contributors: 0,
        scale: 0,
        next_scale: 0,
        count: 0,
    };
    let mut frame = vec![0; probe.buffer_len()];
    probe.emit(&mut Packet::new_unchecked(&mut frame[..]));
    let (own, mut out) = (WorkerId(0), Vec::new());
    slots.handle(0, own, Destination::Worker(own), &frame, &mut out);
    assert_eq!(out.len(), 1);
}

fn values(rank: u16, length: usize) -> Values {
    let value = |index: usize| (index as f32 - 300.0) * f32::from(rank + 1);
    Values::Floats((0..length).map(value).collect())
}

#[test]
fn members_open_a_job_and_sum_by_rdma() {
    let mut slots = RankSlotSwitch::new(job(ChunkId(0)));
    leave_used(&mut slots);
    let cables: Vec<_> = (0..RANKS).map(|_| [cable(), cable()]).collect();
    let (ports, mut cables): (Vec<_>, Vec<_>) = cables
        .into_iter()
        .map(|[[roce, of_rank], [udp, udp_of_rank]]| ([roce, udp], [of_rank, udp_of_rank]))
        .unzip();
    let switch = Switch::start(job(ChunkId(0)), slots, ports, Some(7));
    // The opening may be done by another process, whose queue pair disappears with it.
    let [roce, udp] = &mut cables[0];
    let own = setup(0, ChunkId(0));
    let mut opening = Rdma::alone(provider(roce, 0, 77), udp, &own, endpoint(0)).unwrap();
    let first = open_job_by(&own, &mut opening).unwrap();
    drop(opening);
    assert!(first.0 > 1000, "{first}");
    let peers: Vec<Endpoint> = (0..RANKS).map(endpoint).collect();
    let members: Vec<Member> = (0..)
        .zip(cables)
        .map(|(rank, [roce, udp])| {
            let config = Config {
                setup: setup(rank, first),
                me: endpoint(rank),
                peers: peers.clone(),
            };
            let carrier = Rdma::new(provider(roce, rank, 1), udp, &config).unwrap();
            Member::start_by(config, Box::new(carrier), None).unwrap()
        })
        .collect();
    let lengths = [1, 700, 50_000, 5];
    let pending: Vec<_> = (0..)
        .zip(&members)
        .flat_map(|(rank, member)| {
            lengths.map(|length| (length, member.all_reduce(values(rank, length)).unwrap()))
        })
        .collect();
    let sums: Vec<(usize, Sums)> = pending
        .into_iter()
        .map(|(length, pending)| (length, pending.wait(WAIT).unwrap()))
        .collect();
    for (at, (length, sums_of)) in sums.iter().enumerate() {
        assert_eq!(
            *sums_of,
            sums[at % lengths.len()].1,
            "of all ranks the same"
        );
        let Values::Floats(values) = &sums_of.values else {
            panic!("other values");
        };
        assert_eq!(values.len(), *length);
        for (index, sum) in values.iter().enumerate() {
            let exact = (index as f64 - 300.0) * 6.0;
            let off = (f64::from(*sum) - exact).abs();
            assert!(
                off <= sums_of.error_bound + exact.abs() * 1e-6,
                "{sum} {exact}"
            );
        }
    }
    let (counters, _) = members[0].counters();
    assert_eq!(counters.operations, lengths.len() as u64);
    assert!(counters.sent.retransmitted_frames > 0, "nothing was lost");
    drop(members);
    let counters = switch.counters();
    assert_eq!((counters.dropped, counters.by_udp), (0, 0), "{counters:?}");
    assert!(counters.registered == u64::from(RANKS) + 1, "{counters:?}");
}

/// A switch that sums over UDP only: a rank that cannot fall back to others reports this, with its registration.
#[test]
fn a_switch_without_rdma_is_named() {
    let [_port, roce] = cable();
    let [_other_port, udp] = cable();
    let setup = Setup {
        retransmission: Retransmission {
            initial_ns: 5_000_000,
            floor_ns: 1_000_000,
            ..Retransmission::of_ranks()
        },
        ..setup(1, ChunkId(0))
    };
    let config = Config {
        setup,
        me: endpoint(1),
        peers: (0..RANKS).map(endpoint).collect(),
    };
    let carrier = Rdma::new(provider(roce, 1, 1), udp, &config).unwrap();
    let member = Member::start_by(config, Box::new(carrier), None).unwrap();
    let pending = member.all_reduce(values(1, 10));
    let error = pending.and_then(|sums| sums.wait(WAIT)).unwrap_err();
    assert!(
        matches!(error, CollectiveError::Unregistered { .. }),
        "{error}"
    );
    let told = error.to_string();
    // Job 3, worker 1.
    assert!(told.contains("at its 0x8000c1,"), "{told}");
}
