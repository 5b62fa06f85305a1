//! Runs the planner, which chooses the injection points of faults, or reports why it cannot place them.

use planner::injection::solve;

use super::place::Placement;
use super::points::{Apart, InjectionProblem};
use super::wanted::Wanted;
use super::{TargetModel, refused};
use crate::diagnostic::{Diagnostics, Sink};

/// Fixed seed of the planner's search: a file has the same plan whatever the seed of its packets.
const SEED: u64 = 0;

/// Chooses the switches of all faults and triggers of a scenario, or reports why that is impossible.
pub(super) fn place(
    sink: &mut Sink<'_>,
    wanted: &Wanted<'_>,
    target: &TargetModel,
) -> Option<Placement> {
    let all = [wanted];
    let asked = InjectionProblem::new(&all, target, &Apart::default());
    match solve(&asked.problem, SEED) {
        Ok(placement) => asked.placements(&placement).pop(),
        Err(refusal) => {
            refused::tell(sink, &asked, target, &refusal);
            None
        }
    }
}

/// Chooses the switches for several scenarios that run together; switches of the same name are shared.
pub(super) fn place_together(
    wanted: &[&Wanted<'_>],
    target: &TargetModel,
    apart: &Apart,
) -> Result<Vec<Placement>, Diagnostics> {
    let asked = InjectionProblem::new(wanted, target, apart);
    match solve(&asked.problem, SEED) {
        Ok(placement) => Ok(asked.placements(&placement)),
        Err(refusal) => Err(refused::tell_together(&asked, &refusal)),
    }
}
