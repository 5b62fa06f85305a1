//! A program's relaxation: solved by the simplex method or by clarabel, and what came back checked.

use super::check;
use super::interior::{self, Goal, Raw};
use super::program::{Bounds, Program};
use super::propagate::{self, Cutoff};
use super::simplex::{Basis, Found, Simplex};
use super::{GAP, TOLERANCE};
use std::rc::Rc;

/// What became of a relaxation.
#[derive(Debug, Clone)]
pub(super) enum Relaxed {
    /// Values that passed the check, and multipliers that prove a bound.
    Solved(Point),
    /// Refuted, by multipliers; by none of them if bounds alone do it.
    Infeasible(Vec<f64>),
    /// A point, and a direction from it that never ends and always pays.
    Unbounded,
    /// Nothing that passed the checks.
    Failed,
}

/// Values and multipliers.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    /// What x costs.
    pub value: f64,
    /// What everything costs at least.
    pub bound: f64,
    /// Where to begin when bounds have changed.
    pub basis: Option<Rc<Basis>>,
}

impl Point {
    /// Takes the better values and the better multipliers of two.
    fn or(&mut self, other: Point) {
        if other.bound > self.bound {
            (self.bound, self.y) = (other.bound, other.y);
        }
        if other.value < self.value {
            (self.value, self.x) = (other.value, other.x);
        }
    }

    /// Whether nothing is much better.
    pub fn is_proven(&self, program: &Program) -> bool {
        self.value - self.bound <= GAP * magnitude(program, &self.x)
    }
}

/// The size of what a cost is made of: what it is compared with where it is nearly 0.
pub(super) fn magnitude(program: &Program, x: &[f64]) -> f64 {
    let terms = program.cost.iter().zip(x);
    let most = terms.map(|(c, x)| (c * x).abs()).fold(0.0, f64::max);
    most.max(program.value(x).abs())
}

/// Programs of up to so many variables and rows are given to the simplex method first.
const SMALL: usize = 6_000;

/// What solves the relaxations of a program, one after another.
pub(super) struct Relaxer<'a> {
    pub program: &'a Program,
    simplex: Option<Simplex>,
}

impl<'a> Relaxer<'a> {
    /// Scaled by what is implied of the program's bounds.
    pub fn of(program: &'a Program, implied: &Bounds) -> Relaxer<'a> {
        let is_small = program.width() + program.height() <= SMALL;
        Relaxer {
            program,
            simplex: is_small.then(|| Simplex::of(program, implied)),
        }
    }

    /// Solves the program over some bounds, all variables fractional. `implied` are bounds as tight as is known: they prove,
    /// and tell how large variables get. `basis` is where to begin, if that is known.
    pub fn relax(&mut self, bounds: &Bounds, implied: &Bounds, basis: Option<&Basis>) -> Relaxed {
        let program = self.program;
        let mut best = None;
        if let Some(simplex) = &mut self.simplex {
            let iterations = 100 + 2 * (program.width() + program.height());
            let found = simplex.solve(program, bounds, implied, basis, iterations);
            match found {
                Found::Optimal { x, y } => {
                    if let Some(x) = snapped(program, bounds, implied, x) {
                        let mut point = with_bound(program, bounds, implied, x, y);
                        point.basis = Some(Rc::new(simplex.basis()));
                        if point.is_proven(program) {
                            return Relaxed::Solved(point);
                        }
                        best = Some(point);
                    }
                }
                Found::Infeasible { y } => {
                    if let Some(y) = refutation(program, implied, &y) {
                        return Relaxed::Infeasible(y);
                    }
                }
                Found::Stuck => {}
            }
        }
        relax(program, bounds, implied, best)
    }
}

fn relax(program: &Program, bounds: &Bounds, implied: &Bounds, mut best: Option<Point>) -> Relaxed {
    for attempt in 0..interior::ATTEMPTS {
        let raw = interior::solve(program, bounds, implied, Goal::Cost, attempt);
        match raw {
            Raw::Solved { x, y } => {
                let Some(x) = snapped(program, bounds, implied, x) else {
                    continue;
                };
                let point = with_bound(program, bounds, implied, x, y);
                let best = match &mut best {
                    Some(best) => {
                        best.or(point);
                        best
                    }
                    None => best.insert(point),
                };
                if best.is_proven(program) {
                    break;
                }
            }
            Raw::Infeasible { y } => {
                if let Some(y) = refutation(program, implied, &y) {
                    return Relaxed::Infeasible(y);
                }
            }
            Raw::Unbounded { ray } => {
                if pays(program, bounds, &ray) {
                    return match interior::solve(program, bounds, implied, Goal::Feasible, 0) {
                        Raw::Solved { x, .. } => match snapped(program, bounds, implied, x) {
                            Some(_) => Relaxed::Unbounded,
                            None => refuted(program, bounds, implied),
                        },
                        _ => refuted(program, bounds, implied),
                    };
                }
            }
            Raw::Failed => {}
        }
        if attempt == 0 && best.is_none() {
            // Is there anything to be found?
            let answer = refuted(program, bounds, implied);
            if matches!(answer, Relaxed::Infeasible(_)) {
                return answer;
            }
        }
    }
    best.map_or(Relaxed::Failed, Relaxed::Solved)
}

/// Tries to refute rows and bounds by the least sum of what rows have to be missed by.
fn refuted(program: &Program, bounds: &Bounds, implied: &Bounds) -> Relaxed {
    match interior::solve(program, bounds, implied, Goal::Elastic, 0) {
        Raw::Solved { y, .. } => match refutation(program, implied, &y) {
            Some(y) => Relaxed::Infeasible(y),
            None => Relaxed::Failed,
        },
        _ => Relaxed::Failed,
    }
}

/// The solver's multipliers as they refute: themselves, or rounded to few digits, which may cancel where they did not.
fn refutation(program: &Program, implied: &Bounds, y: &[f64]) -> Option<Vec<f64>> {
    // The coarsest first: it names the fewest rows.
    let all: Vec<_> = candidates(program, y).collect();
    all.into_iter()
        .rev()
        .find(|y| check::refutes(program, implied, y))
}

/// Multipliers, and the same rounded ever more finely to multiples of a share of the greatest.
fn candidates<'a>(program: &'a Program, y: &'a [f64]) -> impl Iterator<Item = Vec<f64>> + 'a {
    let greatest = y.iter().fold(0.0_f64, |most, y| most.max(y.abs()));
    // The last: shares of small counts, as multipliers of combinatorial rows often are.
    let grids = [None, Some(16_777_216.0), Some(4096.0), Some(60.0)];
    grids.into_iter().map(move |grid| {
        let mut rounded = y.to_vec();
        if let Some(grid) = grid {
            for y in &mut rounded {
                *y = (*y / greatest * grid).round() / grid * greatest;
                if !y.is_finite() {
                    *y = 0.0;
                }
            }
        }
        check::signed(program, &mut rounded);
        rounded
    })
}

fn snapped(program: &Program, bounds: &Bounds, implied: &Bounds, x: Vec<f64>) -> Option<Vec<f64>> {
    let mut x = x;
    for (column, x) in x.iter_mut().enumerate() {
        if !x.is_finite() {
            return None;
        }
        *x = bounds.clamp(column, *x);
        let width = implied.upper[column] - implied.lower[column];
        let near = match width.is_finite() {
            true => width * TOLERANCE * 1e-2,
            false => TOLERANCE * 1e-2,
        };
        for end in [bounds.lower[column], bounds.upper[column]] {
            if (*x - end).abs() <= near {
                *x = end;
            }
        }
    }
    check::is_feasible(program, &x).then_some(x)
}

/// The best bound that multipliers prove.
fn with_bound(
    program: &Program,
    bounds: &Bounds,
    implied: &Bounds,
    x: Vec<f64>,
    y: Vec<f64>,
) -> Point {
    let value = program.value(&x);
    let mut point = Point {
        bound: f64::NEG_INFINITY,
        y: y.clone(),
        x,
        value,
        basis: None,
    };
    // What costs more than this point need not be looked at: where a variable has no end, this may give it one.
    let slack = magnitude(program, &point.x) * 1e-6 + f64::MIN_POSITIVE;
    let mut within = implied.clone();
    let improve = |point: &mut Point, y: &[f64], within: &Bounds| {
        for y in candidates(program, y) {
            let bound = check::bound(program, within, &program.cost, &y);
            if bound > point.bound {
                (point.bound, point.y) = (bound, y);
            }
            if point.is_proven(program) {
                return true;
            }
        }
        false
    };
    let has_ends = |j: usize| implied.lower[j].is_finite() && implied.upper[j].is_finite();
    if improve(&mut point, &y, &within) || (0..program.width()).all(has_ends) {
        return point;
    }
    let cutoff = Cutoff {
        cost: &program.cost,
        most: value + slack,
    };
    if propagate::tighten(program, &mut within, &[], Some(&cutoff)).is_ok()
        && improve(&mut point, &y, &within)
    {
        point.bound = point.bound.min(value + slack);
        return point;
    }
    // Costs moved a little inward: multipliers that are optimal for them leave room for rounding.
    for share in [1e-9, 1e-7] {
        let goal = Goal::Inward(share);
        if let Raw::Solved { y, .. } = interior::solve(program, bounds, implied, goal, 0)
            && improve(&mut point, &y, &within)
        {
            break;
        }
    }
    // Behind the cutoff nothing was looked at.
    point.bound = point.bound.min(value + slack);
    point
}

/// Whether a direction stays within rows and bounds for ever, and lowers the cost, within the tolerance.
fn pays(program: &Program, bounds: &Bounds, ray: &[f64]) -> bool {
    let mut ray = ray.to_vec();
    for (column, d) in ray.iter_mut().enumerate() {
        if !d.is_finite() {
            return false;
        }
        let (lower, upper) = (bounds.lower[column], bounds.upper[column]);
        if lower.is_finite() {
            *d = d.max(0.0);
        }
        if upper.is_finite() {
            *d = d.min(0.0);
        }
    }
    let stays = |row: usize| {
        let (mut sum, mut most) = (0.0, 0.0_f64);
        for (column, value) in program.rows.line(row) {
            sum += value * ray[column];
            most = most.max((value * ray[column]).abs());
        }
        let slack = TOLERANCE * most;
        (program.low[row].is_infinite() || sum >= -slack)
            && (program.high[row].is_infinite() || sum <= slack)
    };
    let terms = program.cost.iter().zip(&ray).map(|(c, d)| c * d);
    let most = terms
        .clone()
        .fold(0.0_f64, |most, term| most.max(term.abs()));
    terms.sum::<f64>() < -1e-3 * most && (0..program.height()).all(stays)
}
