//! Ranks in network namespaces of their own, on a bridge: collectives of all kinds, and what becomes of those whose peer is gone.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use collectives::{Collective, Options, ReduceOp, Schedule, build, offered};
use rdma::group::{Group, GroupError, GroupOptions, RunError};
use rdma::{Way, open};
use test_support::namespace::{beyond, in_namespace, ip};

const RANKS: usize = 4;
const ELEMENT: usize = 4;
const CAPACITY: usize = 1 << 20;

/// Lays a bridge.
fn bridge() {
    ip("link add hub type bridge stp_state 0 forward_delay 0 mcast_snooping 0");
    ip("link set hub mtu 4200 up");
}

/// Does a rank's work in a namespace of its own, on the bridge.
fn rank<T: Send + 'static>(
    number: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    ip(&format!(
        "link add port{number} mtu 4200 type veth peer name nic{number} mtu 4200"
    ));
    ip(&format!("link set port{number} master hub up"));
    beyond(&format!("nic{number}"), move || {
        ip(&format!(
            "address add 10.9.0.{}/24 dev nic{number}",
            number + 1
        ));
        ip(&format!("link set nic{number} up"));
        work()
    })
}

fn options(rank: usize, patience: Duration) -> GroupOptions {
    GroupOptions {
        rank,
        ranks: RANKS,
        capacity: CAPACITY,
        queue_pairs: 1,
        window: 128,
        mtu: None,
        patience,
    }
}

fn value(rank: usize, element: usize) -> u32 {
    (rank as u32 + 1).wrapping_mul(0x9E37_79B9) ^ (element as u32).wrapping_mul(0x85EB_CA6B)
}

fn bytes(values: impl Iterator<Item = u32>) -> Vec<u8> {
    values.flat_map(u32::to_le_bytes).collect()
}

fn sum(target: &mut [u8], source: &[u8]) {
    let (targets, _) = target.as_chunks_mut::<ELEMENT>();
    let (sources, _) = source.as_chunks::<ELEMENT>();
    for (target, source) in targets.iter_mut().zip(sources) {
        let sum = u32::from_le_bytes(*target).wrapping_add(u32::from_le_bytes(*source));
        *target = sum.to_le_bytes();
    }
}

/// All algorithms of all collectives, with uneven and empty parts.
fn schedules() -> Vec<(Collective, Schedule)> {
    let ranks = RANKS;
    let counts = (0..ranks).map(|from| {
        (0..ranks)
            .map(|to| (from * 997 + to * 311) % 2000)
            .collect()
    });
    let (len, root) = (10_007, 2);
    let collectives = [
        Collective::AllReduce { ranks, len },
        Collective::reduce_scatter(ranks, len),
        Collective::AllGather {
            shards: vec![5000, 0, 8191, 1],
        },
        Collective::AllToAll {
            counts: counts.collect(),
        },
        Collective::Broadcast { ranks, root, len },
        Collective::Reduce { ranks, root, len },
    ];
    let options = Options {
        element_bytes: ELEMENT,
        op: ReduceOp::Sum,
        ..Options::default()
    };
    let all = collectives.into_iter().flat_map(|collective| {
        let algorithms = offered(&collective, false).into_iter();
        let built: Vec<_> = algorithms
            .map(|algorithm| {
                (
                    collective.clone(),
                    build(&collective, algorithm, &options).unwrap(),
                )
            })
            .collect();
        built
    });
    all.collect()
}

fn carry_out(folder: &Path, number: usize) -> usize {
    let mut provider = open(Some(&format!("nic{number}")), Way::Rings, number as u64).unwrap();
    let group = Group::meet(
        &mut *provider,
        folder,
        options(number, Duration::from_secs(20)),
    );
    let mut group = group.unwrap();
    let mut done = 0;
    for (collective, schedule) in schedules() {
        let input = collective.input_len(number);
        let bytes_in = bytes((0..input).map(|element| value(number, element)));
        group.put(0, &bytes_in);
        group.barrier().unwrap();
        group.run(&schedule, &sum).unwrap();
        let expected = collective
            .expected(number)
            .into_iter()
            .map(|contributions| {
                let values = contributions
                    .iter()
                    .map(|(from, element)| value(*from, *element));
                values.fold(0, u32::wrapping_add)
            });
        let expected = bytes(expected);
        let mut output = vec![0; expected.len()];
        group.copy_out(bytes_in.len(), &mut output);
        assert!(output == expected, "{} at rank {number}", collective.name());
        // Nobody writes over what another still compares.
        group.barrier().unwrap();
        done += 1;
    }
    group.linger(Duration::from_millis(200)).unwrap();
    done
}

#[test]
fn all_collectives_have_right_results() {
    if !in_namespace("all_collectives_have_right_results") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    bridge();
    let ranks: Vec<_> = (0..RANKS)
        .map(|number| {
            let folder = folder.path().to_owned();
            rank(number, move || carry_out(&folder, number))
        })
        .collect();
    for rank in ranks {
        assert_eq!(rank.join().unwrap(), schedules().len());
    }
}

#[test]
fn ranks_say_whom_they_wait_for_when_one_is_gone() {
    if !in_namespace("ranks_say_whom_they_wait_for_when_one_is_gone") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    bridge();
    let patience = Duration::from_secs(3);
    let passed = std::sync::Arc::new(std::sync::Barrier::new(RANKS));
    let ranks: Vec<_> = (0..RANKS)
        .map(|number| {
            let folder = folder.path().to_owned();
            let passed = std::sync::Arc::clone(&passed);
            rank(number, move || {
                let mut provider =
                    open(Some(&format!("nic{number}")), Way::Rings, number as u64).unwrap();
                let group = Group::meet(&mut *provider, &folder, options(number, patience));
                let mut group = group.unwrap();
                group.barrier().unwrap();
                group.linger(Duration::from_millis(300)).unwrap();
                passed.wait();
                if number == 3 {
                    // It goes without a word.
                    return None;
                }
                let (_, schedule) = schedules().swap_remove(0);
                let began = Instant::now();
                let error = group.run(&schedule, &sum).unwrap_err();
                Some((error, began.elapsed()))
            })
        })
        .collect();
    let mut names_it = false;
    for (number, rank) in ranks.into_iter().enumerate() {
        let Some((error, took)) = rank.join().unwrap() else {
            continue;
        };
        println!("rank {number} after {took:?}: {error}");
        assert!(took < 3 * patience, "{took:?}");
        let open = match &error {
            RunError::Stuck { open, .. } | RunError::Failed { open, .. } => open,
            other => panic!("{other}"),
        };
        assert_eq!(open.rank, number);
        let unheard = open.unheard.iter().map(|(peer, _)| *peer);
        let mut peers = unheard.chain(open.unanswered.iter().map(|(peer, ..)| *peer));
        names_it |= peers.any(|peer| peer == 3);
    }
    assert!(names_it, "nobody waits for rank 3");
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    if !in_namespace("a_rank_that_does_not_come_is_named") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    bridge();
    let path = folder.path().to_owned();
    let alone = rank(0, move || {
        let mut provider = open(Some("nic0"), Way::Rings, 1).unwrap();
        let patience = Duration::from_millis(200);
        let refused = Group::meet(&mut *provider, &path, options(0, patience));
        refused.err().map(|error| error.to_string())
    });
    let error = alone.join().unwrap().expect("no group");
    assert!(error.contains("[1, 2, 3]"), "{error}");
    let mut provider = None;
    let past = GroupOptions {
        rank: 4,
        ..options(0, Duration::ZERO)
    };
    ip("address add 10.9.0.9/24 dev hub");
    let opened = provider.insert(open(Some("hub"), Way::Udp, 1).unwrap());
    let refused = Group::meet(&mut **opened, folder.path(), past);
    assert!(matches!(
        refused.err(),
        Some(GroupError::Rank { rank: 4, ranks: 4 })
    ));
}
