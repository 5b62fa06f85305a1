//! Paths through a network: shortest paths, all equally short ones, and the next longer ones.
//!
//! Hosts do not forward: between its ends, a path crosses switches only. Hosts at one switch share search results: distances to
//! a switch are searched once, on first use. Ties go to the lowest link number.

mod costs;
mod equal;
mod search;
mod yen;

use std::sync::OnceLock;

pub use costs::Costs;

use crate::network::{Arc, Network, NetworkError, NodeId};

/// Length of a path: compared by cost, then by number of links. Each link adds to it, so no shortest path contains a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Distance {
    /// Sum of the costs of the path's links.
    pub cost: u64,
    /// Number of links of the path.
    pub hops: u32,
}

impl Distance {
    fn plus(self, cost: u64) -> Distance {
        Distance {
            cost: self.cost.saturating_add(cost),
            hops: self.hops + 1,
        }
    }
}

/// A path: its arcs (directed links) in order.
pub type Path = Vec<Arc>;

/// Finds shortest paths through a network, by the costs of its links.
#[derive(Debug)]
pub struct Routing<'n> {
    network: &'n Network,
    costs: Costs,
    /// For each node, the index of the switch among all switches; `None` for hosts.
    place: Vec<Option<usize>>,
    switches: Vec<NodeId>,
    /// For each switch, the distances of all switches to it (`None`: disconnected), by index; computed on first use.
    to: Vec<OnceLock<Box<[Option<Distance>]>>>,
}

impl<'n> Routing<'n> {
    /// Prepares routing by these costs; distances are computed on first use.
    #[must_use]
    pub fn new(network: &'n Network, costs: Costs) -> Routing<'n> {
        let switches: Vec<NodeId> = network.switches().collect();
        let mut place = vec![None; network.nodes().len()];
        for (number, switch) in switches.iter().enumerate() {
            place[switch.index()] = Some(number);
        }
        let to = switches.iter().map(|_| OnceLock::new()).collect();
        Routing {
            network,
            costs,
            place,
            switches,
            to,
        }
    }

    /// The network whose paths are searched.
    #[must_use]
    pub fn network(&self) -> &'n Network {
        self.network
    }

    /// Length of the shortest path between two nodes.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with the names of both nodes, if there is no path.
    pub fn distance(&self, from: NodeId, to: NodeId) -> Result<Distance, NetworkError> {
        self.find(from, to)
            .ok_or_else(|| self.disconnected(from, to))
    }

    /// Next hops from `at` to `to`: all links with which a shortest path begins, by number. Empty if there is no such path.
    #[must_use]
    pub fn next_hops(&self, at: NodeId, to: NodeId) -> Vec<Arc> {
        self.forward(at, to)
            .map_or(Vec::new(), |all| all.map(|(arc, _)| arc).collect())
    }

    /// Shortest path; among equally short ones, the one with the lowest link number where they diverge.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with the names of both nodes, if there is no path.
    pub fn path(&self, from: NodeId, to: NodeId) -> Result<Path, NetworkError> {
        self.distance(from, to)?;
        let (mut at, mut path) = (from, Path::new());
        while let Some((arc, next)) = self.forward(at, to).and_then(|mut all| all.next()) {
            path.push(arc);
            at = next;
        }
        Ok(path)
    }

    /// Length of a given path, by the routing's costs.
    #[must_use]
    pub fn length(&self, path: &[Arc]) -> Distance {
        let start = Distance::default();
        path.iter()
            .fold(start, |sum, arc| sum.plus(self.costs.get(*arc)))
    }

    /// Nodes of a given path, in order; empty for an empty path.
    #[must_use]
    pub fn nodes(&self, path: &[Arc]) -> Vec<NodeId> {
        let first = path.first().map(|arc| self.network.ends(*arc).0);
        let others = path.iter().map(|arc| self.network.ends(*arc).1);
        first.into_iter().chain(others).collect()
    }

    fn disconnected(&self, from: NodeId, to: NodeId) -> NetworkError {
        let [from, to] = [from, to].map(|node| self.network.name(node).to_owned());
        NetworkError::Disconnected(from, to)
    }

    /// Links with which a shortest path from `at` to `to` begins, and the node at each link's end; `None` if there is no path.
    fn forward(&self, at: NodeId, to: NodeId) -> Option<impl Iterator<Item = (Arc, NodeId)> + '_> {
        let here = self.find(at, to).filter(|here| here.hops > 0)?;
        Some(self.onward(at, to).filter_map(move |(arc, next)| {
            let there = self.find_onward(next, to)?;
            (there.plus(self.costs.get(arc)) == here).then_some((arc, next))
        }))
    }

    /// Links that a path from `at` to `to` may take first, and the node at each link's end: a switch, or `to`.
    fn onward(&self, at: NodeId, to: NodeId) -> impl Iterator<Item = (Arc, NodeId)> + '_ {
        let links = self.network.adjacent(at).iter();
        let forwards = move |next: NodeId| next == to || self.place[next.index()].is_some();
        links
            .filter(move |(_, next)| forwards(*next))
            .map(move |(link, next)| (self.network.arc(*link, at), *next))
    }

    fn find(&self, from: NodeId, to: NodeId) -> Option<Distance> {
        if from == to || self.place[from.index()].is_some() {
            return self.find_onward(from, to);
        }
        let ways = self.onward(from, to).filter_map(|(arc, next)| {
            let there = self.find_onward(next, to)?;
            Some(there.plus(self.costs.get(arc)))
        });
        ways.min()
    }

    /// Distance to `to` from a switch or from `to` itself; `None` if there is no path.
    fn find_onward(&self, from: NodeId, to: NodeId) -> Option<Distance> {
        if from == to {
            return Some(Distance::default());
        }
        let from = self.place[from.index()]?;
        if let Some(place) = self.place[to.index()] {
            return self.row(place)[from];
        }
        let last = self.network.adjacent(to).iter();
        let ways = last.filter_map(|(link, switch)| {
            let place = self.place[switch.index()]?;
            let arc = self.network.arc(*link, *switch);
            Some(self.row(place)[from]?.plus(self.costs.get(arc)))
        });
        ways.min()
    }

    /// Distances of all switches to the switch with index `place`; `None` if disconnected.
    fn row(&self, place: usize) -> &[Option<Distance>] {
        self.to[place].get_or_init(|| self.search(place))
    }
}

#[cfg(test)]
mod tests;
