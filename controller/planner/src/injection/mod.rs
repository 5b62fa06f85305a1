//! At which switches faults meet their flows, so that every packet meets each fault exactly once.
//!
//! A [`Problem`] is abstract: choices to be placed on switches, what each takes there, and which of them depend on each other.
//! [`solve()`] finds the [`Placement`] that is first by the worst utilisation of any resource of any switch, then by how many
//! switches are touched, then by how far from the senders they are. A small problem is searched through, and the answer is
//! proven to be the best; of a large one the answer keeps all constraints and says how far from a lower bound it is. Without
//! an answer the [`Refusal`] says what binds, by the smallest set of constraints found that contradict each other.
//!
//! Utilisation is what faults take over what is free before any stands there.

mod blocks;
mod bound;
mod candidates;
mod conflict;
mod cost;
mod cover;
mod domains;
mod improve;
mod loads;
mod place;
mod problem;
mod refusal;
mod relaxed;
mod sample;
mod search;

use blocks::{Blocks, Held};
use bound::{Levels, Measure, Prices};
use candidates::Candidates;
use domains::Domains;
use loads::Loads;
use place::Placing;
use search::{Known, Wanted, search};

pub use cost::{Cost, Utilisation};
pub use problem::{
    Charge, ChargeId, Choice, ChoiceId, DEFAULT_SHARE_PPM, PathId, Problem, ProblemError, Resource,
    ResourceId, Switch, SwitchId,
};
pub use refusal::{Conflict, Refusal};
pub use sample::{Scale, sample, sample_of};

/// What an exact search may look at, in options: about half a second.
const WORK: usize = 6_000_000;
/// Steps of an exact search, at most.
const MAX_STEPS: usize = 200_000;

/// Where everything stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// Of each choice, its switches.
    pub at: Vec<Vec<SwitchId>>,
    /// What it costs.
    pub cost: Cost,
    /// By switch and resource: what is taken.
    pub taken: Vec<Vec<u64>>,
    /// No placement has a worst utilisation below this.
    pub bound: Utilisation,
    /// Whether no placement costs less.
    pub proven: bool,
}

impl Placement {
    /// How far from the bound the worst utilisation may be from the least there is, as a part of it: 0 if it is the least.
    #[must_use]
    pub fn gap(&self) -> f64 {
        let (worst, bound) = (self.cost.worst.fraction(), self.bound.fraction());
        match worst > bound {
            true => (worst - bound) / worst,
            false => 0.0,
        }
    }
}

/// Places all choices. The same problem and seed have the same answer.
pub fn solve(problem: &Problem, seed: u64) -> Result<Placement, Refusal> {
    problem.check().map_err(Refusal::Malformed)?;
    let candidates = problem.candidates();
    for choice in 0..problem.choices.len() {
        stands_somewhere(problem, &candidates, choice)?;
    }
    let blocks = Blocks::new(problem, &candidates, &Held::all(problem));
    let none = || match blocks.cut {
        true => Refusal::NotFound,
        false => conflict::explain(problem, &candidates),
    };
    let domains = Domains::consistent(&blocks).ok_or_else(none)?;
    let blocks = blocks.only(&domains);
    let domains = Domains::new(&blocks);
    let limits = Prices::find(&blocks, Measure::Limits);
    if limits.bound > conflict::SURELY {
        return Err(none());
    }
    let placing = Placing::place(&blocks, &domains, seed);
    if placing.is_none()
        && let Some(refusal) = relaxed::refute(&blocks, &candidates)
    {
        return Err(refusal);
    }
    let prices = Prices::find(&blocks, Measure::Free);
    let levels = Levels::of(&blocks);
    let bound = match blocks.cut {
        true => at_least(&blocks.relaxed(&candidates)),
        false => at_least(&blocks),
    };
    let known = Known {
        prices: &prices,
        limits: &limits,
        levels: &levels,
    };
    let improved = placing.map(|mut placing| {
        placing.improve(bound);
        (placing.cost(), placing.chosen())
    });
    let steps = MAX_STEPS.min(WORK / blocks.size().max(1)) as u64;
    let below = Wanted::Below(improved.as_ref().map(|(cost, _)| *cost));
    let found = search(&blocks, &domains, known, below, steps);
    let chosen = found.chosen.or(improved.map(|(_, chosen)| chosen));
    let Some(mut chosen) = chosen else {
        return Err(match found.complete {
            true => none(),
            false => Refusal::NotFound,
        });
    };
    if found.complete {
        let first = Wanted::First(loads(&blocks, &chosen).cost());
        let first = search(&blocks, &domains, known, first, steps);
        chosen = first.chosen.unwrap_or(chosen);
    }
    let loads = loads(&blocks, &chosen);
    let proven = found.complete && !blocks.cut;
    let resources = problem.resources.len().max(1);
    Ok(Placement {
        at: blocks.stands_at(&chosen),
        cost: loads.cost(),
        taken: loads
            .taken()
            .chunks(resources)
            .map(<[u64]>::to_vec)
            .collect(),
        bound: match proven {
            true => loads.cost().worst,
            false => bound,
        },
        proven,
    })
}

/// Refuses a choice that can stand nowhere, whatever the others do.
fn stands_somewhere(
    problem: &Problem,
    candidates: &[Candidates],
    choice: ChoiceId,
) -> Result<(), Refusal> {
    let (of, wanted) = (&candidates[choice], &problem.choices[choice]);
    if !of.pinned.is_empty() {
        return Ok(());
    }
    let crosses = |path: &PathId, switch| problem.paths[*path].contains(&switch);
    let around = wanted.pin.and_then(|pin| {
        let mut paths = wanted.paths.iter();
        let path = paths.find(|path| !crosses(path, pin))?;
        Some((pin, *path))
    });
    Err(match around {
        Some((switch, path)) => Refusal::OffPath {
            choice,
            switch,
            path,
            crossed: wanted.paths.iter().any(|path| crosses(path, switch)),
        },
        None if of.cut => Refusal::NotFound,
        None => Refusal::NoCandidate {
            choice,
            apart: candidates::apart(problem, choice),
        },
    })
}

fn loads<'b, 'p>(blocks: &'b Blocks<'p>, chosen: &[usize]) -> Loads<'b, 'p> {
    let mut loads = Loads::new(blocks);
    for (block, option) in chosen.iter().enumerate() {
        loads.put(block, *option);
    }
    loads
}

/// No placement has a worst utilisation below this: the best of what the relaxation says of all resources together, and of each
/// alone, whose levels may be far apart.
fn at_least(blocks: &Blocks<'_>) -> Utilisation {
    let resources = blocks.problem.resources.iter().enumerate();
    let binding = resources.filter(|(_, resource)| resource.binds);
    let each = binding.map(|(resource, _)| {
        let prices = Prices::find(blocks, Measure::One(resource));
        let bound = prices.bound.max(cover::at_least(blocks, resource));
        Levels::of_one(blocks, resource).at_least(bound)
    });
    let together = Prices::find(blocks, Measure::Free);
    let together = Levels::of(blocks).at_least(together.bound);
    each.fold(together.max(alone(blocks)), Utilisation::max)
}

/// The worst utilisation of the block that fills a switch most by itself, where it does that least.
fn alone(blocks: &Blocks<'_>) -> Utilisation {
    let mut loads = Loads::new(blocks);
    let mut worst = Utilisation::NONE;
    for (number, block) in blocks.blocks.iter().enumerate() {
        let levels = (0..block.options.len()).map(|option| {
            loads.put(number, option);
            let (level, _) = loads.worst_of(number, option);
            loads.lift(number, option);
            level
        });
        worst = worst.max(levels.min().unwrap_or(Utilisation::NONE));
    }
    worst
}
