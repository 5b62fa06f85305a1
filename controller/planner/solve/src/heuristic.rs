//! Heuristics that look for feasible integer values near the values of a relaxation.

use super::check;
use super::program::{Bounds, Program};
use super::propagate::WHOLE;
use super::propagate::{self, Cutoff};
use super::relax::{Relaxed, Relaxer};
use super::simplex::Basis;
use std::rc::Rc;

/// Maximum number of relaxations that [`dive`] solves.
const DIVE: usize = 12;

/// Feasible values of all variables and their cost; `None` if none were found.
type Found = Option<(Vec<f64>, f64)>;

/// Rounds the integer variables, and solves for the other variables if their values do not fit the rounded ones.
pub(super) fn complete(
    relaxer: &mut Relaxer<'_>,
    integers: &[usize],
    bounds: &Bounds,
    implied: &Bounds,
    x: &[f64],
    basis: Option<&Basis>,
) -> Found {
    let program = relaxer.program;
    let mut bounds = bounds.clone();
    let mut implied = implied.clone();
    let mut rounded = x.to_vec();
    for &j in integers {
        let value = bounds.clamp(j, x[j].round());
        if value != value.round() {
            return None;
        }
        rounded[j] = value;
        for ends in [&mut bounds, &mut implied] {
            (ends.lower[j], ends.upper[j]) = (value, value);
        }
    }
    let own = check::is_feasible(program, &rounded).then(|| {
        let value = program.value(&rounded);
        (rounded, value)
    });
    if integers.len() == program.width() {
        return own;
    }
    if propagate::tighten(program, &mut implied, &program.integer, None).is_err() {
        return own;
    }
    match relaxer.relax(&bounds, &implied, basis) {
        Relaxed::Solved(point) => match own {
            Some((x, value)) if value <= point.value => Some((x, value)),
            _ => Some((point.x, point.value)),
        },
        _ => own,
    }
}

/// Rounds one integer variable after another, nearest to whole first, and tightens the others' bounds by the rows.
pub(super) fn round(
    relaxer: &mut Relaxer<'_>,
    integers: &[usize],
    bounds: &Bounds,
    implied: &Bounds,
    x: &[f64],
    basis: Option<&Basis>,
    target: f64,
) -> Found {
    let program = relaxer.program;
    let mut implied = implied.clone();
    let cutoff = cutoff(program, target);
    let mut order: Vec<usize> = integers.to_vec();
    let off = |j: usize| (x[j] - x[j].round()).abs();
    order.sort_by(|a, b| off(*a).total_cmp(&off(*b)).then(a.cmp(b)));
    for j in order {
        if implied.is_fixed(j) {
            continue;
        }
        let near = implied.clamp(j, x[j].round());
        let far = implied.clamp(j, if x[j] > near { near + 1.0 } else { near - 1.0 });
        let mut tried = [near, far].into_iter().map(|value| {
            let mut within = implied.clone();
            (within.lower[j], within.upper[j]) = (value, value);
            let whole = &program.integer;
            propagate::tighten_after(program, &mut within, whole, cutoff.as_ref(), &[j])
                .ok()
                .map(|()| within)
        });
        implied = tried.find_map(|within| within)?;
    }
    let mut values = x.to_vec();
    for &j in integers {
        values[j] = implied.lower[j];
    }
    complete(relaxer, integers, bounds, &implied, &values, basis)
}

/// Dives: fixes integer variables that are near whole numbers, solves the relaxation again, and so on.
pub(super) fn dive(
    relaxer: &mut Relaxer<'_>,
    integers: &[usize],
    bounds: &Bounds,
    implied: &Bounds,
    x: &[f64],
    basis: Option<&Basis>,
    target: f64,
) -> Found {
    let program = relaxer.program;
    let mut bounds = bounds.clone();
    let mut implied = implied.clone();
    let cutoff = cutoff(program, target);
    let mut x = x.to_vec();
    let mut basis = basis.cloned().map(Rc::new);
    for _ in 0..DIVE {
        let off = |j: usize| (x[j] - x[j].round()).abs();
        let mut free: Vec<usize> = integers
            .iter()
            .copied()
            .filter(|j| !bounds.is_fixed(*j) && off(*j) > WHOLE)
            .collect();
        if free.is_empty() {
            return complete(relaxer, integers, &bounds, &implied, &x, basis.as_deref());
        }
        free.sort_by(|a, b| off(*a).total_cmp(&off(*b)).then(a.cmp(b)));
        let sure = free.iter().take_while(|j| off(**j) < 0.1).count();
        free.truncate(sure.max(free.len().div_ceil(4)));
        let mut is_any = false;
        for j in free {
            if implied.is_fixed(j) {
                continue;
            }
            let value = implied.clamp(j, x[j].round());
            let mut within = implied.clone();
            (within.lower[j], within.upper[j]) = (value, value);
            let whole = &program.integer;
            if propagate::tighten_after(program, &mut within, whole, cutoff.as_ref(), &[j]).is_ok()
            {
                implied = within;
                is_any = true;
            } else if !is_any {
                return None;
            }
        }
        for &j in integers {
            bounds.lower[j] = implied.lower[j];
            bounds.upper[j] = implied.upper[j];
        }
        let Relaxed::Solved(point) = relaxer.relax(&bounds, &implied, basis.as_deref()) else {
            return None;
        };
        if point.bound >= target {
            return None;
        }
        (x, basis) = (point.x, point.basis);
    }
    None
}

fn cutoff(program: &Program, target: f64) -> Option<Cutoff<'_>> {
    target.is_finite().then_some(Cutoff {
        cost: &program.cost,
        most: target,
    })
}
