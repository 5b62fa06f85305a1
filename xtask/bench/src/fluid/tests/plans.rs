//! Rounds take the time that the rate of their plan gives.

use planner::baseline::{atp, equal_split, esa, geryon, lbmm, raw, rgria, switchml};
use planner::evaluation::{Instance, Shape, examples};
use planner::gradient::{Job, Plan, Resource, Server, grid};
use planner::network::generate::Programmable;
use planner::{Network, Switch};
use test_support::seeds;

use super::{assert_near, hosts};
use crate::fluid::{Pull, Round, Simulation};

const GBIT: u64 = 1_000_000_000;

/// GRID's plan for its example reaches 3 Gbit/s. The server's link carries 9 Gbit/s down, so a tree takes no longer
/// than a worker's link; with unicast, four streams share a link of 3.
#[test]
fn a_round_takes_the_time_of_its_plan() {
    let (network, job) = examples::grid().unwrap();
    let plan = grid::plan(&network, &job).unwrap();
    let run = |pull, is_pipelined| {
        let mut simulation = Simulation::new();
        let round = Round {
            job: &job,
            plan: &plan,
            gradient_bytes: 3_000_000_000,
            start_s: 1.0,
            pull,
            is_pipelined,
        };
        let id = simulation.add_round(&network, &round).unwrap();
        simulation.run().unwrap().round(&id)
    };
    let none = run(Pull::None, false);
    assert_near(none.push_s, 8.0);
    assert_near(none.round_s, 8.0);
    assert_eq!(none.pull_s, 0.0);
    for rate in &none.worker_bps {
        assert_near(rate / 3e9, 1.0);
    }
    let tree = run(Pull::Tree, false);
    assert_near(tree.push_s, 8.0);
    assert_near(tree.pull_s, 8.0);
    assert_near(tree.round_s, 16.0);
    assert_near(run(Pull::Tree, true).round_s, 8.0);
    // W1 to W4 share S3–S1, which carries 3: 24 Gbit · 4 / 3 Gbit/s.
    assert_near(run(Pull::Unicast, false).pull_s, 32.0);
}

/// Two jobs of four workers at a switch that sums 12 Gbit/s. Each job has a server with a link of 6 Gbit/s.
fn two_jobs() -> (Network, [Job; 2]) {
    let mut network = Network::new();
    let sums = Switch {
        programmable: true,
        throughput_bps: Some(12 * GBIT),
        ..Switch::default()
    };
    let switch = network.add_switch("S", sums).unwrap();
    let jobs = ["a", "b"].map(|name| {
        let workers = hosts(&mut network, name, &[switch; 4], 3 * GBIT);
        let server = hosts(&mut network, &format!("{name}-ps"), &[switch], 6 * GBIT);
        Job {
            name: name.to_owned(),
            workers,
            servers: vec![Server::on(server[0])],
        }
    });
    (network, jobs)
}

/// Together both push 21 Gbit at 2.625 Gbit/s, in 8 s. If the second starts after the first has ended, each has the
/// switch alone, but its plan still sends the rest unsummed: 3/7 of each bit in four streams and 4/7 in one. The
/// server's 6 Gbit/s are full at 2.625 again.
#[test]
fn jobs_that_run_at_once_are_as_fast_as_planned_together() {
    let (network, jobs) = two_jobs();
    let plans = atp::plan(&network, &jobs).unwrap();
    for later_s in [0.0, 8.0] {
        let mut simulation = Simulation::new();
        let mut rounds = Vec::new();
        for ((job, plan), start_s) in jobs.iter().zip(&plans).zip([0.0, later_s]) {
            let round = Round {
                job,
                plan,
                gradient_bytes: 21_000_000_000 / 8,
                start_s,
                pull: Pull::None,
                is_pipelined: false,
            };
            rounds.push(simulation.add_round(&network, &round).unwrap());
        }
        let outcome = simulation.run().unwrap();
        for round in &rounds {
            assert_near(outcome.round(round).push_s, 8.0);
        }
        assert_near(outcome.end_s, 8.0 + later_s);
        let peak = |resource| {
            outcome
                .peaks
                .iter()
                .find(|(other, _)| *other == resource)
                .unwrap()
                .1
        };
        let switch = network.node("S").unwrap();
        assert_near(
            peak(Resource::Sums(switch)),
            if later_s == 0.0 { 1.0 } else { 0.5 },
        );
    }
}

/// Alone in its network, a plan pushes a gradient in the time that its rate gives.
fn check_alone(network: &Network, job: &Job, plan: &Plan) {
    let mut simulation = Simulation::new();
    let round = Round {
        job,
        plan,
        gradient_bytes: 1_000_000,
        start_s: 0.0,
        pull: Pull::None,
        is_pipelined: false,
    };
    let id = simulation.add_round(network, &round).unwrap();
    let found = simulation.run().unwrap().round(&id);
    assert_near(found.push_s, 8e6 / plan.rate_bps);
}

#[test]
fn each_baseline_pushes_at_its_rate() {
    for seed in seeds(0..40) {
        for (shape, workers) in [
            (Shape::FatTreeOf { k: 4 }, 12),
            (Shape::LeafSpineOf { leaves: 2 }, 30),
        ] {
            for servers in 1..=2 {
                let instance = Instance {
                    shape,
                    programmable: Programmable::Share(0.25 * (seed % 4 + 1) as f64),
                    workers,
                    servers,
                    host_rate_bps: 100 * GBIT,
                    server_rate_bps: 150 * GBIT,
                };
                let (network, job) = instance.draw(seed).unwrap();
                let jobs = std::slice::from_ref(&job);
                for plan in [
                    raw::plan,
                    atp::plan,
                    equal_split::plan,
                    esa::plan,
                    switchml::plan,
                ] {
                    check_alone(&network, &job, &plan(&network, jobs).unwrap()[0]);
                }
                check_alone(&network, &job, &lbmm::plan(&network, &job).unwrap());
                if servers == 1 {
                    check_alone(&network, &job, &geryon::plan(&network, &job).unwrap());
                    let relaxation = rgria::relax(&network, &job).unwrap();
                    let rounded = rgria::round(&network, &job, &relaxation, seed);
                    check_alone(&network, &job, &rounded.plan(&network, &job).unwrap());
                }
            }
        }
    }
}
