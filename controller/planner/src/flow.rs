//! Whole streams through a network: as many as there is room for, each by a way of its own.

use std::collections::BTreeMap;

use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::network::{Arc, Network, NodeId};

/// The room that links have left, in whole streams.
pub struct Flow<'n> {
    network: &'n Network,
    /// By direction.
    room: Vec<u32>,
}

/// A stream's way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Where it starts.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Between them.
    pub route: Vec<Arc>,
}

impl<'n> Flow<'n> {
    /// Links with so much room each.
    pub fn new(network: &'n Network, room: impl Fn(Arc) -> usize) -> Flow<'n> {
        let arcs = (0..network.links().len() as u32).flat_map(|link| {
            [false, true].map(|back| Arc {
                link: crate::LinkId(link),
                back,
            })
        });
        Flow {
            network,
            room: arcs.map(|arc| clamp(room(arc))).collect(),
        }
    }

    /// Sends as many streams as can be from sources to sinks, of which each gives or takes so many at most, and takes their
    /// room. Hosts pass nothing on. In the order of the sources; the first ways that are tried are the shortest.
    pub fn send(&mut self, sources: &[(NodeId, usize)], sinks: &[(NodeId, usize)]) -> Vec<Stream> {
        let network = self.network;
        let mut graph: DiGraph<(), u32> = DiGraph::new();
        let nodes: Vec<NodeIndex> = network.ids().map(|_| graph.add_node(())).collect();
        let (source, sink) = (graph.add_node(()), graph.add_node(()));
        let mut arcs: Vec<Option<Arc>> = Vec::new();
        let is_source: BTreeMap<NodeId, usize> = sources.iter().copied().collect();
        let is_sink: BTreeMap<NodeId, usize> = sinks.iter().copied().collect();
        for index in 0..self.room.len() {
            let arc = arc(index);
            let (from, to) = network.ends(arc);
            let leads = self.room[index] > 0
                && (network.host(from).is_none() || is_source.contains_key(&from))
                && (network.host(to).is_none() || is_sink.contains_key(&to));
            if leads {
                graph.add_edge(nodes[from.index()], nodes[to.index()], self.room[index]);
                arcs.push(Some(arc));
            }
        }
        for (node, count) in is_source.iter().filter(|(_, count)| **count > 0) {
            graph.add_edge(source, nodes[node.index()], clamp(*count));
            arcs.push(None);
        }
        for (node, count) in is_sink.iter().filter(|(_, count)| **count > 0) {
            graph.add_edge(nodes[node.index()], sink, clamp(*count));
            arcs.push(None);
        }
        let (_, flows) = dinics(&graph, source, sink);
        let mut left = Left::new(network, &graph, &arcs, flows, (source, sink));
        let mut streams = Vec::new();
        for (from, _) in sources {
            while let Some((to, route)) = left.take(*from) {
                for arc in &route {
                    self.room[arc.index()] -= 1;
                }
                streams.push(Stream {
                    from: *from,
                    to,
                    route,
                });
            }
        }
        streams
    }
}

/// What of a flow has not been taken apart yet.
struct Left {
    /// How many streams start at each node.
    starts: Vec<u32>,
    /// How many end there.
    ends: Vec<u32>,
    /// Where streams go on from each node, and how many.
    onward: Vec<Vec<(Arc, NodeId, u32)>>,
}

impl Left {
    fn new(
        network: &Network,
        graph: &DiGraph<(), u32>,
        arcs: &[Option<Arc>],
        flows: Vec<u32>,
        (source, sink): (NodeIndex, NodeIndex),
    ) -> Left {
        let count = network.nodes().len();
        let mut left = Left {
            starts: vec![0; count],
            ends: vec![0; count],
            onward: vec![Vec::new(); count],
        };
        for ((edge, arc), flow) in graph.raw_edges().iter().zip(arcs).zip(flows) {
            match arc {
                _ if flow == 0 => {}
                Some(arc) => {
                    let (from, to) = network.ends(*arc);
                    left.onward[from.index()].push((*arc, to, flow));
                }
                None if edge.source() == source => left.starts[edge.target().index()] += flow,
                None if edge.target() == sink => left.ends[edge.source().index()] += flow,
                None => {}
            }
        }
        left
    }

    /// One stream from a node.
    fn take(&mut self, from: NodeId) -> Option<(NodeId, Vec<Arc>)> {
        *self.starts.get_mut(from.index())? = self.starts[from.index()].checked_sub(1)?;
        let mut route: Vec<(NodeId, Arc)> = Vec::new();
        let mut at = from;
        // What comes to a node ends there or goes on, so this ends; where a way meets itself, the loop is cut off.
        loop {
            if self.ends[at.index()] > 0 {
                self.ends[at.index()] -= 1;
                return Some((at, route.into_iter().map(|(_, arc)| arc).collect()));
            }
            let next = self.onward[at.index()]
                .iter_mut()
                .find(|(_, _, count)| *count > 0)?;
            next.2 -= 1;
            let (arc, to) = (next.0, next.1);
            route.push((at, arc));
            at = to;
            if let Some(met) = route.iter().position(|(passed, _)| *passed == at) {
                route.truncate(met);
            }
        }
    }
}

fn arc(index: usize) -> Arc {
    Arc {
        link: crate::LinkId((index / 2) as u32),
        back: index % 2 == 1,
    }
}

fn clamp(count: usize) -> u32 {
    // Below what sums of them would exceed.
    count.min(1 << 24) as u32
}
