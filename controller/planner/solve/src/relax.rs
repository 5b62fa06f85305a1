//! Solves the continuous relaxation of a program by the simplex method or by clarabel, and checks the result.

use super::check;
use super::interior::{self, Goal, Raw};
use super::program::{Bounds, Program};
use super::propagate::{self, Cutoff};
use super::scale;
use super::simplex::{Basis, Found, Simplex};
use super::{GAP, TOLERANCE};
use std::rc::Rc;

/// Checked result of a relaxation.
#[derive(Debug, Clone)]
pub(super) enum Relaxed {
    /// Values of variables that passed the check, and multipliers of rows that prove a bound of the cost.
    Solved(Point),
    /// No point is feasible: multipliers of rows that prove it; empty if bounds of variables alone prove it.
    Infeasible(Vec<f64>),
    /// There is a feasible point, and a direction from it in which the cost falls without limit.
    Unbounded,
    /// No solver's result passed the checks.
    Failed,
}

/// Values of variables, and multipliers of rows.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    /// Cost of the values x.
    pub value: f64,
    /// Lower bound of the cost of all feasible points.
    pub bound: f64,
    /// Simplex basis to restart from after bounds have changed; `None` if no basis is known.
    pub basis: Option<Rc<Basis>>,
}

impl Point {
    /// Takes the other point's values, and its multipliers, where those are better.
    fn or(&mut self, other: Point) {
        if other.bound > self.bound {
            (self.bound, self.y) = (other.bound, other.y);
        }
        if other.value < self.value {
            (self.value, self.x) = (other.value, other.x);
        }
        self.basis = self.basis.take().or(other.basis);
    }

    /// Whether it is proved that no feasible point is much better.
    pub fn is_proven(&self, program: &Program) -> bool {
        self.value - self.bound <= GAP * magnitude(program, &self.x)
    }
}

/// Magnitude of the greatest term of a cost, to which rounding errors are relative.
pub(super) fn magnitude(program: &Program, x: &[f64]) -> f64 {
    let terms = program.cost.iter().zip(x);
    let most = terms.map(|(c, x)| (c * x).abs()).fold(0.0, f64::max);
    most.max(program.value(x).abs())
}

/// Maximum number of variables and rows for which a single relaxation tries the simplex method first.
const SMALL: usize = 2_500;
/// Maximum number of variables and rows for which the simplex method is used.
const LARGE: usize = 40_000;
/// Maximum number of simplex iterations for any program: the time of each grows with the rows.
const ITERATIONS: usize = 3_000;

/// Solver of a relaxation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// Simplex method: exact vertices; fast if it starts near the optimum.
    Simplex,
    /// Interior-point method: its time grows with the size only, and it ends inside the set of optima.
    Interior,
}

/// Solves the relaxations of one program, with changing bounds.
pub(super) struct Relaxer<'a> {
    pub program: &'a Program,
    /// Methods in the order in which they are tried until an answer passes the checks.
    methods: Vec<Method>,
    /// State of the simplex method; created on first use if the simplex method is the second method.
    simplex: Option<Simplex>,
}

impl<'a> Relaxer<'a> {
    /// A solver for one relaxation. `implied` are implied bounds of variables, for scaling.
    pub fn once(program: &'a Program, implied: &Bounds) -> Relaxer<'a> {
        let methods = match program.width() + program.height() {
            ..=SMALL => [Method::Simplex, Method::Interior],
            _ => [Method::Interior, Method::Simplex],
        };
        Relaxer::by(&methods, program, implied)
    }

    /// A solver for many relaxations, each of which starts where an earlier one ended.
    pub fn often(program: &'a Program, implied: &Bounds) -> Relaxer<'a> {
        Relaxer::by(&[Method::Simplex, Method::Interior], program, implied)
    }

    fn by(methods: &[Method], program: &'a Program, implied: &Bounds) -> Relaxer<'a> {
        let is_large = program.width() + program.height() > LARGE;
        let may = |method: &Method| !is_large || *method == Method::Interior;
        let methods: Vec<Method> = methods.iter().copied().filter(may).collect();
        let is_first = methods.first() == Some(&Method::Simplex);
        Relaxer {
            program,
            simplex: is_first.then(|| Simplex::new(program, implied)),
            methods,
        }
    }

    /// Solves the program over `bounds`, with all variables continuous. `implied` are the tightest known bounds: they prove
    /// bounds of the cost, and limit the size of variables. `basis` is the start, if one is known.
    pub fn relax(&mut self, bounds: &Bounds, implied: &Bounds, basis: Option<&Basis>) -> Relaxed {
        let mut best = None;
        for at in 0..self.methods.len() {
            let done = match self.methods[at] {
                Method::Simplex => self.by_simplex(bounds, implied, basis, &mut best),
                Method::Interior => by_interior(self.program, bounds, implied, &mut best),
            };
            if let Some(done) = done {
                return done;
            }
            if best
                .as_ref()
                .is_some_and(|best| best.is_proven(self.program))
            {
                break;
            }
        }
        best.map_or(Relaxed::Failed, Relaxed::Solved)
    }

    fn by_simplex(
        &mut self,
        bounds: &Bounds,
        implied: &Bounds,
        basis: Option<&Basis>,
        best: &mut Option<Point>,
    ) -> Option<Relaxed> {
        let program = self.program;
        let iterations = ITERATIONS.min(100 + 2 * (program.width() + program.height()));
        let make = || Simplex::new(program, implied);
        let simplex = self.simplex.get_or_insert_with(make);
        match simplex.solve(program, bounds, implied, basis, iterations) {
            Found::Optimal { x, y } => {
                if let Some(x) = snapped(program, bounds, implied, x) {
                    let mut point = with_bound(program, bounds, implied, x, y);
                    point.basis = Some(Rc::new(simplex.basis()));
                    better(best, point);
                }
                None
            }
            Found::Infeasible { y } => refutation(program, implied, &y).map(Relaxed::Infeasible),
            Found::Stuck => None,
        }
    }
}

fn by_interior(
    program: &Program,
    bounds: &Bounds,
    implied: &Bounds,
    best: &mut Option<Point>,
) -> Option<Relaxed> {
    for attempt in 0..interior::ATTEMPTS {
        match interior::solve(program, bounds, implied, Goal::Cost, attempt) {
            Raw::Solved { x, y } => {
                if let Some(x) = snapped(program, bounds, implied, x) {
                    better(best, with_bound(program, bounds, implied, x, y));
                }
            }
            Raw::Infeasible { y } => {
                if let Some(y) = refutation(program, implied, &y) {
                    return Some(Relaxed::Infeasible(y));
                }
            }
            Raw::Unbounded { ray } if pays(program, bounds, &ray) => {
                if let Raw::Solved { x, .. } =
                    interior::solve(program, bounds, implied, Goal::Feasible, 0)
                    && snapped(program, bounds, implied, x).is_some()
                {
                    return Some(Relaxed::Unbounded);
                }
            }
            Raw::Unbounded { .. } | Raw::Failed => {}
        }
        match best {
            Some(best) if best.is_proven(program) => return None,
            // Test whether there is a feasible point at all.
            None if attempt == 0 => {
                if let Some(y) = refuted(program, bounds, implied) {
                    return Some(Relaxed::Infeasible(y));
                }
            }
            _ => {}
        }
    }
    None
}

/// Replaces the values and the multipliers of `best` where those of `point` are better.
fn better(best: &mut Option<Point>, point: Point) {
    match best {
        Some(best) => best.or(point),
        None => *best = Some(point),
    }
}

/// Tries to prove that rows and bounds are infeasible by minimizing the sum of the rows' violations; `None`: not proved.
fn refuted(program: &Program, bounds: &Bounds, implied: &Bounds) -> Option<Vec<f64>> {
    match interior::solve(program, bounds, implied, Goal::Elastic, 0) {
        Raw::Solved { y, .. } => refutation(program, implied, &y),
        _ => None,
    }
}

/// Multipliers of rows that prove infeasibility: the solver's, or rounded to few digits, so that terms cancel exactly.
fn refutation(program: &Program, implied: &Bounds, y: &[f64]) -> Option<Vec<f64>> {
    // The coarsest first: it names the fewest rows.
    let all: Vec<_> = candidates(program, y).collect();
    all.into_iter()
        .rev()
        .find(|y| check::refutes(program, implied, y))
}

/// Multipliers as given, and rounded ever more coarsely to multiples of a share of the greatest.
/// The coarsest are small whole numbers, as the multipliers of combinatorial rows often are.
fn candidates<'a>(program: &'a Program, y: &'a [f64]) -> impl Iterator<Item = Vec<f64>> + 'a {
    let greatest = y.iter().fold(0.0_f64, |most, y| most.max(y.abs()));
    // A power of two, so that whole multiples of it become exact.
    let whole = scale::power(greatest);
    let grids = [None, Some(16_777_216.0), Some(4096.0), Some(60.0)];
    grids.into_iter().map(move |grid| {
        let mut rounded = y.to_vec();
        if let Some(grid) = grid {
            for y in &mut rounded {
                *y = (*y / whole * grid).round() / grid * whole;
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

/// The point x with the best bound of the cost that the multipliers y prove, as given or rounded.
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
    // Costlier points need not be considered, which may give a bound to an unbounded variable.
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
    // Shifted costs: their optimal multipliers leave room for rounding errors.
    for share in [1e-9, 1e-7] {
        let goal = Goal::Inward(share);
        if let Raw::Solved { y, .. } = interior::solve(program, bounds, implied, goal, 0)
            && improve(&mut point, &y, &within)
        {
            break;
        }
    }
    // Points above the cutoff were not considered.
    point.bound = point.bound.min(value + slack);
    point
}

/// Whether moving along `ray` without end stays within rows and bounds, and lowers the cost, up to the tolerance.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cmp, Model, Sense};
    use proptest::prelude::*;

    /// Rows of whole numbers over three bounded and two unbounded variables, feasible or not.
    fn model() -> impl Strategy<Value = Model> {
        let row = (prop::collection::vec(-5_i8..=5, 5), 0_u8..3, -9_i8..=9);
        let cost = prop::collection::vec(-5_i8..=9, 5);
        (cost, prop::collection::vec(row, 1..7)).prop_map(|(cost, rows)| {
            let mut model = Model::new(Sense::Minimize);
            let uppers = [3.0, 4.0, 9.0, f64::INFINITY, f64::INFINITY];
            let vars = cost.iter().zip(uppers);
            let vars: Vec<_> = vars
                .map(|(c, upper)| model.variable(0.0, upper, f64::from(*c)))
                .collect();
            for (terms, cmp, rhs) in rows {
                let terms = vars
                    .iter()
                    .zip(&terms)
                    .map(|(var, a)| (*var, f64::from(*a)));
                let cmp = [Cmp::Le, Cmp::Ge, Cmp::Eq][usize::from(cmp)];
                model.constrain(terms, cmp, f64::from(rhs));
            }
            model
        })
    }

    fn by(method: Method, program: &Program, implied: &Bounds) -> Relaxed {
        Relaxer::by(&[method], program, implied).relax(&program.bounds, implied, None)
    }

    proptest! {
        /// Two methods that share only the checks give equal costs. The simplex method bounds unbounded variables artificially,
        /// and leaves answers that depend on that to the interior method. That one may leave a refutation to the simplex
        /// method, if rays are nearly feasible.
        #[test]
        fn corners_and_the_middle_cost_the_same(model in model()) {
            let program = Program::from_model(&model).unwrap();
            let mut implied = program.bounds.clone();
            let is_broken = propagate::tighten(&program, &mut implied, &[], None).is_err();
            prop_assume!(!is_broken);
            let has_ends = implied.upper.iter().all(|upper| upper.is_finite());
            let of = |method| by(method, &program, &implied);
            match (of(Method::Simplex), of(Method::Interior)) {
                (Relaxed::Solved(a), Relaxed::Solved(b)) => {
                    let near = 1e-5 * magnitude(&program, &a.x).max(1.0);
                    prop_assert!((a.value - b.value).abs() <= near, "{} {}", a.value, b.value);
                    prop_assert!(a.bound <= b.value + near && b.bound <= a.value + near);
                }
                (Relaxed::Infeasible(a), Relaxed::Infeasible(b)) => {
                    prop_assert!(check::refutes(&program, &implied, &a));
                    prop_assert!(check::refutes(&program, &implied, &b));
                }
                (Relaxed::Failed, _) if !has_ends => {}
                (Relaxed::Infeasible(a), Relaxed::Failed) if !has_ends => {
                    prop_assert!(check::refutes(&program, &implied, &a));
                }
                (a, b) => prop_assert!(false, "{a:?}, but {b:?}"),
            }
        }
    }
}
