//! Equally short paths, over which switches share traffic (ECMP).

use std::collections::{BTreeMap, BTreeSet};

use super::{Path, Routing};
use crate::network::{Arc, NetworkError, NodeId};

impl Routing<'_> {
    /// All shortest paths between two nodes, at most `most`, in the order of their links' numbers.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with the names of both nodes, if there is no path.
    pub fn paths(&self, from: NodeId, to: NodeId, most: usize) -> Result<Vec<Path>, NetworkError> {
        self.distance(from, to)?;
        let mut found = Vec::new();
        // Partial paths; the next one is the last.
        let mut begun = vec![(from, Path::new())];
        while let Some((at, path)) = begun.pop() {
            if found.len() == most {
                break;
            }
            if at == to {
                found.push(path);
                continue;
            }
            let onward: Vec<_> = self.forward(at, to).into_iter().flatten().collect();
            for (arc, next) in onward.into_iter().rev() {
                let mut longer = path.clone();
                longer.push(arc);
                begun.push((next, longer));
            }
        }
        Ok(found)
    }

    /// Number of shortest paths between two nodes; `u64::MAX` if there are more than that.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with the names of both nodes, if there is no path.
    pub fn count_paths(&self, from: NodeId, to: NodeId) -> Result<u64, NetworkError> {
        let mut count = BTreeMap::from([(from, 1_u64)]);
        self.spread(from, to, |node, onward| {
            let here = count[&node];
            for (_, next) in onward {
                let there = count.entry(*next).or_default();
                *there = there.saturating_add(here);
            }
        })?;
        Ok(count[&to])
    }

    /// Share of the traffic from one node to another on each arc, if each node spreads traffic equally over the links with
    /// which a shortest path begins. Sorted by link number, without unused links.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with both names, if there is no path.
    pub fn shares(&self, from: NodeId, to: NodeId) -> Result<Vec<(Arc, f64)>, NetworkError> {
        let mut arrives = BTreeMap::from([(from, 1.0_f64)]);
        let mut shares = BTreeMap::new();
        self.spread(from, to, |node, onward| {
            let each = arrives[&node] / onward.len() as f64;
            for (arc, next) in onward {
                shares.insert(*arc, each);
                *arrives.entry(*next).or_default() += each;
            }
        })?;
        Ok(shares.into_iter().collect())
    }

    /// Calls `visit` with each node on a shortest path, and the links by which such paths leave it; earlier nodes come first.
    fn spread(
        &self,
        from: NodeId,
        to: NodeId,
        mut visit: impl FnMut(NodeId, &[(Arc, NodeId)]),
    ) -> Result<(), NetworkError> {
        let mut ahead = BTreeSet::from([(self.distance(from, to)?, from)]);
        // The farthest node first: nodes that lead to another are farther away.
        while let Some((_, node)) = ahead.pop_last() {
            let onward: Vec<_> = self.forward(node, to).into_iter().flatten().collect();
            if onward.is_empty() {
                continue;
            }
            visit(node, &onward);
            for (_, next) in onward {
                if let Some(distance) = self.find(next, to) {
                    ahead.insert((distance, next));
                }
            }
        }
        Ok(())
    }
}
