//! Which rows are at odds: an irreducible infeasible subset, by a deletion filter.
//!
//! Source: Chinneck, *Feasibility and infeasibility in optimization*, 2008, chapter 6. Rows that a refutation does without
//! are left out at once.

use super::milp::{self, Limits};
use super::model::{Model, Row, SolveError};
use super::program::Program;
use super::propagate;
use super::relax::{Relaxed, Relaxer};

/// Nodes of each search that asks whether some rows can be met.
const NODES: usize = 2_000;

/// Rows that cannot all be met within the variables' bounds, none of them without need: without any one of them, the others
/// can be met, or at least nothing says that they cannot. Empty if nothing says that of all of them; or if bounds alone
/// allow nothing, a lower one above an upper one.
#[must_use]
pub fn conflict(model: &Model) -> Vec<Row> {
    let Ok(mut program) = Program::of(model) else {
        return Vec::new();
    };
    program.cost.fill(0.0);
    let all: Vec<usize> = (0..program.height()).collect();
    let Some(mut rows) = at_odds(&program, &all) else {
        return Vec::new();
    };
    // Larger parts first: most rows of a large model have no share in it.
    let mut size = rows.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < rows.len() {
            let end = (at + size).min(rows.len());
            let mut rest = rows.clone();
            rest.drain(at..end);
            match at_odds(&program, &rest) {
                // What is left before `at` was needed when more rows were there: it still is, unless it is gone.
                Some(fewer) => {
                    at = fewer.partition_point(|row| at > 0 && *row <= rows[at - 1]);
                    rows = fewer;
                }
                None => at = end,
            }
        }
        size /= 2;
    }
    if rows.len() == 1 && at_odds(&program, &[]).is_some() {
        rows.clear();
    }
    rows.into_iter().map(Row::at).collect()
}

/// If some rows can be proved not to be met at once: those of them that the proof needs.
fn at_odds(program: &Program, rows: &[usize]) -> Option<Vec<usize>> {
    let mut part = program.clone();
    part.low.fill(f64::NEG_INFINITY);
    part.high.fill(f64::INFINITY);
    for &row in rows {
        part.low[row] = program.low[row];
        part.high[row] = program.high[row];
    }
    // Not tightened first: a refutation by multipliers names its rows.
    let mut relaxer = Relaxer::once(&part, &part.bounds);
    if let Relaxed::Infeasible(y) = relaxer.relax(&part.bounds, &part.bounds, None) {
        let needs = |row: &usize| y.get(*row).is_some_and(|y| *y != 0.0);
        return Some(rows.iter().copied().filter(needs).collect());
    }
    let mut implied = part.bounds.clone();
    let is_broken = propagate::tighten(&part, &mut implied, &part.integer, None).is_err();
    let is_refuted = || {
        let limits = Limits {
            nodes: NODES,
            gap: 0.0,
        };
        part.has_integers() && milp::solve(&part, &limits, None) == Err(SolveError::Infeasible)
    };
    (is_broken || is_refuted()).then(|| rows.to_vec())
}
