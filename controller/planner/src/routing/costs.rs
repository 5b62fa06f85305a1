//! Costs of a network's links, separate for each direction.

use crate::network::{Arc, Network};

/// Costs of all arcs of a network. Of two paths with equal costs, the one with fewer links is shorter.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    by_arc: Vec<u64>,
    /// Whether all arcs have the same cost.
    pub(super) is_even: bool,
}

impl Costs {
    /// Costs of 0 for every arc: the shortest path has the fewest links.
    #[must_use]
    pub fn hops(network: &Network) -> Costs {
        Costs::from_fn(network, |_| 0)
    }

    /// Costs equal to the links' delays, in nanoseconds.
    #[must_use]
    pub fn delay(network: &Network) -> Costs {
        Costs::from_fn(network, |arc| network.link(arc.link).delay_ns)
    }

    /// Costs that `cost` returns for each arc, for example administrative weights.
    pub fn from_fn(network: &Network, mut cost: impl FnMut(Arc) -> u64) -> Costs {
        let by_arc: Vec<u64> = network.arcs().map(&mut cost).collect();
        let is_even = by_arc.windows(2).all(|pair| pair[0] == pair[1]);
        Costs { by_arc, is_even }
    }

    /// Cost of an arc.
    #[must_use]
    pub fn get(&self, arc: Arc) -> u64 {
        self.by_arc[arc.index()]
    }
}
