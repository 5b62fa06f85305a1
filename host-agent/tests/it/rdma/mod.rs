//! Sums by RDMA: ranks over `roce`'s endpoints, and a model of a switch that supports RoCEv2.

mod network;
mod threads;

use crate::support::roce::address;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId, WorkerSet};
use aggregation::rank::{Fallback, Sums, Values};
use cluster::Faults;
use cluster::drawn::pick;
use cluster::ranks::{AllReduceConfig, Racks, RankSlotSwitch, run};
use cluster::rdma::{LinkFrame, roce_frame};
use host_agent::collective::CollectiveError;
use network::{Network, Options, retransmission};
use roce::Psn;
use roce::packet::{Ecn, Route};
use wire::rdma::{Immediate, Write};

const MS: u64 = 1_000_000;
const OPERATIONS: usize = 4;

fn config(seed: u64, workers: u16) -> JobConfig {
    let draw = |what: u64, options: u64| pick(seed, 7, what, options);
    JobConfig {
        job: JobId(draw(1, 1 << 16) as u16),
        workers,
        window: 4 << draw(2, 4),
        values_per_packet: 256,
        values_per_round: 0,
        first_chunk: ChunkId(match draw(3, 3) {
            0 => 0,
            1 => u32::MAX - draw(4, 40) as u32,
            _ => draw(4, 1 << 32) as u32,
        }),
    }
}

/// Numbers of very different magnitudes, by seed: long and short operations, floats and integers.
fn input(seed: u64, operation: usize, rank: WorkerId) -> Values {
    let draw = |what: u64, options: u64| pick(seed, operation as u64 + 100, what, options);
    let length = 1 + draw(1, 1 << (3 + draw(2, 13))) as usize;
    let word = |index: usize| draw(index as u64 + 10 + (u64::from(rank.0) << 32), 1 << 32) as u32;
    if draw(3, 4) == 0 {
        return Values::Integers((0..length).map(|index| word(index) as i32).collect());
    }
    let unit = 2_f32.powi(draw(4, 80) as i32 - 40);
    let floats = (0..length).map(|index| (word(index) as f32 / 2_f32.powi(31) - 1.0) * unit);
    Values::Floats(floats.collect())
}

/// Sums of the same ranks over UDP, on a network without losses.
fn by_udp(seed: u64, job: JobConfig, racks: Option<Racks>) -> Vec<Sums> {
    let config = AllReduceConfig {
        racks,
        ..AllReduceConfig::new(seed, job, Faults::NONE)
    };
    let checked = Job::new(job).unwrap();
    let mut switch = match racks {
        Some(racks) => RankSlotSwitch::tree(checked, racks),
        None => RankSlotSwitch::new(checked),
    };
    let inputs = |operation, rank| input(seed, operation, rank);
    let report = run(&config, &mut switch, OPERATIONS, &inputs).unwrap();
    let sums = report.sums[0].iter().cloned();
    sums.map(Result::unwrap).collect()
}

fn network(seed: u64, job: JobConfig, faults: Faults) -> Network {
    let job = Job::new(job).unwrap();
    network_of(seed, job, faults, RankSlotSwitch::new(job))
}

fn network_of(seed: u64, job: Job, faults: Faults, slots: RankSlotSwitch) -> Network {
    let options = Options {
        seed,
        job,
        racks: None,
        faults,
        fallback: None,
    };
    Network::new(&options, slots)
}

fn submit(network: &mut Network, seed: u64) {
    for operation in 0..OPERATIONS {
        for rank in 0..network.nodes.len() {
            network.submit(rank, input(seed, operation, WorkerId(rank as u16)));
        }
    }
}

fn have(network: &Network, expected: &[Sums], seed: u64) {
    for (rank, node) in network.nodes.iter().enumerate() {
        assert!(
            node.failed.is_none(),
            "seed {seed}, rank {rank}: {:?}",
            node.failed
        );
        // Bit by bit, for all ranks.
        for (operation, (have, expected)) in node.done.iter().zip(expected).enumerate() {
            let bounds = [have.error_bound, expected.error_bound];
            assert!(
                have == expected,
                "seed {seed}, rank {rank}, operation {operation}: other sums, {bounds:?}"
            );
        }
        let stands = (network.now_ns, node.rank.under_way(), node.rank.counters());
        assert_eq!(
            node.done.len(),
            expected.len(),
            "seed {seed}, rank {rank}: {stands:?}"
        );
    }
}

fn drawn_faults(seed: u64) -> Faults {
    let share = |what: u64, percent: u64| pick(seed, 8, what, percent + 1) as f64 / 100.0;
    Faults {
        loss: share(1, 15),
        duplicate: share(2, 15),
        reorder: share(3, 30),
        reorder_ns: 10_000 << pick(seed, 8, 4, 7),
    }
}

#[test]
fn sums_are_those_of_a_run_by_udp_without_a_loss() {
    let job = config(1, 4);
    let mut network = network(1, job, Faults::NONE);
    submit(&mut network, 1);
    network.run_to_end(OPERATIONS);
    have(&network, &by_udp(1, job, None), 1);
    let counters = network.switch.counters;
    assert_eq!(
        (counters.dropped, counters.by_udp, counters.registered),
        (0, 0, 4)
    );
    let sent: u64 = network
        .nodes
        .iter()
        .map(|node| node.rank.counters().sent.frames)
        .sum();
    assert_eq!(counters.updates, sent, "all went by RDMA");
    assert!(counters.sums >= 4 * 4, "{counters:?}");
}

/// Ranks of one switch over a faulty network; returns the numbers of lost frames and of repeated registrations.
fn misbehaves(seed: u64) -> [u64; 2] {
    let job = config(seed, 2 + (seed % 5) as u16);
    let mut network = network(seed, job, drawn_faults(seed));
    submit(&mut network, seed);
    network.run_to_end(OPERATIONS);
    have(&network, &by_udp(seed, job, None), seed);
    assert_eq!(network.switch.counters.dropped, 0, "seed {seed}");
    [network.lost, network.switch.counters.registered_again]
}

#[test]
fn loss_repeats_and_reordering_change_no_bit() {
    let seen = (0..150).map(misbehaves);
    let [lost, again] = seen.fold([0, 0], |all, one| [all[0] + one[0], all[1] + one[1]]);
    assert!(lost > 1000, "{lost} frames were lost");
    assert!(again > 10, "{again} registrations came again");
}

#[test]
#[ignore = "minutes: cargo test -p host-agent --test it rdma -- --ignored"]
fn loss_repeats_and_reordering_change_no_bit_in_many_runs() {
    let mut lost = 0;
    for seed in 150..10_000 {
        lost += misbehaves(seed)[0];
        restarts(seed);
        if seed % 5 == 0 {
            on_a_tree(seed);
        }
    }
    println!("{lost} frames were lost");
}

/// The rank receives marks as over UDP. RoCEv2 answers them with CNPs, which the switch ignores.
#[test]
fn marks_make_windows_small() {
    let job = JobConfig {
        window: 64,
        ..config(2, 3)
    };
    for marks in [false, true] {
        let mut network = network(2, job, Faults::NONE);
        network.switch.marks = marks;
        for rank in 0..3 {
            network.submit(rank, Values::Integers(vec![1; 200_000]));
        }
        network.run_to_end(1);
        for node in &network.nodes {
            assert_eq!(node.done[0].values, Values::Integers(vec![3; 200_000]));
            let seen = node.rank.counters().congestion;
            assert_eq!(
                (seen.marks > 500, seen.least_window < 16),
                (marks, marks),
                "{seen:?}"
            );
        }
        assert_eq!(network.switch.counters.dropped > 0, marks);
    }
}

fn on_a_tree(seed: u64) {
    let job = config(seed, 5);
    let checked = Job::new(job).unwrap();
    let racks = Racks { size: 2 };
    let options = Options {
        seed,
        job: checked,
        racks: Some(racks),
        faults: drawn_faults(seed),
        fallback: None,
    };
    let mut network = Network::new(&options, RankSlotSwitch::tree(checked, racks));
    submit(&mut network, seed);
    network.run_to_end(OPERATIONS);
    have(&network, &by_udp(seed, job, Some(racks)), seed);
}

#[test]
fn a_tree_sums_as_well() {
    (0..20).for_each(on_a_tree);
}

/// Restarts the switch in the middle; returns the number of ranks that registered again.
fn restarts(seed: u64) -> u64 {
    let job = JobConfig {
        // After a restart, the switch would consider chunks beyond half of all numbers as older.
        first_chunk: ChunkId(0),
        ..config(seed, 4)
    };
    let (checked, at_ns) = (Job::new(job).unwrap(), 200_000 + pick(seed, 9, 1, 400_000));
    let slots = RankSlotSwitch::new(checked).restarting(at_ns, 0);
    let faults = match seed % 2 {
        0 => Faults::NONE,
        _ => drawn_faults(seed),
    };
    let mut network = network_of(seed, checked, faults, slots);
    network.restart_after(at_ns);
    submit(&mut network, seed);
    network.run_to_end(OPERATIONS);
    have(&network, &by_udp(seed, job, None), seed);
    network.switch.counters.registered.saturating_sub(4)
}

#[test]
fn ranks_register_again_after_a_restart() {
    let anew: u64 = (0..30).map(restarts).sum();
    assert!(anew > 30, "{anew} ranks registered anew");
}

#[test]
fn a_switch_that_sums_for_others_is_refused_by_name() {
    let mut network = network(3, config(3, 3), Faults::NONE);
    network.switch.claims = Some(WorkerSet(0b11));
    submit(&mut network, 3);
    network.run_to_end(OPERATIONS);
    for node in &network.nodes {
        let error = node.failed.as_ref().unwrap();
        assert!(
            matches!(error, CollectiveError::RegisteredAmong { .. }),
            "{error}"
        );
        let told =
            "the switch does not sum for the 3 ranks of this job, but for worker 0, worker 1:";
        assert!(error.to_string().starts_with(told), "{error}");
    }
}

#[test]
fn a_switch_that_takes_no_registration_is_named() {
    let mut network = network(4, config(4, 2), Faults::NONE);
    network.switch.is_deaf = true;
    submit(&mut network, 4);
    network.run_to_end(OPERATIONS);
    let initial_ms = retransmission().initial_ns * u64::from(retransmission().max_timeouts) / MS;
    for node in &network.nodes {
        let error = node.failed.as_ref().unwrap();
        let CollectiveError::Unregistered {
            tries, waited_ms, ..
        } = error
        else {
            panic!("{error}");
        };
        assert!(
            *tries > 50 && (initial_ms..initial_ms + 5).contains(waited_ms),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .contains("check that it sums RoCEv2 for this job"),
            "{error}"
        );
    }
}

/// Without a switch, ranks sum themselves, and keep sending registrations.
#[test]
fn without_a_switch_ranks_sum_themselves() {
    let job = config(5, 3);
    let checked = Job::new(job).unwrap();
    let options = Options {
        seed: 5,
        job: checked,
        racks: None,
        faults: Faults::NONE,
        fallback: Some(Fallback {
            retry_ns: 5 * MS,
            ..Fallback::IF_SILENT
        }),
    };
    let silent = RankSlotSwitch::new(checked).silent(0..u64::MAX, None);
    let mut network = Network::new(&options, silent);
    network.switch.is_deaf = true;
    submit(&mut network, 5);
    network.run_to_end(OPERATIONS);
    have(&network, &by_udp(5, job, None), 5);
    let counters = network.nodes.iter().map(|node| node.rank.counters());
    assert!(counters.clone().all(|counters| counters.fallbacks == 1));
    assert!(counters.map(|counters| counters.by_hosts).sum::<u64>() > 0);
}

/// A SUM as the switch would send it, with a PSN that is `ahead` of the next, from an attacker who has seen one.
fn forged(network: &Network, ahead: u32, change: impl FnOnce(&mut Write, &mut Route)) -> Vec<u8> {
    let (target, next) = network.switch.registered(WorkerId(0)).unwrap();
    let psn = Psn::new(next.bits() + ahead);
    let mut write = Write {
        qpn: target.qpn,
        rkey: target.rkey,
        address: target.base,
        len: 1024,
        immediate: Immediate::from_bytes([0; 4]),
    };
    let mut route = Route {
        from: network.switch.address(),
        to: address(0),
        source_port: 0xC123,
        dscp: 0,
        ecn: Ecn::Capable,
    };
    change(&mut write, &mut route);
    roce_frame(&route, &write, psn, &[0xEE; 1024])
}

/// Ranks that have registered, and have no operation.
fn at_rest() -> Network {
    let mut network = network(6, config(6, 2), Faults::NONE);
    network.run(|network| {
        network
            .nodes
            .iter()
            .all(|node| node.carrier.is_registered())
    });
    network
}

#[test]
fn a_strangers_write_has_no_effect_and_uses_no_receive() {
    let mut network = at_rest();
    let places = 2 * 1040 * u64::from(config(6, 2).window);
    let other_ip = |_: &mut Write, route: &mut Route| route.from.ip = [10, 9, 9, 9].into();
    let wrong: [(&str, Vec<u8>); 6] = [
        ("stranger", forged(&network, 0, other_ip)),
        ("unknown_qp", forged(&network, 0, |write, _| write.qpn ^= 1)),
        (
            "resp_remote_access_errors",
            forged(&network, 0, |write, _| write.rkey ^= 1),
        ),
        (
            "resp_remote_access_errors",
            forged(&network, 1, |write, _| write.address -= 17),
        ),
        (
            "resp_remote_access_errors",
            forged(&network, 2, |write, _| write.address += places - 1023),
        ),
        ("icrc_errors", {
            let mut frame = forged(&network, 3, |_, _| {});
            frame[80] ^= 1;
            frame
        }),
    ];
    let before = network.nodes[0].results();
    for (counter, frame) in wrong {
        let counted = network.nodes[0].counted(counter);
        network.at_rank(1, 0, LinkFrame::Roce(frame));
        network.run(|network| network.nodes[0].has_looked());
        assert_eq!(network.nodes[0].counted(counter), counted + 1, "{counter}");
    }
    assert_eq!(
        network.nodes[0].counted("rdma_recvs"),
        1,
        "the registration's answer"
    );
    assert!(network.nodes[0].results() == before);
    sums_are_right(&mut network);
}

fn sums_are_right(network: &mut Network) {
    submit(network, 6);
    network.run_to_end(OPERATIONS);
    have(network, &by_udp(6, config(6, 2), None), 6);
}

/// More results at once than posted receives: the excess is lost, and recovered.
#[test]
fn results_for_which_no_receive_is_posted_are_lost() {
    let mut network = at_rest();
    let receives = 2 * config(6, 2).window as usize + 64;
    let more = 40;
    for number in 0..receives + more {
        // A SUM of a chunk that no rank is at.
        let far = |write: &mut Write, _: &mut Route| {
            write.immediate = Immediate::from_bytes([0, 0, 0x40, 0]);
        };
        let frame = forged(&network, number as u32, far);
        network.at_rank(1, 0, LinkFrame::Roce(frame));
    }
    network.run(|network| network.nodes[0].has_looked());
    let counted = |name: &str| network.nodes[0].counted(name);
    assert_eq!(counted("rdma_recvs"), (receives + 1) as u64);
    assert_eq!(counted("uc_dropped_pkts"), more as u64);
    // The switch's next packets now count as late, by their PSNs: it seems silent, and the rank registers another queue pair.
    let registered = network.switch.counters.registered;
    sums_are_right(&mut network);
    assert_eq!(network.switch.counters.registered, registered + 1);
}
