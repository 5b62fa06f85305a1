//! Examples of the papers, with their results computed by hand.

use planner::baseline::rgria;
use planner::evaluation::examples;
use planner::gradient::grid::{self, Work};
use planner::gradient::{Job, Loads, Server};
use planner::{Host, Network, NodeId, Switch};

/// GRID, figure 1.
pub(crate) fn grid_example() -> (Network, Job) {
    examples::grid().unwrap()
}

#[test]
fn grid_routes_a_worker_past_its_own_switch() {
    let (network, job) = grid_example();
    // Answers use the links in the direction opposite to the sent traffic, so they cost nothing.
    for plan in [grid::push(&network, &job), grid::plan(&network, &job)] {
        let plan = plan.unwrap();
        assert_eq!(plan.rate_bps, 3e9);
        assert!(plan.is_optimal);
        // One of the four workers at S1 is summed at another switch.
        let s1 = network.node("S1").unwrap();
        let at_s1 = plan.parts.iter().find(|part| part.at == s1).unwrap();
        assert_eq!(at_s1.members.len(), 3);
    }
}

/// Two racks of two workers each; the server is in `far`. Links carry 4, the one between the racks 8; another path crosses a
/// switch that does not sum. `near` sums 16, `far` 4. The server receives one stream at 4, so `near` sums all four.
#[test]
fn answers_take_the_link_that_detours_leave() {
    let mut network = Network::new();
    let switch = |sums: Option<u64>| Switch {
        programmable: sums.is_some(),
        throughput_bps: sums,
        ..Switch::default()
    };
    let [near, far] = [("near", Some(16)), ("far", Some(4))]
        .map(|(name, sums)| network.add_switch(name, switch(sums)).unwrap());
    let by = network.add_switch("by", switch(None)).unwrap();
    network.connect(near, far, 8).unwrap();
    network.connect(far, by, 4).unwrap();
    network.connect(by, near, 4).unwrap();
    let workers: Vec<NodeId> = [near, near, far, far]
        .iter()
        .zip(1..)
        .map(|(switch, number)| {
            let host = network
                .add_host(&format!("w{number}"), Host::default())
                .unwrap();
            network.connect(host, *switch, 4).unwrap();
            host
        })
        .collect();
    let host = network.add_host("ps", Host::default()).unwrap();
    network.connect(host, far, 4).unwrap();
    let job = Job {
        name: "training".to_owned(),
        workers,
        servers: vec![Server::on(host)],
    };
    // One stream reaches the server at 4, so `near` sums all: both workers of `far` are sent there, and the sum returns.
    let push = grid::push(&network, &job).unwrap();
    assert_eq!((push.rate_bps, push.is_optimal), (4.0, true));
    assert_eq!(push.parts.len(), 1);
    // The link to `near` carries two streams, the path over `by` a third: answers to w1 and w2 use the remaining capacity.
    let plan = grid::plan(&network, &job).unwrap();
    assert_eq!((plan.rate_bps, plan.is_optimal), (4.0, true));
    let ends = |arc: &planner::network::Arc| network.ends(*arc);
    let of_answers: Vec<_> = plan.answers[0].tree.iter().map(ends).collect();
    let by_link = of_answers.contains(&(far, near));
    let by_switch = of_answers.contains(&(far, by)) && of_answers.contains(&(by, near));
    assert!(by_link != by_switch, "{of_answers:?}");
    assert_eq!(
        Loads::from_plan(&network, &job, &plan)
            .binding(&network, &job)
            .unwrap()
            .rate_bps,
        4.0
    );
    // Without the path over `by`, one of the three has to share: three streams on a link of 8.
    let mut narrow = network.clone();
    let link = narrow.adjacent(by)[0].0;
    narrow.link_mut(link).load_bps = [4, 4];
    let mut plan = grid::plan(&narrow, &job).unwrap();
    grid::prove(&narrow, &job, &mut plan, Work::default()).unwrap();
    assert_eq!(grid::push(&narrow, &job).unwrap().rate_bps, 4.0);
    assert!(
        (plan.rate_bps - 8.0 / 3.0).abs() < 1e-9 && plan.is_optimal,
        "{plan:?}"
    );
}

/// Each worker can send 9/8 to each switch, 27/8 in total, and the server can receive (9 − 27/8)/8 of each raw. So a switch is
/// drawn with probability 8/29, the server with 5/29. Of these numbers the first three are for S1, two for S2, two for S3.
#[test]
fn rounding_of_the_papers_relaxation_exceeds_what_there_is() {
    let (network, job) = grid_example();
    let relaxation = rgria::relax(&network, &job).unwrap();
    assert_eq!(relaxation.rate_bps, 261e9 / 64.0);
    let draws = [0.0, 0.1, 0.27, 0.28, 0.55, 0.56, 0.82, 0.83];
    let rounded = rgria::rounded(&network, &job, &relaxation, &draws);
    let at: Vec<&str> = rounded.at.iter().map(|node| network.name(*node)).collect();
    assert_eq!(at, ["S1", "S1", "S1", "S2", "S2", "S3", "S3", "PS"]);
    // S1 has three workers, 1.36 times what it can sum; the server receives three sums and a raw stream.
    assert_eq!(rounded.exceeded, 4.0 * 261.0 / 64.0 / 9.0);
    // W6 is routed from S2 to S3 by the link that carries S2's sum.
    let plan = rounded.plan(&network, &job).unwrap();
    assert_eq!(plan.rate_bps, 1.5e9);
}
