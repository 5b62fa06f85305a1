//! The k shortest paths (Yen, Management Science 17, 1971), each without a repeated node.

use std::collections::BTreeSet;

use super::search::Avoided;
use super::{Distance, Path, Routing};
use crate::network::{Arc, NetworkError, NodeId};

/// A path with its length and the index at which it diverges from an earlier path; ordered by length, then by link numbers.
type Candidate = (Distance, Path, usize);

impl Routing<'_> {
    /// The `k` shortest paths between two nodes, or all if there are fewer; the shortest first,
    /// ties in the order of link numbers. Parallel links make different paths.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Disconnected`], with the names of both nodes, if there is no path.
    pub fn k_shortest(
        &self,
        from: NodeId,
        to: NodeId,
        k: usize,
    ) -> Result<Vec<Path>, NetworkError> {
        let first = self.path(from, to)?;
        let mut found: Vec<(Path, usize)> = Vec::new();
        let mut candidates: BTreeSet<Candidate> = BTreeSet::new();
        candidates.insert((self.length(&first), first, 0));
        while found.len() < k
            && let Some((_, path, parted)) = candidates.pop_first()
        {
            // Several paths may have led to the same deviation.
            if found.iter().all(|(known, _)| *known != path) {
                found.push((path, parted));
                let (path, parted) = &found[found.len() - 1];
                candidates.extend(self.deviations(path, *parted, &found, to));
            }
        }
        Ok(found.into_iter().map(|(path, _)| path).collect())
    }

    /// Shortest paths that follow a found path up to some node, and leave it there by a link that no found path takes. They
    /// leave it only at or after the index at which that path left an earlier one: the others are known already (Lawler).
    fn deviations(
        &self,
        path: &Path,
        parted: usize,
        found: &[(Path, usize)],
        to: NodeId,
    ) -> Vec<Candidate> {
        let nodes = self.nodes(path);
        let mut passed = vec![false; self.network.nodes().len()];
        let mut all = Vec::new();
        for (place, node) in nodes.iter().enumerate().take(path.len()) {
            if place >= parted {
                let root = &path[..place];
                let same_root = found.iter().filter(|(other, _)| other.starts_with(root));
                let taken: Vec<Arc> = same_root
                    .filter_map(|(other, _)| other.get(place).copied())
                    .collect();
                let avoided = Avoided {
                    nodes: &passed,
                    arcs: &taken,
                };
                if let Some(rest) = self.path_without(*node, to, &avoided) {
                    let whole = [root, &rest].concat();
                    all.push((self.length(&whole), whole, place));
                }
            }
            passed[node.index()] = true;
        }
        all
    }
}
