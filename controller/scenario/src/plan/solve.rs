//! Chooses the injection points, or reports why that is impossible.

use planner::injection::solve;

use super::place::Placement;
use super::points::{Apart, InjectionProblem};
use super::wanted::Wanted;
use super::{TargetModel, refused};
use crate::diagnostic::{Diagnostics, Sink};

/// Fixed seed of the planner: a file has the same plan whatever the seed of its packets.
const SEED: u64 = 0;

/// Places all faults and triggers, or reports why that is impossible.
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

/// Places several scenarios that share switches of the same names.
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
