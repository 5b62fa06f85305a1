//! Heuristic for large problems: a greedy placement of blocks, repaired until it respects all constraints.
//!
//! Blocks in the way of another are moved, and options given up often are taken less readily (min-conflicts with weights).

use std::collections::{BTreeMap, VecDeque};

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::blocks::{BlockId, Blocks};
use super::cost::Utilisation;
use super::domains::Domains;
use super::groups::groups;
use super::loads::SwitchLoads;
use super::placing::{Ceiling, Fullness, Placing};

/// Maximum number of repairs of a placement, as a multiple of the number of blocks of faults.
const REPAIRS: usize = 10;
/// Minimum number of blocks for which the limit of repairs is computed.
const FEW: usize = 40;

impl<'b, 'p> Placing<'b, 'p> {
    /// Places all blocks of faults, the most constrained first, then relieves overloaded switches. If that fails, places all
    /// blocks again within limits, and moves blocks that are in the way. `None` if that fails, too.
    pub fn place(
        blocks: &'b Blocks<'p>,
        domains: &'b Domains,
        seed: u64,
    ) -> Option<Placing<'b, 'p>> {
        let (group, groups) = groups(blocks);
        let mut placing = Placing {
            blocks,
            domains,
            loads: SwitchLoads::new(blocks),
            chosen: vec![None; blocks.blocks.len()],
            there: vec![Vec::new(); blocks.problem.switches.len()],
            moves: Vec::new(),
            group,
            evicted: (blocks.blocks.iter().map(|b| vec![0; b.options.len()])).collect(),
            random: ChaCha12Rng::seed_from_u64(seed),
        };
        let tightest = |group: &[BlockId]| group.iter().map(|b| domains.left(*b)).min();
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|group| (tightest(&groups[*group]), *group));
        let groups: Vec<Vec<BlockId>> = order.into_iter().map(|g| groups[g].clone()).collect();
        if placing.fill(&groups, Ceiling::None) {
            placing.flatten(Fullness::Pressed, Utilisation::ALL);
        }
        let mut switches = 0..blocks.problem.switches.len();
        let is_placed = placing.chosen.iter().all(Option::is_some);
        if is_placed && !switches.any(|switch| placing.loads.is_over(switch)) {
            return Some(placing);
        }
        for block in 0..blocks.blocks.len() {
            placing.lift(block);
        }
        placing.fill(&groups, Ceiling::Limits).then_some(placing)
    }

    /// Places the blocks of faults of all groups; returns whether it succeeded within the limit of repairs.
    fn fill(&mut self, groups: &[Vec<BlockId>], ceiling: Ceiling) -> bool {
        let mut open: VecDeque<Vec<BlockId>> = groups.iter().cloned().collect();
        let mut steps = REPAIRS * self.blocks.blocks.len().max(FEW);
        while let Some(group) = open.pop_front() {
            for block in self.settle(group, None, ceiling) {
                if steps == 0 {
                    return false;
                }
                steps -= 1;
                open.extend(self.force(block, ceiling));
            }
        }
        true
    }

    /// Places a block at the option with the fewest blocks in the way, and removes these. Returns the removed blocks by group.
    fn force(&mut self, block: BlockId, ceiling: Ceiling) -> Vec<Vec<BlockId>> {
        let options: Vec<usize> = self.domains.options(block).collect();
        let turn = self.random.next_u32() as usize;
        let mut best: Option<((u32, usize), usize)> = None;
        for nth in 0..options.len() {
            let option = options[(nth + turn) % options.len()];
            let key = (
                self.evicted[block][option],
                self.clashing(block, option).len(),
            );
            if best.as_ref().is_none_or(|(least, _)| key < *least) {
                best = Some((key, option));
            }
        }
        let Some((_, option)) = best else {
            return Vec::new();
        };
        let mut out: BTreeMap<usize, Vec<BlockId>> = BTreeMap::new();
        for partner in self.clashing(block, option) {
            self.evict(partner, &mut out);
        }
        self.put(block, option);
        for switch in self.blocks.blocks[block].options[option].switches.clone() {
            let mut there = self.groups_at(switch);
            for group in &mut there {
                group.retain(|other| *other != block);
            }
            there.retain(|group| !group.is_empty());
            while ceiling != Ceiling::None && self.loads.is_over(switch) && !there.is_empty() {
                let nth = self.random.next_u32() as usize % there.len();
                for other in there.swap_remove(nth) {
                    self.evict(other, &mut out);
                }
            }
        }
        out.into_values().collect()
    }

    /// Partner blocks of faults whose current options are incompatible with an option of a block.
    fn clashing(&self, block: BlockId, option: usize) -> Vec<BlockId> {
        let partners = self.blocks.blocks[block].partners.iter();
        let clashing = partners.filter(|(partner, pair)| {
            let other = self.chosen[*partner];
            other.is_some_and(|other| !self.blocks.go_together(*pair, block, option, other))
        });
        clashing.map(|(partner, _)| *partner).collect()
    }

    fn evict(&mut self, block: BlockId, out: &mut BTreeMap<usize, Vec<BlockId>>) {
        if let Some(option) = self.lift(block) {
            self.evicted[block][option] += 1;
            out.entry(self.group[block]).or_default().push(block);
        }
    }
}
