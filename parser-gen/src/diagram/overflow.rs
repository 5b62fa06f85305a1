//! Filters that overlap too much, and which.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How many flows are named.
const NAMED: usize = 6;

/// A switch cannot tell so many combinations of flows apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Overflow {
    /// The flow that is in most of the combinations, and those that it shares most of them with: at most six indexes.
    pub flows: Vec<usize>,
}

impl Overflow {
    /// `last`: flows that were being combined when it became too much.
    pub fn of(last: impl Iterator<Item = u32>, leaves: &[Vec<u32>]) -> Overflow {
        let last: Vec<u32> = last.collect();
        let sets = || leaves.iter().chain([&last]).filter(|flows| flows.len() > 1);
        let Some(&worst) = most_frequent(sets().flatten()).first() else {
            return Overflow { flows: Vec::new() };
        };
        let beside = sets().filter(|flows| flows.contains(&worst)).flatten();
        let mut flows = vec![worst];
        flows.extend(most_frequent(beside.filter(|flow| **flow != worst)));
        flows.truncate(NAMED);
        Overflow {
            flows: flows.into_iter().map(|flow| flow as usize).collect(),
        }
    }
}

fn most_frequent<'a>(flows: impl Iterator<Item = &'a u32>) -> Vec<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for flow in flows {
        *counts.entry(*flow).or_default() += 1;
    }
    let mut counts: Vec<(u32, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(flow, count)| (Reverse(*count), *flow));
    counts.into_iter().map(|(flow, _)| flow).collect()
}
