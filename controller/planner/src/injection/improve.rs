//! Local search in large problems: moves groups of blocks to other switches. It reduces first the utilization of the fullest
//! switch, then the number of switches with faults, then hops.

use std::cmp::Ordering;

use rand_chacha::rand_core::RngCore;

use super::blocks::BlockId;
use super::cost::Utilisation;
use super::placing::{Ceiling, Fullness, Placing};
use super::problem::SwitchId;

/// Maximum depth of moves: a moved group of blocks may push another group away, which may push yet another away, and so on.
const DEEPEST: u8 = 2;
/// Maximum number of times that blocks of faults are placed while random moves are tried.
const SHAKING: u64 = 400_000;

impl Placing<'_, '_> {
    /// Improves the placement until no move reduces its cost, or the worst utilization reaches `bound`.
    pub fn improve(&mut self, bound: Utilisation) {
        self.flatten(Fullness::Binding, bound);
        self.descend(Fullness::Slowing, Utilisation::NONE, 0);
        self.gather();
        self.draw_near();
    }

    /// Reduces the fullness of the fullest switch repeatedly. If no move does, makes a random move,
    /// and undoes it if the result is worse (iterated local search).
    pub(super) fn flatten(&mut self, measure: Fullness, bound: Utilisation) {
        self.descend(measure, bound, DEEPEST);
        let end = self.loads.puts()
            + match measure {
                // Without this step there would be no placement at all.
                Fullness::Pressed => 3 * SHAKING,
                _ => SHAKING,
            };
        while self.loads.puts() < end {
            let state = self.fullness(measure);
            if state.0 <= bound {
                return;
            }
            let before = self.mark();
            self.shake(measure, state.0);
            self.descend(measure, bound, 1);
            if self.fullness(measure) > state {
                self.restore(before);
            }
        }
    }

    /// Fullness of the fullest switch, and the number of switches that are as full.
    fn fullness(&self, measure: Fullness) -> (Utilisation, usize) {
        let switches = 0..self.blocks.problem.switches.len();
        let levels = switches.map(|switch| self.level(switch, measure));
        levels.fold(
            (Utilisation::NONE, 0),
            |(worst, count), level| match level.cmp(&worst) {
                Ordering::Greater => (level, 1),
                Ordering::Equal => (worst, count + 1),
                Ordering::Less => (worst, count),
            },
        )
    }

    /// Moves a random group of blocks away from one of the fullest switches, even if the placement gets worse.
    fn shake(&mut self, measure: Fullness, worst: Utilisation) {
        let switches = 0..self.blocks.problem.switches.len();
        let full: Vec<SwitchId> = switches
            .filter(|s| self.level(*s, measure) == worst)
            .collect();
        let Some(&from) = self.any_of(&full) else {
            return;
        };
        let groups = self.groups_at(from);
        let Some(group) = self.any_of(&groups) else {
            return;
        };
        let group = self.bound_at(group, from);
        let before = self.mark();
        for &block in &group {
            if let Some(option) = self.lift(block) {
                self.evicted[block][option] += 1;
            }
        }
        if !self.settle(group, Some(from), Ceiling::None).is_empty() {
            self.restore(before);
        }
    }

    fn any_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let nth = self.random.next_u32() as usize;
        all.get(nth.checked_rem(all.len())?)
    }

    /// Moves groups of blocks from the fullest switch to less full ones, and other groups away from these if necessary.
    fn descend(&mut self, measure: Fullness, bound: Utilisation, deepest: u8) {
        let switches = self.blocks.problem.switches.len();
        for _ in 0..4 * self.blocks.blocks.len() {
            let level = |switch: &SwitchId| self.level(*switch, measure);
            let Some(fullest) = (0..switches).max_by_key(|s| (level(s), switches - s)) else {
                return;
            };
            let worst = level(&fullest);
            let before = self.loads.cost().worst;
            let mark = self.mark();
            if worst <= bound || !self.relieve_any(fullest, (measure, worst), deepest) {
                return;
            }
            if measure == Fullness::Slowing && self.loads.cost().worst > before {
                self.restore(mark);
                return;
            }
        }
    }

    /// Moves one of the groups away from a switch, with as few displaced groups as possible; returns whether that succeeded.
    fn relieve_any(&mut self, from: SwitchId, aim: (Fullness, Utilisation), deepest: u8) -> bool {
        let groups = self.groups_at(from);
        (0..=deepest).any(|depth| {
            groups.iter().any(|group| {
                let bound = self.bound_at(group, from);
                self.relieve(group, from, aim, depth)
                    || bound.len() > group.len() && self.relieve(&bound, from, aim, depth)
            })
        })
    }

    /// A group at a switch, and other blocks that are there because of it: faults that packets must meet before or after it.
    fn bound_at(&self, group: &[BlockId], switch: SwitchId) -> Vec<BlockId> {
        let partners = group.iter().flat_map(|block| {
            let partners = self.blocks.blocks[*block].partners.iter();
            partners.map(|(partner, _)| *partner)
        });
        let stands_here = |block: &BlockId| {
            let option = self.chosen[*block];
            let place = option.map(|option| &self.blocks.blocks[*block].options[option]);
            place.is_some_and(|place| place.switches.contains(&switch))
        };
        let mut bound: Vec<BlockId> = partners
            .filter(stands_here)
            .chain(group.iter().copied())
            .collect();
        bound.sort_unstable();
        bound.dedup();
        bound
    }

    /// Moves a group of blocks away from a switch, and other groups away from where it goes, up to `depth` times in turn, such
    /// that all switches stay below the fullness `worst`. Returns whether that succeeded; if not, the placement is restored.
    fn relieve(
        &mut self,
        group: &[BlockId],
        from: SwitchId,
        (measure, worst): (Fullness, Utilisation),
        depth: u8,
    ) -> bool {
        let before = self.mark();
        for block in group {
            self.lift(*block);
        }
        let done = !self.is_full(from, measure, worst)
            && match depth {
                0 => {
                    let ceiling = Ceiling::Below(measure, worst);
                    self.settle(group.to_vec(), Some(from), ceiling).is_empty()
                }
                _ => {
                    let left = self.settle(group.to_vec(), Some(from), Ceiling::None);
                    left.is_empty() && self.push_on(group, (measure, worst), depth)
                }
            };
        if !done {
            self.restore(before);
        }
        done
    }

    /// Moves another group away from each switch that a group has just filled; returns whether that succeeded.
    fn push_on(
        &mut self,
        group: &[BlockId],
        (measure, worst): (Fullness, Utilisation),
        depth: u8,
    ) -> bool {
        let blocks = self.blocks;
        let mut full: Vec<SwitchId> = group
            .iter()
            .filter_map(|block| Some(&blocks.blocks[*block].options[self.chosen[*block]?]))
            .flat_map(|place| &place.switches)
            .copied()
            .filter(|switch| self.is_full(*switch, measure, worst))
            .collect();
        full.sort_unstable();
        full.dedup();
        let own = group.first().map(|block| self.group[*block]);
        full.into_iter().all(|switch| {
            let others = self.groups_at(switch);
            let is_other = |other: &&Vec<BlockId>| other.first().map(|b| self.group[*b]) != own;
            let others: Vec<Vec<BlockId>> = others.iter().filter(is_other).cloned().collect();
            let mut others = others.into_iter();
            others.any(|other| self.relieve(&other, switch, (measure, worst), depth - 1))
        })
    }

    /// Empties switches that have few blocks, by moving these to others, if that makes no switch fuller than the fullest.
    fn gather(&mut self) {
        let mut switches: Vec<SwitchId> = (0..self.blocks.problem.switches.len()).collect();
        switches.sort_by_key(|switch| (self.loads.standing(*switch), *switch));
        for switch in switches {
            if self.loads.standing(switch) == 0 {
                continue;
            }
            let (cost, before) = (self.loads.cost(), self.mark());
            let there = self.groups_at(switch);
            for block in there.iter().flatten() {
                self.lift(*block);
            }
            let ceiling = Ceiling::UpTo(cost.worst);
            let all = there.into_iter().all(|group| {
                let left = self.settle(group, Some(switch), ceiling);
                left.is_empty()
            });
            if !all || self.loads.cost() >= cost {
                self.restore(before);
            }
        }
    }

    /// Moves single blocks of faults as long as a move reduces the placement's cost.
    fn draw_near(&mut self) {
        for _ in 0..20 {
            let mut changed = false;
            for block in 0..self.blocks.blocks.len() {
                changed |= self.move_nearer(block);
            }
            if !changed {
                return;
            }
        }
    }

    fn move_nearer(&mut self, block: BlockId) -> bool {
        if self.domains.left(block) < 2 {
            return false;
        }
        let before = self.loads.cost();
        let mark = self.mark();
        let Some(own) = self.lift(block) else {
            return false;
        };
        let options: Vec<usize> = self.domains.options(block).collect();
        let mut best = (before, own);
        for option in options {
            if option == own || !self.goes(block, option) {
                continue;
            }
            self.loads.put(block, option);
            if self.loads.fits(block, option) {
                let cost = self.loads.cost();
                if cost < best.0 {
                    best = (cost, option);
                }
            }
            self.loads.lift(block, option);
        }
        match best.1 == own {
            true => self.restore(mark),
            false => self.put(block, best.1),
        }
        best.1 != own
    }
}
