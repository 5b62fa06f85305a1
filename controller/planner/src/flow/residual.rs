//! Maximum flow of minimum cost, by the primal-dual method (Ahuja, Magnanti and Orlin, *Network Flows*, 9.8): shortest
//! distances determine which edges lie on cheapest paths, and Dinic's blocking flows fill those edges. There is one round for
//! each different cost of a path. If a cost is a number of links, there are few.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Residual graph of a flow problem. Edges 2n and 2n + 1 are reverses of each other.
pub(super) struct Residual {
    edges: Vec<Edge>,
    /// For each node, the numbers of the edges that leave it.
    away: Vec<Vec<u32>>,
    /// For each node, its least cost from the source in the last search.
    potential: Vec<u64>,
}

struct Edge {
    to: u32,
    left: u32,
    cost: i64,
}

/// Distance of an unreachable node.
const FAR: u64 = u64::MAX;

impl Residual {
    pub fn new(nodes: usize) -> Residual {
        Residual {
            edges: Vec::new(),
            away: vec![Vec::new(); nodes],
            potential: vec![0; nodes],
        }
    }

    /// Adds an edge and its reverse; returns the edge's number.
    pub fn edge(&mut self, from: usize, to: usize, room: u32, cost: u32) -> usize {
        let number = self.edges.len();
        self.away[from].push(number as u32);
        self.away[to].push(number as u32 + 1);
        let cost = i64::from(cost);
        let (from, to) = (from as u32, to as u32);
        self.edges.extend([
            Edge {
                to,
                left: room,
                cost,
            },
            Edge {
                to: from,
                left: 0,
                cost: -cost,
            },
        ]);
        number
    }

    /// Number of streams that flow over an edge.
    pub fn flow(&self, edge: usize) -> u32 {
        self.edges[edge + 1].left
    }

    /// Sends the maximum flow at minimum cost from `source` to `sink`. Returns, for each node, whether the source still reaches
    /// it: edges from such nodes to others are full and form a minimum cut.
    pub fn fill(&mut self, source: usize, sink: usize) -> Vec<bool> {
        loop {
            let distances = self.distances(source);
            let far = distances[sink];
            if far == FAR {
                return distances.iter().map(|at| *at != FAR).collect();
            }
            for (potential, distance) in self.potential.iter_mut().zip(&distances) {
                *potential += (*distance).min(far);
            }
            while let Some(levels) = self.levels(source, sink) {
                self.block(source, sink, &levels);
            }
        }
    }

    /// Reduced cost of an edge: its cost plus the difference of its ends' potentials; at least 0 if the edge has capacity left.
    fn reduced(&self, from: usize, edge: &Edge) -> u64 {
        let from = self.potential[from] as i64;
        let to = self.potential[edge.to as usize] as i64;
        (edge.cost + from - to).max(0) as u64
    }

    /// For each node, its distance from the source by reduced costs (Dijkstra).
    fn distances(&self, source: usize) -> Vec<u64> {
        let mut distances = vec![FAR; self.away.len()];
        distances[source] = 0;
        let mut ahead = BinaryHeap::from([Reverse((0, source))]);
        while let Some(Reverse((distance, node))) = ahead.pop() {
            if distance > distances[node] {
                continue;
            }
            for number in &self.away[node] {
                let edge = &self.edges[*number as usize];
                if edge.left == 0 {
                    continue;
                }
                let (to, distance) = (edge.to as usize, distance + self.reduced(node, edge));
                if distance < distances[to] {
                    distances[to] = distance;
                    ahead.push(Reverse((distance, to)));
                }
            }
        }
        distances
    }

    /// For each node, the number of edges on a cheapest path to it from the source; `None` if no path leads to the sink.
    fn levels(&self, source: usize, sink: usize) -> Option<Vec<u32>> {
        let mut levels = vec![u32::MAX; self.away.len()];
        levels[source] = 0;
        let mut ahead = VecDeque::from([source]);
        while let Some(node) = ahead.pop_front() {
            for number in &self.away[node] {
                let edge = &self.edges[*number as usize];
                let to = edge.to as usize;
                if edge.left > 0 && levels[to] == u32::MAX && self.reduced(node, edge) == 0 {
                    levels[to] = levels[node] + 1;
                    ahead.push_back(to);
                }
            }
        }
        (levels[sink] != u32::MAX).then_some(levels)
    }

    /// Sends flow along paths whose edges each ascend one level, until no such path has capacity (blocking flow).
    fn block(&mut self, source: usize, sink: usize, levels: &[u32]) {
        let mut next = vec![0; self.away.len()];
        let mut way: Vec<usize> = Vec::new();
        let mut at = source;
        loop {
            if at == sink {
                let least = way.iter().map(|edge| self.edges[*edge].left).min();
                for edge in way.drain(..) {
                    self.edges[edge].left -= least.unwrap_or(0);
                    self.edges[edge ^ 1].left += least.unwrap_or(0);
                }
                at = source;
                continue;
            }
            let leads = |number: &u32| {
                let edge = &self.edges[*number as usize];
                let to = edge.to as usize;
                edge.left > 0 && levels[to] == levels[at] + 1 && self.reduced(at, edge) == 0
            };
            let from = next[at];
            match self.away[at][from..].iter().position(leads) {
                Some(place) => {
                    next[at] = from + place;
                    let edge = self.away[at][from + place] as usize;
                    way.push(edge);
                    at = self.edges[edge].to as usize;
                }
                // Dead end: exclude the node, and step back over the edge that led here.
                None => {
                    next[at] = self.away[at].len();
                    let Some(edge) = way.pop() else {
                        return;
                    };
                    at = self.edges[edge ^ 1].to as usize;
                    next[at] += 1;
                }
            }
        }
    }
}
