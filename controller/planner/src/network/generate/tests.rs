//! What the tests of all shapes measure.

use crate::network::Network;

/// Links of each node whose name begins so, with a number behind it, in order.
pub fn degrees(network: &Network, prefix: &str) -> Vec<usize> {
    let ids = network.ids().filter(|id| {
        let rest = network.name(*id).strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    ids.map(|id| network.adjacent(id).len()).collect()
}

/// Parts that hang together.
pub fn components(network: &Network) -> usize {
    let mut seen = vec![false; network.nodes().len()];
    let mut parts = 0;
    for start in network.ids() {
        parts += usize::from(!seen[start.index()]);
        let mut stack = vec![start];
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut seen[node.index()], true) {
                stack.extend(network.adjacent(node).iter().map(|(_, peer)| *peer));
            }
        }
    }
    parts
}
