//! Several ways between hosts: all of them, the one that a flow takes, what switches are told, and what plans make of it.

use std::collections::{BTreeMap, BTreeSet};

use planner::routing::{self, Costs};
use proptest::prelude::*;
use scenario::model::routing::hash::{self, FiveTuple};
use scenario::model::routing::{PathTables, ToHost, Ways};
use scenario::model::topology::Topology;
use scenario::{Scenario, TargetModel, load, plan, topology_network};

fn loaded(topology: &str, routing: &str, rest: &str) -> Scenario {
    let text = format!("weir: 1\nname: ways\ntopology: {topology}\nrouting: {routing}\n{rest}");
    load("ways.yaml", &text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn ways(scenario: &Scenario) -> &Ways {
    scenario.ways.as_ref().unwrap()
}

/// The switches of ways, as sets.
fn switches(scenario: &Scenario, from: &str, to: &str) -> BTreeSet<Vec<String>> {
    let ways = ways(scenario).between(from, to);
    ways.into_iter().map(|way| way.switches).collect()
}

/// What switches do that were told this: P4's tables, by hand.
fn walk(
    topology: &Topology,
    told: &BTreeMap<&str, PathTables>,
    (from, to): (&str, &str),
    hash: u32,
) -> Vec<(String, u32)> {
    let index = |host: &str| topology.hosts.iter().position(|h| h.name == host).unwrap();
    let (sender, receiver) = (index(from), index(to));
    let mut at = topology
        .links
        .iter()
        .find_map(|link| link.peer(from))
        .unwrap();
    let mut walked = Vec::new();
    while at != to {
        assert!(walked.len() < topology.switches.len(), "{walked:?}");
        let told = &told[at];
        let by_list = |list: u16, ways: u16, turn: u8| {
            told.next_hops
                .get(&(list, hash::way(hash, turn, ways)))
                .copied()
        };
        let number = match told.hosts[receiver] {
            ToHost::Port(port) => port,
            ToHost::Nowhere => panic!("{at}"),
            ToHost::Spread {
                port,
                list,
                ways,
                turn,
            } => by_list(list, ways, turn).unwrap_or(port),
            ToHost::Between { port, target } => {
                let pair = told.pairs.get(&(told.origins[sender], target));
                pair.and_then(|(list, ways)| by_list(*list, *ways, 0))
                    .unwrap_or(port)
            }
        };
        walked.push((at.to_owned(), number));
        at = topology
            .ports(at)
            .find(|port| port.number == number)
            .unwrap()
            .peer;
    }
    walked
}

fn hold(scenario: &Scenario, hashes: &[u32]) {
    let topology = &scenario.topology;
    let ways = ways(scenario);
    let names = topology.switches.iter().map(String::as_str);
    let told: BTreeMap<&str, PathTables> = names.map(|name| (name, ways.told(name))).collect();
    for from in &topology.hosts {
        for to in topology.hosts.iter().filter(|to| to.name != from.name) {
            let ends = (from.name.as_str(), to.name.as_str());
            let all = ways.between(ends.0, ends.1);
            let first = ways.taken(ends.0, ends.1, 0).unwrap();
            let single = topology.path(ends.0, ends.1).unwrap();
            assert_eq!(first.switches, single, "what has no flow goes as ever");
            for hash in hashes {
                let taken = ways.taken(ends.0, ends.1, *hash).unwrap();
                assert!(all.contains(&taken), "{ends:?} {taken:?}");
                let said = taken
                    .switches
                    .iter()
                    .cloned()
                    .zip(taken.ports.iter().copied());
                assert_eq!(walk(topology, &told, ends, *hash), said.collect::<Vec<_>>());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn switches_that_do_as_they_are_told_lead_flows_as_it_is_said(
        seed in 0..1000_u32,
        degree in 3..5_u32,
        k in 2..6_u32,
        hashes in prop::collection::vec(any::<u32>(), 8),
    ) {
        let topology = format!("{{jellyfish: {{switches: 10, degree: {degree}, hosts_per_switch: 1, seed: {seed}}}}}");
        for routing in ["ecmp".to_owned(), format!("{{k_shortest: {k}}}")] {
            hold(&loaded(&topology, &routing, ""), &hashes);
        }
    }

    #[test]
    fn all_ways_are_those_of_the_planner(seed in 0..1000_u32, k in 2..6_u32) {
        let topology = format!("{{jellyfish: {{switches: 9, degree: 4, hosts_per_switch: 1, seed: {seed}}}}}");
        let equal = loaded(&topology, "ecmp", "");
        let network = topology_network(&equal.topology).unwrap();
        let search = routing::Routing::new(&network, Costs::hops(&network));
        let whole = loaded(&topology, &format!("{{k_shortest: {k}}}"), "");
        for (from, to) in [("h0-0", "h5-0"), ("h3-0", "h1-0"), ("h8-0", "h2-0")] {
            let ends = (network.node(from).unwrap(), network.node(to).unwrap());
            let named = |path: &routing::Path| {
                let nodes = search.nodes(path);
                let inner = &nodes[1..nodes.len() - 1];
                inner.iter().map(|node| network.name(*node).to_owned()).collect::<Vec<_>>()
            };
            let all = search.paths(ends.0, ends.1, 1_000).unwrap();
            prop_assert_eq!(switches(&equal, from, to), all.iter().map(named).collect());
            let some = search.k_shortest(ends.0, ends.1, k as usize).unwrap();
            prop_assert_eq!(switches(&whole, from, to), some.iter().map(named).collect());
        }
    }
}

#[test]
fn every_shape_and_parallel_links() {
    let hashes: Vec<u32> = (0..40_u32).map(|n| n.wrapping_mul(0x9E37_79B9)).collect();
    let ring = "{switches: [a, b, c], hosts: [x, y, z], links: [[x, a], [y, b], [z, c], [a, b], [b, c], [a, b], [c, a]]}";
    for topology in [
        "{leaf_spine: {leaves: 2, spines: 3, hosts_per_leaf: 2}}",
        "{fat_tree: {k: 4, hosts_per_edge: 1}}",
        "{rail_pods: {pods: 2, hosts_per_pod: 2, rails: 1, spines: 3}}",
        ring,
    ] {
        for routing in ["ecmp", "{k_shortest: 3}"] {
            hold(&loaded(topology, routing, ""), &hashes);
        }
    }
    let parallel = loaded(ring, "ecmp", "");
    let ports: BTreeSet<u32> = ways(&parallel)
        .between("x", "y")
        .iter()
        .map(|way| way.ports[0])
        .collect();
    assert_eq!(ports.len(), 2, "by each of the two links");
    assert_eq!(switches(&parallel, "x", "y").len(), 1);
}

/// Where one way leads anywhere nothing is chosen; where none leads, the rest has its ways.
#[test]
fn one_way_is_no_choice_and_islands_have_their_own() {
    let islands = "{switches: [a, b, c, d], hosts: [x, y, z], links: [[x, a], [y, b], [a, c], [c, b], [a, b], [z, d]]}";
    for routing in ["ecmp", "{k_shortest: 3}"] {
        let star = loaded("{star: {hosts: [x, y, z]}}", routing, "");
        assert!(star.ways.is_none(), "{routing}");
    }
    let scenario = loaded(islands, "{k_shortest: 3}", "");
    assert_eq!(switches(&scenario, "x", "y").len(), 2);
    assert!(switches(&scenario, "x", "z").is_empty());
}

const TWO_SPINES: &str = "{leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 1}}";

/// A flow whose packets all have one 5-tuple has one way; others have both.
#[test]
fn what_is_known_of_a_flow_says_its_way() {
    let flows = "flows:
  one: {from: h0-0, to: h1-0, filter: udp.sport == 7000 && udp.dport == 7001}
  pings: {from: h0-0, to: h1-0, filter: icmp}
  sums: {from: h0-0, to: h1-0, filter: agg}
  tagged: {from: h0-0, to: h1-0, filter: vlan.id == 5 && udp.sport == 7001 && udp.dport == 7000}
  half: {from: h0-0, to: h1-0, filter: udp.dport == 7001}
  either: {from: h0-0, to: h1-0, filter: \"udp.sport in {7000, 7002} && udp.dport == 7001\"}
  back: {from: h1-0, to: h0-0}
";
    let scenario = loaded(TWO_SPINES, "ecmp", flows);
    let host = |name: &str| scenario.topology.host(name).unwrap().ip.to_bits();
    let flow = |protocol, src_port, dst_port| FiveTuple {
        src: host("h0-0"),
        dst: host("h1-0"),
        protocol,
        src_port,
        dst_port,
    };
    let way = |flow: FiveTuple| {
        let way = ways(&scenario).taken("h0-0", "h1-0", flow.hash()).unwrap();
        vec![way.switches]
    };
    let paths = |name: &str| -> Vec<Vec<String>> {
        let flow = scenario
            .flows
            .iter()
            .find(|flow| flow.name == name)
            .unwrap();
        flow.paths
            .iter()
            .map(|path| path.switches.clone())
            .collect()
    };
    assert_eq!(paths("one"), way(flow(17, 7000, 7001)));
    assert_eq!(paths("pings"), way(flow(1, 0, 0)));
    for first in ["sums", "tagged"] {
        assert_eq!(paths(first), [["leaf0", "spine0", "leaf1"]], "{first}");
    }
    for both in ["half", "either"] {
        assert_eq!(paths(both).len(), 2, "{both}");
    }
    assert_eq!(paths("back").len(), 2);
}

/// A fault on a flow that may take either spine stands on a leaf; on one whose way is known, it may stand on the spine.
#[test]
fn faults_stand_where_all_ways_meet() {
    let fault = |filter: &str, place: &str| {
        let rest = format!(
            "flows: {{f: {{from: h0-0, to: h1-0, filter: {filter}}}}}\nfaults: [{{id: gone, flows: f{place}, effect: drop, select: {{nth: 3}}}}]\n"
        );
        let scenario = loaded(TWO_SPINES, "ecmp", &rest);
        plan(&scenario, &TargetModel::EMBEDDED).map_err(|error| error.to_string())
    };
    let planned = fault("udp", "").unwrap();
    assert_eq!(planned.injections[0].switch, "leaf0");
    let links = &planned.blast_radius[0].links;
    let all = [
        "h0-0-leaf0",
        "h1-0-leaf1",
        "leaf0-spine0",
        "leaf0-spine1",
        "leaf1-spine0",
        "leaf1-spine1",
    ];
    assert_eq!(*links, all);
    let refused = fault("udp", ", where: spine0").unwrap_err();
    assert!(
        refused.contains("not all packets of flow `f` cross switch `spine0`"),
        "{refused}"
    );

    let known = fault("udp.sport == 7000 && udp.dport == 7001", "").unwrap();
    assert_eq!(known.blast_radius[0].links.len(), 4, "the links of one way");
    let on: Vec<bool> = ["spine0", "spine1"]
        .map(|spine| {
            let place = format!(", where: {spine}");
            fault("udp.sport == 7000 && udp.dport == 7001", &place).is_ok()
        })
        .into();
    assert_eq!(on.iter().filter(|on| **on).count(), 1);
}

/// Only switches with several ways have a program that knows of them.
#[test]
fn spines_stay_as_they_are() {
    let scenario = loaded(TWO_SPINES, "ecmp", "");
    let planned = plan(&scenario, &TargetModel::EMBEDDED).unwrap();
    let multipath: Vec<&str> = planned
        .switches
        .iter()
        .filter(|switch| switch.multipath)
        .map(|switch| switch.name.as_str())
        .collect();
    assert_eq!(multipath, ["leaf0", "leaf1"]);
    let single = loaded(TWO_SPINES, "shortest", "");
    assert!(single.ways.is_none());
    let refused = plan(&scenario, &TargetModel::TOFINO2)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("supports only one path to each host"),
        "{refused}"
    );
}
