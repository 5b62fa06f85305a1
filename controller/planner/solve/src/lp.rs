//! Solves linear programs.

use super::model::{Answer, Model, SolveError, Unsolved};
use super::program::Program;
use super::propagate;
use super::relax::{Relaxed, Relaxer};

/// Solves a model as a linear program: integer variables may be fractional.
///
/// The answer is `proven` if bound and objective differ by at most [`GAP`](super::GAP) times the
/// objective's greatest term; otherwise its bound still holds.
pub fn lp(model: &Model) -> Result<Answer, SolveError> {
    let program = Program::from_model(model)?;
    let mut implied = program.bounds.clone();
    if propagate::tighten(&program, &mut implied, &[], None).is_err() {
        return Err(SolveError::Infeasible);
    }
    match Relaxer::once(&program, &implied).relax(&program.bounds, &implied, None) {
        Relaxed::Solved(point) => Ok(Answer {
            proven: point.is_proven(&program),
            objective: program.sign * point.value,
            bound: program.sign * point.bound,
            values: point.x,
            nodes: 1,
        }),
        Relaxed::Infeasible(_) => Err(SolveError::Infeasible),
        Relaxed::Unbounded => Err(SolveError::Unbounded),
        Relaxed::Failed => Err(SolveError::Unsolved(Unsolved::Numbers)),
    }
}
