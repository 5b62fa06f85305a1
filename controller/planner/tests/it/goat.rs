//! Properties of GOAT's plans on any network.

use planner::gradient::goat::{self, Gradient};
use planner::gradient::{Goal, Job, Loads, Plan, Server};
use planner::routing::{Costs, Routing};
use planner::{Host, Network, NodeId, Switch};
use proptest::prelude::*;

/// A tree of switches with a few more links, and hosts at any of them.
#[derive(Debug, Clone)]
struct Case {
    network: Network,
    job: Job,
    sub_models: Vec<u64>,
}

fn cases(switches: usize, workers: usize, sub_models: usize) -> impl Strategy<Value = Case> {
    let parents = prop::collection::vec(any::<prop::sample::Index>(), 1..switches);
    let more = prop::collection::vec(any::<[prop::sample::Index; 2]>(), 0..3);
    let memories = prop::collection::vec(0_u64..30, switches);
    let hosts = prop::collection::vec(any::<prop::sample::Index>(), 2..=workers + 1);
    let sub_models = prop::collection::vec(1_u64..12, 1..=sub_models);
    (parents, more, memories, hosts, sub_models).prop_map(
        |(parents, more, memories, hosts, sub_models)| {
            let mut network = Network::new();
            let count = parents.len() + 1;
            let switches: Vec<NodeId> = (0..count)
                .map(|number| {
                    let switch = Switch {
                        programmable: memories[number] > 0,
                        memory_bytes: Some(memories[number]),
                        ..Switch::default()
                    };
                    network.add_switch(&format!("S{number}"), switch).unwrap()
                })
                .collect();
            for (number, parent) in parents.iter().enumerate() {
                let parent = switches[parent.index(number + 1)];
                network
                    .connect(switches[number + 1], parent, 1_000)
                    .unwrap();
            }
            for [a, b] in more {
                let (a, b) = (switches[a.index(count)], switches[b.index(count)]);
                if a != b {
                    network.connect(a, b, 1_000).unwrap();
                }
            }
            let mut hosts = hosts.iter().enumerate().map(|(number, at)| {
                let host = network
                    .add_host(&format!("H{number}"), Host::default())
                    .unwrap();
                network
                    .connect(host, switches[at.index(count)], 1_000)
                    .unwrap();
                host
            });
            let server = hosts.next().unwrap();
            let workers = hosts.collect();
            let job = Job {
                name: "job".to_owned(),
                workers,
                servers: vec![Server::on(server)],
            };
            Case {
                network,
                job,
                sub_models,
            }
        },
    )
}

fn plan(case: &Case, seed: u64) -> Plan {
    let costs = goat::links(&case.network);
    let gradient = Gradient {
        sub_models: &case.sub_models,
        costs: &costs,
    };
    goat::plan(&case.network, &case.job, &gradient, seed).unwrap()
}

fn cost_and_bound(plan: &Plan) -> (f64, f64) {
    match plan.goal {
        Goal::Traffic { byte_cost, bound } => (byte_cost, bound),
        Goal::Rate => panic!("a plan for rate"),
    }
}

/// Minimum cost of all sets of open switches for all sub-models that fit into memories.
fn by_trying_all(case: &Case) -> u64 {
    let Case {
        network,
        job,
        sub_models,
    } = case;
    let routing = Routing::new(network, Costs::hops(network));
    let hops = |from, to| u64::from(routing.distance(from, to).unwrap().hops);
    let server = job.servers[0].host;
    let sites: Vec<NodeId> = network
        .switches()
        .filter(|id| network.switch(*id).unwrap().programmable)
        .collect();
    let memory = |id: NodeId| network.switch(id).unwrap().memory_bytes.unwrap();
    let cost = |set: usize| {
        let open = || (0..sites.len()).filter(move |site| set >> site & 1 == 1);
        let workers = job.workers.iter().map(|worker| {
            let nodes = open().map(|site| sites[site]).chain([server]);
            nodes.map(|node| hops(*worker, node)).min().unwrap()
        });
        workers.sum::<u64>() + open().map(|site| hops(sites[site], server)).sum::<u64>()
    };
    let costs: Vec<u64> = (0..1 << sites.len()).map(cost).collect();
    let mut least = u64::MAX;
    let mut choice = vec![0; sub_models.len()];
    loop {
        let fits = (0..sites.len()).all(|site| {
            let held = choice.iter().zip(sub_models);
            let held = held.filter(|(set, _)| *set >> site & 1 == 1);
            held.map(|(_, bytes)| bytes).sum::<u64>() <= memory(sites[site])
        });
        if fits {
            let of = choice.iter().zip(sub_models);
            least = least.min(of.map(|(set, bytes)| costs[*set] * bytes).sum());
        }
        let Some(next) = choice.iter().position(|set| *set + 1 < costs.len()) else {
            return least;
        };
        choice[next] += 1;
        choice[..next].fill(0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Every worker is summed once for each sub-model, paths lead to their ends, memories and links are not exceeded, the
    /// plan's cost is that of its paths, and the bound is not above it.
    #[test]
    fn plans_exceed_nothing(case in cases(8, 12, 5), seed: u64) {
        let plan = plan(&case, seed);
        let Case { network, job, sub_models } = &case;
        let sum = sub_models.iter().sum::<u64>() as f64;
        let mut held = std::collections::BTreeMap::<NodeId, f64>::new();
        let mut cost = 0.0;
        for (piece, sub_model) in sub_models.iter().enumerate() {
            let parts = || plan.parts.iter().filter(|part| part.piece == piece);
            let mut members: Vec<usize> = parts()
                .flat_map(|part| part.members.iter().map(|member| member.worker))
                .collect();
            members.sort_unstable();
            prop_assert_eq!(members, (0..job.workers.len()).collect::<Vec<_>>());
            for part in parts() {
                let bytes = part.share * sum;
                prop_assert!((bytes - *sub_model as f64).abs() < 1e-6);
                for member in &part.members {
                    prop_assert!(leads(network, &member.route, job.workers[member.worker], part.at));
                    cost += bytes * member.route.len() as f64;
                }
                prop_assert!(leads(network, &part.up, part.at, job.servers[0].host));
                cost += bytes * part.up.len() as f64;
                if network.switch(part.at).is_some() {
                    *held.entry(part.at).or_default() += bytes;
                }
            }
        }
        for (at, bytes) in held {
            let memory = network.switch(at).unwrap().memory_bytes.unwrap();
            prop_assert!(bytes <= memory as f64 + 1e-6);
        }
        let (byte_cost, bound) = cost_and_bound(&plan);
        prop_assert!((byte_cost - cost).abs() < 1e-6 * cost);
        prop_assert!(bound <= byte_cost);
        let binding = Loads::from_plan(network, job, &plan).binding(network, job).unwrap();
        prop_assert_eq!(binding.rate_bps, plan.rate_bps);
    }

    #[test]
    fn the_same_seed_gives_the_same_plan(case in cases(8, 12, 5), seed: u64) {
        prop_assert_eq!(plan(&case, seed), plan(&case, seed));
    }

    /// On tiny networks the optimum is found and proved.
    #[test]
    fn tiny_ones_are_optimal(case in cases(4, 6, 3), seed: u64) {
        let plan = plan(&case, seed);
        let least = by_trying_all(&case) as f64;
        let (byte_cost, bound) = cost_and_bound(&plan);
        prop_assert_eq!(byte_cost, least);
        prop_assert!(bound <= least);
        prop_assert!(plan.is_optimal, "bound {}", bound);
    }
}

fn leads(network: &Network, route: &[planner::network::Arc], from: NodeId, to: NodeId) -> bool {
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
