//! Solves small GOAT problems exactly: which switch sums which sub-models at the least traffic.

use super::instance::GoatProblem;
use super::program::{Class, Program};
use super::search::OpenSites;
use crate::solve::{Limits, milp};

/// Maximum number of decisions (whether a sub-model is summed at a switch) in a problem that is solved exactly.
const MOST_OPEN: usize = 96;
/// Maximum number of pairs of a worker group and a switch, over all sub-models, in a problem that is solved exactly.
const MOST_WAYS: usize = 1_200;
/// Maximum number of nodes of the branch-and-bound search.
const NODES: usize = 400;

/// Placement of sub-models at least as good as `known`, and a lower bound of the cost; `None` if too large or unsolved.
pub(super) fn solve(instance: &GoatProblem, known: &OpenSites) -> Option<(OpenSites, f64)> {
    let sub_models: Vec<usize> = instance
        .sub_models()
        .filter(|g| instance.bytes[*g] > 0)
        .collect();
    let decisions = instance.sites.len() * sub_models.len();
    let ways = decisions * instance.groups.len();
    if decisions == 0 || decisions > MOST_OPEN || ways > MOST_WAYS {
        return None;
    }
    let classes: Vec<Class> = sub_models
        .iter()
        .map(|g| Class {
            bytes: instance.bytes[*g],
            fits: instance.fits(instance.bytes[*g]),
        })
        .collect();
    let program = Program::new(instance, &classes, true);
    let mut start = vec![0.0; program.model.variables()];
    for (g, sites) in sub_models.iter().zip(&program.open) {
        for (site, var) in sites.iter().enumerate() {
            start[var.index()] = f64::from(u8::from(known.open[*g][site]));
        }
    }
    let limits = Limits {
        nodes: NODES,
        ..Limits::default()
    };
    let answer = milp(&program.model, &limits, Some(&start)).ok()?;
    let mut placement = OpenSites::closed(instance);
    for (g, sites) in sub_models.iter().zip(&program.open) {
        for (site, var) in sites.iter().enumerate() {
            placement.open[*g][site] = answer.value(*var) > 0.5;
        }
    }
    // The solver has a tolerance, but memory must hold to the byte.
    let is_better =
        placement.is_within(instance) && placement.cost(instance) < known.cost(instance);
    let best = if is_better { placement } else { known.clone() };
    Some((best, program.cost(answer.bound)))
}
