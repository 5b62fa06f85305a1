//! Compares flows with linear programs.

use planner::flow::Flow;
use planner::solve::{Cmp, Model, Sense, Var, lp};
use planner::{Host, Network, NodeId, Switch};
use proptest::prelude::*;

/// Switches, links between them with capacity and cost, and numbers of streams that start and can end at each.
#[derive(Debug, Clone)]
struct Case {
    links: Vec<(usize, usize, usize, u32)>,
    starts: Vec<usize>,
    ends: Vec<usize>,
}

const SWITCHES: usize = 6;

fn cases() -> impl Strategy<Value = Case> {
    let link = (0..SWITCHES, 1..SWITCHES, 0_usize..4, 1_u32..6);
    (
        prop::collection::vec(link, 4..14),
        prop::collection::vec(0_usize..4, SWITCHES),
        prop::collection::vec(0_usize..4, SWITCHES),
    )
        .prop_map(|(links, starts, ends)| Case {
            links: links
                .into_iter()
                .map(|(from, by, room, cost)| (from, (from + by) % SWITCHES, room, cost))
                .collect(),
            starts,
            ends,
        })
}

impl Case {
    fn network(&self) -> (Network, Vec<NodeId>) {
        let mut network = Network::new();
        let switches: Vec<NodeId> = (0..SWITCHES)
            .map(|number| {
                let name = format!("s{number}");
                network.add_switch(&name, Switch::default()).unwrap()
            })
            .collect();
        for (from, to, ..) in &self.links {
            network.connect(switches[*from], switches[*to], 1).unwrap();
        }
        // A host between two switches does not forward.
        let host = network.add_host("h", Host::default()).unwrap();
        network.connect(switches[0], host, 1).unwrap();
        network.connect(host, switches[1], 1).unwrap();
        (network, switches)
    }

    /// Maximum number of streams, and their minimum cost.
    fn optimum(&self) -> (f64, f64) {
        let flow = |sense: Sense, least: f64| {
            let mut model = Model::new(sense);
            let is_most = sense == Sense::Maximize;
            let mut balance: Vec<Vec<(Var, f64)>> = vec![Vec::new(); SWITCHES];
            let mut sent = Vec::new();
            for (from, to, room, cost) in &self.links {
                for (from, to) in [(from, to), (to, from)] {
                    let cost = if is_most { 0.0 } else { f64::from(*cost) };
                    let var = model.variable(0.0, *room as f64, cost);
                    balance[*from].push((var, 1.0));
                    balance[*to].push((var, -1.0));
                }
            }
            for (number, mut balance) in balance.into_iter().enumerate() {
                let gain = if is_most { 1.0 } else { 0.0 };
                let start = model.variable(0.0, self.starts[number] as f64, gain);
                let end = model.variable(0.0, self.ends[number] as f64, 0.0);
                sent.push((start, 1.0));
                balance.extend([(start, -1.0), (end, 1.0)]);
                model.constrain(balance, Cmp::Eq, 0.0);
            }
            model.constrain(sent, Cmp::Ge, least);
            lp(&model).unwrap().objective
        };
        let most = flow(Sense::Maximize, 0.0).round();
        (most, flow(Sense::Minimize, most))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn as_many_streams_as_can_be_cost_as_little_as_can_be(case in cases()) {
        let (network, switches) = case.network();
        let of = |index: usize| case.links.get(index / 2).copied().unwrap_or((0, 0, 5, 1));
        let mut flow = Flow::new(&network, |arc| of(arc.index()).2);
        let pairs = |counts: &[usize]| -> Vec<(NodeId, usize)> {
            switches.iter().copied().zip(counts.iter().copied()).collect()
        };
        let cost = |arc: planner::network::Arc| of(arc.index()).3;
        let sent = flow.send_by(&pairs(&case.starts), &pairs(&case.ends), cost);
        let (most, least) = case.optimum();
        prop_assert_eq!(sent.streams.len() as f64, most);
        let costs: u32 = sent.streams.iter().flat_map(|stream| &stream.route).map(|arc| cost(*arc)).sum();
        prop_assert!((f64::from(costs) - least).abs() < 1e-3, "{costs}, not {least}");
        // Paths are contiguous, and reduce the links' capacities.
        for stream in &sent.streams {
            let mut at = stream.from;
            for arc in &stream.route {
                let (from, to) = network.ends(*arc);
                prop_assert_eq!(at, from);
                at = to;
            }
            prop_assert_eq!(at, stream.to);
        }
        for arc in network.arcs() {
            let passed = sent.streams.iter().flat_map(|stream| &stream.route);
            let passed = passed.filter(|other| **other == arc).count();
            prop_assert_eq!(flow.room(arc) + passed, of(arc.index()).2);
            // Full links stop any further stream.
            let (from, to) = network.ends(arc);
            let is_switch = |node: NodeId| network.switch(node).is_some();
            if sent.reached[from.index()] && is_switch(from) && is_switch(to) && !sent.reached[to.index()] {
                prop_assert_eq!(flow.room(arc), 0);
            }
        }
    }
}
