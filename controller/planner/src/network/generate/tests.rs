//! Measurements for the tests of all shapes.

use crate::network::Network;

/// Number of links of each node whose name is the prefix and a number, in order.
pub fn degrees(network: &Network, prefix: &str) -> Vec<usize> {
    let ids = network.ids().filter(|id| {
        let rest = network.name(*id).strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    ids.map(|id| network.adjacent(id).len()).collect()
}

/// Number of connected components.
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
