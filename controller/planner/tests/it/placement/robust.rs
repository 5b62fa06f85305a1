//! Reveal's objective, compared with arithmetic and with an enumeration of all choices.

use planner::gradient::{Job, Loads, Plan, Server, grid, spare_bps};
use planner::placement::robust::plans::{spread, touched};
use planner::placement::robust::{
    Decision, DecisionOption, OptionCharge, ResourceLimit, RobustConflict, RobustProblem,
    RobustRefusal, rounded, solve,
};
use planner::{Host, Network, NodeId, Switch};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn option(points: &[usize], cost: f64) -> DecisionOption {
    DecisionOption {
        points: points.to_vec(),
        cost,
        ..DecisionOption::default()
    }
}

fn needs(name: &str, user: usize, options: Vec<DecisionOption>) -> Decision {
    Decision {
        name: name.to_owned(),
        users: vec![user],
        options,
    }
}

/// Three users need one of points A and B each; A costs 1, B costs 2. One of the points has at least two users: they are at A,
/// which is cheaper: 1 + 1 + 2. With a point C that costs 9, and that only the last user can have, each is alone: 1 + 2 + 9.
fn example() -> RobustProblem {
    RobustProblem {
        points: ["A", "B", "C"].map(str::to_owned).to_vec(),
        users: ["u", "v", "w"].map(str::to_owned).to_vec(),
        decisions: (0..3)
            .map(|user| needs("need", user, vec![option(&[0], 1.0), option(&[1], 2.0)]))
            .collect(),
        ..RobustProblem::default()
    }
}

#[test]
fn users_are_spread_first_and_cost_comes_second() {
    let mut problem = example();
    let placed = solve(&problem, None, 1).unwrap();
    assert_eq!((placed.worst, placed.bound, placed.proven), (2, 2, true));
    assert_eq!(placed.cost, 4.0);
    problem.decisions[2].options.push(option(&[2], 9.0));
    let placed = solve(&problem, None, 1).unwrap();
    assert_eq!((placed.worst, placed.cost), (1, 12.0));
    assert_eq!(placed.chosen[2], 2);
    assert_eq!(placed.touched(&problem)[2], [2]);
}

/// With one user per point, three users need three points. With one point per user, a user with needs at two points has too
/// many.
#[test]
fn what_cannot_be_placed_says_what_binds() {
    let mut problem = example();
    problem.most_users = Some(1);
    problem.limits.push(ResourceLimit {
        name: "memory of A".to_owned(),
        most: 5.0,
    });
    problem.decisions[0].options[0].takes.push((0, 2.0));
    let refused = solve(&problem, None, 1).unwrap_err();
    let conflict = RobustConflict {
        decisions: vec![0, 1, 2],
        most_users: true,
        least: true,
        ..RobustConflict::default()
    };
    assert_eq!(refused, RobustRefusal::Conflict(Box::new(conflict.clone())));
    let text = conflict.describe(&problem);
    assert_eq!(
        text,
        "`need`, `need`, `need` cannot all be placed: 1 users for each point"
    );

    let mut problem = example();
    problem.most_points = Some(1);
    problem
        .decisions
        .push(needs("other", 1, vec![option(&[2], 0.0)]));
    let Err(RobustRefusal::Conflict(conflict)) = solve(&problem, None, 1) else {
        panic!();
    };
    assert_eq!(
        (&conflict.decisions[..], conflict.most_points),
        (&[1, 3][..], true)
    );
    problem.decisions[0].options[0].points[0] = 9;
    assert_eq!(
        solve(&problem, None, 1),
        Err(RobustRefusal::Unknown("point", 9))
    );
    problem.decisions[0].options.clear();
    assert_eq!(solve(&problem, None, 1), Err(RobustRefusal::NoOption(0)));
}

const GBIT: u64 = 1_000_000_000;

/// Four leaves and two spines. The first training goes from L0 to L1, the second from L2 to L3: both cross spine S0, which is
/// the first one, although no link is full.
fn two_trainings() -> (Network, Vec<Job>) {
    let mut network = Network::new();
    let sums = Switch {
        programmable: true,
        throughput_bps: Some(100 * GBIT),
        ..Switch::default()
    };
    let spines = ["S0", "S1"].map(|name| network.add_switch(name, sums.clone()).unwrap());
    let hosts: Vec<NodeId> = (0..4)
        .map(|number| {
            let leaf = network
                .add_switch(&format!("L{number}"), Switch::default())
                .unwrap();
            for spine in spines {
                network.connect(leaf, spine, 40 * GBIT).unwrap();
            }
            let host = network
                .add_host(&format!("h{number}"), Host::default())
                .unwrap();
            network.connect(host, leaf, 10 * GBIT).unwrap();
            host
        })
        .collect();
    let job = |name: &str, worker: usize| Job {
        name: name.to_owned(),
        workers: vec![hosts[worker]],
        servers: vec![Server::on(hosts[worker + 1])],
    };
    let jobs = vec![job("first", 0), job("second", 2)];
    (network, jobs)
}

#[test]
fn trainings_go_by_switches_of_their_own_at_the_same_rate() {
    let (network, jobs) = two_trainings();
    let plans: Vec<Option<Plan>> = jobs
        .iter()
        .map(|job| grid::plan(&network, job).ok())
        .collect();
    let met = |plans: &[Option<Plan>]| {
        let of = |number: usize| touched(&network, &jobs[number], plans[number].as_ref().unwrap());
        of(0).intersection(&of(1)).count()
    };
    assert_eq!(met(&plans), 1, "by one spine both");
    let spread = spread(&network, &jobs, &plans, grid::plan, 1);
    assert_eq!((spread.worst, spread.least, spread.proven), (1, 1, true));
    assert_eq!(met(&spread.plans), 0);
    for (new, old) in spread.plans.iter().flatten().zip(plans.iter().flatten()) {
        assert_eq!(new.rate_bps, old.rate_bps);
    }
}

fn problems() -> impl Strategy<Value = RobustProblem> {
    let one = (
        prop::collection::vec(0_usize..4, 0..=2),
        prop::collection::vec((0_usize..2, 1_u8..4), 0..=1),
        prop::collection::vec(0_usize..2, 0..=1),
        0_u8..6,
    );
    let decisions = prop::collection::vec((0_usize..3, prop::collection::vec(one, 1..=3)), 1..=5);
    let limits = prop::collection::vec(2_u8..9, 2);
    let charges = prop::collection::vec((0_usize..2, 1_u8..5), 2);
    let excluded = prop::collection::vec(any::<[prop::sample::Index; 4]>(), 0..=2);
    let most = (
        prop::option::weighted(0.3, 1_usize..4),
        prop::option::weighted(0.3, 1_usize..3),
    );
    (decisions, limits, charges, excluded, most).prop_map(
        |(decisions, limits, charges, excluded, (most_points, most_users))| {
            let decisions: Vec<Decision> = decisions
                .into_iter()
                .map(|(user, options)| Decision {
                    name: "d".to_owned(),
                    users: vec![user],
                    options: (options.into_iter())
                        .map(|(points, takes, charges, cost)| DecisionOption {
                            points,
                            takes: takes
                                .into_iter()
                                .map(|(limit, amount)| (limit, f64::from(amount)))
                                .collect(),
                            charges,
                            cost: f64::from(cost),
                        })
                        .collect(),
                })
                .collect();
            let pick = |decision: prop::sample::Index, option: prop::sample::Index| {
                let decision = decision.index(decisions.len());
                (decision, option.index(decisions[decision].options.len()))
            };
            let excluded = excluded
                .into_iter()
                .map(|[a, of_a, b, of_b]| [pick(a, of_a), pick(b, of_b)])
                .filter(|[a, b]| a.0 != b.0)
                .collect();
            RobustProblem {
                points: (0..4).map(|point| point.to_string()).collect(),
                users: (0..3).map(|user| user.to_string()).collect(),
                limits: (limits.into_iter())
                    .map(|most| ResourceLimit {
                        name: "l".to_owned(),
                        most: f64::from(most),
                    })
                    .collect(),
                charges: (charges.into_iter())
                    .map(|(limit, amount)| OptionCharge {
                        takes: vec![(limit, f64::from(amount))],
                    })
                    .collect(),
                decisions,
                excluded,
                most_points,
                most_users,
            }
        },
    )
}

/// Users at the worst point and cost of a choice, by the documentation only; `None` if it violates a constraint.
fn judge(problem: &RobustProblem, chosen: &[usize]) -> Option<(usize, u64)> {
    let options = || {
        let all = problem.decisions.iter().zip(chosen);
        all.map(|(decision, option)| (decision.users[0], &decision.options[*option]))
    };
    let charges: BTreeSet<usize> = options()
        .flat_map(|(_, option)| option.charges.clone())
        .collect();
    for (number, limit) in problem.limits.iter().enumerate() {
        let own = options().flat_map(|(_, option)| &option.takes);
        let held = charges
            .iter()
            .flat_map(|charge| &problem.charges[*charge].takes);
        let all = own.chain(held).filter(|(of, _)| *of == number);
        if all.map(|(_, amount)| amount).sum::<f64>() > limit.most {
            return None;
        }
    }
    let is_taken = |(decision, option): &(usize, usize)| chosen[*decision] == *option;
    if problem
        .excluded
        .iter()
        .any(|pair| pair.iter().all(is_taken))
    {
        return None;
    }
    let touches: BTreeSet<(usize, usize)> = options()
        .flat_map(|(user, option)| option.points.iter().map(move |point| (*point, user)))
        .collect();
    let users = |point: usize| touches.iter().filter(|(at, _)| *at == point).count();
    let points = |user: usize| touches.iter().filter(|(_, of)| *of == user).count();
    let worst = (0..problem.points.len()).map(users).max().unwrap_or(0);
    let widest = (0..problem.users.len()).map(points).max().unwrap_or(0);
    let is_within = |most: Option<usize>, count: usize| most.is_none_or(|most| count <= most);
    (is_within(problem.most_users, worst) && is_within(problem.most_points, widest))
        .then(|| (worst, options().map(|(_, option)| option.cost as u64).sum()))
}

fn by_trying_all(problem: &RobustProblem) -> Option<(usize, u64)> {
    let mut chosen = vec![0; problem.decisions.len()];
    let mut best: Option<(usize, u64)> = None;
    loop {
        if let Some(cost) = judge(problem, &chosen) {
            best = Some(best.map_or(cost, |best| best.min(cost)));
        }
        let has_more =
            |(place, option): (usize, &usize)| option + 1 < problem.decisions[place].options.len();
        let Some(next) = chosen.iter().enumerate().position(has_more) else {
            return best;
        };
        chosen[next] += 1;
        chosen[..next].fill(0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(500)))]

    #[test]
    fn the_best_choice_is_found_as_trying_all_would(problem in problems(), seed in 0_u64..4) {
        let best = by_trying_all(&problem);
        match solve(&problem, None, seed) {
            Ok(placed) => {
                prop_assert!(placed.proven);
                prop_assert_eq!(Some((placed.worst, placed.cost as u64)), best);
                prop_assert_eq!(judge(&problem, &placed.chosen), best);
                prop_assert_eq!(placed.bound, placed.worst);
            }
            Err(RobustRefusal::Conflict(conflict)) => {
                prop_assert_eq!(best, None);
                prop_assert!(conflict.least);
                // The conflict's decisions alone have no choice; without any one of them, the others have one.
                let part = |left_out: Option<usize>| {
                    let mut part = problem.clone();
                    for (number, decision) in part.decisions.iter_mut().enumerate() {
                        if !conflict.decisions.contains(&number) || Some(number) == left_out {
                            decision.options.push(DecisionOption::default());
                        }
                    }
                    by_trying_all(&part)
                };
                prop_assert_eq!(part(None), None);
                for decision in &conflict.decisions {
                    prop_assert!(part(Some(*decision)).is_some());
                }
            }
            Err(other) => prop_assert!(false, "{:?}", other),
        }
        // The rounding violates no constraint, and never reports a better result than it has.
        if let Some(placed) = rounded(&problem, seed).unwrap() {
            prop_assert_eq!(judge(&problem, &placed.chosen), Some((placed.worst, placed.cost as u64)));
            prop_assert!(best.is_some_and(|(worst, _)| placed.bound <= worst && worst <= placed.worst));
        }
    }

    /// Trainings on leaves and spines: none becomes slower, no capacity is exceeded, and the worst switch is no worse.
    #[test]
    fn spread_plans_exceed_nothing(
        hosts in prop::collection::vec(0_usize..4, 6..=10),
        split in 1_usize..4,
        rate in 5_u64..40,
    ) {
        let mut network = Network::new();
        let sums = Switch { programmable: true, throughput_bps: Some(100 * GBIT), ..Switch::default() };
        let spines: Vec<NodeId> = (0..3).map(|n| network.add_switch(&format!("S{n}"), sums.clone()).unwrap()).collect();
        let leaves: Vec<NodeId> = (0..4).map(|n| network.add_switch(&format!("L{n}"), sums.clone()).unwrap()).collect();
        for leaf in &leaves {
            for spine in &spines {
                network.connect(*leaf, *spine, rate * GBIT).unwrap();
            }
        }
        let hosts: Vec<NodeId> = hosts.iter().enumerate().map(|(n, leaf)| {
            let host = network.add_host(&format!("h{n}"), Host::default()).unwrap();
            network.connect(host, leaves[*leaf], 10 * GBIT).unwrap();
            host
        }).collect();
        let jobs: Vec<Job> = hosts.chunks(hosts.len() / 2).take(2).enumerate().map(|(n, hosts)| Job {
            name: format!("job{n}"),
            servers: vec![Server::on(hosts[0])],
            workers: hosts[1..].iter().copied().take(split + 1).collect(),
        }).collect();
        let mut left = network.clone();
        let plans: Vec<Option<Plan>> = jobs.iter().map(|job| {
            let plan = grid::plan(&left, job).ok()?;
            let used = Loads::from_plan(&left, job, &plan).at(plan.rate_bps);
            planner::gradient::occupy(&mut left, &used);
            Some(plan)
        }).collect();
        let worst = |plans: &[Option<Plan>]| {
            let sets: Vec<BTreeSet<NodeId>> = jobs.iter().zip(plans)
                .filter_map(|(job, plan)| Some(touched(&network, job, plan.as_ref()?))).collect();
            network.switches().map(|switch| sets.iter().filter(|set| set.contains(&switch)).count()).max().unwrap_or(0)
        };
        let spread = spread(&network, &jobs, &plans, grid::plan, 1);
        prop_assert_eq!(worst(&spread.plans), spread.worst);
        prop_assert!(spread.worst <= worst(&plans) && spread.least <= spread.worst);
        let mut loads = std::collections::BTreeMap::new();
        for ((job, old), new) in jobs.iter().zip(&plans).zip(&spread.plans) {
            prop_assert_eq!(old.is_some(), new.is_some());
            let (Some(old), Some(new)) = (old, new) else { continue };
            prop_assert_eq!(old.rate_bps, new.rate_bps);
            for (resource, load) in Loads::from_plan(&network, job, new).iter() {
                *loads.entry(resource).or_insert(0.0) += load * new.rate_bps;
                if let Some(spare) = spare_bps(&network, job, resource) {
                    prop_assert!(loads[&resource] <= spare * (1.0 + 1e-7), "{:?}", resource);
                }
            }
        }
    }
}
