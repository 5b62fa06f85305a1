//! Heuristic for large problems: a greedy placement, repaired until it respects all constraints.
//!
//! Blocks that share a charge, such as the flows of one fault, are a group. It is placed like a weighted set cover (Chvátal, *A
//! Greedy Heuristic for the Set-Covering Problem*, Math. OR 4, 1979): first at the place that loads switches least per block
//! that it takes. The load of a switch counts by a power of its utilization, so that full switches are expensive. Blocks in the
//! way of another are moved, and options that were given up often are taken less readily (min-conflicts with weights).

use std::collections::{BTreeMap, VecDeque};

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::blocks::{BlockId, Blocks};
use super::cost::{Cost, Utilisation};
use super::domains::Domains;
use super::improve::Measure;
use super::loads::Loads;
use super::problem::SwitchId;

/// Maximum number of repairs, as a multiple of the number of blocks.
const REPAIRS: usize = 10;
/// Minimum number of blocks to assume in that limit.
const FEW: usize = 40;

/// Cost of a place per block that it takes, then hops.
type Score = (f64, u64);

/// Maximum fullness of a switch for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ceiling {
    /// The switch's limits.
    Limits,
    /// Below this level of this measure.
    Below(Measure, Utilisation),
    /// The switch's limits, and at most this utilization.
    UpTo(Utilisation),
    /// No maximum: a start from which overloaded switches are relieved.
    None,
}

/// A placement in progress.
pub(super) struct Placing<'b, 'p> {
    pub(super) blocks: &'b Blocks<'p>,
    pub(super) domains: &'b Domains,
    pub(super) loads: Loads<'b, 'p>,
    pub(super) chosen: Vec<Option<usize>>,
    /// Blocks at each switch, unordered.
    pub(super) there: Vec<Vec<BlockId>>,
    /// Log of moves: the block, and its previous option.
    pub(super) moves: Vec<(BlockId, Option<usize>)>,
    /// Index of each block's group.
    pub(super) group: Vec<usize>,
    /// Number of times that each option was given up.
    pub(super) evicted: Vec<Vec<u32>>,
    pub(super) random: ChaCha12Rng,
}

impl<'b, 'p> Placing<'b, 'p> {
    /// Places all blocks, the most constrained first, then relieves overloaded switches. If that fails, places all blocks again
    /// within limits, and moves blocks that are in the way. `None` if that fails, too.
    pub fn place(
        blocks: &'b Blocks<'p>,
        domains: &'b Domains,
        seed: u64,
    ) -> Option<Placing<'b, 'p>> {
        let (group, groups) = groups(blocks);
        let mut placing = Placing {
            blocks,
            domains,
            loads: Loads::new(blocks),
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
            placing.flatten(Measure::Pressed, Utilisation::ALL);
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

    /// Places all groups; returns whether it succeeded within the limit of repairs.
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

    /// Option of each block.
    pub fn chosen(&self) -> Vec<usize> {
        self.chosen.iter().flatten().copied().collect()
    }

    /// Cost of the placement.
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

    /// Places a block temporarily.
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

    /// Mark in the log for [`Placing::restore`].
    pub(super) fn mark(&self) -> usize {
        self.moves.len()
    }

    /// Restores the placement at a mark.
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

    /// Whether an option is compatible with the current options of the block's partners.
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

    /// Places the open blocks of a group, not at the switch `but`. Returns those for which there is no place.
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

    /// Cost of these switches' loads.
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

    /// Places a block at the option with the fewest obstacles, and removes those. Returns the removed groups.
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

    /// Partners whose current options are incompatible with an option.
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

    /// Blocks at a switch, by group.
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

/// Group of each block, and blocks of each group. A block's group is the charge that it shares with most other blocks.
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
