//! A placement in progress: its moves, their log, and where a group of blocks fits best.
//!
//! A group is placed like a weighted set cover (Chvátal, *A Greedy Heuristic for the Set-Covering
//! Problem*, Math. OR 4, 1979): first at the switches that it loads least per block placed there.
//! The load of a switch counts by a power of its utilization, so that full switches are expensive.

use std::collections::BTreeMap;

use rand_chacha::ChaCha12Rng;

use super::blocks::{BlockId, Blocks};
use super::cost::{Cost, Utilisation};
use super::domains::Domains;
use super::loads::SwitchLoads;
use super::problem::SwitchId;

/// Score of a set of switches for a group of blocks, the lower the better: cost per block that can be placed there, then hops.
type Score = (f64, u64);

/// Measure of how full a switch is, which the local search reduces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fullness {
    /// Worst ratio of taken amount to limit, until no limit is exceeded.
    Pressed,
    /// Worst utilization of the resources with a hard limit.
    Binding,
    /// Worst utilization of the other resources, without raising that of resources with a hard limit.
    Slowing,
}

/// Limit on how full a switch may become when blocks are placed there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ceiling {
    /// Up to the limits of the switch's resources.
    Limits,
    /// Below this level of this measure of fullness.
    Below(Fullness, Utilisation),
    /// Up to the limits of the switch's resources, and at most this utilization.
    UpTo(Utilisation),
    /// Without a maximum: overloaded switches are relieved later.
    None,
}

/// A placement in progress, with a log to undo moves.
pub(super) struct Placing<'b, 'p> {
    pub(super) blocks: &'b Blocks<'p>,
    pub(super) domains: &'b Domains,
    pub(super) loads: SwitchLoads<'b, 'p>,
    pub(super) chosen: Vec<Option<usize>>,
    /// Blocks of faults placed at each switch, in no particular order.
    pub(super) there: Vec<Vec<BlockId>>,
    /// Log of moves: each moved block of faults, and the index of its option before; `None` if it was not placed before.
    pub(super) moves: Vec<(BlockId, Option<usize>)>,
    /// For each block of faults, the index of its group (blocks that share an amount of resources).
    pub(super) group: Vec<usize>,
    /// For each option of each block of faults, the number of times that it was given up.
    pub(super) evicted: Vec<Vec<u32>>,
    pub(super) random: ChaCha12Rng,
}

impl Placing<'_, '_> {
    /// Index of the chosen option of each placed block of faults, in the order of blocks.
    pub fn chosen(&self) -> Vec<usize> {
        self.chosen.iter().flatten().copied().collect()
    }

    /// Cost of the current placement.
    pub fn cost(&self) -> Cost {
        self.loads.cost()
    }

    pub(super) fn put(&mut self, block: BlockId, option: usize) {
        self.moves.push((block, None));
        self.try_out(block, option);
        for &switch in &self.blocks.blocks[block].options[option].switches {
            self.there[switch].push(block);
        }
    }

    pub(super) fn lift(&mut self, block: BlockId) -> Option<usize> {
        let option = self.chosen[block]?;
        self.moves.push((block, Some(option)));
        self.take_back(block);
        for &switch in &self.blocks.blocks[block].options[option].switches {
            self.there[switch].retain(|other| *other != block);
        }
        Some(option)
    }

    /// Places a block of faults temporarily, without an entry in the log of moves.
    pub(super) fn try_out(&mut self, block: BlockId, option: usize) {
        self.loads.put(block, option);
        self.chosen[block] = Some(option);
    }

    /// Undoes [`Placing::try_out`].
    pub(super) fn take_back(&mut self, block: BlockId) {
        if let Some(option) = self.chosen[block].take() {
            self.loads.lift(block, option);
        }
    }

    /// Position in the log of moves, for [`Placing::restore`].
    pub(super) fn mark(&self) -> usize {
        self.moves.len()
    }

    /// Undoes the moves since the position `mark` of the log.
    pub(super) fn restore(&mut self, mark: usize) {
        for (block, before) in self.moves.split_off(mark).into_iter().rev() {
            match before {
                Some(option) => self.put(block, option),
                None => {
                    self.lift(block);
                }
            }
        }
        self.moves.truncate(mark);
    }

    /// Whether an option is compatible with the current options of all other blocks.
    pub(super) fn goes(&self, block: BlockId, option: usize) -> bool {
        let mut partners = self.blocks.blocks[block].partners.iter();
        partners.all(|(partner, pair)| {
            let other = self.chosen[*partner];
            other.is_none_or(|other| self.blocks.go_together(*pair, block, option, other))
        })
    }

    fn is_under(&self, ceiling: Ceiling, block: BlockId, option: usize) -> bool {
        let fits = || self.loads.fits(block, option);
        let worst = || self.loads.worst_of(block, option).0;
        match ceiling {
            Ceiling::Limits => fits(),
            Ceiling::Below(measure, level) => {
                let place = &self.blocks.blocks[block].options[option];
                let mut switches = place.switches.iter();
                switches.all(|switch| !self.is_full(*switch, measure, level))
            }
            Ceiling::UpTo(level) => fits() && worst() <= level,
            Ceiling::None => true,
        }
    }

    /// Places blocks of a group, but not at the switch `but`. Returns the blocks that could not be placed.
    pub(super) fn settle(
        &mut self,
        mut open: Vec<BlockId>,
        but: Option<SwitchId>,
        ceiling: Ceiling,
    ) -> Vec<BlockId> {
        let blocks = self.blocks;
        while !open.is_empty() {
            let mut places: BTreeMap<&[SwitchId], Vec<(BlockId, usize)>> = BTreeMap::new();
            for &block in &open {
                for option in self.domains.options(block) {
                    let switches = &blocks.blocks[block].options[option].switches;
                    if but.is_none_or(|but| !switches.contains(&but)) {
                        places.entry(switches).or_default().push((block, option));
                    }
                }
            }
            let mut best: Option<(Score, Vec<(BlockId, usize)>)> = None;
            for (switches, candidates) in places {
                let before = self.pressure(switches);
                let mut taken = Vec::new();
                let (mut hops, mut given_up) = (0, 0);
                for (block, option) in candidates {
                    if !self.goes(block, option) {
                        continue;
                    }
                    self.try_out(block, option);
                    if self.is_under(ceiling, block, option) {
                        hops += blocks.blocks[block].options[option].hops;
                        given_up += self.evicted[block][option];
                        taken.push((block, option));
                    } else {
                        self.take_back(block);
                    }
                }
                let added = self.pressure(switches) - before;
                for (block, _) in &taken {
                    self.take_back(*block);
                }
                if taken.is_empty() {
                    continue;
                }
                let weight = f64::from(1 + given_up) / taken.len() as f64;
                let score = (added * weight, hops);
                if best.as_ref().is_none_or(|(least, _)| score < *least) {
                    best = Some((score, taken));
                }
            }
            let Some((_, taken)) = best else {
                return open;
            };
            for &(block, option) in &taken {
                self.put(block, option);
            }
            open.retain(|block| self.chosen[*block].is_none());
        }
        open
    }

    /// Cost of the current loads of these switches, which grows steeply as they fill.
    fn pressure(&self, switches: &[SwitchId]) -> f64 {
        let resources = self.blocks.problem.resources.len();
        let rows = switches.iter().flat_map(|switch| {
            let row = self.blocks.row(*switch, 0);
            row..row + resources
        });
        let felt = rows.map(|row| {
            let of = self.blocks.limits[row].min(self.blocks.free[row]).max(1);
            let level = self.loads.taken()[row] as f64 / of as f64;
            let square = level * level;
            level + square * square * square
        });
        felt.sum()
    }

    pub(super) fn level(&self, switch: SwitchId, measure: Fullness) -> Utilisation {
        match measure {
            Fullness::Pressed => self.loads.pressed(switch),
            Fullness::Binding => self.loads.at(switch).0,
            Fullness::Slowing => self.loads.at(switch).1,
        }
    }

    pub(super) fn is_full(&self, switch: SwitchId, measure: Fullness, worst: Utilisation) -> bool {
        let is_over = measure != Fullness::Pressed && self.loads.is_over(switch);
        is_over || self.level(switch, measure) >= worst
    }

    /// Blocks of faults placed at a switch, by group.
    pub(super) fn groups_at(&self, switch: SwitchId) -> Vec<Vec<BlockId>> {
        let mut groups: BTreeMap<usize, Vec<BlockId>> = BTreeMap::new();
        for &block in &self.there[switch] {
            groups.entry(self.group[block]).or_default().push(block);
        }
        for group in groups.values_mut() {
            group.sort_unstable();
        }
        groups.into_values().collect()
    }
}
