//! Ways of one length, as switches share traffic between them (ECMP).

use std::collections::{BTreeMap, BTreeSet};

use super::{Path, Routing};
use crate::network::{Arc, NetworkError, NodeId};

impl Routing<'_> {
    /// All shortest ways, at most so many, in the order of their links' numbers.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with both names, where there is none.
    pub fn paths(&self, from: NodeId, to: NodeId, most: usize) -> Result<Vec<Path>, NetworkError> {
        self.distance(from, to)?;
        let mut found = Vec::new();
        // Ways begun, the next one last.
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

    /// How many shortest ways there are, or more than can be counted: `u64::MAX`.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with both names, where there is none.
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

    /// The share of what goes from one node to another that each link carries, where each node shares it equally between
    /// the links that begin a shortest way. By numbers of links; those that carry nothing are left out.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with both names, where there is no way.
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

    /// Each node on a shortest way with its links onward, a node after all of those that lead to it.
    fn spread(
        &self,
        from: NodeId,
        to: NodeId,
        mut visit: impl FnMut(NodeId, &[(Arc, NodeId)]),
    ) -> Result<(), NetworkError> {
        let mut ahead = BTreeSet::from([(self.distance(from, to)?, from)]);
        // The farthest first: what leads to a node is farther than it.
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
