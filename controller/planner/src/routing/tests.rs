//! Compares paths with an exhaustive search.

use proptest::prelude::*;

use super::{Costs, Distance, Path, Routing};
use crate::network::generate::{FatTree, Jellyfish, LeafSpine, Parts, RailPods, Uplinks};
use crate::network::{Arc, Host, Link, Network, NetworkError, NodeId, Switch};

fn fat_tree(k: u32) -> Network {
    let shape = FatTree {
        k,
        hosts_per_edge: None,
        rate_bps: 1,
        parts: Parts::default(),
    };
    shape.build().unwrap()
}

fn names(routing: &Routing<'_>, path: &[Arc]) -> Vec<String> {
    let nodes = routing.nodes(path).into_iter();
    nodes
        .map(|node| routing.network().name(node).to_owned())
        .collect()
}

fn by_hops<'n>(network: &'n Network) -> (Routing<'n>, impl Fn(&str) -> NodeId) {
    let routing = Routing::new(network, Costs::hops(network));
    (routing, |name: &str| network.node(name).unwrap())
}

#[test]
fn a_fat_tree_has_as_many_ways_as_cores() {
    let network = fat_tree(4);
    let (routing, node) = by_hops(&network);
    let (from, to) = (node("h0-0-0"), node("h1-1-1"));
    assert_eq!(routing.distance(from, to).unwrap().hops, 6);
    assert_eq!(routing.count_paths(from, to), Ok(4));
    let paths = routing.paths(from, to, 10).unwrap();
    assert_eq!(paths.len(), 4);
    let cores: Vec<_> = paths
        .iter()
        .map(|path| names(&routing, path)[3].clone())
        .collect();
    assert_eq!(cores, ["core0", "core1", "core2", "core3"]);
    assert_eq!(routing.path(from, to).unwrap(), paths[0]);
    assert_eq!(routing.paths(from, to, 3).unwrap(), paths[..3]);
    // In one pod: two aggregation switches.
    assert_eq!(routing.count_paths(from, node("h0-1-0")), Ok(2));
    assert_eq!(routing.next_hops(node("edge0-0"), to).len(), 2);
    assert_eq!(routing.next_hops(node("core0"), to).len(), 1);
}

#[test]
fn equal_ways_share_equally() {
    let network = fat_tree(4);
    let (routing, node) = by_hops(&network);
    let shares = routing.shares(node("h0-0-0"), node("h1-1-1")).unwrap();
    let mut counted = std::collections::BTreeMap::new();
    for (_, share) in &shares {
        *counted.entry(format!("{share}")).or_insert(0) += 1;
    }
    // First and last link; edge to aggregation in both pods; aggregation to core and back.
    let expected = [("0.25", 8), ("0.5", 4), ("1", 2)];
    let expected = expected.map(|(share, links)| (share.to_owned(), links));
    assert_eq!(counted.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn the_way_to_oneself_is_empty() {
    let network = fat_tree(4);
    let (routing, node) = by_hops(&network);
    for name in ["h0-0-0", "core0"] {
        let here = node(name);
        assert_eq!(routing.path(here, here), Ok(Vec::new()));
        assert_eq!(routing.distance(here, here), Ok(Distance::default()));
        assert_eq!(routing.next_hops(here, here), []);
        assert_eq!(routing.paths(here, here, 5), Ok(vec![Vec::new()]));
        assert_eq!(routing.k_shortest(here, here, 5), Ok(vec![Vec::new()]));
        assert_eq!(routing.shares(here, here), Ok(Vec::new()));
    }
}

#[test]
fn hosts_do_not_forward() {
    // a – s and b – t, and c on both: c does not connect them.
    let mut network = Network::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| network.add_host(name, Host::default()).unwrap());
    let [s, t] = ["s", "t"].map(|name| network.add_switch(name, Switch::default()).unwrap());
    for ends in [[a, s], [b, t], [c, s], [c, t]] {
        network.connect(ends[0], ends[1], 1).unwrap();
    }
    let routing = Routing::new(&network, Costs::hops(&network));
    let apart = NetworkError::Disconnected("a".to_owned(), "b".to_owned());
    assert_eq!(apart.to_string(), "no path leads from `a` to `b`");
    assert_eq!(routing.path(a, b), Err(apart.clone()));
    assert_eq!(routing.distance(a, b), Err(apart.clone()));
    assert_eq!(routing.paths(a, b, 1), Err(apart.clone()));
    assert_eq!(routing.shares(a, b), Err(apart.clone()));
    assert_eq!(routing.k_shortest(a, b, 1), Err(apart));
    assert!(routing.next_hops(s, b).is_empty());
    assert_eq!(
        names(&routing, &routing.path(a, c).unwrap()),
        ["a", "s", "c"]
    );
    assert_eq!(
        names(&routing, &routing.path(c, b).unwrap()),
        ["c", "t", "b"]
    );
}

#[test]
fn a_host_of_many_cards_leaves_by_the_right_one() {
    let shape = RailPods {
        pods: 2,
        hosts_per_pod: 2,
        rails: 4,
        spines: 2,
        gpus_per_host: None,
        nic_rate_bps: 1,
        uplink_rate_bps: 1,
        parts: Parts::default(),
    };
    let network = shape.build().unwrap();
    let (routing, node) = by_hops(&network);
    // In a pod: any rail, one switch. Between pods: four rails here, two spines, four rails there.
    assert_eq!(routing.count_paths(node("h0-0"), node("h0-1")), Ok(4));
    assert_eq!(routing.count_paths(node("h0-0"), node("h1-1")), Ok(32));
    let to_a_rail = routing.path(node("h0-0"), node("rail0-2")).unwrap();
    assert_eq!(names(&routing, &to_a_rail), ["h0-0", "rail0-2"]);
}

#[test]
fn parallel_links_are_ways_of_their_own() {
    let mut network = Network::new();
    let [a, b] = ["a", "b"].map(|name| network.add_switch(name, Switch::default()).unwrap());
    for delay_ns in [5, 3, 3] {
        let link = Link {
            ends: [b, a],
            rate_bps: 1,
            delay_ns,
            loss: 0.0,
            load_bps: [0, 0],
        };
        network.add_link(link).unwrap();
    }
    let hops = Routing::new(&network, Costs::hops(&network));
    assert_eq!(hops.next_hops(a, b).len(), 3);
    let delay = Routing::new(&network, Costs::delay(&network));
    let links = |paths: Vec<Path>| -> Vec<u32> { paths.iter().map(|p| p[0].link.0).collect() };
    assert_eq!(links(delay.paths(a, b, 9).unwrap()), [1, 2]);
    assert_eq!(links(delay.k_shortest(a, b, 9).unwrap()), [1, 2, 0]);
    assert!(delay.path(a, b).unwrap()[0].back);
}

/// The textbook example of Yen's algorithm (C to H; edges with costs), computed by hand: C–E–F–H of 5, C–E–G–H of 7, then
/// C–D–F–H of 8, which precedes C–E–D–F–H of 8 since it has one link fewer.
#[test]
fn yens_example() {
    let mut network = Network::new();
    let mut add = |name: &str| network.add_switch(name, Switch::default()).unwrap();
    let nodes: Vec<_> = ["C", "D", "E", "F", "G", "H"].map(&mut add).to_vec();
    let of = |name: &str| nodes["CDEFGH".find(name).unwrap()];
    let edges = [
        ("C", "D", 3),
        ("C", "E", 2),
        ("D", "F", 4),
        ("E", "D", 1),
        ("E", "F", 2),
        ("E", "G", 3),
        ("F", "G", 2),
        ("F", "H", 1),
        ("G", "H", 2),
    ];
    for (a, b, _) in edges {
        network.connect(of(a), of(b), 1).unwrap();
    }
    // Directed edges: the reverse direction is expensive.
    let costs = Costs::from_fn(&network, |arc| match arc.back {
        false => edges[arc.link.index()].2,
        true => 1_000,
    });
    let routing = Routing::new(&network, costs);
    let found = routing.k_shortest(of("C"), of("H"), 4).unwrap();
    let told: Vec<_> = found
        .iter()
        .map(|path| (names(&routing, path).concat(), routing.length(path).cost))
        .collect();
    let expected = [("CEFH", 5), ("CEGH", 7), ("CDFH", 8), ("CEDFH", 8)];
    assert_eq!(told, expected.map(|(path, cost)| (path.to_owned(), cost)));
}

/// All paths that cross switches only, and none twice.
fn all_ways(network: &Network, from: NodeId, to: NodeId) -> Vec<Path> {
    let mut found = Vec::new();
    let mut begun = vec![(from, vec![from], Path::new())];
    while let Some((at, nodes, path)) = begun.pop() {
        if at == to {
            found.push(path);
            continue;
        }
        for (link, next) in network.adjacent(at) {
            let forwards = *next == to || network.switch(*next).is_some();
            if forwards && !nodes.contains(next) {
                let nodes = nodes.iter().copied().chain([*next]).collect();
                let arc = network.arc(*link, at);
                let path = path.iter().copied().chain([arc]).collect();
                begun.push((*next, nodes, path));
            }
        }
    }
    found
}

/// Small networks, possibly disconnected, with parallel links and hosts with several links.
fn small() -> impl Strategy<Value = (Network, Vec<u64>)> {
    let nodes = prop::collection::vec(prop::bool::weighted(0.7), 3..7);
    nodes.prop_flat_map(|kinds| {
        let count = kinds.len();
        let links = prop::collection::vec((0..count, 0..count), 1..11);
        let costs = prop::collection::vec(0..4_u64, 22);
        (Just(kinds), links, costs).prop_map(|(kinds, links, costs)| {
            let mut network = Network::new();
            for (number, is_switch) in kinds.into_iter().enumerate() {
                let name = format!("n{number}");
                if is_switch {
                    network.add_switch(&name, Switch::default()).unwrap();
                } else {
                    network.add_host(&name, Host::default()).unwrap();
                }
            }
            for (a, b) in links {
                let [a, b] = [a, b].map(|node| NodeId(node as u32));
                if a != b {
                    network.connect(a, b, 1).unwrap();
                }
            }
            (network, costs)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(600)))]

    #[test]
    fn ways_are_those_that_trying_all_finds((network, costs) in small(), even: bool) {
        let cost = |arc: Arc| if even { 3 } else { costs[arc.index()] };
        let routing = Routing::new(&network, Costs::from_fn(&network, cost));
        for (from, to) in network.ids().flat_map(|a| network.ids().map(move |b| (a, b))) {
            let mut all = all_ways(&network, from, to);
            all.sort_by_key(|path| (routing.length(path), path.clone()));
            let Some(best) = all.first() else {
                prop_assert!(routing.path(from, to).is_err());
                continue;
            };
            let length = routing.length(best);
            prop_assert_eq!(routing.distance(from, to), Ok(length));
            prop_assert_eq!(&routing.path(from, to).unwrap(), best);
            let shortest: Vec<_> =
                all.iter().filter(|path| routing.length(path) == length).cloned().collect();
            prop_assert_eq!(routing.count_paths(from, to), Ok(shortest.len() as u64));
            let mut first: Vec<_> = shortest.iter().filter_map(|path| path.first().copied()).collect();
            first.dedup();
            prop_assert_eq!(routing.next_hops(from, to), first);
            prop_assert_eq!(routing.paths(from, to, 1_000).unwrap(), shortest);
            // All traffic that is sent arrives.
            let shares = routing.shares(from, to).unwrap();
            let into = shares.iter().filter(|(arc, _)| network.ends(*arc).1 == to);
            let arrived: f64 = into.map(|(_, share)| share).sum();
            prop_assert!(from == to || (arrived - 1.0).abs() < 1e-9);
            for k in [1, 3, 1_000] {
                let found = routing.k_shortest(from, to, k).unwrap();
                prop_assert_eq!(&found[..], &all[..k.min(all.len())]);
            }
        }
    }
}

/// In a network of 10,000 hosts, searches start at switches only.
#[test]
fn ten_thousand_hosts() {
    let shape = LeafSpine {
        leaves: 250,
        spines: 20,
        hosts_per_leaf: 40,
        host_rate_bps: 1,
        uplinks: Uplinks::Rate(1),
        parts: Parts::default(),
    };
    let network = shape.build().unwrap();
    let (routing, node) = by_hops(&network);
    let server = node("h0-0");
    let hops: u32 = network
        .hosts()
        .map(|host| routing.distance(host, server).unwrap().hops)
        .sum();
    // 39 hosts are at the server's switch, all others behind a spine.
    assert_eq!(hops, 39 * 2 + 9_960 * 4);
    let searched = routing.to.iter().filter(|row| row.get().is_some()).count();
    assert_eq!(searched, 1);
}

#[test]
fn the_same_ways_again() {
    let shape = Jellyfish {
        switches: 60,
        degree: 6,
        hosts_per_switch: 1,
        host_rate_bps: 1,
        rate_bps: 1,
        seed: 4,
        parts: Parts::default(),
    };
    let network = shape.build().unwrap();
    let ways = || {
        let (routing, node) = by_hops(&network);
        routing.k_shortest(node("h0-0"), node("h59-0"), 20).unwrap()
    };
    let found = ways();
    assert_eq!(found.len(), 20);
    assert_eq!(found, ways());
}
