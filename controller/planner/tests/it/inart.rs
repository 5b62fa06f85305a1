//! Properties of InArt's plans on any network, and jobs that arrive and depart.

use planner::gradient::inart::{self, Online, Refused};
use planner::gradient::{Job, Loads, Plan, Server, spare_bps};
use planner::network::Arc;
use planner::{Host, Network, NodeId, Switch};
use proptest::prelude::*;

const GBIT: u64 = 1_000_000_000;

#[derive(Debug, Clone)]
struct Case {
    network: Network,
    job: Job,
    shares: Vec<f64>,
}

/// A tree of switches with a few more links and hosts at any of them, all with limits and loads.
fn cases(switches: usize, workers: usize, servers: usize) -> impl Strategy<Value = Case> {
    let index = any::<prop::sample::Index>;
    let parents = prop::collection::vec((index(), 4_u64..20, 0_u64..3), 1..switches);
    let more = prop::collection::vec((index(), index(), 4_u64..20), 0..3);
    let sums = prop::collection::vec((0_u64..12, 0_u64..3), switches);
    let workers = prop::collection::vec((index(), 3_u64..9), 1..=workers);
    let servers = prop::collection::vec((index(), 2_u64..9, 1_u32..5), 1..=servers);
    (parents, more, sums, workers, servers).prop_map(|(parents, more, sums, workers, servers)| {
        let mut network = Network::new();
        let count = parents.len() + 1;
        let switches: Vec<NodeId> = (0..count)
            .map(|number| {
                let (throughput, load) = sums[number];
                let switch = Switch {
                    programmable: throughput > 0,
                    throughput_bps: Some(throughput * GBIT),
                    load_bps: load * GBIT,
                    ..Switch::default()
                };
                network.add_switch(&format!("S{number}"), switch).unwrap()
            })
            .collect();
        for (number, (parent, rate, load)) in parents.iter().enumerate() {
            let parent = switches[parent.index(number + 1)];
            let link = network
                .connect(switches[number + 1], parent, rate * GBIT)
                .unwrap();
            network.link_mut(link).load_bps = [load * GBIT, 0];
        }
        for (a, b, rate) in more {
            let (a, b) = (switches[a.index(count)], switches[b.index(count)]);
            if a != b {
                network.connect(a, b, rate * GBIT).unwrap();
            }
        }
        let mut host = |name: String, at: prop::sample::Index, rate: u64| {
            let host = network.add_host(&name, Host::default()).unwrap();
            network
                .connect(host, switches[at.index(count)], rate * GBIT)
                .unwrap();
            host
        };
        let workers = workers.into_iter().enumerate();
        let workers = workers.map(|(number, (at, rate))| host(format!("W{number}"), at, rate));
        let workers = workers.collect();
        let weights: u32 = servers.iter().map(|(_, _, weight)| weight).sum();
        let shares = servers
            .iter()
            .map(|(_, _, weight)| f64::from(*weight) / f64::from(weights));
        let shares = shares.collect();
        let servers = servers
            .into_iter()
            .enumerate()
            .map(|(number, (at, ingress, _))| Server {
                host: host(format!("PS{number}"), at, 10),
                ingress_bps: Some(ingress * GBIT),
                load_bps: 0,
            });
        let job = Job {
            name: "job".to_owned(),
            servers: servers.collect(),
            workers,
        };
        Case {
            network,
            job,
            shares,
        }
    })
}

fn leads(network: &Network, route: &[Arc], from: NodeId, to: NodeId) -> bool {
    let mut at = from;
    for arc in route {
        let (start, end) = network.ends(*arc);
        if start != at || (end != to && network.host(end).is_some()) {
            return false;
        }
        at = end;
    }
    at == to
}

/// Checks that every worker's gradient for every server is summed once, paths lead to their ends, and no capacity is exceeded.
fn check(network: &Network, job: &Job, plan: &Plan) -> Result<(), TestCaseError> {
    for server in 0..job.servers.len() {
        let parts = || plan.parts.iter().filter(|part| part.server == server);
        let mut members: Vec<usize> = parts()
            .flat_map(|part| part.members.iter().map(|member| member.worker))
            .collect();
        members.sort_unstable();
        prop_assert_eq!(members, (0..job.workers.len()).collect::<Vec<_>>());
        for part in parts() {
            for member in &part.members {
                prop_assert!(leads(
                    network,
                    &member.route,
                    job.workers[member.worker],
                    part.at
                ));
            }
            prop_assert!(leads(network, &part.up, part.at, job.servers[server].host));
            let can_sum = network
                .switch(part.at)
                .is_none_or(|switch| switch.programmable);
            prop_assert!(can_sum);
        }
    }
    prop_assert!(plan.rate_bps > 0.0 && plan.rate_bps <= plan.bound_bps);
    for (resource, load) in Loads::from_plan(network, job, plan).iter() {
        if let Some(spare) = spare_bps(network, job, resource) {
            prop_assert!(
                load * plan.rate_bps <= spare * (1.0 + 1e-9),
                "{:?}",
                resource
            );
        }
    }
    Ok(())
}

/// Greatest rate of all choices of a switch or the server for each worker and server, if paths are unique.
fn by_trying_all(network: &Network, job: &Job, shares: &[f64]) -> f64 {
    use planner::routing::{Costs, Routing};
    let routing = Routing::new(network, Costs::hops(network));
    let can_sum = |id: &NodeId| network.switch(*id).unwrap().programmable;
    let sites: Vec<NodeId> = network.switches().filter(can_sum).collect();
    let streams = job.workers.len() * job.servers.len();
    let mut choice = vec![0; streams];
    let mut best = 0.0_f64;
    loop {
        let mut parts: Vec<planner::gradient::Part> = Vec::new();
        for (stream, choice) in choice.iter().enumerate() {
            let (server, worker) = (stream / job.workers.len(), stream % job.workers.len());
            let host = job.servers[server].host;
            let at = sites.get(*choice).copied().unwrap_or(host);
            let member = planner::gradient::Member {
                worker,
                route: routing.path(job.workers[worker], at).unwrap(),
            };
            match parts
                .iter_mut()
                .find(|part| part.at == at && part.server == server)
            {
                Some(part) => part.members.push(member),
                None => parts.push(planner::gradient::Part {
                    piece: server,
                    share: shares[server],
                    server,
                    at,
                    members: vec![member],
                    up: routing.path(at, host).unwrap(),
                }),
            }
        }
        let plan = Plan {
            job: String::new(),
            parts,
            answers: Vec::new(),
            rate_bps: 0.0,
            bound_bps: 0.0,
            goal: planner::gradient::Goal::Rate,
            is_optimal: false,
        };
        let binding = Loads::from_plan(network, job, &plan)
            .binding(network, job)
            .unwrap();
        best = best.max(binding.rate_bps);
        let Some(next) = choice.iter().position(|choice| *choice < sites.len()) else {
            return best;
        };
        choice[next] += 1;
        choice[..next].fill(0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn plans_exceed_nothing(case in cases(7, 10, 3)) {
        let Case { network, job, shares } = &case;
        let plan = inart::plan(network, job, shares).unwrap();
        check(network, job, &plan)?;
        let (shares, freely) = inart::shares(network, job).unwrap();
        prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        if shares.iter().all(|share| *share > 0.0) {
            check(network, job, &freely)?;
        }
        prop_assert_eq!(inart::plan(network, job, &case.shares).unwrap(), plan);
    }

    /// No bound is below the best of all choices.
    #[test]
    fn bounds_are_bounds(case in cases(3, 3, 2)) {
        let Case { network, job, shares } = &case;
        let plan = inart::plan(network, job, shares).unwrap();
        let best = by_trying_all(network, job, shares);
        prop_assert!(plan.bound_bps >= best * (1.0 - 1e-9));
    }

    /// The exact program reaches the best of all choices if paths between nodes are unique, never exceeds its bound, and is
    /// never worse than the search.
    #[test]
    fn the_program_finds_the_best_choice(case in cases(3, 3, 2)) {
        let Case { network, job, shares } = &case;
        let plan = inart::plan(network, job, shares).unwrap();
        let exact = inart::exact(network, job, shares, 2_000).unwrap();
        check(network, job, &exact.plan)?;
        prop_assert!(exact.plan.rate_bps >= plan.rate_bps * (1.0 - 1e-9));
        prop_assert!(exact.best_bps <= exact.plan.rate_bps * (1.0 + 1e-5), "proven: {exact:?}");
        prop_assert!(exact.best_bps <= plan.bound_bps * (1.0 + 1e-5));
        let best = by_trying_all(network, job, shares);
        prop_assert!(exact.plan.rate_bps >= best * (1.0 - 1e-9), "{} {best}", exact.plan.rate_bps);
        let switches = network.switches().count();
        let is_tree = network.links().len() == switches - 1 + network.hosts().count();
        if is_tree {
            prop_assert!(exact.plan.rate_bps <= best * (1.0 + 1e-9), "{} {best}", exact.plan.rate_bps);
        }
    }

    /// Jobs that depart release all they used, and running jobs together exceed no capacity.
    #[test]
    fn jobs_come_and_go(case in cases(7, 6, 2), wanted in 1_u64..GBIT) {
        let before = Online::new(case.network.clone());
        let mut online = before.clone();
        let mut names = Vec::new();
        for number in 0..6 {
            let job = Job { name: format!("job{number}"), ..case.job.clone() };
            match online.arrive(&job, &case.shares, wanted) {
                Ok(_) => names.push(job.name),
                Err(Refused::TooSlow { binding, reached_bps, .. }) => {
                    prop_assert!(!binding.is_empty() && reached_bps < wanted);
                }
                Err(Refused::Job(_)) => {}
                Err(refused) => prop_assert!(false, "{refused}"),
            }
        }
        for (link, was) in online.network().links().iter().zip(before.network().links()) {
            for (now, was) in link.load_bps.iter().zip(was.load_bps) {
                prop_assert!(*now <= link.rate_bps.max(was));
            }
        }
        for id in online.network().switches() {
            let now = online.network().switch(id).unwrap();
            let was = before.network().switch(id).unwrap();
            prop_assert!(now.load_bps <= now.throughput_bps.unwrap().max(was.load_bps));
        }
        for name in names {
            prop_assert!(online.depart(&name).is_some());
        }
        prop_assert_eq!(online.network(), before.network());
    }
}

#[test]
fn a_refusal_names_what_is_full() {
    let mut network = Network::new();
    let switch = network.add_switch("S", Switch::default()).unwrap();
    let [worker, server] = ["W", "PS"].map(|name| {
        let host = network.add_host(name, Host::default()).unwrap();
        network.connect(host, switch, GBIT).unwrap();
        host
    });
    let job = Job {
        name: "training".to_owned(),
        workers: vec![worker],
        servers: vec![Server {
            ingress_bps: Some(GBIT / 2),
            ..Server::on(server)
        }],
    };
    let mut online = Online::new(network);
    let refused = online.arrive(&job, &[1.0], GBIT).unwrap_err();
    let told = "job `training` would have 500000000 bit/s of 1000000000: the ingress of server `PS` is full first";
    assert_eq!(refused.to_string(), told);
    assert!(online.arrive(&job, &[1.0], GBIT / 2).is_ok());
    assert_eq!(
        online.arrive(&job, &[1.0], 1),
        Err(Refused::Runs("training".to_owned()))
    );
}

/// A measurement without assertions.
#[test]
#[ignore = "a measurement: cargo test --release -p planner --test it arrival -- --ignored --nocapture"]
fn arrival_of_a_thousand_workers() {
    let mut network = Network::new();
    let sums = || Switch {
        programmable: true,
        throughput_bps: Some(3_200 * GBIT),
        ..Switch::default()
    };
    let spines: Vec<NodeId> = (0..8)
        .map(|n| network.add_switch(&format!("spine{n}"), sums()).unwrap())
        .collect();
    let mut hosts = Vec::new();
    for leaf in 0..63 {
        let at = network.add_switch(&format!("leaf{leaf}"), sums()).unwrap();
        for spine in &spines {
            network.connect(at, *spine, 400 * GBIT).unwrap();
        }
        for number in 0..16 {
            let host = network
                .add_host(&format!("h{leaf}-{number}"), Host::default())
                .unwrap();
            network.connect(host, at, 100 * GBIT).unwrap();
            hosts.push(host);
        }
    }
    let servers = hosts.split_off(hosts.len() - 4);
    hosts.truncate(1_000);
    let job = Job {
        name: "training".to_owned(),
        workers: hosts,
        servers: servers.into_iter().map(Server::on).collect(),
    };
    let mut online = Online::new(network);
    for _ in 0..3 {
        let start = std::time::Instant::now();
        let plan = online.arrive(&job, &[0.25; 4], GBIT).unwrap();
        println!("{} bound {}", plan.rate_bps, plan.bound_bps);
        println!("arrival {:?}", start.elapsed());
        let start = std::time::Instant::now();
        online.depart("training").unwrap();
        println!("departure {:?}", start.elapsed());
    }
}

/// Distance of plans from the best of all choices, over a fixed set of networks.
#[test]
fn small_plans_are_near_the_best() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut sum, mut worst) = (0.0, 0.0_f64);
    const COUNT: u32 = 300;
    for _ in 0..COUNT {
        let Case {
            network,
            job,
            shares,
        } = cases(3, 3, 2).new_tree(&mut runner).unwrap().current();
        let plan = inart::plan(&network, &job, &shares).unwrap();
        let gap = 1.0 - plan.rate_bps / by_trying_all(&network, &job, &shares);
        sum += gap;
        worst = worst.max(gap);
    }
    println!(
        "gap {:.4} on average, {worst:.4} at worst",
        sum / f64::from(COUNT)
    );
    assert!(sum / f64::from(COUNT) <= 0.02, "{sum} of {COUNT}");
    assert!(worst <= 0.30, "{worst}");
}

/// A server receives a stream from each switch that sums for it, so few of 25 racks sum, and more than their own workers.
#[test]
fn of_many_racks_few_switches_sum() {
    use planner::baseline::equal_split;
    use planner::evaluation::{Instance, Shape};
    use planner::network::generate::Programmable;
    let instance = Instance {
        shape: Shape::LeafSpineOf { leaves: 25 },
        programmable: Programmable::TopsOfRacks,
        workers: 600,
        servers: 4,
        host_rate_bps: 100 * GBIT,
        server_rate_bps: 400 * GBIT,
    };
    let (network, job) = instance.draw(1).unwrap();
    let plan = inart::plan(&network, &job, &[0.25; 4]).unwrap();
    let loads = Loads::from_plan(&network, &job, &plan);
    let binding = loads.binding(&network, &job).unwrap();
    assert!(binding.rate_bps >= plan.rate_bps * (1.0 - 1e-9));
    let split = equal_split::plan(&network, std::slice::from_ref(&job)).unwrap();
    assert!(
        plan.rate_bps > 1.2 * split[0].rate_bps,
        "{} and {}",
        plan.rate_bps,
        split[0].rate_bps
    );
}
