//! Bound propagation: the least possible sum of a row limits each of its variables.
//!
//! Conclusions need a margin of [`SLACK`] times a sum's magnitude, which far exceeds rounding
//! errors: no point is lost that meets the rows, or violates them by at most that.

use super::SLACK;
use super::check::Sum;
use super::program::{Bounds, Program};

/// Maximum number of passes over the rows.
const ROUNDS: usize = 8;
/// Minimum relative reduction of a continuous variable's range for which its bound is tightened.
const WORTH: f64 = 0.05;
/// Maximum distance from a whole number at which a value counts as whole.
pub(super) const WHOLE: f64 = 1e-6;

/// Proof that no point within the bounds meets some row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// An additional row: a maximum that the cost must not exceed.
pub(super) struct Cutoff<'a> {
    pub cost: &'a [f64],
    pub most: f64,
}

/// Tightens the bounds of variables by the rows until little changes. `whole` marks the integer variables, if there are any.
pub(super) fn tighten(
    program: &Program,
    bounds: &mut Bounds,
    whole: &[bool],
    cutoff: Option<&Cutoff<'_>>,
) -> Result<(), Broken> {
    for column in 0..program.width() {
        if is_whole(whole, column) {
            round(bounds, column);
        }
        if bounds.lower[column] > bounds.upper[column] {
            return Err(Broken);
        }
    }
    follow(program, bounds, whole, cutoff, vec![true; program.height()])
}

/// Tightens bounds as [`tighten`] does, if only the bounds of some variables have changed since the last time.
pub(super) fn tighten_after(
    program: &Program,
    bounds: &mut Bounds,
    whole: &[bool],
    cutoff: Option<&Cutoff<'_>>,
    changed: &[usize],
) -> Result<(), Broken> {
    let mut is_due = vec![false; program.height()];
    for column in changed {
        for (row, _) in program.columns.line(*column) {
            is_due[row] = true;
        }
    }
    follow(program, bounds, whole, cutoff, is_due)
}

fn follow(
    program: &Program,
    bounds: &mut Bounds,
    whole: &[bool],
    cutoff: Option<&Cutoff<'_>>,
    mut is_due: Vec<bool>,
) -> Result<(), Broken> {
    let mut touched = Vec::new();
    for _ in 0..ROUNDS {
        let mut is_changed = false;
        let mut follow_up = |touched: &mut Vec<usize>, is_due: &mut [bool]| {
            is_changed |= !touched.is_empty();
            for column in touched.drain(..) {
                for (row, _) in program.columns.line(column) {
                    is_due[row] = true;
                }
            }
        };
        for row in 0..program.height() {
            if !std::mem::take(&mut is_due[row]) {
                continue;
            }
            let terms = || program.rows.line(row);
            let (low, high) = (program.low[row], program.high[row]);
            tighten_by(whole, bounds, terms, low, high, &mut touched)?;
            follow_up(&mut touched, &mut is_due);
        }
        if let Some(cutoff) = cutoff {
            let terms = || {
                let costs = cutoff.cost.iter().copied().enumerate();
                costs.filter(|(_, cost)| *cost != 0.0)
            };
            let low = f64::NEG_INFINITY;
            tighten_by(whole, bounds, terms, low, cutoff.most, &mut touched)?;
            follow_up(&mut touched, &mut is_due);
        }
        if !is_changed {
            break;
        }
    }
    Ok(())
}

/// Least or greatest possible sum of a row: sum of its finite terms, and number of its infinite terms.
#[derive(Default)]
struct Activity {
    finite: Sum,
    endless: usize,
}

impl Activity {
    fn add(&mut self, value: f64, end: f64) {
        match end.is_infinite() {
            true => self.endless += 1,
            false => self.finite.add(value, end),
        }
    }

    /// The sum of the row without one of its terms; `None` if it is infinite.
    fn without(&self, value: f64, end: f64) -> Option<Sum> {
        match (self.endless, end.is_infinite()) {
            (0, false) => {
                let mut sum = self.finite;
                sum.add(-value, end);
                Some(sum)
            }
            (1, true) => Some(self.finite),
            _ => None,
        }
    }
}

fn tighten_by<I: Iterator<Item = (usize, f64)>>(
    whole: &[bool],
    bounds: &mut Bounds,
    terms: impl Fn() -> I,
    low: f64,
    high: f64,
    touched: &mut Vec<usize>,
) -> Result<(), Broken> {
    let (mut least, mut greatest) = (Activity::default(), Activity::default());
    for (column, value) in terms() {
        let (lower, upper) = (bounds.lower[column], bounds.upper[column]);
        let (at_least, at_most) = match value > 0.0 {
            true => (lower, upper),
            false => (upper, lower),
        };
        least.add(value, at_least);
        greatest.add(value, at_most);
    }
    if least.endless == 0 && least.finite.outward(high).least > high
        || greatest.endless == 0 && greatest.finite.outward(low).greatest < low
    {
        return Err(Broken);
    }
    let bites = |end: &Activity, side: f64| side.is_finite() && end.endless <= 1;
    let by_high = bites(&least, high)
        && (least.endless == 1
            || !(greatest.endless == 0 && greatest.finite.between().greatest <= high));
    let by_low = bites(&greatest, low)
        && (greatest.endless == 1 || !(least.endless == 0 && least.finite.between().least >= low));
    if !by_high && !by_low {
        return Ok(());
    }
    for (column, value) in terms() {
        if value == 0.0 || bounds.is_fixed(column) {
            continue;
        }
        // The bounds with which the sums above were computed: a row has each column once.
        let (lower, upper) = (bounds.lower[column], bounds.upper[column]);
        let (at_least, at_most) = match value > 0.0 {
            true => (lower, upper),
            false => (upper, lower),
        };
        let mut is_touched = false;
        if by_high && let Some(mut rest) = least.without(value, at_least) {
            rest.add(-1.0, high);
            // value·x ≤ −rest
            is_touched |= cut(
                is_whole(whole, column),
                bounds,
                column,
                value,
                -rest.outward(0.0).least,
            );
        }
        if by_low && let Some(mut rest) = greatest.without(value, at_most) {
            rest.add(-1.0, low);
            // −value·x ≤ rest
            is_touched |= cut(
                is_whole(whole, column),
                bounds,
                column,
                -value,
                rest.outward(0.0).greatest,
            );
        }
        if bounds.lower[column] > bounds.upper[column] {
            return Err(Broken);
        }
        if is_touched {
            touched.push(column);
        }
    }
    Ok(())
}

/// Tightens the bounds of variable x by value·x ≤ most; returns whether a bound moves far enough to count.
fn cut(is_whole: bool, bounds: &mut Bounds, column: usize, value: f64, most: f64) -> bool {
    let end = most / value;
    if !end.is_finite() {
        return false;
    }
    // The division may round.
    let slack = end.abs() * SLACK;
    let (lower, upper) = (bounds.lower[column], bounds.upper[column]);
    let is_upper = value > 0.0;
    let mut end = if is_upper { end + slack } else { end - slack };
    if is_whole && end.abs() < 1e9 {
        end = match is_upper {
            true => (end + WHOLE).floor(),
            false => (end - WHOLE).ceil(),
        };
    }
    let moved = if is_upper { upper - end } else { end - lower };
    let is_crossed = if is_upper { end < lower } else { end > upper };
    let worth = match is_whole {
        true => 0.5,
        false => WORTH * (upper - lower),
    };
    let was_endless = if is_upper { upper } else { lower }.is_infinite();
    if !(was_endless || is_crossed || moved > worth) {
        return false;
    }
    match is_upper {
        true => bounds.upper[column] = end,
        false => bounds.lower[column] = end,
    }
    true
}

fn is_whole(whole: &[bool], column: usize) -> bool {
    whole.get(column).copied().unwrap_or(false)
}

fn round(bounds: &mut Bounds, column: usize) {
    let (lower, upper) = (bounds.lower[column], bounds.upper[column]);
    if lower.abs() < 1e9 {
        bounds.lower[column] = (lower - WHOLE).ceil();
    }
    if upper.abs() < 1e9 {
        bounds.upper[column] = (upper + WHOLE).floor();
    }
}
