//! Routes whole streams through a network: as many as link capacities allow, each on one path, over as few links as possible.

mod residual;

use std::collections::BTreeMap;

use crate::network::{Arc, Network, NodeId};
use residual::Residual;

/// Spare capacity of a network's links, counted in streams of equal rate.
#[derive(Clone)]
pub struct Flow<'n> {
    network: &'n Network,
    /// Number of streams that still fit on each arc, by the arc's index.
    room: Vec<u32>,
}

/// One stream of traffic, and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Node where the stream starts.
    pub from: NodeId,
    /// Node where the stream ends.
    pub to: NodeId,
    /// Arcs of the stream's path, in order.
    pub route: Vec<Arc>,
}

/// Result of [`Flow::send_by`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The routed streams, in the order of their sources.
    pub streams: Vec<Stream>,
    /// For each node, whether one more stream could reach it. Reached sinks, and arcs from reached to other nodes, are full.
    pub reached: Vec<bool>,
}

impl<'n> Flow<'n> {
    /// Starts without streams: each arc of the network has capacity for `room(arc)` streams.
    pub fn new(network: &'n Network, room: impl Fn(Arc) -> usize) -> Flow<'n> {
        let arcs = network.arcs();
        Flow {
            network,
            room: arcs.map(|arc| clamp(room(arc))).collect(),
        }
    }

    /// Number of streams for which an arc still has capacity.
    #[must_use]
    pub fn room(&self, arc: Arc) -> usize {
        self.room[arc.index()] as usize
    }

    /// Reserves one stream's capacity on each arc of a path; each arc must have capacity left.
    pub fn take(&mut self, route: &[Arc]) {
        for arc in route {
            self.room[arc.index()] -= 1;
        }
    }

    /// Releases one stream's capacity on each arc of a path.
    pub fn give(&mut self, route: &[Arc]) {
        for arc in route {
            self.room[arc.index()] += 1;
        }
    }

    /// Routes as many streams as possible from sources to sinks, over the fewest links, and reserves their capacity. The number
    /// of a source or sink limits its streams. Hosts do not forward. Returns streams in the order of the sources.
    pub fn send(&mut self, sources: &[(NodeId, usize)], sinks: &[(NodeId, usize)]) -> Vec<Stream> {
        self.send_by(sources, sinks, |_| 1).streams
    }

    /// Routes streams as [`Flow::send`] does, but minimizes the total of a cost per arc over all streams.
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

/// The streams of a maximum flow that are not split off as single paths yet.
struct Left {
    /// Number of streams that start at each node, by node.
    starts: Vec<u32>,
    /// Number of streams that end at each node, by node.
    ends: Vec<u32>,
    /// For each node: the arcs on which streams leave it, the node at each arc's end, and the number of streams.
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

    /// Removes one stream that starts at `from` from the flow. Returns the stream's end and path; `None` if none is left.
    fn take(&mut self, from: NodeId) -> Option<(NodeId, Vec<Arc>)> {
        *self.starts.get_mut(from.index())? = self.starts[from.index()].checked_sub(1)?;
        let mut route: Vec<(NodeId, Arc)> = Vec::new();
        let mut at = from;
        // Flow into a node ends there or continues, so this terminates; a loop in the path is cut off.
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
    // Small enough that sums of such counts do not overflow.
    count.min(1 << 24) as u32
}
