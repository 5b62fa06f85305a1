//! Ranks in separate network namespaces on a bridge: collectives of all kinds, and the errors of ranks whose peer has departed.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use collectives::{Algorithm, Collective, Hierarchy, Options, ReduceOp, Schedule, build, offered};
use rdma::group::{FolderStore, Group, GroupError, GroupOptions, LocalRank, RunError};
use rdma::{Way, open};
use test_support::namespace::{beyond, in_namespace, ip};

const RANKS: usize = 4;
const ELEMENT: usize = 4;
const CAPACITY: usize = 1 << 20;

/// Creates a bridge.
fn bridge() {
    ip("link add hub type bridge stp_state 0 forward_delay 0 mcast_snooping 0");
    ip("link set hub mtu 4200 up");
}

/// Runs `work` as a rank in its own namespace, connected to the bridge.
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

/// All algorithms of all collectives, including hierarchical ones, with uneven and empty parts.
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
        hierarchy: Hierarchy::with_rails(vec![vec![0, 1], vec![2, 3]], 1).ok(),
        ..Options::default()
    };
    let all = collectives.into_iter().flat_map(|collective| {
        let algorithms = offered(&collective, true).into_iter();
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

/// Executes all schedules for the ranks of one host, with two queue pairs to each peer, and returns their number.
fn carry_out(folder: &Path, number: usize, ranks: &[usize]) -> usize {
    let mut provider = open(Some(&format!("nic{number}")), Way::Rings, number as u64).unwrap();
    let places: Vec<LocalRank> = ranks
        .iter()
        .map(|rank| LocalRank {
            rank: *rank,
            nic: 0,
        })
        .collect();
    let options = GroupOptions {
        queue_pairs: 2,
        ..options(number, Duration::from_secs(20))
    };
    let group = Group::meet_as(
        vec![&mut *provider],
        &mut FolderStore::new(folder),
        &places,
        options,
    );
    let mut group = group.unwrap();
    let mut done = 0;
    for (collective, schedule) in schedules() {
        let input = |rank: usize| {
            let len = collective.input_len(rank);
            bytes((0..len).map(|element| value(rank, element)))
        };
        for (place, rank) in ranks.iter().enumerate() {
            group.put_of(place, 0, &input(*rank));
        }
        group.barrier().unwrap();
        group.run(&schedule, &sum).unwrap();
        for (place, rank) in ranks.iter().enumerate() {
            let expected = collective.expected(*rank).into_iter().map(|contributions| {
                let values = contributions
                    .iter()
                    .map(|(from, element)| value(*from, *element));
                values.fold(0, u32::wrapping_add)
            });
            let expected = bytes(expected);
            let mut output = vec![0; expected.len()];
            group.copy_out_of(place, input(*rank).len(), &mut output);
            assert!(output == expected, "{} at rank {rank}", collective.name());
        }
        // No rank may overwrite data that another still compares.
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
            rank(number, move || carry_out(&folder, number, &[number]))
        })
        .collect();
    for rank in ranks {
        assert_eq!(rank.join().unwrap(), schedules().len());
    }
}

#[test]
fn ranks_of_a_node_reach_each_other_through_memory() {
    if !in_namespace("ranks_of_a_node_reach_each_other_through_memory") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    bridge();
    // Unequal nodes, with rank numbers that are not consecutive.
    let nodes: [&[usize]; 2] = [&[0, 3, 1], &[2]];
    let threads: Vec<_> = nodes
        .into_iter()
        .enumerate()
        .map(|(number, ranks)| {
            let folder = folder.path().to_owned();
            rank(number, move || carry_out(&folder, number, ranks))
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), schedules().len());
    }
}

/// A node with two NICs and one rank at each, in its own namespace: node 0 has ranks 0 and 1, node 1 has ranks 2 and 3.
fn node<T: Send + 'static>(
    number: usize,
    work: impl FnOnce(&mut Group<'_>) -> T + Send + 'static,
    folder: &Path,
) -> JoinHandle<T> {
    let names = [0, 1].map(|nic| format!("nic{number}{nic}"));
    let mac = |number: usize, nic: usize| format!("02:00:00:00:0{number}:0{nic}");
    for (nic, name) in names.iter().enumerate() {
        let port = name.replace("nic", "port");
        ip(&format!(
            "link add {port} mtu 4200 type veth peer name {name} mtu 4200 address {}",
            mac(number, nic)
        ));
        ip(&format!("link set {port} master hub up"));
    }
    let (there, moved) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let (told, may_go) = (there.0, moved.1);
    let folder = folder.to_owned();
    let own = names.clone();
    let thread = beyond(&names[0], move || {
        told.send(nix::unistd::gettid()).unwrap();
        let () = may_go.recv().unwrap();
        for (nic, name) in own.iter().enumerate() {
            ip(&format!(
                "address add 10.9.{nic}.{}/16 dev {name}",
                number + 1
            ));
            ip(&format!("link set {name} up"));
            // Both NICs are in one network, and would answer ARP requests for each other.
            for other in [0, 1] {
                let (address, mac) = (
                    format!("10.9.{other}.{}", 2 - number),
                    mac(1 - number, other),
                );
                ip(&format!(
                    "neighbour add {address} lladdr {mac} dev {name} nud permanent"
                ));
            }
        }
        let mut nics = own
            .clone()
            .map(|name| open(Some(&name), Way::Rings, 7).unwrap());
        let [one, other] = &mut nics;
        let places = [0, 1].map(|nic| LocalRank {
            rank: 2 * number + nic,
            nic,
        });
        let mut group = Group::meet_as(
            vec![&mut **one, &mut **other],
            &mut FolderStore::new(&folder),
            &places,
            options(0, Duration::from_secs(20)),
        );
        work(group.as_mut().unwrap())
    });
    let process = there.1.recv().unwrap();
    ip(&format!("link set {} netns {process}", names[1]));
    moved.0.send(()).unwrap();
    thread
}

/// A rank that waits must serve all of its NICs; otherwise the peer's WRITEs would never be acknowledged.
#[test]
fn a_node_of_two_nics_answers_while_it_lingers() {
    if !in_namespace("a_node_of_two_nics_answers_while_it_lingers") {
        return;
    }
    bridge();
    let folder = tempfile::tempdir().unwrap();
    let broadcast = || {
        let collective = Collective::Broadcast {
            ranks: RANKS,
            root: 2,
            len: 1 << 16,
        };
        let options = Options {
            element_bytes: ELEMENT,
            ..Options::default()
        };
        build(&collective, Algorithm::Tree, &options).unwrap()
    };
    let (done, is_done) = std::sync::mpsc::channel();
    let lingers = node(
        0,
        move |group| {
            group.barrier().unwrap();
            let begin = Instant::now();
            while is_done.try_recv().is_err() {
                assert!(begin.elapsed() < Duration::from_secs(20), "no answers");
                group.linger(Duration::from_millis(50)).unwrap();
            }
            group.run(&broadcast(), &sum).unwrap();
            let mut output = vec![0; ELEMENT << 16];
            for place in [0, 1] {
                group.copy_out_of(place, 0, &mut output);
                assert!(output.iter().all(|byte| *byte == 5), "{place}");
            }
            group.linger(Duration::from_millis(200)).unwrap();
        },
        folder.path(),
    );
    let puts = node(
        1,
        move |group| {
            group.barrier().unwrap();
            group.put_of(0, 0, &vec![5; ELEMENT << 16]);
            group.run(&broadcast(), &sum).unwrap();
            done.send(()).unwrap();
            group.linger(Duration::from_millis(400)).unwrap();
        },
        folder.path(),
    );
    puts.join().unwrap();
    lingers.join().unwrap();
}

#[test]
fn different_numbers_of_queue_pairs_are_an_error() {
    if !in_namespace("different_numbers_of_queue_pairs_are_an_error") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    bridge();
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let folder = folder.path().to_owned();
            rank(number, move || {
                let nic = format!("nic{number}");
                let mut provider = open(Some(&nic), Way::Rings, number as u64).unwrap();
                let options = GroupOptions {
                    ranks: 2,
                    queue_pairs: 1 + number,
                    ..options(number, Duration::from_secs(5))
                };
                let refused = Group::meet(&mut *provider, &folder, options).err().unwrap();
                // The other rank may still send an ARP request to this one.
                std::thread::sleep(Duration::from_millis(300));
                refused
            })
        })
        .collect();
    for (number, thread) in threads.into_iter().enumerate() {
        match thread.join().unwrap() {
            GroupError::QueuePairs { peer, has, ours } => {
                assert_eq!([peer, has, ours], [1 - number, 2 - number, 1 + number]);
            }
            other => panic!("{other}"),
        }
    }
    let mut provider = open_at_hub();
    let nowhere = [LocalRank { rank: 0, nic: 1 }];
    let at = options(0, Duration::ZERO);
    let refused = Group::meet_as(
        vec![&mut *provider],
        &mut FolderStore::new(folder.path()),
        &nowhere,
        at,
    );
    assert!(matches!(refused.err(), Some(GroupError::Nics(1))));
}

/// A provider in the test's own namespace.
fn open_at_hub() -> Box<dyn rdma::Provider> {
    ip("address add 10.9.0.9/24 dev hub");
    open(Some("hub"), Way::Udp, 1).unwrap()
}

#[test]
fn ranks_name_the_dead_rank_that_they_wait_for() {
    if !in_namespace("ranks_name_the_dead_rank_that_they_wait_for") {
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
                    // The rank leaves without notice.
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
    let past = GroupOptions {
        rank: 4,
        ..options(0, Duration::ZERO)
    };
    let mut provider = open_at_hub();
    let refused = Group::meet(&mut *provider, folder.path(), past);
    assert!(matches!(
        refused.err(),
        Some(GroupError::Rank { rank: 4, ranks: 4 })
    ));
}
