//! Groups blocks (choices with the same switches) that share a charge, such as blocks for several flows of one fault.

use std::collections::BTreeMap;

use super::blocks::{BlockId, Blocks};

/// Index of each block's group, and the blocks of each group. A block is grouped by the charge that it shares with most others.
pub(super) fn groups(blocks: &Blocks<'_>) -> (Vec<usize>, Vec<Vec<BlockId>>) {
    let mut sharing = vec![0_u32; blocks.problem.charges.len()];
    for charge in blocks.blocks.iter().flat_map(|block| &block.charges) {
        sharing[*charge] += 1;
    }
    let mut by_charge: BTreeMap<usize, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<BlockId>> = Vec::new();
    let mut of = Vec::new();
    for (number, block) in blocks.blocks.iter().enumerate() {
        let charges = block.charges.iter();
        let widest = charges.max_by_key(|charge| (sharing[**charge], usize::MAX - **charge));
        let new = groups.len();
        let group = match widest.filter(|charge| sharing[**charge] > 1) {
            Some(charge) => *by_charge.entry(*charge).or_insert(new),
            None => new,
        };
        if group == new {
            groups.push(Vec::new());
        }
        groups[group].push(number);
        of.push(group);
    }
    (of, groups)
}
