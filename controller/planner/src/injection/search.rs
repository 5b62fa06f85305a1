//! Exact search for a placement: depth first with forward checking and pruning (branch and bound).

use super::blocks::{BlockId, Blocks};
use super::bound::{Levels, Prices};
use super::cost::Cost;
use super::domains::Domains;
use super::loads::SwitchLoads;

/// Kind of placement that a search looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Any placement.
    Any,
    /// The cheapest placement that costs less than this; `None`: the cheapest of all.
    Below(Option<Cost>),
    /// The first placement, in the order of blocks and options, that costs at most this: independent of earlier searches.
    First(Cost),
}

/// Result of a search for a placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Option of each block of faults; `None` if no wanted placement was found.
    pub chosen: Option<Vec<usize>>,
    /// Whether the search was complete: then there is no better placement, or none at all.
    pub complete: bool,
}

/// Bounds that are known before the search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'k> {
    /// Costs of options at the prices that give a lower bound of the worst utilization.
    pub prices: &'k Prices,
    /// Costs of options at the prices that give a lower bound of how much of some limit is used; above 1 nothing fits.
    pub limits: &'k Prices,
    /// The values that a utilization can have.
    pub levels: &'k Levels,
}

/// Searches for a wanted placement in at most `steps` steps.
pub(super) fn search(
    blocks: &Blocks<'_>,
    domains: &Domains,
    known: Known<'_>,
    wanted: Wanted,
    steps: u64,
) -> Found {
    let mut search = Search {
        blocks,
        known,
        wanted,
        steps,
        domains: domains.clone(),
        loads: SwitchLoads::new(blocks),
        chosen: vec![None; blocks.blocks.len()],
        price: known.prices.bound,
        limit: known.limits.bound,
        best: None,
    };
    let ended = search.descend();
    Found {
        chosen: search.best.map(|(_, chosen)| chosen),
        complete: ended != Ended::OutOfSteps,
    }
}

/// Why a branch of the search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Exhausted,
    Answered,
    OutOfSteps,
}

struct Search<'b, 'p> {
    blocks: &'b Blocks<'p>,
    known: Known<'b>,
    wanted: Wanted,
    steps: u64,
    domains: Domains,
    loads: SwitchLoads<'b, 'p>,
    chosen: Vec<Option<usize>>,
    /// Lower bound of the worst utilization: the costs of the chosen options and of open blocks' cheapest options.
    price: f64,
    /// Lower bound of how much of some limit is used (above 1, nothing fits): the costs of the same options at those prices.
    limit: f64,
    best: Option<(Cost, Vec<usize>)>,
}

impl Search<'_, '_> {
    fn descend(&mut self) -> Ended {
        if self.steps == 0 {
            return Ended::OutOfSteps;
        }
        self.steps -= 1;
        let Some(block) = self.next() else {
            let chosen = self.chosen.iter().flatten().copied().collect();
            self.best = Some((self.loads.cost(), chosen));
            return match self.wanted {
                Wanted::Below(_) => Ended::Exhausted,
                Wanted::Any | Wanted::First(_) => Ended::Answered,
            };
        };
        let options: Vec<usize> = self.domains.options(block).collect();
        for option in options {
            let mark = self.domains.mark();
            let before = (self.price, self.limit);
            self.take(block, option);
            let chosen = &self.chosen;
            let goes = self.loads.fits(block, option)
                && self
                    .domains
                    .assign(self.blocks, block, option, |other| chosen[other].is_none())
                && !self.is_hopeless();
            let ended = match goes {
                true => self.descend(),
                false => Ended::Exhausted,
            };
            self.chosen[block] = None;
            self.loads.lift(block, option);
            (self.price, self.limit) = before;
            self.domains.back_to(mark);
            if ended != Ended::Exhausted {
                return ended;
            }
        }
        Ended::Exhausted
    }

    fn take(&mut self, block: BlockId, option: usize) {
        self.chosen[block] = Some(option);
        self.loads.put(block, option);
        let Known { prices, limits, .. } = self.known;
        self.price += prices.of[block][option] - prices.least[block];
        self.limit += limits.of[block][option] - limits.least[block];
    }

    /// The undecided block of faults to branch on: the one with the fewest options left, or the first one if the order matters.
    fn next(&self) -> Option<BlockId> {
        let mut open = self.open();
        match self.wanted {
            Wanted::First(_) => open.next(),
            _ => open.min_by_key(|block| self.domains.left(*block)),
        }
    }

    fn open(&self) -> impl Iterator<Item = BlockId> + '_ {
        let chosen = self.chosen.iter().enumerate();
        chosen.filter(|(_, c)| c.is_none()).map(|(block, _)| block)
    }

    /// Whether no wanted placement can follow from the choices so far.
    fn is_hopeless(&self) -> bool {
        if self.limit > 1.0 + 1e-6 {
            return true;
        }
        let at_least = || self.at_least();
        let found = self.best.as_ref().map(|(cost, _)| *cost);
        match self.wanted {
            Wanted::Any => false,
            Wanted::First(cost) => at_least() > cost,
            Wanted::Below(cost) => {
                let best = found.or(cost);
                best.is_some_and(|best| at_least() >= best)
            }
        }
    }

    /// Lower bound, field by field, of the cost of any placement that completes the choices so far.
    fn at_least(&self) -> Cost {
        let mut cost = self.loads.cost();
        if self.price > cost.worst.fraction() {
            cost.worst = cost.worst.max(self.known.levels.at_least(self.price));
        }
        let (touched, hops) = self.still();
        cost.touched += touched;
        cost.hops += hops;
        cost
    }

    /// Lower bounds for the undecided blocks of faults: the number of further switches that they touch, and their hops.
    fn still(&self) -> (usize, u64) {
        let mut counted = vec![false; self.blocks.problem.switches.len()];
        let (mut touched, mut hops) = (0, 0);
        for block in self.open() {
            let places = || {
                let options = self.domains.options(block);
                options.map(|option| &self.blocks.blocks[block].options[option])
            };
            hops += places().map(|place| place.hops).min().unwrap_or(0);
            let is_there = |switch: &usize| self.loads.standing(*switch) > 0 || counted[*switch];
            if !places().any(|place| place.switches.iter().all(is_there)) {
                // The block needs a switch of its own, whatever the blocks counted before it take.
                touched += 1;
                for switch in places().flat_map(|place| &place.switches) {
                    counted[*switch] = true;
                }
            }
        }
        (touched, hops)
    }
}
