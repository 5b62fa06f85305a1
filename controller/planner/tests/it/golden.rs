//! The papers' examples, worked out there by hand.

use planner::gradient::{Job, Server, grid};
use planner::{Host, Network, NodeId, Switch};

const GBIT: u64 = 1_000_000_000;

/// GRID, figure 1: eight workers at three switches, the server behind the third. All links carry 3 Gbit/s, but the server's
/// 9; each switch sums 9 Gbit/s.
pub(crate) fn grid_example() -> (Network, Job) {
    let mut network = Network::new();
    let sums = Switch {
        programmable: true,
        throughput_bps: Some(9 * GBIT),
        ..Switch::default()
    };
    let [s1, s2, s3] =
        ["S1", "S2", "S3"].map(|name| network.add_switch(name, sums.clone()).unwrap());
    for (a, b) in [(s1, s2), (s1, s3), (s2, s3)] {
        network.connect(a, b, 3 * GBIT).unwrap();
    }
    let at = [s1, s1, s1, s1, s2, s2, s3, s3];
    let workers: Vec<NodeId> = at
        .iter()
        .zip(1..)
        .map(|(switch, number)| {
            let host = network
                .add_host(&format!("W{number}"), Host::default())
                .unwrap();
            network.connect(host, *switch, 3 * GBIT).unwrap();
            host
        })
        .collect();
    let host = network.add_host("PS", Host::default()).unwrap();
    network.connect(host, s3, 9 * GBIT).unwrap();
    let job = Job {
        name: "training".to_owned(),
        workers,
        servers: vec![Server::on(host)],
    };
    (network, job)
}

#[test]
fn grid_routes_a_worker_past_its_own_switch() {
    let (network, job) = grid_example();
    let plan = grid::plan(&network, &job).unwrap();
    assert_eq!(plan.rate_bps, 3e9);
    assert!(plan.is_optimal);
    // One of the four at S1 is summed at another switch.
    let s1 = network.node("S1").unwrap();
    let at_s1 = plan.parts.iter().find(|part| part.at == s1).unwrap();
    assert_eq!(at_s1.members.len(), 3);
}
