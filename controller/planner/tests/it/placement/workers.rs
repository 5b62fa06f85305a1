//! Titan's objective, compared with arithmetic and with an enumeration of all placements.

use planner::placement::workers::{
    End, HostId, Machine, Pattern, RackLimit, WorkerConflict, WorkerProblem, WorkerRefusal, greedy,
    greedy_room, place,
};
use planner::{Host, Network, Switch};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn machine(name: &str, rack: usize, slots: usize, busy: bool) -> Machine {
    Machine {
        name: name.to_owned(),
        rack,
        slots,
        busy,
    }
}

/// Three racks. Rack A: a1 is busy and has 2 free slots, a2 is idle with 4. Rack B: b1 is busy with 1 free slot, b2 is idle
/// with 3. Rack C: c1 is idle with 6. Busy hosts have slots for three of six workers, so one idle host is needed.
fn example() -> WorkerProblem {
    WorkerProblem {
        machines: vec![
            machine("a1", 0, 2, true),
            machine("a2", 0, 4, false),
            machine("b1", 1, 1, true),
            machine("b2", 1, 3, false),
            machine("c1", 2, 6, false),
        ],
        racks: ["A", "B", "C"].map(str::to_owned).to_vec(),
        workers: 6,
        ..WorkerProblem::default()
    }
}

/// One idle host with slots for all is better than an idle host beside busy ones: c1 alone.
#[test]
fn one_idle_host_with_room_for_all_is_taken_alone() {
    let placed = place(&example()).unwrap();
    assert_eq!(placed.at, [4; 6]);
    assert_eq!((placed.idle, placed.hosts, placed.proven), (1, 1, true));
}

/// The server is in rack A, and four pairs may communicate between A and C: c1 has four workers, and a1, which is busy, the
/// other two. One idle host, two hosts. (a2 with a1 is as good.) With only three pairs for c1, a2 and a1 would be left.
#[test]
fn what_may_talk_between_racks_spreads_workers() {
    let mut problem = example();
    problem.pattern = Pattern::to_server(6, 0);
    problem.limits = vec![
        RackLimit {
            racks: (0, 2),
            pairs: 4,
        },
        RackLimit {
            racks: (1, 0),
            pairs: 1,
        },
    ];
    let placed = place(&problem).unwrap();
    assert_eq!((placed.idle, placed.hosts, placed.proven), (1, 2, true));
    problem.limits[0].pairs = 3;
    let placed = place(&problem).unwrap();
    assert_eq!(placed.hosts(), [(0, 2), (1, 4)]);
    assert!(placed.proven);
}

/// A ring of four workers over two racks with two slots each crosses twice in order, and four times otherwise: with two pairs
/// between the racks, ranks 0 and 1 are together, or 1 and 2.
#[test]
fn a_ring_is_laid_so_that_it_crosses_as_seldom_as_it_may() {
    let mut problem = WorkerProblem {
        machines: vec![machine("a", 0, 2, false), machine("b", 1, 2, false)],
        racks: ["A", "B"].map(str::to_owned).to_vec(),
        workers: 4,
        pattern: Pattern::ring(4),
        limits: vec![RackLimit {
            racks: (0, 1),
            pairs: 2,
        }],
        pins: vec![(0, 0), (3, 0)],
    };
    assert_eq!(place(&problem).unwrap().at, [0, 1, 1, 0]);
    problem.pins = vec![(0, 0), (2, 0)];
    let refused = place(&problem).unwrap_err();
    let WorkerRefusal::Conflict(conflict) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (&conflict.limits[..], &conflict.pins[..]),
        (&[0][..], &[0, 2][..])
    );
    let text = refused.describe(&problem);
    assert!(text.contains("2 between `A` and `B`"), "{text}");
}

#[test]
fn what_cannot_be_placed_says_what_binds() {
    let mut problem = example();
    problem.workers = 17;
    let refused = place(&problem).unwrap_err();
    assert_eq!(
        refused.describe(&problem),
        "17 workers, and the 5 hosts with a free slot have 16"
    );
    problem.workers = 6;
    problem.pins = vec![(0, 2), (3, 2), (4, 0)];
    assert_eq!(
        place(&problem),
        Err(WorkerRefusal::PinsBeyondSlots(2, vec![0, 3]))
    );
    problem.pins = vec![(0, 2), (0, 0)];
    assert_eq!(place(&problem), Err(WorkerRefusal::PinnedTwice(0, 2, 0)));
    problem.pins = vec![(6, 0)];
    assert_eq!(place(&problem), Err(WorkerRefusal::Unknown("worker", 6)));
    // Fourteen workers: A has slots for 6; fewer workers of B and C may communicate with A than are left. B's limit alone does
    // not matter: 6 + 6 + 2 are 14.
    problem.pins.clear();
    problem.workers = 14;
    problem.pattern = Pattern::to_server(14, 0);
    let limit = |other, pairs| RackLimit {
        racks: (0, other),
        pairs,
    };
    problem.limits = vec![limit(1, 2)];
    assert!(place(&problem).is_ok());
    problem.limits.push(limit(2, 5));
    let Err(WorkerRefusal::Conflict(conflict)) = place(&problem) else {
        panic!();
    };
    assert_eq!(
        *conflict,
        WorkerConflict {
            slots: vec![0, 1],
            limits: vec![0, 1],
            pins: vec![],
            least: true,
        }
    );
}

#[test]
fn hosts_of_a_network_stand_in_the_racks_of_their_switches() {
    let mut network = Network::new();
    let s = network.add_switch("s", Switch::default()).unwrap();
    let t = network.add_switch("t", Switch::default()).unwrap();
    let mut hosts = Vec::new();
    for (name, switch, slots, busy) in [
        ("a", s, Some(4), false),
        ("b", t, None, false),
        ("c", s, Some(2), true),
    ] {
        let gpus = 0;
        let host = network.add_host(name, Host { gpus, slots, busy }).unwrap();
        network.connect(host, switch, 1).unwrap();
        hosts.push(host);
    }
    let taken = BTreeMap::from([(hosts[0], 1)]);
    let problem = WorkerProblem::from_network(&network, 4, &hosts, &taken);
    assert_eq!(problem.racks, ["s", "t"]);
    let expected = [
        machine("a", 0, 3, true),
        machine("b", 1, 1, false),
        machine("c", 0, 2, true),
    ];
    assert_eq!(problem.machines, expected);
    assert_eq!(place(&problem).unwrap().hosts(), [(0, 3), (2, 1)]);
}

fn problems() -> impl Strategy<Value = WorkerProblem> {
    let one = (0_usize..3, 0_usize..4, any::<bool>());
    let machines = prop::collection::vec(one, 1..=4);
    let limits = prop::collection::vec((0_usize..3, 0_usize..3, 0_usize..4), 0..=3);
    let pins = prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4), 0..=2);
    (machines, 1_usize..=5, 0_u8..5, limits, pins).prop_map(
        |(machines, workers, pattern, limits, pins)| {
            let count = machines.len();
            WorkerProblem {
                machines: (machines.into_iter().enumerate())
                    .map(|(number, (rack, slots, busy))| {
                        machine(&format!("h{number}"), rack, slots, busy)
                    })
                    .collect(),
                racks: ["A", "B", "C"].map(str::to_owned).to_vec(),
                workers,
                pattern: match pattern {
                    0 => Pattern::default(),
                    1 => Pattern::to_server(workers, 1),
                    2 => Pattern::ring(workers),
                    3 => Pattern::halving_doubling(workers),
                    _ => Pattern {
                        // Two servers, and one worker that also communicates with another.
                        steps: vec![
                            [
                                Pattern::to_server(workers, 0).steps.remove(0),
                                Pattern::to_server(workers, 2).steps.remove(0),
                            ]
                            .concat(),
                            vec![(End::Worker(0), End::Worker(workers - 1))],
                        ],
                    },
                },
                limits: (limits.into_iter())
                    .map(|(a, b, pairs)| RackLimit {
                        racks: (a, b),
                        pairs,
                    })
                    .collect(),
                pins: (pins.into_iter())
                    .map(|(worker, host)| (worker.index(workers), host % count))
                    .collect(),
            }
        },
    )
}

/// Whether a placement respects slots, limits and pins.
fn is_valid(problem: &WorkerProblem, at: &[HostId]) -> bool {
    let within = (0..problem.machines.len()).all(|host| {
        let here = at.iter().filter(|at| **at == host).count();
        here <= problem.machines[host].slots
    });
    let all: Vec<Option<HostId>> = at.iter().copied().map(Some).collect();
    within
        && problem.exceeded(&all).is_empty()
        && problem
            .pins
            .iter()
            .all(|(worker, host)| at[*worker] == *host)
}

fn cost(problem: &WorkerProblem, at: &[HostId]) -> (usize, usize) {
    let hosts: std::collections::BTreeSet<HostId> = at.iter().copied().collect();
    let idle = hosts.iter().filter(|host| !problem.machines[**host].busy);
    (idle.count(), hosts.len())
}

/// Minimum cost of all placements.
fn by_trying_all(problem: &WorkerProblem) -> Option<(usize, usize)> {
    let hosts = problem.machines.len();
    let mut at = vec![0; problem.workers];
    let mut best = None;
    loop {
        if is_valid(problem, &at) {
            let cost = cost(problem, &at);
            best = Some(best.map_or(cost, |best: (usize, usize)| best.min(cost)));
        }
        let Some(next) = at.iter().position(|at| at + 1 < hosts) else {
            return best;
        };
        at[next] += 1;
        at[..next].fill(0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(600)))]

    #[test]
    fn the_best_placement_is_found_as_trying_all_would(problem in problems()) {
        match (place(&problem), by_trying_all(&problem)) {
            (Ok(placed), Some(best)) => {
                prop_assert!(is_valid(&problem, &placed.at));
                prop_assert!(placed.proven);
                prop_assert_eq!((placed.idle, placed.hosts), cost(&problem, &placed.at));
                prop_assert_eq!((placed.idle, placed.hosts), best);
                if let Some(greedy) = greedy(&problem).unwrap() {
                    prop_assert!(is_valid(&problem, &greedy.at));
                    prop_assert!((greedy.idle, greedy.hosts) >= best);
                }
            }
            (Err(WorkerRefusal::NotFound), _) => prop_assert!(false, "not found"),
            (Err(_), None) => {}
            (got, want) => prop_assert!(false, "{:?}, but {:?}", got, want),
        }
    }

    /// A conflict has no placement, but has one without any one of its constraints.
    #[test]
    fn a_conflict_is_no_larger_than_it_need_be(problem in problems()) {
        if let Err(WorkerRefusal::Conflict(conflict)) = place(&problem) {
            let conflict = *conflict;
            prop_assert!(conflict.least);
            let only = |conflict: &WorkerConflict| {
                let mut part = problem.clone();
                let limits = conflict.limits.iter();
                part.limits = limits.map(|limit| problem.limits[*limit]).collect();
                part.pins.retain(|(worker, _)| conflict.pins.contains(worker));
                for (host, machine) in part.machines.iter_mut().enumerate() {
                    if !conflict.slots.contains(&host) {
                        machine.slots = part.workers;
                    }
                }
                by_trying_all(&part)
            };
            prop_assert_eq!(only(&conflict), None);
            let kinds: [fn(&mut WorkerConflict) -> &mut Vec<usize>; 3] = [
                |conflict| &mut conflict.slots,
                |conflict| &mut conflict.limits,
                |conflict| &mut conflict.pins,
            ];
            for kind in kinds {
                for place in 0..kind(&mut conflict.clone()).len() {
                    let mut fewer = conflict.clone();
                    kind(&mut fewer).remove(place);
                    prop_assert!(only(&fewer).is_some(), "{:?}", fewer);
                }
            }
        }
    }

    /// With a parameter server, k greedy hosts fit at least 1 − 1/e of the workers that any k hosts fit.
    #[test]
    fn the_greedy_keeps_its_promise(
        machines in prop::collection::vec((0_usize..3, 1_usize..6), 1..=8),
        room in prop::collection::vec(1_usize..8, 3),
        workers in 1_usize..30,
    ) {
        let problem = WorkerProblem {
            machines: (machines.iter())
                .map(|(rack, slots)| machine("h", *rack, *slots, false))
                .collect(),
            racks: ["A", "B", "C", "D"].map(str::to_owned).to_vec(),
            workers,
            pattern: Pattern::to_server(workers, 3),
            limits: (room.iter().enumerate())
                .map(|(rack, pairs)| RackLimit { racks: (rack, 3), pairs: *pairs })
                .collect(),
            pins: vec![],
        };
        let Ok(reached) = greedy_room(&problem) else {
            return Ok(());
        };
        let most = |hosts: u32| {
            let mut by_rack = [0; 3];
            for (host, (rack, slots)) in machines.iter().enumerate() {
                if hosts >> host & 1 == 1 {
                    by_rack[*rack] += slots;
                }
            }
            let racks = by_rack.iter().zip(&room).map(|(slots, room)| slots.min(room));
            racks.sum::<usize>().min(workers)
        };
        for (count, here) in reached.iter().enumerate() {
            let sets = 0..1_u32 << machines.len();
            let best = sets.filter(|set| set.count_ones() as usize == count).map(most).max();
            let best = best.unwrap_or(0);
            prop_assert!(*here as f64 >= (1.0 - (-1.0_f64).exp()) * best as f64, "{} of {}", here, best);
        }
    }
}
