//! Injection points: compared with all placements of small problems, refusals and their reasons, and the large sample.

use planner::injection::{
    Charge, Choice, Conflict, Cost, InjectionSwitch, Placement, Problem, ProblemError, Refusal,
    SwitchResource, Utilisation, sample, solve,
};
use proptest::prelude::*;
use test_support::{cases, runs_all, seeds};

/// A problem with one binding resource and another one, with these capacities.
fn problem(capacities: &[[u64; 2]]) -> Problem {
    let resource = |name: &str, binds| SwitchResource {
        name: name.to_owned(),
        binds,
        share_ppm: None,
    };
    let switch = |(number, capacity): (usize, &[u64; 2])| InjectionSwitch {
        name: format!("s{number}"),
        capacity: capacity.to_vec(),
        used: vec![0, 0],
        opening: vec![0, 0],
    };
    Problem {
        resources: vec![resource("units", true), resource("Mbit/s", false)],
        switches: capacities.iter().enumerate().map(switch).collect(),
        ..Problem::default()
    }
}

/// Adds a choice with a unit of its own.
fn choose(problem: &mut Problem, paths: &[&[usize]]) -> usize {
    let first = problem.paths.len();
    problem.paths.extend(paths.iter().map(|path| path.to_vec()));
    problem.charges.push(Charge { cost: vec![(0, 1)] });
    problem.choices.push(Choice {
        name: format!("f{}", problem.choices.len()),
        paths: (first..problem.paths.len()).collect(),
        weight: 1,
        charges: vec![problem.charges.len() - 1],
        ..Choice::default()
    });
    problem.choices.len() - 1
}

/// Adds another choice on the same paths.
fn beside(problem: &mut Problem, other: usize) -> usize {
    let new = choose(problem, &[]);
    problem.choices[new].paths = problem.choices[other].paths.clone();
    new
}

fn refused(problem: &Problem) -> Refusal {
    let refusal = solve(problem, 1).expect_err("there is no placement");
    assert!(!refusal.describe(problem).is_empty());
    refusal
}

// The functions below use only the documented meaning of a problem.

/// Cost of a placement; `None` if it violates a constraint.
fn judge(problem: &Problem, at: &[Vec<usize>]) -> Option<Cost> {
    let position = |path: usize, choice: usize| {
        let path = problem.paths[path].iter();
        path.enumerate()
            .filter(|(_, switch)| at[choice].contains(switch))
            .map(|(hop, _)| hop)
            .collect::<Vec<_>>()
    };
    for (number, choice) in problem.choices.iter().enumerate() {
        let is_met_once = choice
            .paths
            .iter()
            .all(|path| position(*path, number).len() == 1);
        let is_there = |switch: &usize| {
            let mut paths = choice.paths.iter();
            paths.any(|path| problem.paths[*path].contains(switch))
        };
        let may_spread = choice.spreads || at[number].len() == 1;
        let is_pinned = choice.pin.is_none_or(|pin| at[number] == [pin]);
        let only = |switch: &usize| {
            choice
                .only
                .as_ref()
                .is_none_or(|only| only.contains(switch))
        };
        if !is_met_once || !at[number].iter().all(only) {
            return None;
        }
        if !may_spread || !is_pinned || !at[number].iter().all(is_there) {
            return None;
        }
    }
    for &(a, b) in &problem.orders {
        let (before, after) = (&problem.choices[a], &problem.choices[b]);
        for path in before
            .paths
            .iter()
            .filter(|path| after.paths.contains(path))
        {
            let first = (position(*path, a)[0], before.leaving);
            if first > (position(*path, b)[0], after.leaving) {
                return None;
            }
        }
    }
    let shares = |a: usize, b: usize| at[a].iter().any(|switch| at[b].contains(switch));
    let is_apart = !problem.clashes.iter().any(|(a, b)| shares(*a, *b));
    let is_one = |tie: &Vec<usize>| {
        tie.iter().all(|choice| at[*choice] == at[tie[0]])
            && (tie.len() < 2 || at[tie[0]].len() == 1)
    };
    if !is_apart || !problem.ties.iter().all(is_one) {
        return None;
    }
    let (mut worst, mut slowest) = (Utilisation::NONE, Utilisation::NONE);
    let mut touched = 0;
    for (number, switch) in problem.switches.iter().enumerate() {
        let mut needed: Vec<usize> = problem
            .choices
            .iter()
            .zip(at)
            .filter(|(_, at)| at.contains(&number))
            .flat_map(|(choice, _)| choice.charges.iter().copied())
            .collect();
        if !at.iter().any(|at| at.contains(&number)) {
            continue;
        }
        touched += 1;
        needed.sort_unstable();
        needed.dedup();
        for (resource, about) in problem.resources.iter().enumerate() {
            let costs = needed
                .iter()
                .flat_map(|charge| &problem.charges[*charge].cost);
            let costs = costs
                .filter(|(of, _)| *of == resource)
                .map(|(_, cost)| cost);
            let taken = costs.sum::<u64>() + switch.opening[resource];
            let free = switch.capacity[resource] - switch.used[resource];
            let share = about.share_ppm.map_or(u64::MAX, |ppm| {
                switch.capacity[resource] * u64::from(ppm) / 1_000_000
            });
            if taken > share || about.binds && taken > free {
                return None;
            }
            let level = if about.binds {
                &mut worst
            } else {
                &mut slowest
            };
            let of = free.max(1);
            *level = (*level).max(Utilisation { taken, of });
        }
    }
    let hops = problem.choices.iter().zip(at).map(|(choice, at)| {
        let nearest = |switch: &usize| {
            let paths = choice.paths.iter().map(|path| &problem.paths[*path]);
            let hops = paths.filter_map(|path| path.iter().position(|other| other == switch));
            hops.min().unwrap_or(0) as u64
        };
        at.iter().map(nearest).sum::<u64>() * choice.weight
    });
    Some(Cost {
        worst,
        slowest,
        touched,
        hops: hops.sum(),
    })
}

/// Minimum cost of all placements.
fn cheapest(problem: &Problem) -> Option<Cost> {
    least_by(problem, &|_, cost| cost)
}

/// Minimum of a measure over all placements.
fn least_by<K: Ord + Copy>(problem: &Problem, by: &dyn Fn(&[Vec<usize>], Cost) -> K) -> Option<K> {
    let sets = 1_usize << problem.switches.len();
    let of = |set: usize| -> Vec<usize> {
        let switches = 0..problem.switches.len();
        switches.filter(|switch| set >> switch & 1 == 1).collect()
    };
    // One choice at a time, so that sets that are impossible for a single choice are not combined.
    let alone: Vec<Vec<Vec<usize>>> = (0..problem.choices.len())
        .map(|choice| {
            let single = Problem {
                choices: vec![problem.choices[choice].clone()],
                orders: Vec::new(),
                clashes: Vec::new(),
                ties: Vec::new(),
                ..problem.clone()
            };
            let sets = (1..sets).map(of);
            sets.filter(|set| judge(&single, std::slice::from_ref(set)).is_some())
                .collect()
        })
        .collect();
    let mut at: Vec<Vec<usize>> = Vec::new();
    let mut best = None;
    fn descend<K: Ord + Copy>(
        problem: &Problem,
        alone: &[Vec<Vec<usize>>],
        at: &mut Vec<Vec<usize>>,
        by: &dyn Fn(&[Vec<usize>], Cost) -> K,
        best: &mut Option<K>,
    ) {
        let Some(sets) = alone.get(at.len()) else {
            if let Some(cost) = judge(problem, at) {
                let cost = by(at, cost);
                *best = Some(best.map_or(cost, |best| best.min(cost)));
            }
            return;
        };
        for set in sets {
            at.push(set.clone());
            descend(problem, alone, at, by, best);
            at.pop();
        }
    }
    descend(problem, &alone, &mut at, by, &mut best);
    best
}

prop_compose! {
    /// Problems with up to five switches and six choices, and constraints of all kinds.
    fn small()(switches in 1_usize..=5)(
        capacities in prop::collection::vec((1_u64..=4, 0_u64..=1, 0_u64..=1, 1_u64..=9), switches),
        share in prop::option::of(300_000_u32..=1_000_000),
        paths in prop::collection::vec(Just((0..switches).collect::<Vec<_>>()).prop_shuffle(), 1..=4),
        lengths in prop::collection::vec(1..=switches, 4),
        charges in prop::collection::vec((0_u64..=2, 0_u64..=3), 1..=5),
        choices in prop::collection::vec(
            (
                prop::collection::btree_set(0_usize..4, 1..=2),
                any::<bool>(),
                prop::option::weighted(0.15, 0..switches),
                prop::option::weighted(0.2, prop::collection::vec(0..switches, 1..=4)),
                prop::bool::weighted(0.2),
                1_u64..=3,
                prop::collection::btree_set(0_usize..5, 0..=2),
            ),
            0..=6,
        ),
        orders in prop::collection::vec((0_usize..6, 0_usize..6), 0..=4),
        clashes in prop::collection::vec((0_usize..6, 0_usize..6), 0..=2),
        tie in prop::collection::btree_set(0_usize..6, 0..=3),
    ) -> Problem {
        let mut problem = problem(&capacities.iter().map(|c| [c.0, c.3]).collect::<Vec<_>>());
        for (switch, capacity) in problem.switches.iter_mut().zip(&capacities) {
            switch.used[0] = capacity.1;
            switch.opening[0] = capacity.2;
        }
        problem.resources[0].share_ppm = share;
        problem.paths = paths
            .iter()
            .zip(&lengths)
            .map(|(path, length)| path[..*length].to_vec())
            .collect();
        problem.charges = charges
            .iter()
            .map(|(units, rate)| Charge { cost: vec![(0, *units), (1, *rate)] })
            .collect();
        let count = choices.len();
        problem.choices = choices
            .into_iter()
            .enumerate()
            .map(|(number, (on, spreads, pin, only, leaving, weight, takes))| Choice {
                name: format!("f{number}"),
                paths: on.into_iter().map(|path| path % paths.len()).collect::<std::collections::BTreeSet<_>>().into_iter().collect(),
                spreads,
                only,
                pin,
                leaving,
                weight,
                charges: takes.into_iter().filter(|charge| *charge < charges.len()).collect(),
            })
            .collect();
        let both = |(a, b): &(usize, usize)| a < b && *b < count;
        problem.orders = orders.into_iter().filter(both).collect();
        problem.clashes = clashes.into_iter().filter(both).collect();
        problem.ties = vec![tie.into_iter().filter(|choice| *choice < count).collect()];
        problem.ties.retain(|tie| !tie.is_empty());
        problem
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(1_500)))]

    /// The cost is the optimum of all placements, and a placement is found if there is one.
    #[test]
    fn small_problems_are_solved(problem in small(), seed in 0_u64..4) {
        let expected = cheapest(&problem);
        match solve(&problem, seed) {
            Ok(placement) => {
                prop_assert!(placement.proven);
                prop_assert_eq!(judge(&problem, &placement.at), Some(placement.cost));
                prop_assert_eq!(expected, Some(placement.cost));
                prop_assert_eq!(placement.gap(), 0.0);
            }
            Err(refusal) => {
                prop_assert_eq!(expected, None, "{}", refusal.describe(&problem));
                prop_assert_ne!(refusal, Refusal::NotFound);
            }
        }
    }

    /// A reported conflict has no placement, but has one without any one of its choices.
    #[test]
    fn conflicts_are_least(problem in small()) {
        let Err(Refusal::Capacity(conflict) | Refusal::Conflict(conflict) | Refusal::Tied(conflict)) = solve(&problem, 0) else {
            return Ok(());
        };
        prop_assert!(conflict.least);
        prop_assert_eq!(cheapest(&part(&problem, &conflict.choices)), None);
        for left_out in &conflict.choices {
            let others: Vec<usize> = conflict.choices.iter().copied().filter(|c| c != left_out).collect();
            prop_assert!(cheapest(&part(&problem, &others)).is_some());
        }
    }
}

/// The problem with some of its choices only.
fn part(problem: &Problem, choices: &[usize]) -> Problem {
    let number = |choice: &usize| choices.iter().position(|other| other == choice);
    let pair = |(a, b): &(usize, usize)| Some((number(a)?, number(b)?));
    Problem {
        choices: choices
            .iter()
            .map(|choice| problem.choices[*choice].clone())
            .collect(),
        orders: problem.orders.iter().filter_map(pair).collect(),
        clashes: problem.clashes.iter().filter_map(pair).collect(),
        ties: (problem.ties.iter())
            .map(|tie| tie.iter().filter_map(number).collect::<Vec<_>>())
            .filter(|tie| !tie.is_empty())
            .collect(),
        ..problem.clone()
    }
}

fn solved(problem: &Problem) -> Placement {
    solve(problem, 1).unwrap_or_else(|refusal| panic!("{}", refusal.describe(problem)))
}

#[test]
fn spreads_what_two_switches_share_then_stays_near() {
    let mut problem = problem(&[[4, 9], [4, 9], [4, 9]]);
    let first = choose(&mut problem, &[&[0, 1, 2]]);
    let second = beside(&mut problem, first);
    problem.orders.push((first, second));
    let placement = solved(&problem);
    assert_eq!(placement.at, [[0], [1]]);
    assert!(placement.proven);
}

#[test]
fn what_shares_a_charge_gathers() {
    let mut problem = problem(&[[4, 9], [4, 9], [4, 9]]);
    choose(&mut problem, &[&[0, 1]]);
    choose(&mut problem, &[&[2, 1]]);
    problem.choices[1].charges = vec![0];
    let placement = solved(&problem);
    assert_eq!(placement.at, [[1], [1]]);
    assert_eq!(placement.cost.worst, Utilisation { taken: 1, of: 4 });
}

#[test]
fn what_binds_is_planned_for_before_what_slows() {
    // Both delays at one switch would be slower, but two units at it are worse.
    let mut problem = problem(&[[2, 10], [2, 1]]);
    let delay = choose(&mut problem, &[&[0, 1]]);
    problem.charges[0].cost.push((1, 5));
    let other = beside(&mut problem, delay);
    problem.charges[1].cost.push((1, 4));
    let placement = solved(&problem);
    assert_ne!(placement.at[delay], placement.at[other]);
    assert_eq!(placement.cost.slowest, Utilisation { taken: 4, of: 1 });
}

#[test]
fn stateless_choices_stand_once_on_each_path() {
    let mut problem = problem(&[[4, 9]; 4]);
    let choice = choose(&mut problem, &[&[0, 1], &[2, 3]]);
    problem.choices[choice].spreads = true;
    assert_eq!(solved(&problem).at, [[0, 2]]);
}

#[test]
fn names_paths_without_a_switch_in_common() {
    let mut problem = problem(&[[4, 9]; 4]);
    choose(&mut problem, &[&[0, 1], &[1, 2], &[3]]);
    let apart = Some((0, 2));
    assert_eq!(refused(&problem), Refusal::NoCandidate { choice: 0, apart });
}

#[test]
fn names_a_path_around_the_place() {
    let mut problem = problem(&[[4, 9]; 3]);
    let choice = choose(&mut problem, &[&[0, 1], &[0, 2]]);
    problem.choices[choice].pin = Some(1);
    let refusal = refused(&problem);
    assert_eq!(
        refusal,
        Refusal::OffPath {
            choice,
            switch: 1,
            path: 1,
            crossed: true
        }
    );
    assert_eq!(
        refusal.describe(&problem),
        "`f0` is pinned to `s1`, which the path `s0` → `s2` does not cross"
    );
}

#[test]
fn names_the_limit_and_what_exceeds_it() {
    let mut problem = problem(&[[2, 9], [2, 9]]);
    choose(&mut problem, &[&[1]]);
    for _ in 0..3 {
        choose(&mut problem, &[&[0]]);
    }
    let refusal = refused(&problem);
    assert_eq!(
        refusal,
        Refusal::Capacity(Box::new(Conflict {
            choices: vec![1, 2, 3],
            limits: vec![(0, 0)],
            least: true,
            ..Conflict::default()
        }))
    );
    assert_eq!(
        refusal.describe(&problem),
        "`f1`, `f2`, `f3` take more than 2 units of `s0`"
    );
}

#[test]
fn a_share_binds_before_the_capacity_does() {
    let mut problem = problem(&[[40, 9]]);
    let first = choose(&mut problem, &[&[0]]);
    for _ in 0..4 {
        beside(&mut problem, first);
    }
    assert!(solve(&problem, 1).is_ok());
    problem.resources[0].share_ppm = Some(planner::injection::DEFAULT_SHARE_PPM);
    assert!(matches!(refused(&problem), Refusal::Capacity(_)));
}

#[test]
fn names_two_pins_in_the_wrong_order() {
    let mut problem = problem(&[[4, 9]; 2]);
    let before = choose(&mut problem, &[&[0, 1]]);
    let after = beside(&mut problem, before);
    problem.choices[before].pin = Some(1);
    problem.choices[after].pin = Some(0);
    problem.orders.push((before, after));
    assert_eq!(refused(&problem), Refusal::Order { before, after });
}

#[test]
fn names_two_rules_that_clash() {
    let mut problem = problem(&[[4, 9]; 2]);
    let first = choose(&mut problem, &[&[0]]);
    let second = choose(&mut problem, &[&[0]]);
    problem.clashes.push((first, second));
    assert_eq!(refused(&problem), Refusal::Clash { first, second });
    problem.paths[1] = vec![0, 1];
    assert_eq!(solved(&problem).at, [[0], [1]]);
}

#[test]
fn names_what_shares_state_and_no_switch() {
    let mut problem = problem(&[[4, 9]; 3]);
    for switch in 0..3 {
        choose(&mut problem, &[&[switch]]);
    }
    problem.paths[1] = vec![1, 0];
    problem.ties.push(vec![0, 1, 2]);
    let Refusal::Tied(conflict) = refused(&problem) else {
        panic!("it is the tie");
    };
    assert_eq!(conflict.choices.len(), 2, "{conflict:?}");
    assert!(conflict.least);
}

#[test]
fn names_constraints_of_several_kinds() {
    // One switch can hold one unit only, and at the other the order is wrong.
    let mut problem = problem(&[[1, 9], [1, 9]]);
    let before = choose(&mut problem, &[&[0, 1]]);
    let after = beside(&mut problem, before);
    problem.choices[before].pin = Some(1);
    problem.orders.push((before, after));
    let expected = Conflict {
        choices: vec![before, after],
        pins: vec![before],
        limits: vec![(1, 0)],
        orders: vec![(before, after)],
        least: true,
        ..Conflict::default()
    };
    assert_eq!(refused(&problem), Refusal::Conflict(Box::new(expected)));
}

#[test]
fn refuses_numbers_of_nothing() {
    let mut problem = problem(&[[1, 9]]);
    let choice = choose(&mut problem, &[&[0]]);
    problem.choices[choice].charges.push(7);
    let error = ProblemError::Unknown {
        what: "charge",
        number: 7,
        whose: "`f0`".to_owned(),
    };
    assert_eq!(refused(&problem), Refusal::Malformed(error));
    problem.choices[choice].charges.pop();
    problem.charges[0].cost.push((1, u64::MAX));
    assert_eq!(refused(&problem), Refusal::Malformed(ProblemError::TooMuch));
    problem.charges[0].cost.pop();
    problem.choices[choice].paths.clear();
    assert!(matches!(
        refused(&problem),
        Refusal::Malformed(ProblemError::NoPath { .. })
    ));
    problem.choices.clear();
    problem.switches[0].used.pop();
    assert!(matches!(
        refused(&problem),
        Refusal::Malformed(ProblemError::Resources { .. })
    ));
}

#[test]
fn pigeons_do_not_fit() {
    // Sums alone do not show it: an exhaustive search or the bound does.
    let mut problem = problem(&[[5, 9]; 3]);
    let first = choose(&mut problem, &[&[0, 1, 2]]);
    for _ in 0..15 {
        beside(&mut problem, first);
    }
    let Refusal::Capacity(conflict) = refused(&problem) else {
        panic!("it is the units");
    };
    assert_eq!(conflict.choices.len(), 16);
    assert_eq!(conflict.limits, [(0, 0), (1, 0), (2, 0)]);
}

#[test]
fn the_large_sample_keeps_all_constraints() {
    for seed in seeds(0..2) {
        let problem = sample(seed);
        assert_eq!(problem.switches.len(), 80);
        assert!(problem.choices.len() >= 1_000);
        let placement = solved(&problem);
        let cost = judge(&problem, &placement.at).expect("it keeps all constraints");
        assert_eq!(cost, placement.cost);
        assert!(cost.worst <= Utilisation { taken: 1, of: 10 });
        assert!(placement.bound <= cost.worst);
        assert!(
            (0.0..=0.3).contains(&placement.gap()),
            "{}",
            placement.gap()
        );
        assert_eq!(solved(&problem), placement, "the same seed, the same plan");
    }
}

/// HiGHS confirms for the integer program and for the relaxation that these three have no placement. The refusal names tenants
/// with their servers below the same few switches.
#[test]
fn of_the_large_samples_that_have_no_placement_that_is_shown() {
    let without_placement = [9, 24, 28];
    let count = if runs_all() {
        without_placement.len()
    } else {
        1
    };
    for &seed in &without_placement[..count] {
        let problem = sample(seed);
        let refusal = solve(&problem, seed).expect_err("it has none");
        let Refusal::Conflict(conflict) = &refusal else {
            panic!("{}", refusal.describe(&problem));
        };
        assert!((1..=40).contains(&conflict.choices.len()), "{conflict:?}");
        assert!(!conflict.limits.is_empty(), "{conflict:?}");
        assert!(!conflict.least);
    }
}
