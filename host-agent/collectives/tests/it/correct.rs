//! Every algorithm, for every number of ranks, with sizes that divide and sizes that do not: no race, and in several orders
//! the correct result with each contribution once.

use collectives::algorithms::{Levels, numbering};
use collectives::execute::{check, execute, execute_without};
use collectives::graph::{Graph, steps};
use collectives::{Algorithm, Collective, Hierarchy, Options, Schedule, build, offered, verify};
use proptest::prelude::*;
use test_support::{cases, runs_all};

const SEEDS: u64 = 3;

fn prove(collective: &Collective, algorithm: Algorithm, options: &Options) -> Schedule {
    let case = || format!("{collective:?} {algorithm} {options:?}");
    let schedule =
        build(collective, algorithm, options).unwrap_or_else(|e| panic!("{}: {e}", case()));
    verify(&schedule).unwrap_or_else(|e| panic!("{}: {e}", case()));
    assert_in_order(&schedule);
    for seed in 0..SEEDS {
        let ran = execute(&schedule, seed).and_then(|contents| check(collective, &contents));
        ran.unwrap_or_else(|e| panic!("{} seed {seed}: {e}", case()));
    }
    schedule
}

/// A rank that performs one step after another, and blocks at each wait, finishes, too.
fn assert_in_order(schedule: &Schedule) {
    let mut strict = schedule.clone();
    for program in &mut strict.programs {
        for (place, step) in program.steps.iter_mut().enumerate() {
            step.after = place.checked_sub(1).into_iter().collect();
        }
    }
    let graph = Graph::new(&strict).unwrap();
    graph.order(&strict).unwrap();
}

/// Lengths: zero, fewer than ranks, a multiple of the ranks, and not a multiple.
fn lens(ranks: usize) -> [usize; 4] {
    [0, ranks.div_ceil(2), 2 * ranks, 2 * ranks + 3]
}

/// Uneven shards, some of them empty.
fn ragged(ranks: usize) -> Vec<usize> {
    (0..ranks).map(|rank| (rank * 5 + 3) % 4).collect()
}

fn collectives(ranks: usize) -> Vec<Collective> {
    let mut all = vec![Collective::Barrier { ranks }];
    for len in lens(ranks) {
        all.push(Collective::AllReduce { ranks, len });
        all.push(Collective::reduce_scatter(ranks, len));
        for root in [0, ranks / 2, ranks - 1] {
            all.push(Collective::Broadcast { ranks, root, len });
            all.push(Collective::Reduce { ranks, root, len });
        }
    }
    for shards in [vec![0; ranks], vec![2; ranks], ragged(ranks)] {
        all.push(Collective::ReduceScatter {
            shards: shards.clone(),
        });
        all.push(Collective::AllGather { shards });
    }
    all.push(Collective::all_to_all(ranks, 1));
    let counts = (0..ranks).map(|from| (0..ranks).map(|to| (from * 7 + to * 3) % 4).collect());
    all.push(Collective::AllToAll {
        counts: counts.collect(),
    });
    all
}

#[test]
fn flat_algorithms_of_1_to_17_ranks() {
    let mut cases = 0;
    let most = if runs_all() { 17 } else { 9 };
    for ranks in 1..=most {
        for collective in collectives(ranks) {
            for algorithm in offered(&collective, false) {
                for tile in [None, Some(2)] {
                    let options = Options {
                        tile,
                        ..Options::default()
                    };
                    prove(&collective, algorithm, &options);
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 175 * most, "{cases} cases");
}

#[test]
fn hierarchies_of_equal_and_unequal_nodes() {
    let hierarchies = [
        vec![vec![0]],
        vec![vec![0, 1, 2]],
        vec![vec![0], vec![1], vec![2]],
        vec![vec![0, 1], vec![2, 3]],
        vec![vec![0, 3], vec![1, 2], vec![5, 4]],
        vec![
            vec![0, 1, 2, 3],
            vec![4, 5, 6, 7],
            vec![8, 9, 10, 11],
            vec![12, 13, 14, 15],
        ],
        vec![vec![0], vec![1, 2, 3, 4, 5]],
        vec![vec![6, 1, 2], vec![3, 4, 5, 0, 7], vec![8, 9]],
        vec![
            vec![0, 1, 2, 3, 4, 5, 6, 7, 8],
            vec![9, 10],
            vec![11, 12, 13, 14, 15, 16],
        ],
    ];
    for nodes in hierarchies {
        let smallest = nodes.iter().map(Vec::len).min().unwrap();
        for rails in [1, smallest] {
            let hierarchy = Hierarchy::with_rails(nodes.clone(), rails).unwrap();
            let ranks = hierarchy.ranks();
            for tile in [None, Some(2)] {
                let options = Options {
                    tile,
                    hierarchy: Some(hierarchy.clone()),
                    ..Options::default()
                };
                for collective in collectives(ranks) {
                    for algorithm in offered(&collective, true) {
                        if matches!(algorithm, Algorithm::Hierarchical(Levels { .. })) {
                            prove(&collective, algorithm, &options);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn another_numbering_is_right_too() {
    let supernodes = [vec![0, 1, 2, 3], vec![4, 5, 6], vec![7, 8]];
    let options = Options {
        order: Some(numbering::round_robin(&supernodes)),
        ..Options::default()
    };
    for collective in collectives(9) {
        for algorithm in offered(&collective, false) {
            prove(&collective, algorithm, &options);
        }
    }
}

#[test]
fn no_rank_leaves_a_barrier_before_all_have_come() {
    for ranks in 2..=17 {
        let collective = Collective::Barrier { ranks };
        let schedule = build(&collective, Algorithm::Dissemination, &Options::default()).unwrap();
        for absent in 0..ranks {
            let contents = execute_without(&schedule, 7, absent).unwrap();
            assert_eq!(contents.finished, vec![false; ranks], "without {absent}");
        }
    }
}

#[test]
fn every_run_combines_in_the_same_order() {
    // The order of additions must match, not only the summands, so that a floating-point sum has the same bits.
    let collective = Collective::AllReduce { ranks: 6, len: 13 };
    for algorithm in offered(&collective, false) {
        let schedule = build(&collective, algorithm, &Options::default()).unwrap();
        let runs: Vec<_> = (0..10)
            .map(|seed| execute(&schedule, seed).unwrap())
            .collect();
        assert!(
            runs.windows(2).all(|pair| pair[0] == pair[1]),
            "{algorithm}"
        );
    }
}

#[test]
fn a_tile_waits_for_no_other() {
    // In a chain of three, the middle rank forwards the first tile before the second has arrived.
    let collective = Collective::Broadcast {
        ranks: 3,
        root: 0,
        len: 4,
    };
    let options = Options {
        tile: Some(2),
        ..Options::default()
    };
    let schedule = build(&collective, Algorithm::Chain, &options).unwrap();
    let middle: Vec<Vec<usize>> = steps(&schedule)
        .filter(|(at, step)| at.rank == 1 && matches!(step.action, collectives::Action::Put { .. }))
        .map(|(_, step)| step.after.clone())
        .collect();
    assert_eq!(middle, [vec![0], vec![1]], "each put after one wait");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(200)))]

    #[test]
    fn drawn_sizes_and_tiles_have_no_race(
        shards in prop::collection::vec(0_usize..6, 1..13),
        tile in prop::option::of(1_usize..5),
        cuts in prop::collection::vec(any::<bool>(), 13),
        rotation in 0_usize..13,
        seed in any::<u64>(),
    ) {
        let ranks = shards.len();
        let order: Vec<usize> = (0..ranks).map(|place| (place + rotation) % ranks).collect();
        let mut nodes: Vec<Vec<usize>> = vec![vec![]];
        for rank in &order {
            if cuts[*rank] && !nodes[nodes.len() - 1].is_empty() {
                nodes.push(vec![]);
            }
            nodes.last_mut().unwrap().push(*rank);
        }
        let options = Options {
            tile,
            hierarchy: Some(Hierarchy::new(nodes).unwrap()),
            order: Some(order),
            ..Options::default()
        };
        let counts = shards.iter().map(|a| shards.iter().map(|b| (a * 3 + b) % 4).collect());
        let (len, root) = (shards.iter().sum(), rotation % ranks);
        let all = [
            Collective::AllToAll { counts: counts.collect() },
            Collective::AllGather { shards: shards.clone() },
            Collective::ReduceScatter { shards },
            Collective::AllReduce { ranks, len },
            Collective::Broadcast { ranks, root, len },
            Collective::Reduce { ranks, root, len },
        ];
        for collective in all {
            for algorithm in offered(&collective, true) {
                let schedule = build(&collective, algorithm, &options).unwrap();
                let verified = verify(&schedule);
                prop_assert!(verified.is_ok(), "{algorithm} {collective:?}: {verified:?}");
                let contents = execute(&schedule, seed);
                let ran = contents.and_then(|contents| check(&collective, &contents));
                prop_assert!(ran.is_ok(), "{algorithm} {collective:?}: {ran:?}");
            }
        }
    }
}
