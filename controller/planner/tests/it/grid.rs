//! GRID's plans against all plans that there are, where those can be counted.

use planner::gradient::{Goal, Job, Loads, Member, Part, Plan, Route, Server, grid};
use planner::network::Arc;
use planner::{Host, Network, NodeId, Switch};
use proptest::prelude::*;

/// Three switches, each linked to each, so that two ways lead from one to another.
#[derive(Debug, Clone)]
struct Triangle {
    links: [u64; 3],
    sums: [Option<u64>; 3],
    /// Of each worker: its switch, and what its link carries.
    workers: Vec<(usize, u64)>,
    server: (usize, u64),
    /// What the links between switches carry already, one way.
    load: u64,
}

fn triangles() -> impl Strategy<Value = Triangle> {
    let sums = prop::option::of(1_u64..20);
    (
        prop::array::uniform3(1_u64..12),
        prop::array::uniform3(sums),
        prop::collection::vec((0_usize..3, 1_u64..10), 1..4),
        (0_usize..3, 1_u64..15),
        0_u64..3,
    )
        .prop_map(|(links, sums, workers, server, load)| Triangle {
            links,
            sums,
            workers,
            server,
            load,
        })
}

impl Triangle {
    fn build(&self) -> (Network, Job) {
        let mut network = Network::new();
        let switches: Vec<NodeId> = (0..3)
            .map(|index| {
                let switch = Switch {
                    programmable: self.sums[index].is_some(),
                    throughput_bps: self.sums[index],
                    ..Switch::default()
                };
                network.add_switch(&format!("s{index}"), switch).unwrap()
            })
            .collect();
        for (index, rate) in self.links.iter().enumerate() {
            let ends = (switches[index], switches[(index + 1) % 3]);
            let link = network.connect(ends.0, ends.1, *rate).unwrap();
            network.link_mut(link).load_bps = [self.load.min(*rate), 0];
        }
        let workers = self.workers.iter().enumerate().map(|(index, (at, rate))| {
            let host = network
                .add_host(&format!("w{index}"), Host::default())
                .unwrap();
            network.connect(host, switches[*at], *rate).unwrap();
            host
        });
        let workers = workers.collect();
        let host = network.add_host("ps", Host::default()).unwrap();
        network
            .connect(host, switches[self.server.0], self.server.1)
            .unwrap();
        let job = Job {
            name: "job".to_owned(),
            workers,
            servers: vec![Server::on(host)],
        };
        (network, job)
    }
}

/// All ways that pass no node twice, and no host but at their ends.
fn ways(network: &Network, from: NodeId, to: NodeId) -> Vec<Route> {
    fn go(
        network: &Network,
        at: NodeId,
        to: NodeId,
        passed: &mut Vec<NodeId>,
        way: &mut Vec<Arc>,
        found: &mut Vec<Route>,
    ) {
        if at == to {
            found.push(way.clone());
            return;
        }
        for (link, peer) in network.adjacent(at) {
            if passed.contains(peer) || (network.host(*peer).is_some() && *peer != to) {
                continue;
            }
            passed.push(*peer);
            way.push(network.arc(*link, at));
            go(network, *peer, to, passed, way, found);
            way.pop();
            passed.pop();
        }
    }
    let mut found = Vec::new();
    go(
        network,
        from,
        to,
        &mut vec![from],
        &mut Vec::new(),
        &mut found,
    );
    found
}

/// The best rate of all plans.
fn best(network: &Network, job: &Job) -> f64 {
    let server = job.servers[0].host;
    let mut places: Vec<NodeId> = network.switches().collect();
    places.retain(|id| {
        network
            .switch(*id)
            .is_some_and(|switch| switch.programmable)
    });
    let ups: Vec<Vec<Route>> = places.iter().map(|at| ways(network, *at, server)).collect();
    places.push(server);
    // Of each worker: where it is summed, and by which way it gets there.
    let choices: Vec<Vec<(usize, Route)>> = job
        .workers
        .iter()
        .map(|worker| {
            let places = places.iter().enumerate();
            places
                .flat_map(|(place, at)| {
                    ways(network, *worker, *at)
                        .into_iter()
                        .map(move |way| (place, way))
                })
                .collect()
        })
        .collect();
    let mut best: f64 = 0.0;
    let mut chosen = vec![0; choices.len()];
    loop {
        let mut routed = vec![0; ups.len()];
        loop {
            let parts = places.iter().enumerate().map(|(place, at)| Part {
                piece: 0,
                share: 1.0,
                server: 0,
                at: *at,
                members: choices
                    .iter()
                    .zip(&chosen)
                    .enumerate()
                    .filter(|(_, (of, choice))| of[**choice].0 == place)
                    .map(|(worker, (of, choice))| Member {
                        worker,
                        route: of[*choice].1.clone(),
                    })
                    .collect(),
                up: ups
                    .get(place)
                    .map(|ups| ups[routed[place]].clone())
                    .unwrap_or_default(),
            });
            let plan = Plan {
                job: String::new(),
                parts: parts.filter(|part| !part.members.is_empty()).collect(),
                rate_bps: 0.0,
                bound_bps: 0.0,
                goal: Goal::Rate,
                is_optimal: false,
            };
            let binding = Loads::of(network, job, &plan)
                .binding(network, job)
                .unwrap();
            best = best.max(binding.rate_bps);
            if !count_up(&mut routed, |place| ups[place].len()) {
                break;
            }
        }
        if !count_up(&mut chosen, |worker| choices[worker].len()) {
            return best;
        }
    }
}

/// The next of all combinations.
fn count_up(digits: &mut [usize], of: impl Fn(usize) -> usize) -> bool {
    for (place, digit) in digits.iter_mut().enumerate() {
        *digit += 1;
        if *digit < of(place) {
            return true;
        }
        *digit = 0;
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn plans_keep_to_every_capacity_and_are_near_the_best(triangle in triangles()) {
        let (network, job) = triangle.build();
        let best = best(&network, &job);
        let quick = grid::plan(&network, &job);
        if best == 0.0 {
            prop_assert!(quick.is_err());
            return Ok(());
        }
        let quick = quick.unwrap();
        let mut plan = quick.clone();
        grid::prove(&network, &job, &mut plan).unwrap();
        let binding = Loads::of(&network, &job, &plan).binding(&network, &job).unwrap();
        // What it says is what it does, so nothing is over its capacity.
        prop_assert!((binding.rate_bps - plan.rate_bps).abs() <= 1e-9 * plan.rate_bps);
        prop_assert!(plan.rate_bps >= quick.rate_bps);
        prop_assert!(plan.rate_bps <= best * (1.0 + 1e-9), "{} of {best}", plan.rate_bps);
        prop_assert!(plan.bound_bps >= best * (1.0 - 1e-6), "{} bounds {best}", plan.bound_bps);
        if plan.is_optimal {
            prop_assert!(plan.rate_bps >= best * (1.0 - 1e-5), "{} is not {best}", plan.rate_bps);
        }
        prop_assert_eq!(&plan, &{
            let mut again = grid::plan(&network, &job).unwrap();
            grid::prove(&network, &job, &mut again).unwrap();
            again
        });
    }
}

#[test]
fn of_four_hundred_small_networks_nearly_all_plans_are_shown_to_be_the_best() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut planned, mut proven, mut sum, mut worst) = (0, 0, 0.0, 0.0_f64);
    for _ in 0..400 {
        let triangle = triangles().new_tree(&mut runner).unwrap().current();
        let (network, job) = triangle.build();
        let best = best(&network, &job);
        let Ok(mut plan) = grid::plan(&network, &job) else {
            continue;
        };
        grid::prove(&network, &job, &mut plan).unwrap();
        let gap = 1.0 - plan.rate_bps / best;
        planned += 1;
        proven += u32::from(plan.is_optimal);
        sum += gap;
        worst = worst.max(gap);
    }
    assert!(planned > 300, "{planned}");
    assert!(sum / f64::from(planned) <= 0.002, "{sum} of {planned}");
    assert!(worst <= 0.08, "{worst}");
    assert!(proven * 10 >= planned * 9, "{proven} of {planned}");
}
