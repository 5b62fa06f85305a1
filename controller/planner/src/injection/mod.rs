//! Places faults at switches, so that every packet meets each of its faults exactly once.
//!
//! A [`Problem`] is abstract: choices to be placed at switches, the resources that each takes there, and dependences between
//! them. [`solve()`] finds the [`Placement`] with the least worst utilization of any resource of any switch, then the fewest
//! touched switches, then the least distance from the senders. A small problem is solved exactly, with proof; a placement for a
//! large one respects all constraints and has a lower bound. If there is no placement, the [`Refusal`] names the smallest set
//! of contradicting constraints that was found.
//!
//! Utilization is the amount that faults take, relative to the amount that is free before any is placed.

mod blocks;
mod bound;
mod candidates;
mod conflict;
mod cost;
mod cover;
mod domains;
mod groups;
mod improve;
mod loads;
mod place;
mod placing;
mod problem;
mod refusal;
mod relaxed;
mod sample;
mod search;

use blocks::{Blocks, Held};
use bound::{Levels, LoadMeasure, Prices};
use candidates::Candidates;
use domains::Domains;
use loads::SwitchLoads;
use placing::Placing;
use search::{Known, Wanted, search};

pub use cost::{Cost, Utilisation};
pub use problem::{
    Charge, ChargeId, Choice, ChoiceId, DEFAULT_SHARE_PPM, InjectionSwitch, PathId, Problem,
    ProblemError, ResourceId, SwitchId, SwitchResource,
};
pub use refusal::{Conflict, Refusal};
pub use sample::{Scale, sample, sample_of};

/// Maximum number of options that an exact search examines: about half a second.
const WORK: usize = 6_000_000;
/// Maximum number of steps of an exact search.
const MAX_STEPS: usize = 200_000;

/// Switches at which each choice of a problem is placed, and the cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// For each choice, the switches at which it is placed.
    pub at: Vec<Vec<SwitchId>>,
    /// Cost of the placement.
    pub cost: Cost,
    /// Amount that faults take, by switch and resource.
    pub taken: Vec<Vec<u64>>,
    /// Lower bound of the worst utilization of any placement.
    pub bound: Utilisation,
    /// Whether the cost is proved to be the least possible.
    pub proven: bool,
}

impl Placement {
    /// Maximum distance of the worst utilization from the optimum, as a share of it; 0 if it is optimal.
    #[must_use]
    pub fn gap(&self) -> f64 {
        let (worst, bound) = (self.cost.worst.fraction(), self.bound.fraction());
        match worst > bound {
            true => (worst - bound) / worst,
            false => 0.0,
        }
    }
}

/// Places all choices of a problem at switches. Equal problems and seeds give equal placements.
pub fn solve(problem: &Problem, seed: u64) -> Result<Placement, Refusal> {
    problem.check().map_err(Refusal::Malformed)?;
    let choices = 0..problem.choices.len();
    let find = |choice| Candidates::find(problem, choice);
    let candidates: Vec<Candidates> = choices.clone().map(find).collect();
    for choice in choices {
        stands_somewhere(problem, &candidates, choice)?;
    }
    let blocks = Blocks::new(problem, &candidates, &Held::all(problem));
    let none = || match blocks.cut {
        true => Refusal::NotFound,
        false => conflict::explain(problem, &candidates),
    };
    let domains = Domains::consistent(&blocks).ok_or_else(none)?;
    let blocks = domains.remaining(&blocks);
    let domains = Domains::new(&blocks);
    let limits = Prices::find(&blocks, LoadMeasure::Limits);
    if limits.bound > conflict::SURELY {
        return Err(none());
    }
    let placing = Placing::place(&blocks, &domains, seed);
    if placing.is_none()
        && let Some(refusal) = relaxed::refute(&blocks, &candidates)
    {
        return Err(refusal);
    }
    let prices = Prices::find(&blocks, LoadMeasure::Free);
    let levels = Levels::new(&blocks);
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

/// Returns a refusal if some choice can be placed nowhere, regardless of the other choices.
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

fn loads<'b, 'p>(blocks: &'b Blocks<'p>, chosen: &[usize]) -> SwitchLoads<'b, 'p> {
    let mut loads = SwitchLoads::new(blocks);
    for (block, option) in chosen.iter().enumerate() {
        loads.put(block, *option);
    }
    loads
}

/// Lower bound of the worst utilization of any placement: the best of the relaxation's bounds for
/// all resources together and for each alone, since resources may have very different utilizations.
fn at_least(blocks: &Blocks<'_>) -> Utilisation {
    let resources = blocks.problem.resources.iter().enumerate();
    let binding = resources.filter(|(_, resource)| resource.binds);
    let each = binding.map(|(resource, _)| {
        let prices = Prices::find(blocks, LoadMeasure::One(resource));
        let bound = prices.bound.max(cover::at_least(blocks, resource));
        Levels::for_resource(blocks, resource).at_least(bound)
    });
    let together = Prices::find(blocks, LoadMeasure::Free);
    let together = Levels::new(blocks).at_least(together.bound);
    each.fold(together.max(alone(blocks)), Utilisation::max)
}

/// Greatest utilization that a single block of faults must cause, each block placed where it causes the least.
fn alone(blocks: &Blocks<'_>) -> Utilisation {
    let mut loads = SwitchLoads::new(blocks);
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
