//! Distances of all switches to one node: Dijkstra's algorithm backward, or breadth-first search if all links cost the same.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{Distance, Routing};
use crate::network::{Arc, NodeId};

/// Nodes and arcs that a search for paths avoids.
pub(super) struct Avoided<'a> {
    /// For each node, whether the search avoids it.
    pub nodes: &'a [bool],
    /// Arcs that the search avoids.
    pub arcs: &'a [Arc],
}

impl Routing<'_> {
    /// Distances of all switches to the switch with index `target`; `None` if disconnected.
    pub(super) fn search(&self, target: usize) -> Box<[Option<Distance>]> {
        let mut distance = vec![None; self.switches.len()];
        distance[target] = Some(Distance::default());
        if self.costs.is_even {
            let mut queue = VecDeque::from([target]);
            while let Some(place) = queue.pop_front() {
                let here = distance[place].unwrap_or_default();
                for (arc, before) in self.back(self.switches[place]) {
                    if let Some(before) = self.place[before.index()]
                        && distance[before].is_none()
                    {
                        distance[before] = Some(here.plus(self.costs.get(arc)));
                        queue.push_back(before);
                    }
                }
            }
            return distance.into_boxed_slice();
        }
        let mut heap = BinaryHeap::from([Reverse((Distance::default(), target))]);
        while let Some(Reverse((here, place))) = heap.pop() {
            if distance[place] != Some(here) {
                continue;
            }
            for (arc, before) in self.back(self.switches[place]) {
                let Some(before) = self.place[before.index()] else {
                    continue;
                };
                let through = here.plus(self.costs.get(arc));
                if distance[before].is_none_or(|known| through < known) {
                    distance[before] = Some(through);
                    heap.push(Reverse((through, before)));
                }
            }
        }
        distance.into_boxed_slice()
    }

    /// Shortest path without the avoided nodes and arcs; ties go to the path with the lowest link number where paths diverge.
    pub(super) fn path_without(
        &self,
        from: NodeId,
        to: NodeId,
        avoided: &Avoided<'_>,
    ) -> Option<Vec<Arc>> {
        let mut distance = vec![None; self.network.nodes().len()];
        distance[to.index()] = Some(Distance::default());
        let mut heap = BinaryHeap::from([Reverse((Distance::default(), to))]);
        // All nodes of a shortest path are nearer than its beginning, so they are settled before it.
        while let Some(Reverse((here, node))) = heap.pop() {
            if node == from {
                break;
            }
            if distance[node.index()] != Some(here) {
                continue;
            }
            for (arc, before) in self.back(node) {
                let may_be_on_it = before == from || self.place[before.index()].is_some();
                let is_avoided = avoided.nodes[before.index()] || avoided.arcs.contains(&arc);
                if !may_be_on_it || is_avoided {
                    continue;
                }
                let through = here.plus(self.costs.get(arc));
                if distance[before.index()].is_none_or(|known| through < known) {
                    distance[before.index()] = Some(through);
                    heap.push(Reverse((through, before)));
                }
            }
        }
        distance[from.index()]?;
        let (mut at, mut path) = (from, Vec::new());
        while at != to {
            let here = distance[at.index()];
            let (arc, next) = self.onward(at, to).find(|(arc, next)| {
                let through = distance[next.index()].map(|d| d.plus(self.costs.get(*arc)));
                through == here && !avoided.arcs.contains(arc)
            })?;
            path.push(arc);
            at = next;
        }
        Some(path)
    }

    /// Arcs that lead to a node, and the node where each begins.
    fn back(&self, node: NodeId) -> impl Iterator<Item = (Arc, NodeId)> + '_ {
        let links = self.network.adjacent(node).iter();
        links.map(|(link, before)| (self.network.arc(*link, *before), *before))
    }
}
