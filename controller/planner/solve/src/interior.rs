//! Interface to the interior-point solver clarabel: translates programs and answers. Other modules check the answers.

use super::program::{Bounds, Program};
use super::scale;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus,
    SupportedConeT::{NonnegativeConeT, ZeroConeT},
};

/// Number of attempts to solve a program, each with other solver settings.
pub(super) const ATTEMPTS: usize = 3;

/// Goal that the solver is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    /// Minimize the program's cost.
    Cost,
    /// Minimize the cost, but shift the cost of each variable with only one bound by this share of the greatest cost. The
    /// multipliers of that optimum leave a margin for rounding errors.
    Inward(f64),
    /// Find any point that meets all rows and bounds.
    Feasible,
    /// Minimize the sum of all rows' violations.
    Elastic,
}

/// Result of the solver, before it is checked.
#[derive(Debug, Clone)]
pub(super) enum Raw {
    /// Values of variables and multipliers of rows, possibly optimal.
    Solved { x: Vec<f64>, y: Vec<f64> },
    /// Multipliers of rows that possibly prove that the program is infeasible.
    Infeasible { y: Vec<f64> },
    /// Direction in which the cost possibly falls without limit.
    Unbounded { ray: Vec<f64> },
    /// The solver gave no result.
    Failed,
}

/// Solves a program with `bounds` instead of its own bounds of variables.
pub(super) fn solve(
    program: &Program,
    bounds: &Bounds,
    implied: &Bounds,
    goal: Goal,
    attempt: usize,
) -> Raw {
    let scaled = Scaled::new(program, bounds, implied, goal);
    let Some(settings) = settings(attempt) else {
        return Raw::Failed;
    };
    let width = scaled.cost.len();
    let quadratic = CscMatrix::zeros((width, width));
    let cones = [
        ZeroConeT(scaled.equalities),
        NonnegativeConeT(scaled.rhs.len() - scaled.equalities),
    ];
    let solver = DefaultSolver::new(
        &quadratic,
        &scaled.cost,
        &scaled.matrix,
        &scaled.rhs,
        &cones,
        settings,
    );
    let Ok(mut solver) = solver else {
        return Raw::Failed;
    };
    solver.solve();
    let solution = &solver.solution;
    match solution.status {
        SolverStatus::PrimalInfeasible | SolverStatus::AlmostPrimalInfeasible => Raw::Infeasible {
            y: scaled.multipliers(program, &solution.z),
        },
        SolverStatus::DualInfeasible | SolverStatus::AlmostDualInfeasible => Raw::Unbounded {
            ray: scaled.direction(program, &solution.x),
        },
        SolverStatus::Unsolved => Raw::Failed,
        // If it is not fully solved, the check measures its quality.
        _ => Raw::Solved {
            x: scaled.values(bounds, &solution.x),
            y: scaled.multipliers(program, &solution.z),
        },
    }
}

fn settings(attempt: usize) -> Option<DefaultSettings<f64>> {
    let mut builder = DefaultSettingsBuilder::default();
    builder
        .verbose(false)
        .max_threads(1)
        .direct_solve_method("qdldl".to_owned())
        .max_iter(200)
        .tol_gap_abs(1e-10)
        .tol_gap_rel(1e-9)
        .tol_feas(1e-10);
    match attempt {
        0 => {}
        1 => {
            builder
                .equilibrate_enable(false)
                .static_regularization_constant(1e-9);
        }
        _ => {
            builder
                .static_regularization_constant(1e-7)
                .iterative_refinement_max_iter(50)
                .max_step_fraction(0.9)
                .max_iter(500);
        }
    }
    builder.build().ok()
}

/// Positions that a row of the program has in the solver's program.
#[derive(Debug, Clone, Copy, Default)]
struct RowSides {
    /// Position of the row as an upper bound or an equality; `None` if it has neither.
    high: Option<usize>,
    /// Position of the row as a lower bound; `None` if it has none.
    low: Option<usize>,
    scale: f64,
}

/// A program in the form that clarabel reads, and the data to translate its answer back.
struct Scaled {
    cost: Vec<f64>,
    cost_scale: f64,
    matrix: CscMatrix<f64>,
    rhs: Vec<f64>,
    equalities: usize,
    /// Indices of the program's variables that are not fixed.
    columns: Vec<usize>,
    /// For each of `columns`, the size of the solver's unit; `origin` has the value that is the solver's 0.
    unit: Vec<f64>,
    origin: Vec<f64>,
    places: Vec<RowSides>,
}

impl Scaled {
    fn new(program: &Program, bounds: &Bounds, implied: &Bounds, goal: Goal) -> Scaled {
        let n = program.width();
        let mut origin = vec![0.0; n];
        let mut columns = Vec::new();
        for (j, origin) in origin.iter_mut().enumerate() {
            let (lower, upper) = (bounds.lower[j], bounds.upper[j]);
            *origin = match (lower.is_finite(), upper.is_finite()) {
                (true, _) => lower,
                (false, true) => upper,
                (false, false) => 0.0,
            };
            if !bounds.is_fixed(j) {
                columns.push(j);
            }
        }
        let unit = scale::units(program, implied);
        let mut places = vec![RowSides::default(); program.height()];
        let mut rhs = Vec::new();
        let equalities = place_rows(program, bounds, &unit, &origin, &mut places, &mut rhs);

        let told = match goal {
            // An elastic row guarantees nothing.
            Goal::Elastic => bounds.clone(),
            _ => unimplied(program, bounds, &columns, &places),
        };

        let (mut start, mut index, mut value) = (vec![0], Vec::new(), Vec::new());
        let mut cost = Vec::with_capacity(columns.len());
        for &j in &columns {
            for is_equality in [true, false] {
                for (row, a) in program.columns.line(j) {
                    let place = places[row];
                    let a = a * unit[j] * place.scale;
                    if let Some(at) = place.high
                        && (at < equalities) == is_equality
                    {
                        index.push(at);
                        value.push(a);
                    }
                    if let Some(at) = place.low
                        && !is_equality
                    {
                        index.push(at);
                        value.push(-a);
                    }
                }
            }
            let (lower, upper) = (told.lower[j], told.upper[j]);
            if upper.is_finite() {
                index.push(rhs.len());
                value.push(1.0);
                rhs.push((upper - origin[j]) / unit[j]);
            }
            if lower.is_finite() {
                index.push(rhs.len());
                value.push(-1.0);
                rhs.push((origin[j] - lower) / unit[j]);
            }
            start.push(index.len());
            cost.push(match goal {
                Goal::Cost | Goal::Inward(_) => program.cost[j] * unit[j],
                Goal::Feasible | Goal::Elastic => 0.0,
            });
        }
        let greatest = cost.iter().fold(0.0_f64, |most, c| most.max(c.abs()));
        let cost_scale = if greatest > 0.0 {
            scale::power(greatest).recip()
        } else {
            1.0
        };
        for (at, cost) in cost.iter_mut().enumerate() {
            *cost *= cost_scale;
            if let Goal::Inward(share) = goal {
                let j = columns[at];
                *cost += match (bounds.lower[j].is_finite(), bounds.upper[j].is_finite()) {
                    (true, false) => -share,
                    (false, true) => share,
                    _ => 0.0,
                };
            }
        }
        if goal == Goal::Elastic {
            for place in &places {
                let is_equality = place.high.is_some_and(|at| at < equalities);
                let sides = [
                    place.high.map(|at| (at, -1.0)),
                    place.low.map(|at| (at, -1.0)),
                    place.high.filter(|_| is_equality).map(|at| (at, 1.0)),
                ];
                for (at, sign) in sides.into_iter().flatten() {
                    // The slack, and its lower bound of 0.
                    index.extend([at, rhs.len()]);
                    value.extend([sign, -1.0]);
                    rhs.push(0.0);
                    start.push(index.len());
                    cost.push(1.0);
                }
            }
        }
        if rhs.is_empty() {
            rhs.push(1.0);
        }
        let matrix = CscMatrix::new(rhs.len(), cost.len(), start, index, value);
        Scaled {
            cost,
            cost_scale,
            matrix,
            rhs,
            equalities,
            columns,
            unit,
            origin,
            places,
        }
    }

    fn values(&self, bounds: &Bounds, x: &[f64]) -> Vec<f64> {
        let mut values = self.origin.clone();
        for (j, x) in self.columns.iter().zip(x) {
            values[*j] = bounds.clamp(*j, self.origin[*j] + self.unit[*j] * x);
        }
        values
    }

    fn direction(&self, program: &Program, x: &[f64]) -> Vec<f64> {
        let mut ray = vec![0.0; program.width()];
        for (j, x) in self.columns.iter().zip(x) {
            ray[*j] = self.unit[*j] * x;
        }
        ray
    }

    fn multipliers(&self, program: &Program, z: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; program.height()];
        for (y, place) in y.iter_mut().zip(&self.places) {
            let of = |at: Option<usize>| at.and_then(|at| z.get(at)).copied().unwrap_or(0.0);
            *y = (of(place.low) - of(place.high)) * place.scale / self.cost_scale;
        }
        super::check::signed(program, &mut y);
        y
    }
}

/// Bounds of variables without those that rows imply, which the solver does not need.
///
/// A bound is dropped only if rows in the solver's program imply it with the bounds that are still there.
fn unimplied(program: &Program, bounds: &Bounds, columns: &[usize], places: &[RowSides]) -> Bounds {
    let mut left = bounds.clone();
    // For the least and greatest activity of each row: sum of the finite terms, and number of infinite ones.
    let mut least = vec![(0.0, 0_usize); program.height()];
    let mut greatest = least.clone();
    let add = |(sum, endless): &mut (f64, usize), term: f64, sign: f64| match term.is_finite() {
        true => *sum += sign * term,
        false if sign > 0.0 => *endless += 1,
        false => *endless -= 1,
    };
    for row in 0..program.height() {
        for (j, value) in program.rows.line(row) {
            let ends = [value * bounds.lower[j], value * bounds.upper[j]];
            let [a, b] = if value > 0.0 {
                ends
            } else {
                [ends[1], ends[0]]
            };
            add(&mut least[row], a, 1.0);
            add(&mut greatest[row], b, 1.0);
        }
    }
    for &j in columns {
        for is_upper in [true, false] {
            let end = if is_upper {
                left.upper[j]
            } else {
                left.lower[j]
            };
            if end.is_infinite() {
                continue;
            }
            let other = if is_upper {
                left.lower[j]
            } else {
                left.upper[j]
            };
            let implies = |(row, value): (usize, f64)| {
                let place = places[row];
                // Whether the row's high side implies this bound.
                let by_high = is_upper == (value > 0.0);
                let is_told = match by_high {
                    true => place.high.is_some(),
                    false => {
                        place.low.is_some()
                            || program.low[row] == program.high[row] && place.high.is_some()
                    }
                };
                let (side, (sum, endless)) = match by_high {
                    true => (program.high[row], least[row]),
                    false => (program.low[row], greatest[row]),
                };
                // Without this variable's own term, which is at its other bound there.
                let rest = match (endless, other.is_infinite()) {
                    (0, false) => sum - value * other,
                    (1, true) => sum,
                    _ => return false,
                };
                let implied = (side - rest) / value;
                let slack = 1e-9 * (end.abs() + rest.abs() / value.abs());
                is_told
                    && match is_upper {
                        true => implied <= end + slack,
                        false => implied >= end - slack,
                    }
            };
            if !program.columns.line(j).any(implies) {
                continue;
            }
            let gone = match is_upper {
                true => std::mem::replace(&mut left.upper[j], f64::INFINITY),
                false => std::mem::replace(&mut left.lower[j], f64::NEG_INFINITY),
            };
            for (row, value) in program.columns.line(j) {
                let activity = match is_upper == (value > 0.0) {
                    true => &mut greatest[row],
                    false => &mut least[row],
                };
                add(activity, value * gone, -1.0);
                add(activity, f64::INFINITY, 1.0);
            }
        }
    }
    left
}

/// Assigns positions in the solver's program to rows, equalities first, and fills the right-hand sides. Returns the number of
/// equalities. Rows that no values within bounds violate get no position.
fn place_rows(
    program: &Program,
    bounds: &Bounds,
    unit: &[f64],
    origin: &[f64],
    places: &mut [RowSides],
    rhs: &mut Vec<f64>,
) -> usize {
    let mut shift = vec![0.0; places.len()];
    let mut can_miss = vec![(false, false); places.len()];
    for (row, place) in places.iter_mut().enumerate() {
        let (mut greatest, mut least, mut most) = (0.0_f64, 0.0_f64, 0.0_f64);
        for (j, value) in program.rows.line(row) {
            shift[row] += value * origin[j];
            let ends = [value * bounds.lower[j], value * bounds.upper[j]];
            greatest += if value > 0.0 { ends[1] } else { ends[0] };
            least += if value > 0.0 { ends[0] } else { ends[1] };
            if !bounds.is_fixed(j) {
                most = most.max(value.abs() * unit[j]);
            }
        }
        place.scale = if most > 0.0 {
            scale::power(most).recip()
        } else {
            1.0
        };
        can_miss[row] = (
            most > 0.0 && (least.is_nan() || least < program.low[row]),
            most > 0.0 && (greatest.is_nan() || greatest > program.high[row]),
        );
    }
    let is_equality = |row: usize| program.low[row] == program.high[row];
    for (row, place) in places.iter_mut().enumerate() {
        if is_equality(row) && can_miss[row] != (false, false) {
            place.high = Some(rhs.len());
            rhs.push((program.high[row] - shift[row]) * place.scale);
        }
    }
    let equalities = rhs.len();
    for (row, place) in places.iter_mut().enumerate() {
        if is_equality(row) {
            continue;
        }
        if can_miss[row].1 {
            place.high = Some(rhs.len());
            rhs.push((program.high[row] - shift[row]) * place.scale);
        }
        if can_miss[row].0 {
            place.low = Some(rhs.len());
            rhs.push((shift[row] - program.low[row]) * place.scale);
        }
    }
    equalities
}
