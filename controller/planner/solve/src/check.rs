//! Checks a solver's answer: values by evaluating them, bounds and refutations by weak duality.
//!
//! For any multipliers y, and all x that meet `low` ≤ A·x ≤ `high` and the bounds, c·x = y·A·x + (c − Aᵀy)·x ≥ Σ min(yᵢ·lowᵢ,
//! yᵢ·highᵢ) + Σ min((c − Aᵀy)ⱼ·xⱼ over the bounds of xⱼ). The right side is computed with its rounding errors subtracted, so
//! it holds for any y, whatever its origin. With c = 0 a right side above 0 refutes the program (Farkas). Source: Neumaier and
//! Shcherbina, Mathematical Programming 99 (2004); the error terms are Higham's γₙ.

use super::program::{Bounds, Program};
use super::{SLACK, TOLERANCE};

/// Interval that is sure to contain a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Between {
    pub least: f64,
    pub greatest: f64,
}

/// Sum of products in floating point, with a bound of its rounding error.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    value: f64,
    magnitude: f64,
    terms: usize,
    /// Whether any rounding error may have occurred; if not, the sum is exact.
    is_inexact: bool,
}

impl Sum {
    pub fn add(&mut self, a: f64, b: f64) {
        let product = a * b;
        let sum = self.value + product;
        // Exact error terms: of the product by fused multiply-add, of the sum by Knuth's two-sum.
        let part = sum - self.value;
        let lost = (self.value - (sum - part)) + (product - part);
        self.is_inexact |= a.mul_add(b, -product) != 0.0 || lost != 0.0;
        self.value = sum;
        self.magnitude += product.abs();
        self.terms += 1;
    }

    /// Upper bound of the computed sum's distance from the exact sum.
    pub fn error(&self) -> f64 {
        // A product that loses digits to underflow adds an error below the smallest normal number.
        let terms = self.terms as f64 + 3.0;
        match self.is_inexact {
            true => terms * (f64::EPSILON * self.magnitude + f64::MIN_POSITIVE),
            false => 0.0,
        }
    }

    pub fn between(&self) -> Between {
        Between {
            least: self.value - self.error(),
            greatest: self.value + self.error(),
        }
    }

    /// Interval that contains the sum, widened by [`SLACK`] times the magnitude of the sum or of the number `with`.
    pub fn outward(&self, with: f64) -> Between {
        let slack = self.error() + SLACK * self.magnitude.max(with.abs());
        Between {
            least: self.value - slack,
            greatest: self.value + slack,
        }
    }
}

/// Interval that contains the reduced cost of a variable, given the multipliers `y` of the rows.
pub(super) fn reduced_cost(program: &Program, cost: &[f64], y: &[f64], column: usize) -> Between {
    let mut sum = Sum::default();
    if let Some(cost) = cost.get(column) {
        sum.add(*cost, 1.0);
    }
    for (row, value) in program.columns.line(column) {
        if y[row] != 0.0 {
            sum.add(-value, y[row]);
        }
    }
    sum.between()
}

/// Lower bound of the cost within rows and bounds, proved by the multipliers `y` of rows. An empty `cost` is 0 everywhere.
pub(super) fn bound(program: &Program, bounds: &Bounds, cost: &[f64], y: &[f64]) -> f64 {
    let least = least(program, bounds, cost, y).map(|sum| sum.between().least);
    least
        .filter(|least| !least.is_nan())
        .unwrap_or(f64::NEG_INFINITY)
}

/// Whether the multipliers `y` prove that no x meets rows and bounds, not even if each is violated by at most [`SLACK`].
pub(super) fn refutes(program: &Program, bounds: &Bounds, y: &[f64]) -> bool {
    least(program, bounds, &[], y).is_some_and(|sum| sum.outward(0.0).least > 0.0)
}

/// Lower bound of the cost by weak duality, as the module's text derives it; `None` if it is −∞.
fn least(program: &Program, bounds: &Bounds, cost: &[f64], y: &[f64]) -> Option<Sum> {
    let mut sum = Sum::default();
    for (row, y) in y.iter().enumerate() {
        if *y == 0.0 {
            continue;
        }
        let side = match *y > 0.0 {
            true => program.low[row],
            false => program.high[row],
        };
        if side.is_infinite() {
            return None;
        }
        sum.add(*y, side);
    }
    for column in 0..program.width() {
        let (lower, upper) = (bounds.lower[column], bounds.upper[column]);
        let unit = reduced_cost(program, cost, y, column);
        let (a, b) = match (unit.least >= 0.0, unit.greatest <= 0.0) {
            (true, true) => continue,
            (true, false) if lower >= 0.0 => (unit.least, lower),
            (true, false) => (unit.greatest, lower),
            (false, true) if upper >= 0.0 => (unit.least, upper),
            (false, true) => (unit.greatest, upper),
            // The sign is unknown: take the worse of both ends.
            (false, false) => {
                let ends = [(unit.least, upper), (unit.greatest, lower)];
                match ends[0].0 * ends[0].1 <= ends[1].0 * ends[1].1 {
                    true => ends[0],
                    false => ends[1],
                }
            }
        };
        if b.is_infinite() {
            return None;
        }
        sum.add(a, b);
    }
    Some(sum)
}

/// Sets multipliers to 0 whose sign belongs to a limit (upper or lower) that their row does not have.
pub(super) fn signed(program: &Program, y: &mut [f64]) {
    for (row, y) in y.iter_mut().enumerate() {
        let is_idle = match *y > 0.0 {
            true => program.low[row].is_infinite(),
            false => program.high[row].is_infinite(),
        };
        if is_idle || !y.is_finite() {
            *y = 0.0;
        }
    }
}

/// Whether x is within its variables' bounds exactly, and violates no row by more than the tolerance.
pub(super) fn is_feasible(program: &Program, x: &[f64]) -> bool {
    let bounds = &program.bounds;
    let is_within = |(j, x): (usize, &f64)| *x >= bounds.lower[j] && *x <= bounds.upper[j];
    x.iter().enumerate().all(is_within)
        && (0..program.height()).all(|row| is_met(program, x, row, TOLERANCE))
}

/// Whether x violates a row by at most `tolerance` times the row's magnitude.
pub(super) fn is_met(program: &Program, x: &[f64], row: usize, tolerance: f64) -> bool {
    let (low, high) = (program.low[row], program.high[row]);
    let mut activity = 0.0;
    let mut magnitude = 0.0_f64;
    for side in [low, high] {
        if side.is_finite() {
            magnitude = magnitude.max(side.abs());
        }
    }
    for (column, value) in program.rows.line(row) {
        activity += value * x[column];
        let mut most = x[column].abs();
        for end in [program.bounds.lower[column], program.bounds.upper[column]] {
            if end.is_finite() {
                most = most.max(end.abs());
            }
        }
        magnitude = magnitude.max(value.abs() * most);
    }
    let missed = (low - activity).max(activity - high);
    missed <= tolerance * magnitude
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cmp, Model, Sense};
    use proptest::prelude::*;

    #[test]
    fn a_sum_without_rounding_has_no_error_and_one_with_it_has() {
        let mut sum = Sum::default();
        sum.add(0.5, 3.0);
        sum.add(-0.25, 4.0);
        assert_eq!((sum.value, sum.error()), (0.5, 0.0));
        sum.add(0.1, 0.1);
        assert!(sum.error() > 0.0);
    }

    /// min x + y, x + y ≥ 1, 0 ≤ x, y ≤ 1: y = 1 proves 1, y = ½ proves ½, and the wrong sign only the bounds' value.
    #[test]
    fn multipliers_prove_what_they_are_worth() {
        let mut model = Model::new(Sense::Minimize);
        let x = model.variable(0.0, 1.0, 1.0);
        let y = model.variable(0.0, 1.0, 1.0);
        model.constrain([(x, 1.0), (y, 1.0)], Cmp::Ge, 1.0);
        let program = Program::from_model(&model).unwrap();
        let of = |y: f64| bound(&program, &program.bounds, &program.cost, &[y]);
        assert_eq!(of(1.0), 1.0);
        assert_eq!(of(0.5), 0.5);
        assert_eq!(of(-1.0), f64::NEG_INFINITY);
        let mut wrong = [-1.0];
        signed(&program, &mut wrong);
        assert_eq!(wrong, [0.0]);
        assert!(!refutes(&program, &program.bounds, &[1.0]));
    }

    proptest! {
        /// Weak duality: no multipliers prove a bound above the cost of a feasible point.
        #[test]
        fn no_bound_is_above_a_feasible_point(
            cost in prop::collection::vec(-9.0..9.0, 3),
            terms in prop::collection::vec(prop::collection::vec(-9.0..9.0, 3), 4),
            x in prop::collection::vec(0.0..1.0, 3),
            y in prop::collection::vec(-9.0..9.0, 4),
        ) {
            let mut model = Model::new(Sense::Minimize);
            let vars: Vec<_> = cost.iter().map(|c| model.variable(0.0, 1.0, *c)).collect();
            for row in &terms {
                let activity: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
                model.constrain(vars.iter().copied().zip(row.iter().copied()), Cmp::Le, activity + 1e-9);
            }
            let program = Program::from_model(&model).unwrap();
            let mut y = y;
            signed(&program, &mut y);
            let proved = bound(&program, &program.bounds, &program.cost, &y);
            prop_assert!(proved <= program.value(&x));
            prop_assert!(!refutes(&program, &program.bounds, &y));
        }
    }
}
