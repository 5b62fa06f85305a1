//! InArt's example: two servers that receive 4, six workers, switches V1 and V2 that sum 6, links of 6; 4/3 without
//! aggregation, 2 with equal shares and each worker at its own switch, 2.5 with the paper's plan.
//!
//! The paper's figure was not available. Our reading: three workers at each switch, the switches linked with each other and
//! with both servers. The first two numbers are then as printed. If V1 and V2 sum n₁ and n₂ workers for a server, it receives 6
//! − n₁ − n₂ streams raw and one from each switch that sums. The printed 2.5 is then reached with shares of 3 to 2: at 1.5 for
//! the first server, V1 sums four workers (6) and V2 two (3), so the server receives 2 · 1.5 = 3; at 1 for the second, V2 sums
//! three (3, so 6 in all), and the server receives (3 + 1) · 1 = 4. With these shares that is the optimum. Free shares reach
//! more: 8/3, with shares of 3 to 1: at 2 for the first server, both switches sum three (6 each), and it receives 2 · 2 = 4; at
//! 2/3 for the second, which receives six raw, 4. Equal shares, with V1 summing four for the first and V2 four for the second,
//! give each 3 · 4/3 = 4, so 8/3 as well. So 2.5 is the optimum of the program with those shares only.

use planner::evaluation::examples;
use planner::gradient::{Goal, JobError};
use planner::gradient::{Job, Loads, Member, Part, Plan, inart};
use planner::routing::{Costs, Routing};
use planner::{Network, NodeId};

fn example() -> (Network, Job) {
    examples::inart().unwrap()
}

/// Rate of every worker if all of each server's sums are made at the node from `at`, with equal shares.
fn equal_split(network: &Network, job: &Job, at: impl Fn(usize) -> Option<NodeId>) -> f64 {
    let routing = Routing::new(network, Costs::hops(network));
    let mut parts: Vec<Part> = Vec::new();
    for (server, of) in job.servers.iter().enumerate() {
        for (worker, host) in job.workers.iter().enumerate() {
            let at = at(worker).unwrap_or(of.host);
            let member = Member {
                worker,
                route: routing.path(*host, at).unwrap(),
            };
            match parts
                .iter_mut()
                .find(|part| part.at == at && part.server == server)
            {
                Some(part) => part.members.push(member),
                None => parts.push(Part {
                    piece: server,
                    share: 0.5,
                    server,
                    at,
                    members: vec![member],
                    up: routing.path(at, of.host).unwrap(),
                }),
            }
        }
    }
    let plan = Plan {
        job: job.name.clone(),
        parts,
        answers: Vec::new(),
        rate_bps: 0.0,
        bound_bps: f64::INFINITY,
        goal: Goal::Rate,
        is_optimal: false,
    };
    Loads::from_plan(network, job, &plan)
        .binding(network, job)
        .unwrap()
        .rate_bps
}

fn assert_near(rate_bps: f64, gbit: f64) {
    assert!((rate_bps / 1e9 - gbit).abs() < 1e-6 * gbit, "{rate_bps}");
}

/// LBMM: each server receives six raw streams of half a gradient: 3 f = 4.
#[test]
fn without_aggregation_it_is_four_thirds() {
    let (network, job) = example();
    assert_near(equal_split(&network, &job, |_| None), 4.0 / 3.0);
}

/// ATP: each switch sums three whole gradients: 3 f = 6.
#[test]
fn at_the_nearest_switches_with_equal_shares_it_is_two() {
    let (network, job) = example();
    let [v1, v2] = ["V1", "V2"].map(|name| network.node(name).unwrap());
    let nearest = |worker| Some(if worker < 3 { v1 } else { v2 });
    assert_near(equal_split(&network, &job, nearest), 2.0);
}

#[test]
fn with_shares_of_three_to_two_the_best_is_two_and_a_half() {
    let (network, job) = example();
    let plan = inart::plan(&network, &job, &[0.6, 0.4]).unwrap();
    assert_near(plan.rate_bps, 2.5);
    assert!(plan.is_optimal, "bound {}", plan.bound_bps);
}

#[test]
fn with_equal_shares_the_best_is_eight_thirds() {
    let (network, job) = example();
    let plan = inart::plan(&network, &job, &[0.5, 0.5]).unwrap();
    assert_near(plan.rate_bps, 8.0 / 3.0);
    assert!(plan.is_optimal, "bound {}", plan.bound_bps);
}

#[test]
fn with_free_shares_the_best_is_eight_thirds() {
    let (network, job) = example();
    let (shares, plan) = inart::shares(&network, &job).unwrap();
    assert_near(plan.rate_bps, 8.0 / 3.0);
    assert!(plan.is_optimal, "bound {}", plan.bound_bps);
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

/// Exact results of the program for the example: 2.5 for shares of 3 to 2, 8/3 for equal ones, and 2 with all shares at one
/// server, which receives 4 and has two streams.
#[test]
fn the_program_itself_says_the_same() {
    let (network, job) = example();
    for (shares, best) in [
        ([0.6, 0.4], 2.5),
        ([0.5, 0.5], 8.0 / 3.0),
        ([1.0, 0.0], 2.0),
    ] {
        let exact = inart::exact(&network, &job, &shares, 2_000).unwrap();
        assert_near(exact.plan.rate_bps, best);
        // The search ends when its bound is within a millionth of the rate.
        assert!(
            (exact.best_bps / 1e9 - best).abs() < 3e-6 * best,
            "{exact:?}"
        );
    }
}

#[test]
fn shares_have_to_be_one_together() {
    let (network, job) = example();
    let refused = inart::plan(&network, &job, &[0.5, 0.6]);
    assert_eq!(refused, Err(JobError::Shares("training".to_owned(), 2)));
}
