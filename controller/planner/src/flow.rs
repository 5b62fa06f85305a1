//! Whole streams through a network: as many as there is room for, each by a way of its own, over as few links as can be.

mod residual;

use std::collections::BTreeMap;

use crate::network::{Arc, Network, NodeId};
use residual::Residual;

/// The room that links have left, in whole streams.
#[derive(Clone)]
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

/// What could be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// In the order of the sources.
    pub streams: Vec<Stream>,
    /// By node: whether a further stream would get so far. What leads from such nodes to others is full; so are such sinks
    /// as it does not get to.
    pub reached: Vec<bool>,
}

impl<'n> Flow<'n> {
    /// Links with so much room each.
    pub fn new(network: &'n Network, room: impl Fn(Arc) -> usize) -> Flow<'n> {
        let arcs = network.arcs();
        Flow {
            network,
            room: arcs.map(|arc| clamp(room(arc))).collect(),
        }
    }

    /// The streams that a direction has room for yet.
    #[must_use]
    pub fn room(&self, arc: Arc) -> usize {
        self.room[arc.index()] as usize
    }

    /// Takes the room of a stream by this way, which there has to be.
    pub fn take(&mut self, route: &[Arc]) {
        for arc in route {
            self.room[arc.index()] -= 1;
        }
    }

    /// Gives it back.
    pub fn give(&mut self, route: &[Arc]) {
        for arc in route {
            self.room[arc.index()] += 1;
        }
    }

    /// Sends as many streams as can be from sources to sinks, of which each gives or takes so many at most, and takes their
    /// room. Of all ways to do it, they pass the fewest links together. Hosts pass nothing on. In the order of the sources.
    pub fn send(&mut self, sources: &[(NodeId, usize)], sinks: &[(NodeId, usize)]) -> Vec<Stream> {
        self.send_by(sources, sinks, |_| 1).streams
    }

    /// The same where links have costs: the sum over all links that streams pass is the least.
    pub fn send_by(
        &mut self,
        sources: &[(NodeId, usize)],
        sinks: &[(NodeId, usize)],
        cost: impl Fn(Arc) -> u32,
    ) -> Sent {
        let network = self.network;
        let count = network.nodes().len();
        let (source, sink) = (count, count + 1);
        let mut residual = Residual::new(count + 2);
        let is_source: BTreeMap<NodeId, usize> = sources.iter().copied().collect();
        let is_sink: BTreeMap<NodeId, usize> = sinks.iter().copied().collect();
        let mut arcs: Vec<(Arc, usize)> = Vec::new();
        for arc in network.arcs() {
            let (from, to) = network.ends(arc);
            let room = self.room[arc.index()];
            let leads = room > 0
                && (network.host(from).is_none() || is_source.contains_key(&from))
                && (network.host(to).is_none() || is_sink.contains_key(&to));
            if leads {
                let edge = residual.edge(from.index(), to.index(), room, cost(arc));
                arcs.push((arc, edge));
            }
        }
        let starts = is_source.iter().map(|(node, count)| {
            let edge = residual.edge(source, node.index(), clamp(*count), 0);
            (*node, edge)
        });
        let starts: Vec<(NodeId, usize)> = starts.collect();
        let ends = is_sink.iter().map(|(node, count)| {
            let edge = residual.edge(node.index(), sink, clamp(*count), 0);
            (*node, edge)
        });
        let ends: Vec<(NodeId, usize)> = ends.collect();
        let reached = residual.fill(source, sink);
        let mut left = Left::new(network, &residual, &arcs, [&starts, &ends]);
        let mut streams = Vec::new();
        for (from, _) in sources {
            while let Some((to, route)) = left.take(*from) {
                self.take(&route);
                streams.push(Stream {
                    from: *from,
                    to,
                    route,
                });
            }
        }
        Sent { streams, reached }
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
        residual: &Residual,
        arcs: &[(Arc, usize)],
        [starts, ends]: [&[(NodeId, usize)]; 2],
    ) -> Left {
        let count = network.nodes().len();
        let mut left = Left {
            starts: vec![0; count],
            ends: vec![0; count],
            onward: vec![Vec::new(); count],
        };
        for (arc, edge) in arcs {
            let (from, to) = network.ends(*arc);
            let flow = residual.flow(*edge);
            if flow > 0 {
                left.onward[from.index()].push((*arc, to, flow));
            }
        }
        for (node, edge) in starts {
            left.starts[node.index()] = residual.flow(*edge);
        }
        for (node, edge) in ends {
            left.ends[node.index()] = residual.flow(*edge);
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

fn clamp(count: usize) -> u32 {
    // Below what sums of them would exceed.
    count.min(1 << 24) as u32
}
