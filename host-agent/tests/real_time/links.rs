//! Ranks whose links are full, down or removed, in the test's own user and network namespace.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{JOB, Switch, endpoint};
use aggregation::Destination;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Fallback, RankError, Setup, Values};
use aggregation::rto::Retransmission;
use cluster::ranks::{RankSlotSwitch, RankSwitch};
use host_agent::collective::{CollectiveError, Config, JobLock, Member, Pending, open_job};
use host_agent::frames::{Endpoint, Frames, Io, LinkFault, open_interface};
use test_support::namespace::{in_namespace, ip, veth};
use test_support::skip;

const RANKS: u16 = 2;
/// Time after which a silent rank is declared dead, and a link without frames is given up. The kernel may take a second of it
/// to notice that a link is up again.
const GONE_AFTER: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(20);

fn job(first_chunk: ChunkId) -> Job {
    let config = JobConfig {
        job: JobId(JOB),
        workers: RANKS,
        window: 64,
        values_per_packet: 256,
        values_per_round: 0,
        first_chunk,
    };
    Job::new(config).unwrap()
}

/// A switch with one link per rank: rank 0 is at `l0`, whose peer is `r0`.
fn switch() -> Switch {
    switch_of(RankSlotSwitch::new(job(ChunkId(0))))
}

fn switch_of(slots: impl RankSwitch + Send + 'static) -> Switch {
    for rank in 0..RANKS {
        veth(&format!("l{rank}"), &format!("r{rank}"));
    }
    let open_port = |rank| {
        open_interface(&format!("r{rank}"), Io::Rings)
            .unwrap()
            .frames
    };
    let ports: Vec<Box<dyn Frames>> = (0..RANKS).map(open_port).collect();
    Switch::start(ports, slots, None)
}

/// A rank of a job that begins at this chunk.
fn member(rank: u16, io: Io, first_chunk: ChunkId) -> Member {
    let setup = Setup {
        dead_after_ns: Some(GONE_AFTER.as_nanos() as u64),
        ..Setup::under_one_switch(job(first_chunk), WorkerId(rank), Retransmission::of_ranks())
    };
    let config = Config {
        setup,
        me: endpoint(rank),
        peers: (0..RANKS).map(endpoint).collect(),
    };
    let opened = open_interface(&format!("l{rank}"), io).unwrap();
    Member::start(config, opened.frames).unwrap()
}

fn members(io: Io) -> Vec<Member> {
    let setup = Setup::under_one_switch(job(ChunkId(0)), WorkerId(0), Retransmission::of_ranks());
    let mut frames = open_interface("l0", io).unwrap().frames;
    let first = open_job(&setup, endpoint(0), &mut frames).unwrap();
    (0..RANKS).map(|rank| member(rank, io, first)).collect()
}

fn give(members: &[Member], length: usize) -> Vec<Pending> {
    let given = |rank: usize| {
        Values::Integers(
            (0..length)
                .map(|at| at as i32 * (rank as i32 + 1))
                .collect(),
        )
    };
    let members = members.iter().enumerate();
    members
        .map(|(rank, member)| member.all_reduce(given(rank)).unwrap())
        .collect()
}

#[track_caller]
fn are_right(pending: Vec<Pending>, length: usize) {
    let sums = Values::Integers((0..length).map(|at| at as i32 * 3).collect());
    for pending in pending {
        assert_eq!(pending.wait(PATIENCE).unwrap().values, sums);
    }
}

fn unsent(member: &Member) -> u64 {
    member.observer().status().counters["weir_unsent_frames_total"]
}

/// Frames that a full queue refuses are lost as on any wire: they are counted and retransmitted, and cause no error.
#[test]
fn a_queue_that_is_full_costs_no_value() {
    let test = "a_queue_that_is_full_costs_no_value";
    if !in_namespace(test) {
        return;
    }
    let _switch = switch();
    let shape = "qdisc add dev l0 root tbf rate 40mbit burst 3kb limit 3kb";
    let shaped = Command::new("tc").args(shape.split(' ')).status();
    if !shaped.is_ok_and(|status| status.success()) {
        return skip(test, "needs tc and the queue tbf");
    }
    for io in [Io::Rings, Io::Pnet] {
        let members = members(io);
        are_right(give(&members, 200_000), 200_000);
        assert!(unsent(&members[0]) > 0, "{io}");
        assert_eq!(unsent(&members[1]), 0, "{io}");
    }
}

#[test]
fn a_link_that_is_down_for_long_is_named_and_for_a_moment_is_mended() {
    if !in_namespace("a_link_that_is_down_for_long_is_named_and_for_a_moment_is_mended") {
        return;
    }
    let _switch = switch();
    for (io, end, expected) in [
        (Io::Rings, "l1", LinkFault::Down("l1".into())),
        // The switch's end of the link.
        (Io::Pnet, "r1", LinkFault::NoCarrier("l1".into())),
    ] {
        let members = members(io);
        are_right(give(&members, 1000), 1000);
        let pending = give(&members, 2_000_000);
        ip(&format!("link set {end} down"));
        std::thread::sleep(GONE_AFTER / 15);
        ip(&format!("link set {end} up"));
        are_right(pending, 2_000_000);

        ip(&format!("link set {end} down"));
        let begun = Instant::now();
        let mut pending = give(&members, 1000).into_iter();
        let others = pending.next().unwrap().wait(PATIENCE).unwrap_err();
        let own = pending.next().unwrap().wait(PATIENCE).unwrap_err();
        assert!(begun.elapsed() < 5 * GONE_AFTER, "{:?}", begun.elapsed());
        assert!(
            matches!(&own, CollectiveError::Link(fault) if *fault == expected),
            "{io} {end}: {own}"
        );
        let gone = WorkerId(1);
        assert!(
            matches!(others, CollectiveError::Rank(RankError::Gone { rank, .. }) if rank == gone),
            "{io} {end}: {others}"
        );
        // Later operations fail at once, with the same error.
        let again = members[1].all_reduce(Values::Integers(vec![1]));
        let again = again.and_then(|pending| pending.wait(PATIENCE));
        assert_eq!(again.unwrap_err().to_string(), own.to_string());
        drop(members);
        ip(&format!("link set {end} up"));
    }
}

#[test]
fn a_removed_link_is_reported_at_once() {
    if !in_namespace("a_removed_link_is_reported_at_once") {
        return;
    }
    for (io, anew) in [(Io::Rings, false), (Io::Pnet, false), (Io::Rings, true)] {
        let switch = switch();
        let members = members(io);
        are_right(give(&members, 1000), 1000);
        let mut pending = give(&members[1..], 1000).into_iter();
        ip("link del l1");
        if anew {
            // An interface with the same name is another one.
            veth("l1", "r1");
        }
        let begun = Instant::now();
        let own = pending.next().unwrap().wait(PATIENCE).unwrap_err();
        assert!(begun.elapsed() < GONE_AFTER, "{:?}", begun.elapsed());
        let told = "the interface l1 no longer exists; this rank has left its job";
        assert_eq!(own.to_string(), told, "{io}");
        drop((members, switch));
        ip("link del l0");
        if anew {
            ip("link del l1");
        }
    }
}

/// Selects the frames that a switch drops, by the sending rank.
type Drops = fn(rank: u16, is_update: bool) -> bool;

/// A switch that guards its job from some moment on.
struct Guarded {
    slots: RankSlotSwitch,
    drops: Drops,
    is_on: Arc<AtomicBool>,
}

impl RankSwitch for Guarded {
    fn handle(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        frame: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    ) {
        let kind = wire::Packet::new_checked(frame).unwrap().kind();
        let is_dropped = (self.drops)(from.0, kind == wire::Kind::Update);
        if !(is_dropped && self.is_on.load(Ordering::Relaxed)) {
            self.slots.handle(now_ns, from, to, frame, out);
        }
    }
}

/// A rank whose frames the switch drops is not declared dead, and a rank that left is.
#[test]
fn a_rank_whose_frames_are_dropped_is_reported_alive() {
    const DEAD_AFTER: Duration = Duration::from_millis(400);
    if !in_namespace("a_rank_whose_frames_are_dropped_is_reported_alive") {
        return;
    }
    // All ranks are in this namespace, so their direct questions take the loopback interface.
    ip("link set lo up");
    let peers: Vec<Endpoint> = (0..RANKS).map(endpoint).collect();
    for peer in &peers {
        ip(&format!("addr add {}/32 dev lo", peer.ip));
    }
    let lives = "is alive, but no frames of this job pass between it and this rank";
    let names = "if the job's lease has expired, or if the rank uses another port than the one admitted: `weir doctor";
    let cases: [(&str, Drops, bool, [&[&str]; 2]); 4] = [
        (
            "lapsed",
            |_, _| true,
            false,
            [&["rank 1 ", lives, names], &["rank 0 ", lives, names]],
        ),
        (
            "a port of no rank",
            |rank, _| rank == 1,
            false,
            [&["rank 1 ", lives, names], &["rank 0 ", lives, names]],
        ),
        // Frames between ranks pass, so the ranks sum themselves.
        ("exchanged", |_, is_update| is_update, false, [&[], &[]]),
        (
            "gone",
            |_, _| false,
            true,
            [
                &[
                    "rank 1 is unreachable: it does not answer",
                    "if its process is alive, a switch drops",
                    names,
                ],
                &[],
            ],
        ),
    ];
    for (case, drops, leaves, expected) in cases {
        let is_on = Arc::new(AtomicBool::new(false));
        let switch = switch_of(Guarded {
            slots: RankSlotSwitch::new(job(ChunkId(0))),
            drops,
            is_on: Arc::clone(&is_on),
        });
        let ranks = (0..RANKS).map(|rank| {
            let retransmission = Retransmission {
                initial_ns: 20_000_000,
                ceiling_ns: 40_000_000,
                ..Retransmission::of_ranks()
            };
            let setup = Setup {
                dead_after_ns: Some(DEAD_AFTER.as_nanos() as u64),
                fallback: Some(Fallback::IF_SILENT),
                ..Setup::under_one_switch(job(ChunkId(0)), WorkerId(rank), retransmission)
            };
            let config = Config {
                setup,
                me: endpoint(rank),
                peers: peers.clone(),
            };
            let interface = format!("l{rank}");
            let frames = open_interface(&interface, Io::Rings).unwrap().frames;
            Member::start_at(
                config,
                frames,
                Some(JobLock::take(&interface, JOB).unwrap()),
            )
            .unwrap()
        });
        let mut members: Vec<Member> = ranks.collect();
        are_right(give(&members, 1000), 1000);
        is_on.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        let pending = match leaves {
            true => {
                let pending = give(&members[..1], 1000);
                members.truncate(1);
                pending
            }
            false => give(&members, 1000),
        };
        for (pending, expected) in pending.into_iter().zip(expected) {
            let told = pending.wait(PATIENCE).map_err(|error| error.to_string());
            match (&told, expected) {
                (Ok(sums), []) => assert_eq!(
                    sums.values,
                    Values::Integers((0..1000).map(|at| at * 3).collect())
                ),
                (Err(told), [_, ..]) => assert!(
                    expected.iter().all(|part| told.contains(part)),
                    "{case}: {told}"
                ),
                _ => panic!("{case}: {told:?}"),
            }
        }
        // If the switch drops all values, the sums are those of the hosts.
        for (member, expected) in members.iter().zip(expected) {
            let fallbacks = member.observer().fallbacks();
            assert!(fallbacks > 0 || !expected.is_empty(), "{case}");
        }
        assert!(
            begun.elapsed() < 10 * DEAD_AFTER,
            "{case}: {:?}",
            begun.elapsed()
        );
        drop((members, switch));
        for rank in 0..RANKS {
            ip(&format!("link del l{rank}"));
        }
    }
}
