//! The exact search: depth first with forward checking, cut where no better placement can follow (branch and bound).

use super::blocks::{BlockId, Blocks};
use super::bound::{Levels, Prices};
use super::cost::Cost;
use super::domains::Domains;
use super::loads::Loads;

/// What a search is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Any placement.
    Any,
    /// One that costs less than this, and of those the cheapest.
    Below(Option<Cost>),
    /// The first in order, of blocks and of their options, that costs no more than this: the same whatever was tried before.
    First(Cost),
}

/// How a search ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The option of each block, if there is a placement as wanted.
    pub chosen: Option<Vec<usize>>,
    /// Whether it looked everywhere it had to: then there is no other answer.
    pub complete: bool,
}

/// What is known of a problem before the search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'k> {
    /// Of utilisation.
    pub prices: &'k Prices,
    /// Of limits.
    pub limits: &'k Prices,
    /// The utilisations that there can be.
    pub levels: &'k Levels,
}

/// Searches for so many steps at most.
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
        loads: Loads::new(blocks),
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

/// Why a branch was left.
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
    loads: Loads<'b, 'p>,
    chosen: Vec<Option<usize>>,
    /// What the options taken, and the cheapest of the others, cost at the prices of utilisation.
    price: f64,
    /// The same of limits.
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

    /// The open block to branch on: the one with the fewest options left, or the first where order matters.
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

    /// Whether nothing that is wanted can follow.
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

    /// Each part of it a lower bound of what any completion costs, so all of it is one.
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

    /// Switches that open blocks touch anew at least, and their hops.
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
                // It needs a switch of its own, whatever those do that were counted before it.
                touched += 1;
                for switch in places().flat_map(|place| &place.switches) {
                    counted[*switch] = true;
                }
            }
        }
        (touched, hops)
    }
}
