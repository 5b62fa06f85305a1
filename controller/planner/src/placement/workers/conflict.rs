//! Finds the constraints that contradict each other in a problem that has no placement of workers.

use super::super::deletion::thin;
use super::exact;
use super::problem::WorkerProblem;
use super::refusal::{WorkerConflict, WorkerRefusal};
use crate::solve::SolveError;

/// Finds the contradicting constraints of a problem that is known to have no placement of workers.
pub(super) fn explain(problem: &WorkerProblem) -> WorkerRefusal {
    let hosts = 0..problem.machines.len();
    let limits = 0..problem.limits.len();
    let mut held = WorkerConflict {
        slots: hosts.collect(),
        limits: limits.collect(),
        pins: problem.pinned().into_keys().collect(),
        least: true,
    };
    let is_open = |held: &WorkerConflict| match exact::place(&part(problem, held), None) {
        Ok(_) => Some(true),
        Err(SolveError::Infeasible) => Some(false),
        Err(_) => None,
    };
    // First remove pins: a contradiction without them holds whatever the file pins.
    let pins = thin(&mut held, |held| &mut held.pins, is_open);
    let limits = thin(&mut held, |held| &mut held.limits, is_open);
    let slots = thin(&mut held, |held| &mut held.slots, is_open);
    held.least = pins && limits && slots;
    WorkerRefusal::Conflict(Box::new(held))
}

/// The problem of placing workers with only the constraints in `held`.
fn part(problem: &WorkerProblem, held: &WorkerConflict) -> WorkerProblem {
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
