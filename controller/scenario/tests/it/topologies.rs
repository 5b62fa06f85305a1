//! Topologies on their own, for planners.

use planner::network::NodeKind;
use scenario::model::topology::{Capacity, TopologySource};
use scenario::{Diagnostics, Given, load_topology, named_topology, topology_network};

fn load(file: &str, text: &str) -> Result<planner::Network, Diagnostics> {
    let (topology, warnings) = load_topology(file, text, &Given::default())?;
    assert_eq!(warnings, Diagnostics::default());
    Ok(topology_network(&topology).unwrap())
}

fn told(file: &str, text: &str) -> String {
    load_topology(file, text, &Given::default())
        .expect_err("it is wrong")
        .to_string()
}

#[test]
fn a_section_alone_or_under_its_key_or_of_a_scenario() {
    let section = "{fat_tree: {k: 4, gpus: 8, throughput: 1Gbit/s, programmable: racks}}";
    let network = load("a.yaml", section).unwrap();
    assert_eq!(network.hosts().count(), 16);
    for whole in [
        format!("topology: {section}\n"),
        format!("weir: 1\nname: a\ntopology: {section}\nflows: {{f: {{from: x, to: y}}}}\n"),
    ] {
        assert_eq!(load("a.yaml", &whole), Ok(network.clone()));
    }
    assert_eq!(
        network.host(network.node("h0-0-0").unwrap()).unwrap().gpus,
        8
    );
    let is_programmable = |name: &str| {
        let switch = network.switch(network.node(name).unwrap()).unwrap();
        assert_eq!(switch.throughput_bps, Some(1_000_000_000));
        switch.programmable
    };
    assert!(is_programmable("edge0-0") && !is_programmable("core0"));
    let other = told("a.yaml", "topology: {star: {hosts: [a]}}\nflow: {}\n");
    assert!(
        other.contains("a file of a topology has no key `flow`"),
        "{other}"
    );
}

#[test]
fn hosts_of_several_links_are_planned_for() {
    let pods = "{rail_pods: {pods: 2, hosts_per_pod: 4, rails: 8, spines: 2, rate: 400Gbit/s}}";
    let network = load("a.yaml", pods).unwrap();
    let host = network.node("h1-3").unwrap();
    assert_eq!(network.adjacent(host).len(), 8);
    assert_eq!(network.host(host).unwrap().gpus, 8);
    let two = "{switches: [s, t], hosts: [a], links: [[a, s], [a, t]]}";
    assert_eq!(load("a.yaml", two).unwrap().links().len(), 2);
    for wrong in [
        (
            "{switches: [s], hosts: [a], links: []}",
            "host `a` has 0 links",
        ),
        (
            "{switches: [s], hosts: [a, b], links: [[a, s], [b, s], [b, a]]}",
            "host `b` is linked to host `a`",
        ),
    ] {
        assert!(told("a.yaml", wrong.0).contains(wrong.1), "{wrong:?}");
    }
}

#[test]
fn more_are_planned_for_than_run() {
    let wide = "{leaf_spine: {leaves: 250, spines: 20, hosts_per_leaf: 40}}";
    let network = load("a.yaml", wide).unwrap();
    assert_eq!(network.hosts().count(), 10_000);
    let vast = told(
        "a.yaml",
        "{leaf_spine: {leaves: 9000, spines: 20, hosts_per_leaf: 40}}",
    );
    assert!(
        vast.contains("[capacity] 369020 nodes; at most 200000"),
        "{vast}"
    );
}

#[test]
fn what_switches_hosts_and_links_say() {
    let text = "
switches: [plain, {name: s, programmable: false, throughput: 5Gbit/s, memory: 1MiB, stages: 12, load: 1Gbit/s}]
hosts: [a, {name: b, gpus: 2, slots: 3, busy: true}]
links: [{ends: [a, s], load: [1Mbit/s, 2Mbit/s]}, {ends: [b, s], load: 3Mbit/s}, {ends: [s, plain], latency: 2us}]
";
    let (topology, _) = load_topology("a.yaml", text, &Given::default()).unwrap();
    assert_eq!(topology.capacity("plain"), Capacity::default());
    let network = topology_network(&topology).unwrap();
    let NodeKind::Switch(s) = &network.nodes()[1].kind else {
        panic!("switches come first")
    };
    assert!(!s.programmable);
    assert_eq!(
        (s.throughput_bps, s.memory_bytes),
        (Some(5_000_000_000), Some(1 << 20))
    );
    assert_eq!((s.stages, s.load_bps), (Some(12), 1_000_000_000));
    let b = network.host(network.node("b").unwrap()).unwrap();
    assert_eq!((b.gpus, b.slots, b.busy), (2, Some(3), true));
    let [first, second, third] = network.links() else {
        panic!("three links")
    };
    assert_eq!(first.load_bps, [1_000_000, 2_000_000]);
    assert_eq!(second.load_bps, [3_000_000; 2]);
    assert_eq!((third.delay_ns, third.load_bps), (2_000, [0, 0]));
}

const ZOO: &str = include_str!("../corpus/topologies/zoo.graphml");

#[test]
fn files_of_other_tools() {
    let rack = include_str!("../corpus/topologies/rack.json");
    let refused = told("rack.json", rack);
    assert!(
        refused.starts_with("rack.json:3:21: [unit] rate `10` has no unit"),
        "{refused}"
    );
    let with_units = rack.replace(
        "\"graph\": {}",
        "\"graph\": {\"rate_unit\": \"Gbit/s\", \"delay_unit\": \"us\"}",
    );
    let network = load("rack.json", &with_units).unwrap();
    assert_eq!(network.links()[0].rate_bps, 10_000_000_000);
    // What can sum is not said: as on a testbed, it can.
    assert!(
        network
            .switch(network.node("tor-1").unwrap())
            .unwrap()
            .programmable
    );
    assert!(told("zoo.graphml", ZOO).contains("the edge between `1` and `2` has no rate"));

    let section = "topology: {file: zoo.graphml, rate: 1Gbit/s, hosts: leaves}\n";
    assert_eq!(
        named_topology("a.yaml", section).as_deref(),
        Some("zoo.graphml")
    );
    let alone = "{file: zoo.graphml, rate: 1Gbit/s, hosts: leaves}";
    assert_eq!(
        named_topology("a.yaml", alone).as_deref(),
        Some("zoo.graphml")
    );
    let source = TopologySource {
        file: "zoo.graphml".to_owned(),
        text: ZOO.to_owned(),
    };
    let given = Given {
        topology: Some(Ok(source)),
        ..Given::default()
    };
    let (topology, _) = load_topology("a.yaml", section, &given).unwrap();
    let hosts: Vec<_> = topology
        .hosts
        .iter()
        .map(|host| host.name.as_str())
        .collect();
    assert_eq!(hosts, ["New-York", "Denver"]);
    assert!(
        told("a.yaml", section)
            .contains("topology file `zoo.graphml` is missing from the given files")
    );
}

#[test]
fn parts_that_do_not_hang_together_are_told() {
    let apart = ZOO.replace("target=\"2\"", "target=\"0\"");
    let rated = apart.replace("<edge source=\"1\"", "<edge source=\"0\"");
    let text = rated.replace("<edge source=\"0\" target=\"0\"/>", "");
    let (_, warnings) = load_topology("zoo.graphml", &text, &Given::default()).unwrap();
    assert!(
        warnings
            .to_string()
            .contains("the network is not connected: it consists of 2 separate parts"),
        "{warnings}"
    );
}
