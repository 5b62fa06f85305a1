//! Finds rows that contradict each other: an irreducible infeasible subset, by a deletion filter.
//!
//! Source: Chinneck, *Feasibility and infeasibility in optimization*, 2008, chapter 6. Rows outside
//! a refutation are removed at once.

use super::milp::{self, Limits};
use super::model::{Model, Row, SolveError};
use super::program::Program;
use super::propagate;
use super::relax::{Relaxed, Relaxer};

/// Maximum number of nodes of each search that tests whether rows can be met.
const NODES: usize = 2_000;

/// Irreducible set of rows that cannot all be met within the variables' bounds: without any one of them, the rest can be met,
/// or at least is not proved infeasible. Empty if the model is not proved infeasible, or if bounds alone contradict each other.
#[must_use]
pub fn conflict(model: &Model) -> Vec<Row> {
    if Program::from_model(model).is_err() {
        return Vec::new();
    }
    let all: Vec<usize> = (0..model.rows()).collect();
    let Some(mut rows) = at_odds(model, &all) else {
        return Vec::new();
    };
    // Try large parts first: most rows of a large model are not needed.
    let mut size = rows.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < rows.len() {
            let end = (at + size).min(rows.len());
            let mut rest = rows.clone();
            rest.drain(at..end);
            match at_odds(model, &rest) {
                // Rows before `at` were needed beside more rows, so they are still needed, unless the proof drops them.
                Some(fewer) => {
                    at = fewer.partition_point(|row| at > 0 && *row <= rows[at - 1]);
                    rows = fewer;
                }
                None => at = end,
            }
        }
        size /= 2;
    }
    if let [row] = rows[..]
        && is_void(model, row)
    {
        rows.clear();
    }
    rows.into_iter().map(Row::at).collect()
}

/// Rows that a proof of infeasibility uses, if `rows` are proved infeasible together; otherwise `None`.
fn at_odds(model: &Model, rows: &[usize]) -> Option<Vec<usize>> {
    let mut part = Program::from_model(&model.only(rows)).ok()?;
    part.cost.fill(0.0);
    // Without tightening, since a refutation by multipliers names its rows.
    let mut relaxer = Relaxer::once(&part, &part.bounds);
    if let Relaxed::Infeasible(y) = relaxer.relax(&part.bounds, &part.bounds, None) {
        let needed = rows.iter().zip(&y).filter(|(_, y)| **y != 0.0);
        return Some(needed.map(|(row, _)| *row).collect());
    }
    is_refuted(&part).then(|| rows.to_vec())
}

/// Whether bounds of variables contradict each other (a variable has no valid value), whatever the row requires.
fn is_void(model: &Model, row: usize) -> bool {
    let Ok(mut part) = Program::from_model(&model.only(&[row])) else {
        return false;
    };
    part.cost.fill(0.0);
    part.low.fill(f64::NEG_INFINITY);
    part.high.fill(f64::INFINITY);
    let mut relaxer = Relaxer::once(&part, &part.bounds);
    let relaxed = relaxer.relax(&part.bounds, &part.bounds, None);
    matches!(relaxed, Relaxed::Infeasible(_)) || is_refuted(&part)
}

fn is_refuted(part: &Program) -> bool {
    let mut implied = part.bounds.clone();
    let is_broken = propagate::tighten(part, &mut implied, &part.integer, None).is_err();
    is_broken || {
        let limits = Limits {
            nodes: NODES,
            gap: 0.0,
        };
        part.has_integers() && milp::solve(part, &limits, None) == Err(SolveError::Infeasible)
    }
}
