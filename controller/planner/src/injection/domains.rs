//! Tracks the remaining options of each block during a search, and removes options that a choice excludes.

use std::collections::VecDeque;

use super::blocks::{BlockId, Blocks, Pair};
use super::loads::SwitchLoads;

/// Remaining options of all blocks of faults, with a log of removals for backtracking.
#[derive(Debug, Clone)]
pub(super) struct Domains {
    alive: Vec<Vec<bool>>,
    left: Vec<usize>,
    trail: Vec<(BlockId, usize)>,
}

impl Domains {
    /// Domains in which every block of faults has all its options.
    pub fn new(blocks: &Blocks<'_>) -> Domains {
        let options = blocks.blocks.iter().map(|block| block.options.len());
        Domains {
            alive: options.clone().map(|options| vec![true; options]).collect(),
            left: options.collect(),
            trail: Vec::new(),
        }
    }

    /// Removes options that no placement can have: options that exceed a limit beside blocks with one option left, and options
    /// without a compatible option of some other block (arc consistency, Mackworth 1977). `None` if a block has no option left.
    pub fn consistent(blocks: &Blocks<'_>) -> Option<Domains> {
        let mut domains = Domains::new(blocks);
        let mut loads = SwitchLoads::new(blocks);
        let mut is_put = vec![false; blocks.blocks.len()];
        loop {
            let before = domains.trail.len();
            if !domains.agree(blocks) {
                return None;
            }
            for (block, is_put) in is_put.iter_mut().enumerate() {
                if domains.left[block] == 1 && !*is_put {
                    *is_put = true;
                    let option = domains.options(block).next()?;
                    loads.put(block, option);
                    if !loads.fits(block, option) {
                        return None;
                    }
                }
            }
            for block in (0..blocks.blocks.len()).filter(|block| !is_put[*block]) {
                for option in 0..blocks.blocks[block].options.len() {
                    loads.put(block, option);
                    if !loads.fits(block, option) {
                        domains.remove(block, option);
                    }
                    loads.lift(block, option);
                }
                if domains.left[block] == 0 {
                    return None;
                }
            }
            if domains.trail.len() == before
                && is_put
                    .iter()
                    .zip(&domains.left)
                    .all(|(put, left)| *put || *left > 1)
            {
                return Some(domains);
            }
        }
    }

    /// Removes options with which no option of some partner block is compatible. Returns whether all blocks have options left.
    fn agree(&mut self, blocks: &Blocks<'_>) -> bool {
        let mut queue: VecDeque<BlockId> = (0..blocks.blocks.len()).collect();
        let mut queued = vec![true; blocks.blocks.len()];
        while let Some(block) = queue.pop_front() {
            queued[block] = false;
            if self.left[block] == 0 {
                return false;
            }
            for &(partner, pair) in &blocks.blocks[block].partners {
                let before = self.left[partner];
                for option in 0..blocks.blocks[partner].options.len() {
                    let goes = |own| blocks.go_together(pair, block, own, option);
                    if !self.options(block).any(goes) {
                        self.remove(partner, option);
                    }
                }
                if self.left[partner] < before && !queued[partner] {
                    queued[partner] = true;
                    queue.push_back(partner);
                }
            }
        }
        true
    }

    /// A copy of `all` in which blocks of faults have only their remaining options.
    pub fn remaining<'p>(&self, all: &Blocks<'p>) -> Blocks<'p> {
        let left = |block: BlockId| self.options(block);
        let mut blocks = all.blocks.clone();
        for (number, block) in blocks.iter_mut().enumerate() {
            let options = left(number).map(|option| block.options[option].clone());
            block.options = options.collect();
            block.partners.clear();
        }
        let mut pairs = Vec::new();
        for (first, block) in all.blocks.iter().enumerate() {
            let own = block.partners.iter();
            for &(second, pair) in own.filter(|(second, _)| *second > first) {
                let goes = |(a, b): (usize, usize)| all.go_together(pair, first, a, b);
                let both = left(first).flat_map(|a| left(second).map(move |b| (a, b)));
                let allowed: Vec<bool> = both.map(goes).collect();
                if allowed.iter().all(|allowed| *allowed) {
                    continue;
                }
                for (block, other) in [(first, second), (second, first)] {
                    blocks[block].partners.push((other, pairs.len()));
                }
                let width = self.left(second);
                pairs.push(Pair {
                    first,
                    width,
                    allowed,
                });
            }
        }
        Blocks {
            problem: all.problem,
            blocks,
            pairs,
            limits: all.limits.clone(),
            free: all.free.clone(),
            cut: all.cut,
        }
    }

    /// Indices of a block's remaining options, ascending.
    pub fn options(&self, block: BlockId) -> impl Iterator<Item = usize> + '_ {
        let alive = self.alive[block].iter().enumerate();
        alive.filter(|(_, alive)| **alive).map(|(option, _)| option)
    }

    /// Number of a block's remaining options.
    pub fn left(&self, block: BlockId) -> usize {
        self.left[block]
    }

    fn remove(&mut self, block: BlockId, option: usize) {
        if self.alive[block][option] {
            self.alive[block][option] = false;
            self.left[block] -= 1;
            self.trail.push((block, option));
        }
    }

    /// Removes options of undecided blocks that are incompatible with this one. Returns whether all blocks have options left.
    pub fn assign(
        &mut self,
        blocks: &Blocks<'_>,
        block: BlockId,
        option: usize,
        is_open: impl Fn(BlockId) -> bool,
    ) -> bool {
        for &(partner, pair) in &blocks.blocks[block].partners {
            if !is_open(partner) {
                continue;
            }
            for other in 0..blocks.blocks[partner].options.len() {
                if !blocks.go_together(pair, block, option, other) {
                    self.remove(partner, other);
                }
            }
            if self.left[partner] == 0 {
                return false;
            }
        }
        true
    }

    /// Position in the log of removals, for [`Domains::back_to`].
    pub fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Restores the options that were removed since the position `mark` of the log.
    pub fn back_to(&mut self, mark: usize) {
        for (block, option) in self.trail.drain(mark..) {
            self.alive[block][option] = true;
            self.left[block] += 1;
        }
    }
}
