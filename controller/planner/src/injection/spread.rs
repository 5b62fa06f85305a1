//! Faults placed so that the loss of one switch touches few tenants: the same problem, by the objective of
//! [`crate::placement::robust`].

use super::blocks::{Blocks, Held};
use super::problem::{ChargeId, Problem, ProblemError, SwitchId};
use super::refusal::Refusal;
use super::{Placement, loads};
use crate::placement::robust::{self, Charge, Choice, Decision, Limit};

/// A placement, and whom the loss of a switch touches.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Where everything stands. Its bound and whether it is proven are about utilisation: nothing is said of it here.
    pub placement: Placement,
    /// The tenants that the loss of the worst switch touches.
    pub worst: usize,
    /// The loss of some switch touches so many at least, wherever everything stands.
    pub bound: usize,
    /// Whether no placement touches fewer, nor as few with fewer hops.
    pub proven: bool,
}

/// Places all choices; `tenant` says by choice whose it is. What switches have, orders, ties and clashes hold as in
/// [`solve`](super::solve()), which says where to begin. The same problem and seed have the same answer.
///
/// # Errors
///
/// Those of [`solve`](super::solve()); [`Refusal::Malformed`] too where there is not one tenant for each choice.
pub fn spread(problem: &Problem, tenant: &[usize], seed: u64) -> Result<Spread, Refusal> {
    if tenant.len() != problem.choices.len() {
        return Err(Refusal::Malformed(ProblemError::Unknown {
            what: "choice",
            number: tenant.len().min(problem.choices.len()),
            whose: "the list of tenants".to_owned(),
        }));
    }
    let first = super::solve(problem, seed)?;
    let candidates = problem.candidates();
    let blocks = Blocks::new(problem, &candidates, &Held::all(problem));
    let robust = told(&blocks, tenant);
    let begun: Option<Vec<usize>> = (blocks.blocks.iter())
        .map(|block| {
            let at = &first.at[*block.members.first()?];
            let mut options = block.options.iter();
            options.position(|option| option.switches == *at)
        })
        .collect();
    // There is a placement: what is not found is not found within limits.
    let placed = robust::solve(&robust, begun.as_deref(), seed).map_err(|_| Refusal::NotFound)?;
    let loads = loads(&blocks, &placed.chosen);
    let resources = problem.resources.len().max(1);
    Ok(Spread {
        placement: Placement {
            at: blocks.stands_at(&placed.chosen),
            cost: loads.cost(),
            taken: loads
                .taken()
                .chunks(resources)
                .map(<[u64]>::to_vec)
                .collect(),
            bound: first.bound,
            proven: false,
        },
        worst: placed.worst,
        bound: if blocks.cut { 0 } else { placed.bound },
        proven: placed.proven && !blocks.cut,
    })
}

/// The same problem in the words of the other objective: a decision for each block, a charge for each thing that a switch
/// holds once.
fn told(blocks: &Blocks<'_>, tenant: &[usize]) -> robust::Problem {
    let problem = blocks.problem;
    let resources = problem.resources.len();
    let mut told = robust::Problem {
        points: problem
            .switches
            .iter()
            .map(|switch| switch.name.clone())
            .collect(),
        users: (0..tenant.iter().map(|tenant| tenant + 1).max().unwrap_or(0))
            .map(|tenant| tenant.to_string())
            .collect(),
        ..robust::Problem::default()
    };
    for (switch, at) in problem.switches.iter().enumerate() {
        for (resource, of) in problem.resources.iter().enumerate() {
            told.limits.push(Limit {
                name: format!("{} of {}", of.name, at.name),
                most: blocks.limits[switch * resources + resource] as f64,
            });
        }
    }
    let takes = |switch: SwitchId, resource: usize, amount: u64| {
        (switch * resources + resource, amount as f64)
    };
    // What the first fault at a switch takes, then its charges as they are needed.
    for (switch, at) in problem.switches.iter().enumerate() {
        let opening = at.opening.iter().enumerate();
        let opening = opening.filter(|(_, amount)| **amount > 0);
        told.charges.push(Charge {
            takes: opening
                .map(|(resource, amount)| takes(switch, resource, *amount))
                .collect(),
        });
    }
    let mut known = std::collections::BTreeMap::new();
    for block in &blocks.blocks {
        let mut users: Vec<usize> = block.members.iter().map(|choice| tenant[*choice]).collect();
        users.sort_unstable();
        users.dedup();
        let names = block
            .members
            .iter()
            .map(|choice| problem.choices[*choice].name.as_str());
        let mut decision = Decision {
            name: names.collect::<Vec<_>>().join(", "),
            users,
            options: Vec::new(),
        };
        for option in &block.options {
            let mut choice = Choice {
                points: option.switches.clone(),
                cost: option.hops as f64,
                ..Choice::default()
            };
            for &switch in &option.switches {
                choice.charges.push(switch);
                for &charge in &block.charges {
                    let here: &mut usize = known.entry((switch, charge)).or_insert_with(|| {
                        let of: ChargeId = charge;
                        let cost = problem.charges[of].cost.iter();
                        told.charges.push(Charge {
                            takes: cost
                                .map(|(resource, amount)| takes(switch, *resource, *amount))
                                .collect(),
                        });
                        told.charges.len() - 1
                    });
                    choice.charges.push(*here);
                }
            }
            decision.options.push(choice);
        }
        told.decisions.push(decision);
    }
    for pair in partners(blocks) {
        told.excluded.push(pair);
    }
    told
}

/// Options of two blocks that do not go together.
fn partners(blocks: &Blocks<'_>) -> Vec<[(usize, usize); 2]> {
    let mut excluded = Vec::new();
    for (second, block) in blocks.blocks.iter().enumerate() {
        for (partner, number) in &block.partners {
            let pair = &blocks.pairs[*number];
            // Each pair is known to both: told once.
            if pair.first != *partner || *partner == second {
                continue;
            }
            for (place, _) in pair
                .allowed
                .iter()
                .enumerate()
                .filter(|(_, allowed)| !**allowed)
            {
                excluded.push([
                    (pair.first, place / pair.width),
                    (second, place % pair.width),
                ]);
            }
        }
    }
    excluded
}
