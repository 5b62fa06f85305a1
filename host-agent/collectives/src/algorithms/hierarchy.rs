//! Division of the ranks into nodes: the ranks of each node, and the rails, which communicate with other nodes.

use super::{BuildError, Part};

/// Division of the ranks into nodes, for hierarchical algorithms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Ranks of each node; its first `rails` ranks communicate with other nodes.
    pub nodes: Vec<Vec<usize>>,
    /// Number of ranks per node that communicate with other nodes: at least 1, at most the size of the smallest node.
    pub rails: usize,
}

impl Hierarchy {
    /// Creates a hierarchy in which as many ranks per node communicate with other nodes (rails) as the smallest node has.
    ///
    /// # Errors
    /// As [`Hierarchy::with_rails`].
    pub fn new(nodes: Vec<Vec<usize>>) -> Result<Self, BuildError> {
        let rails = nodes.iter().map(Vec::len).min().unwrap_or(0);
        Self::with_rails(nodes, rails)
    }

    /// Creates a hierarchy in which the first `rails` ranks of each node communicate with other nodes.
    ///
    /// # Errors
    /// If a node has fewer ranks than rails or none, or if not every rank of 0, 1, 2, … is in exactly one node.
    pub fn with_rails(nodes: Vec<Vec<usize>>, rails: usize) -> Result<Self, BuildError> {
        let mut all = nodes.concat();
        all.sort_unstable();
        if !all.iter().copied().eq(0..all.len()) {
            return Err(BuildError::Membership);
        }
        let smallest = nodes.iter().map(Vec::len).min().unwrap_or(0);
        if rails == 0 || rails > smallest {
            return Err(BuildError::Rails { rails, smallest });
        }
        Ok(Self { nodes, rails })
    }

    /// Creates a hierarchy of `nodes` nodes with `ranks` consecutive ranks each.
    ///
    /// # Errors
    /// If either number is 0.
    pub fn blocks(nodes: usize, ranks: usize) -> Result<Self, BuildError> {
        let node = |node: usize| (node * ranks..(node + 1) * ranks).collect();
        Self::new((0..nodes).map(node).collect())
    }

    /// Number of ranks of all nodes.
    pub fn ranks(&self) -> usize {
        self.nodes.iter().map(Vec::len).sum()
    }

    /// The rank of each node that belongs to the rail with this index, from 0.
    pub fn rail(&self, rail: usize) -> Vec<usize> {
        self.nodes.iter().map(|members| members[rail]).collect()
    }

    /// Number of passes (layers) that the rails need to serve all ranks of their nodes, if each serves one rank per pass.
    pub(super) fn layers(&self) -> usize {
        let largest = self.nodes.iter().map(Vec::len).max().unwrap_or(0);
        largest.div_ceil(self.rails)
    }

    /// The rank that a rail of this node serves in a pass (`layer`, from 0); `None` if no rank is left for it.
    pub(super) fn rank(&self, node: usize, rail: usize, layer: usize) -> Option<usize> {
        self.nodes[node].get(rail + layer * self.rails).copied()
    }

    /// The part, from `parts`, of the rank that a rail of this node serves in a pass; empty if no rank is left for it.
    pub(super) fn part(&self, parts: &[Part], node: usize, rail: usize, layer: usize) -> Part {
        let rank = self.rank(node, rail, layer);
        rank.map_or(Part::EMPTY, |rank| parts[rank])
    }

    /// Index of a rank's node, and index of the rank in this node.
    pub(super) fn place(&self, rank: usize) -> (usize, usize) {
        let place = |members: &Vec<usize>| members.iter().position(|member| *member == rank);
        let mut places = self.nodes.iter().map(place).enumerate();
        let found = places.find_map(|(node, place)| place.map(|place| (node, place)));
        found.unwrap_or((0, 0))
    }

    /// One rank of each node: the first one, but `root` in its own node.
    pub(super) fn heads(&self, root: usize) -> Vec<usize> {
        let mut heads = self.rail(0);
        heads[self.place(root).0] = root;
        heads
    }
}
