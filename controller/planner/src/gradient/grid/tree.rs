//! Tree on which answers are multicast: one copy over each link from the server to all workers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::network::{Arc, Network, NodeId};

/// Tree of low cost from a root to leaves over usable links: attaches each leaf, cheapest first, to the nearest node of the
/// tree (Takahashi and Matsuyama, *An approximate solution for the Steiner problem in graphs*, 1980: at most twice the least
/// cost if links have equal costs in both directions). Hosts do not forward. Links nearer to the root come first. `None` if a
/// leaf is unreachable. Costs must be above 0.
pub(super) fn tree(
    network: &Network,
    root: NodeId,
    leaves: &[NodeId],
    may: impl Fn(Arc) -> bool,
    cost: impl Fn(Arc) -> u32,
) -> Option<Vec<Arc>> {
    let mut is_leaf = vec![false; network.nodes().len()];
    for leaf in leaves {
        is_leaf[leaf.index()] = true;
    }
    let mut missing = leaves.len();
    let mut distance = vec![u64::MAX; network.nodes().len()];
    let mut by: Vec<Option<Arc>> = vec![None; network.nodes().len()];
    let mut arcs = Vec::new();
    let mut ahead = BinaryHeap::from([Reverse((0, root))]);
    distance[root.index()] = 0;
    while let Some(Reverse((so_far, node))) = ahead.pop() {
        if missing == 0 {
            break;
        }
        if so_far > distance[node.index()] {
            continue;
        }
        if std::mem::take(&mut is_leaf[node.index()]) {
            missing -= 1;
            let (mut at, from) = (node, arcs.len());
            while let Some(arc) = by[at.index()].filter(|_| distance[at.index()] > 0) {
                arcs.push(arc);
                distance[at.index()] = 0;
                ahead.push(Reverse((0, at)));
                at = network.ends(arc).0;
            }
            arcs[from..].reverse();
            continue;
        }
        if node != root && network.host(node).is_some() {
            continue;
        }
        for (link, next) in network.adjacent(node) {
            let arc = network.arc(*link, node);
            let leads = network.host(*next).is_none() || is_leaf[next.index()];
            if !leads || !may(arc) {
                continue;
            }
            let there = so_far + u64::from(cost(arc));
            if there < distance[next.index()] {
                distance[next.index()] = there;
                by[next.index()] = Some(arc);
                ahead.push(Reverse((there, *next)));
            }
        }
    }
    (missing == 0).then_some(arcs)
}
