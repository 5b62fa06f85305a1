//! The paths that all streams of a gradient plan take.

use std::collections::BTreeMap;

use crate::flow::Stream;
use crate::network::{Arc, NodeId};

/// Paths of all streams of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StreamPaths {
    /// Streams from workers to the nodes that sum them.
    pub workers: Vec<Stream>,
    /// Streams of sums, from switches to the server.
    pub ups: Vec<Stream>,
    /// Arcs of the tree of answers; nearer to the server first.
    pub tree: Vec<Arc>,
}

impl StreamPaths {
    /// Total number of links that all streams, and the answers, cross.
    pub fn hops(&self) -> usize {
        let streams = self.workers.iter().chain(&self.ups);
        streams.map(|stream| stream.route.len()).sum::<usize>() + self.tree.len()
    }

    /// For each switch that sums, and the server, the number of workers whose streams it sums.
    pub fn summed(&self) -> BTreeMap<NodeId, usize> {
        let mut summed = BTreeMap::new();
        for stream in &self.workers {
            *summed.entry(stream.to).or_default() += 1;
        }
        summed
    }
}
