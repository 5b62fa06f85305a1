//! Each baseline reaches the rate of its paper or of a computation by hand, and never exceeds a capacity.

use planner::baseline::{atp, equal_split, esa, geryon, lbmm, raw, switchml};
use planner::gradient::{Job, JobError, Loads, Plan, Resource, Server, spare_bps};
use planner::network::generate::{
    LeafSpine, Parts, Programmable, Uplinks, draw_throughputs, make_programmable,
};
use planner::{Host, Network, NodeId, Switch};
use proptest::prelude::*;
use std::collections::BTreeMap;

use crate::golden::grid_example;

const GBIT: u64 = 1_000_000_000;

fn near(found: f64, expected: f64) {
    let off = (found - expected).abs() / expected;
    assert!(off <= 1e-9, "{found} instead of {expected}");
}

fn hosts(network: &mut Network, prefix: &str, at: &[NodeId], rate_bps: u64) -> Vec<NodeId> {
    let hosts = at.iter().enumerate().map(|(number, switch)| {
        let name = format!("{prefix}{number}");
        let host = network.add_host(&name, Host::default()).unwrap();
        network.connect(host, *switch, rate_bps).unwrap();
        host
    });
    hosts.collect()
}

fn sums(throughput_bps: u64) -> Switch {
    Switch {
        programmable: true,
        throughput_bps: Some(throughput_bps),
        ..Switch::default()
    }
}

fn only(plans: Result<Vec<Plan>, JobError>) -> Plan {
    let mut plans = plans.unwrap();
    assert_eq!(plans.len(), 1);
    plans.remove(0)
}

/// GRID's example: 1.0, with W4's path over S2.
#[test]
fn geryon_balances_links() {
    let (network, job) = grid_example();
    let plan = geryon::plan(&network, &job).unwrap();
    near(plan.rate_bps, 1e9);
    let [s1, s2] = ["S1", "S2"].map(|name| network.node(name).unwrap());
    let past_s2 = |route: &Vec<_>| route.iter().any(|arc| network.ends(*arc) == (s1, s2));
    let members = plan.parts[0].members.iter();
    assert_eq!(members.filter(|member| past_s2(&member.route)).count(), 1);
}

/// GRID's example: S1 sums 9/4 for each of four workers, and they share the 0.75 Gbit/s that its link has left: 2.4375.
#[test]
fn atp_sends_the_rest_raw() {
    let (network, job) = grid_example();
    let plan = only(atp::plan(&network, &[job]));
    near(plan.rate_bps, 2.4375e9);
    let s1 = network.node("S1").unwrap();
    let at_s1 = plan.parts.iter().find(|part| part.at == s1).unwrap();
    near(at_s1.share, 2.25 / 2.4375);
}

/// GRID's example, by hand: whole racks, 4 r ≤ 9 at S1, so 2.25. With S1's rack raw, its link would leave each worker 0.75.
#[test]
fn switchml_sums_racks_whole() {
    let (network, job) = grid_example();
    near(only(switchml::plan(&network, &[job])).rate_bps, 2.25e9);
}

/// GRID's example, by hand: four raw streams on S1's link to S3.
#[test]
fn raw_streams_take_shortest_ways() {
    let (network, job) = grid_example();
    near(only(raw::plan(&network, &[job])).rate_bps, 0.75e9);
}

/// A single job can use each switch completely.
#[test]
fn esa_alone_is_atp() {
    let (network, job) = grid_example();
    near(only(esa::plan(&network, &[job])).rate_bps, 2.4375e9);
}

/// Two jobs of four workers at a switch that sums 12, each with a server that receives 6.
fn two_jobs() -> (Network, [Job; 2]) {
    let mut network = Network::new();
    let switch = network.add_switch("S", sums(12 * GBIT)).unwrap();
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

/// ATP: 12/8 of each worker is summed, the rest is forwarded: 1.5 + 4 (r − 1.5) ≤ 6, so 2.625 for both. ESA: the first job
/// takes 4 r, the second job the rest, 3 − r of each worker: (3 − r) + 4 (r − (3 − r)) ≤ 6, so 15/7. SwitchML: each has 6, and
/// 4 r ≤ 6 gives 1.5; so does 4 r ≤ 6 of raw streams at the server.
#[test]
fn jobs_share_a_switch_each_in_its_way() {
    let (network, jobs) = two_jobs();
    let rate = |plans: Result<Vec<Plan>, JobError>| {
        let plans = plans.unwrap();
        assert_eq!(plans[0].rate_bps, plans[1].rate_bps);
        plans[0].rate_bps
    };
    near(rate(atp::plan(&network, &jobs)), 2.625e9);
    near(rate(esa::plan(&network, &jobs)), 15e9 / 7.0);
    near(rate(switchml::plan(&network, &jobs)), 1.5e9);
    near(rate(raw::plan(&network, &jobs)), 1.5e9);
    let esa = esa::plan(&network, &jobs).unwrap();
    assert_eq!(esa[0].parts.len(), 1, "the first job is summed whole");
}

/// InArt's example: two servers that receive 4, six workers, two switches that sum 6, links of 6. The paper does not say how
/// they are linked; here each switch has three workers and is linked to both servers.
fn inart_example() -> (Network, Job) {
    let mut network = Network::new();
    let switches = ["V1", "V2"].map(|name| network.add_switch(name, sums(6 * GBIT)).unwrap());
    let [v1, v2] = switches;
    let workers = hosts(&mut network, "W", &[v1, v1, v1, v2, v2, v2], 6 * GBIT);
    let servers = hosts(&mut network, "PS", &[v1, v1], 6 * GBIT);
    for server in &servers {
        network.connect(*server, v2, 6 * GBIT).unwrap();
    }
    let servers = servers.into_iter().map(|host| Server {
        ingress_bps: Some(4 * GBIT),
        ..Server::on(host)
    });
    let job = Job {
        name: "training".to_owned(),
        workers,
        servers: servers.collect(),
    };
    (network, job)
}

/// 6 r / 2 ≤ 4 at each server.
#[test]
fn lbmm_gives_four_thirds() {
    let (network, job) = inart_example();
    let plan = lbmm::plan(&network, &job).unwrap();
    near(plan.rate_bps, 4e9 / 3.0);
    assert!(plan.is_optimal);
}

/// 3 r ≤ 6 at each switch.
#[test]
fn an_equal_split_with_atp_gives_two() {
    let (network, job) = inart_example();
    near(only(equal_split::plan(&network, &[job])).rate_bps, 2e9);
}

/// Rate of ATP in that example if the rest may go raw, which InArt's 2 leaves out: each server receives 1 + 1 from the switches
/// and 6 (r − 2) / 2 raw, at most 4.
#[test]
fn atp_would_reach_eight_thirds_there() {
    let (network, job) = inart_example();
    near(only(atp::plan(&network, &[job])).rate_bps, 8e9 / 3.0);
}

/// Checks any plan: all of each worker's gradient is summed once, paths lead to their ends, and all plans together stay within
/// all capacities.
fn check(network: &Network, jobs: &[Job], plans: &[Plan]) {
    let mut loads: BTreeMap<Resource, (f64, f64)> = BTreeMap::new();
    assert_eq!(jobs.len(), plans.len());
    for (job, plan) in jobs.iter().zip(plans) {
        assert!(plan.rate_bps > 0.0);
        let mut shares = vec![0.0; job.workers.len()];
        for part in &plan.parts {
            let server = job.servers[part.server].host;
            assert!(part.share > 0.0);
            let up = leads(network, part.at, &part.up);
            assert_eq!(up, server);
            for member in &part.members {
                shares[member.worker] += part.share;
                let end = leads(network, job.workers[member.worker], &member.route);
                assert_eq!(end, part.at);
            }
        }
        shares.into_iter().for_each(|share| near(share, 1.0));
        for (resource, load) in Loads::from_plan(network, job, plan).iter() {
            let spare = spare_bps(network, job, resource).unwrap_or(f64::INFINITY);
            let entry = loads.entry(resource).or_insert((0.0, spare));
            entry.0 += load * plan.rate_bps;
        }
    }
    for (resource, (load, spare)) in loads {
        assert!(
            load <= spare * (1.0 + 1e-12),
            "{resource:?}: {load} of {spare}"
        );
    }
}

fn leads(network: &Network, from: NodeId, route: &[planner::network::Arc]) -> NodeId {
    route.iter().fold(from, |at, arc| {
        let (begin, end) = network.ends(*arc);
        assert_eq!(begin, at);
        end
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_baseline_is_above_a_capacity(
        leaves in 2_u32..5,
        spines in 1_u32..4,
        per_leaf in 3_u32..6,
        uplink in 1_u64..200,
        servers in 1_usize..3,
        jobs in 1_usize..3,
        share in 0.0..1.0_f64,
        seed: u64,
    ) {
        let shape = LeafSpine {
            leaves,
            spines,
            hosts_per_leaf: per_leaf,
            host_rate_bps: 100 * GBIT,
            uplinks: Uplinks::Rate(uplink * GBIT),
            parts: Parts::default(),
        };
        let mut network = shape.build().unwrap();
        make_programmable(&mut network, Programmable::Share(share), seed).unwrap();
        draw_throughputs(&mut network, 10 * GBIT..=800 * GBIT, seed).unwrap();
        let hosts: Vec<NodeId> = network.hosts().collect();
        let jobs: Vec<Job> = (0..jobs).map(|number| {
            // Every second host belongs to the second job, if there is one.
            let mut own = hosts.iter().copied().skip(number).step_by(jobs);
            let servers: Vec<Server> = own.by_ref().take(servers).map(Server::on).collect();
            Job { name: number.to_string(), workers: own.collect(), servers }
        }).collect();
        prop_assume!(jobs.iter().all(|job| !job.workers.is_empty()));
        let mut rates = Vec::new();
        for plan in [raw::plan, atp::plan, equal_split::plan, esa::plan, switchml::plan] {
            let plans = plan(&network, &jobs).unwrap();
            check(&network, &jobs, &plans);
            rates.push(plans[0].rate_bps);
        }
        // ATP sends the rest raw, so it is never slower than raw streams or an equal split. With several paths it may be: an
        // aggregate takes one of them, and may share its links.
        if spines == 1 {
            prop_assert!(rates[1] >= rates[0].max(rates[2]) * (1.0 - 1e-9), "{:?}", rates);
        }
        let first = &jobs[..1];
        check(&network, first, &[lbmm::plan(&network, &first[0]).unwrap()]);
        if servers == 1 {
            let plan = geryon::plan(&network, &first[0]).unwrap();
            check(&network, first, &[plan]);
        }
    }
}
