//! Bytes and steps compared with textbooks (Thakur, Rabenseifner and Gropp, IJHPCA 2005; Chan et al., 2007).

use collectives::algorithms::numbering;
use collectives::graph::Graph;
use collectives::{Algorithm, Collective, Hierarchy, Options, Schedule, build};

const BYTES: usize = 4;

fn made(collective: &Collective, algorithm: Algorithm) -> Schedule {
    build(collective, algorithm, &Options::default()).unwrap()
}

fn rounds(schedule: &Schedule) -> usize {
    Graph::new(schedule).unwrap().rounds(schedule).unwrap()
}

fn log2_up(n: usize) -> usize {
    n.next_power_of_two().ilog2() as usize
}

/// Asserts the steps, the bytes that each rank sends, and the messages of each rank.
fn assert_costs(schedule: &Schedule, steps: usize, bytes: usize, messages: usize) {
    let n = schedule.ranks();
    assert_eq!(rounds(schedule), steps, "steps of {n}");
    assert_eq!(schedule.sent_bytes(), vec![bytes as u64; n], "bytes of {n}");
    assert_eq!(schedule.messages(), vec![messages; n], "messages of {n}");
}

#[test]
fn rings_and_direct_algorithms() {
    for n in 2..=17 {
        let shard = 6;
        let share = (n - 1) * shard * BYTES;
        let gather = Collective::all_gather(n, shard);
        assert_costs(&made(&gather, Algorithm::Ring), n - 1, share, n - 1);
        assert_costs(&made(&gather, Algorithm::Direct), 1, share, n - 1);
        let scatter = Collective::reduce_scatter(n, n * shard);
        assert_costs(&made(&scatter, Algorithm::Ring), n - 1, share, n - 1);
        assert_costs(&made(&scatter, Algorithm::Direct), 1, share, n - 1);
        let len = n * shard;
        let reduce = Collective::AllReduce { ranks: n, len };
        let (twice, messages) = (2 * share, 2 * (n - 1));
        assert_costs(
            &made(&reduce, Algorithm::Ring),
            2 * (n - 1),
            twice,
            messages,
        );
        assert_costs(&made(&reduce, Algorithm::Direct), 2, twice, messages);
        let exchange = Collective::all_to_all(n, shard);
        assert_costs(&made(&exchange, Algorithm::Direct), 1, share, n - 1);
        assert_costs(&made(&exchange, Algorithm::Pairwise), n - 1, share, n - 1);
    }
}

#[test]
fn halving_and_doubling_of_powers_of_two() {
    for n in [2, 4, 8, 16] {
        let (shard, log2) = (6, log2_up(n));
        let share = (n - 1) * shard * BYTES;
        let gather = Collective::all_gather(n, shard);
        assert_costs(
            &made(&gather, Algorithm::RecursiveDoubling),
            log2,
            share,
            log2,
        );
        let scatter = Collective::reduce_scatter(n, n * shard);
        assert_costs(&made(&scatter, Algorithm::Halving), log2, share, log2);
        let len = n * shard;
        let reduce = Collective::AllReduce { ranks: n, len };
        let made = made(&reduce, Algorithm::HalvingDoubling);
        assert_costs(&made, 2 * log2, 2 * share, 2 * log2);
    }
}

#[test]
fn halving_and_doubling_of_other_numbers() {
    for n in [3_usize, 5, 6, 7, 9, 12, 15, 17] {
        let core = 1_usize << n.ilog2();
        let (len, log2) = (core * 6, core.ilog2() as usize);
        let schedule = made(
            &Collective::AllReduce { ranks: n, len },
            Algorithm::HalvingDoubling,
        );
        assert_eq!(rounds(&schedule), 2 * log2 + 2, "steps of {n}");
        // The ranks beyond the core send all their values once; so do their partners, in addition to the core's traffic.
        let (all, share) = (len * BYTES, 2 * (core - 1) * 6 * BYTES);
        for (rank, sent) in schedule.sent_bytes().into_iter().enumerate() {
            let expected = match rank {
                extra if extra >= core => all,
                partner if partner + core < n => share + all,
                _ => share,
            };
            assert_eq!(sent, expected as u64, "rank {rank} of {n}");
        }
    }
}

/// Asserts the steps of trees whose size is not a power of two: a rank that sends two messages in different steps may send
/// both at once here, so the chain of messages is shorter.
fn assert_steps(schedule: &Schedule, steps: usize) {
    let n = schedule.ranks();
    let mut received = vec![0; n];
    for (_, to, _) in schedule.puts() {
        received[to] += 1;
    }
    let most = schedule.messages().into_iter().chain(received).max();
    assert!(most <= Some(steps), "one message a step, of {n}");
    assert!(rounds(schedule) <= steps, "steps of {n}");
    if n.is_power_of_two() {
        assert_eq!(rounds(schedule), steps, "steps of {n}");
    }
}

#[test]
fn trees_and_chains() {
    for n in 1..=17 {
        let (len, root) = (6, n / 3);
        let all = ((n - 1) * len * BYTES) as u64;
        let down = Collective::Broadcast {
            ranks: n,
            root,
            len,
        };
        let up = Collective::Reduce {
            ranks: n,
            root,
            len,
        };
        for collective in [&down, &up] {
            for (algorithm, steps) in [(Algorithm::Tree, log2_up(n)), (Algorithm::Chain, n - 1)] {
                let schedule = made(collective, algorithm);
                assert_steps(&schedule, steps);
                assert_eq!(schedule.sent_bytes().iter().sum::<u64>(), all);
                assert_eq!(schedule.messages().iter().sum::<usize>(), n - 1);
            }
        }
        let both = made(&Collective::AllReduce { ranks: n, len }, Algorithm::Tree);
        assert_steps(&both, 2 * log2_up(n));
        assert_eq!(both.sent_bytes().iter().sum::<u64>(), 2 * all);
        let barrier = made(&Collective::Barrier { ranks: n }, Algorithm::Dissemination);
        assert_costs(&barrier, log2_up(n), 0, log2_up(n));
    }
}

/// swCaffe: with p ranks in supernodes of q, the ranks of one supernode send n(1 − q/p) bytes each to others while halving;
/// with round-robin numbering, n(1/q − 1/p).
#[test]
fn round_robin_numbering_sends_less_across_supernodes() {
    for (p, q) in [(8, 2), (8, 4), (16, 4), (16, 2), (64, 16)] {
        let supernodes = Hierarchy::blocks(p / q, q).unwrap().nodes;
        let len = p * q * 3;
        let n = len * BYTES;
        let scatter = Collective::reduce_scatter(p, len);
        let crossing = |order: Vec<usize>| {
            let options = Options {
                order: Some(order),
                ..Options::default()
            };
            let schedule = build(&scatter, Algorithm::Halving, &options).unwrap();
            schedule.crossing_bytes(&supernodes)
        };
        let blocks = (n - n * q / p) * q;
        let turns = (n / q - n / p) * q;
        let all = |bytes: usize| vec![bytes as u64; p / q];
        assert_eq!(
            crossing(numbering::blocks(&supernodes)),
            all(blocks),
            "{p}, {q}"
        );
        assert_eq!(
            crossing(numbering::round_robin(&supernodes)),
            all(turns),
            "{p}, {q}"
        );
    }
}

/// All-gather: each remote shard enters a node once. All-to-all: no traffic can be omitted.
#[test]
fn a_remote_shard_enters_a_node_once() {
    let (count, g, shard) = (3, 4, 5);
    let nodes = Hierarchy::blocks(count, g).unwrap();
    let options = Options {
        hierarchy: Some(nodes.clone()),
        ..Options::default()
    };
    let gather = Collective::all_gather(count * g, shard);
    let exchange = Collective::all_to_all(count * g, shard);
    for algorithm in collectives::offered(&gather, true) {
        let schedule = build(&gather, algorithm, &options).unwrap();
        let least = ((count - 1) * g * shard * BYTES) as u64;
        let times = match algorithm {
            Algorithm::Direct => g as u64,
            Algorithm::Hierarchical(_) => 1,
            _ => continue,
        };
        assert_eq!(
            schedule.crossing_bytes(&nodes.nodes),
            vec![least * times; count]
        );
    }
    for algorithm in collectives::offered(&exchange, true) {
        let schedule = build(&exchange, algorithm, &options).unwrap();
        let all = (g * g * (count - 1) * shard * BYTES) as u64;
        assert_eq!(schedule.crossing_bytes(&nodes.nodes), vec![all; count]);
    }
    // The rails' messages across nodes contain the data of all members.
    let levels = collectives::algorithms::Levels {
        inside: collectives::algorithms::Flat::Direct,
        across: collectives::algorithms::Flat::Direct,
    };
    let railed = build(&exchange, Algorithm::Hierarchical(levels), &options).unwrap();
    let across = railed.puts().filter(|(from, to, _)| from / g != to / g);
    assert_eq!(
        across.count(),
        count * g * (count - 1),
        "one to each member of each node"
    );
}

/// Maximum scratch of a rank, in vectors.
#[test]
fn scratch_is_bounded() {
    for n in 1..=17 {
        let len = 12 * n;
        for (algorithm, vectors) in [
            (Algorithm::Ring, 1),
            (Algorithm::Direct, 1),
            (Algorithm::HalvingDoubling, 2),
            (Algorithm::Tree, log2_up(n)),
        ] {
            let schedule = made(&Collective::AllReduce { ranks: n, len }, algorithm);
            let scratch = schedule.programs.iter().map(|program| program.lens[2]);
            assert!(scratch.max() <= Some(vectors * len), "{algorithm} of {n}");
        }
    }
}
