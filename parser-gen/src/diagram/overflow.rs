//! Error of filters that overlap too much: names the flows at fault.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of flows that the error names.
const NAMED: usize = 6;

/// The flows form more combinations than a switch can distinguish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Overflow {
    /// Flow indexes: the one in most combinations, then those that share most of these with it: at most six.
    pub flows: Vec<usize>,
}

impl Overflow {
    /// Finds the flows at fault. `last`: indexes of the flows that were being combined when a limit was exceeded.
    pub fn new(last: impl Iterator<Item = u32>, leaves: &[Vec<u32>]) -> Overflow {
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
