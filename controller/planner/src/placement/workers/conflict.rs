//! Which constraints of a problem without a placement are at odds: the deletion filter, by halves, as of faults
//! ([`crate::injection`]) and of rows ([`crate::solve::conflict()`]).

use super::exact;
use super::problem::Problem;
use super::refusal::{Conflict, Refusal};
use crate::solve::SolveError;

/// Finds what binds in a problem that is known to have no placement.
pub(super) fn explain(problem: &Problem) -> Refusal {
    let hosts = 0..problem.machines.len();
    let limits = 0..problem.limits.len();
    let mut held = Conflict {
        slots: hosts.collect(),
        limits: limits.collect(),
        pins: problem.pinned().into_keys().collect(),
        least: true,
    };
    // What contradicts without the pins of a file does so whatever its author pins.
    thin(problem, &mut held, |held| &mut held.pins);
    thin(problem, &mut held, |held| &mut held.limits);
    thin(problem, &mut held, |held| &mut held.slots);
    Refusal::Conflict(Box::new(held))
}

/// Takes away constraints of one kind, the last first, in ever smaller groups, as long as there is no placement without them.
fn thin(problem: &Problem, held: &mut Conflict, of: impl Fn(&mut Conflict) -> &mut Vec<usize>) {
    let mut group = of(held).len().next_power_of_two();
    while group > 0 {
        let all = of(held).clone();
        for some in all.rchunks(group) {
            let mut without = held.clone();
            of(&mut without).retain(|one| !some.contains(one));
            match exact::place(&part(problem, &without), None) {
                Err(SolveError::Infeasible) => *held = without,
                Ok(_) => {}
                Err(_) => held.least &= group > 1,
            }
        }
        group /= 2;
    }
}

/// A problem with no constraints but those that are held.
fn part(problem: &Problem, held: &Conflict) -> Problem {
    let mut part = problem.clone();
    let limits = held.limits.iter();
    part.limits = limits.map(|limit| problem.limits[*limit]).collect();
    part.pins.retain(|(worker, _)| held.pins.contains(worker));
    for (host, machine) in part.machines.iter_mut().enumerate() {
        if !held.slots.contains(&host) {
            machine.slots = problem.workers;
        }
    }
    part
}
