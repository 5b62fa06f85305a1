//! Ways through a network: shortest ones, all of those that are equally short, and the next longer ones.
//!
//! Hosts do not forward: a way passes switches only, between its ends. Hosts on one switch share what is searched: each
//! switch is searched from once, when it is first asked for. Ties go to the lowest number of a link.

mod costs;
mod equal;
mod search;
mod yen;

use std::sync::OnceLock;

pub use costs::Costs;

use crate::network::{Arc, Network, NetworkError, NodeId};

/// How far it is: by cost, and by links between ways of one cost. So each link adds something, and no way goes round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Distance {
    /// The sum of its links' costs.
    pub cost: u64,
    /// Its links.
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

/// A way: the links in their order, each from where to where.
pub type Path = Vec<Arc>;

/// Ways through one network by one kind of costs.
#[derive(Debug)]
pub struct Routing<'n> {
    network: &'n Network,
    costs: Costs,
    /// The place of each switch among all switches.
    place: Vec<Option<usize>>,
    switches: Vec<NodeId>,
    /// The distances of all switches to each, searched when they are asked for; by places.
    to: Vec<OnceLock<Box<[Option<Distance>]>>>,
}

impl<'n> Routing<'n> {
    /// Nothing is searched yet.
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

    /// What it leads through.
    #[must_use]
    pub fn network(&self) -> &'n Network {
        self.network
    }

    /// The length of the shortest way.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with both names, where there is none.
    pub fn distance(&self, from: NodeId, to: NodeId) -> Result<Distance, NetworkError> {
        self.find(from, to)
            .ok_or_else(|| self.disconnected(from, to))
    }

    /// Where it goes on from a node: all links that begin a shortest way, by number. None where it has arrived, and none
    /// where nothing leads there.
    #[must_use]
    pub fn next_hops(&self, at: NodeId, to: NodeId) -> Vec<Arc> {
        self.forward(at, to)
            .map_or(Vec::new(), |all| all.map(|(arc, _)| arc).collect())
    }

    /// The shortest way; of several, that which takes the lowest link wherever they part.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with both names, where there is none.
    pub fn path(&self, from: NodeId, to: NodeId) -> Result<Path, NetworkError> {
        self.distance(from, to)?;
        let (mut at, mut path) = (from, Path::new());
        while let Some((arc, next)) = self.forward(at, to).and_then(|mut all| all.next()) {
            path.push(arc);
            at = next;
        }
        Ok(path)
    }

    /// The length of a way.
    #[must_use]
    pub fn length(&self, path: &[Arc]) -> Distance {
        let start = Distance::default();
        path.iter()
            .fold(start, |sum, arc| sum.plus(self.costs.of(*arc)))
    }

    /// The nodes of a way, in order; none of an empty one.
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

    /// Links that begin a shortest way, and where they lead.
    fn forward(&self, at: NodeId, to: NodeId) -> Option<impl Iterator<Item = (Arc, NodeId)> + '_> {
        let here = self.find(at, to).filter(|here| here.hops > 0)?;
        Some(self.onward(at, to).filter_map(move |(arc, next)| {
            let there = self.find_onward(next, to)?;
            (there.plus(self.costs.of(arc)) == here).then_some((arc, next))
        }))
    }

    /// All links that a way may take from a node, and where they lead: to switches, or to its end.
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
            Some(there.plus(self.costs.of(arc)))
        });
        ways.min()
    }

    /// From a switch, or from the end itself.
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
            Some(self.row(place)[from]?.plus(self.costs.of(arc)))
        });
        ways.min()
    }

    /// The distances of all switches to one.
    fn row(&self, place: usize) -> &[Option<Distance>] {
        self.to[place].get_or_init(|| self.search(place))
    }
}

#[cfg(test)]
mod tests;
