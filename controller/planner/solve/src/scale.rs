//! Chooses units of variables, rows and costs such that numbers inside a solver are near 1.
//!
//! A variable's unit is its range, and a row's unit is its greatest term, so that programs in bit/s look like programs in
//! fractions of one. Scales are powers of two: they cause no rounding.

use super::program::{Bounds, Program};

/// Units in which a solver sees a program.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    /// For each variable, the value outside the solver that is 1 inside.
    pub unit: Vec<f64>,
    /// For each row, the factor by which the solver's row is multiplied.
    pub row: Vec<f64>,
    /// Factor by which the solver's costs are multiplied.
    pub cost: f64,
}

impl Scale {
    pub fn new(program: &Program, implied: &Bounds) -> Scale {
        let unit = units(program, implied);
        let row = (0..program.height()).map(|row| {
            let terms = program
                .rows
                .line(row)
                .map(|(j, value)| value.abs() * unit[j]);
            reciprocal(terms.fold(0.0, f64::max))
        });
        let costs = program.cost.iter().zip(&unit);
        let greatest = costs.map(|(cost, unit)| (cost * unit).abs());
        Scale {
            row: row.collect(),
            cost: reciprocal(greatest.fold(0.0, f64::max)),
            unit,
        }
    }

    /// Converts a solver's values of variables to the program's units.
    pub fn values(&self, x: &[f64]) -> Vec<f64> {
        x.iter().zip(&self.unit).map(|(x, unit)| x * unit).collect()
    }

    /// Converts a solver's multipliers of rows to the program's units; `cost` is the factor of costs.
    pub fn multipliers(&self, y: &[f64], cost: f64) -> Vec<f64> {
        y.iter()
            .zip(&self.row)
            .map(|(y, row)| y * row / cost)
            .collect()
    }
}

/// For each variable, its unit: its range, if it has one.
pub(super) fn units(program: &Program, implied: &Bounds) -> Vec<f64> {
    let mut unit = vec![0.0; program.width()];
    for (j, unit) in unit.iter_mut().enumerate() {
        let width = implied.upper[j] - implied.lower[j];
        if !width.is_finite() {
            continue;
        }
        // A variable that is nearly fixed here may have a wider range elsewhere.
        let own = program.bounds.upper[j] - program.bounds.lower[j];
        let size = implied.upper[j].abs().max(implied.lower[j].abs());
        let range = width.max(1e-3 * size);
        let range = if own.is_finite() {
            range.max(1e-4 * own)
        } else {
            range
        };
        *unit = if range > 0.0 { power(range) } else { 1.0 };
    }
    let endless: Vec<usize> = (0..unit.len()).filter(|j| unit[*j] == 0.0).collect();
    if endless.is_empty() {
        return unit;
    }
    // Unit that makes a variable's term as large as the rest of a row, in the row where that is least.
    let mut magnitude = vec![0.0_f64; program.height()];
    for (row, magnitude) in magnitude.iter_mut().enumerate() {
        for side in [program.low[row], program.high[row]] {
            if side.is_finite() {
                *magnitude = magnitude.max(side.abs());
            }
        }
        for (j, value) in program.rows.line(row) {
            *magnitude = magnitude.max(value.abs() * unit[j]);
        }
    }
    for j in endless {
        let column = program.columns.line(j).filter(|(_, value)| *value != 0.0);
        let sizes = column.map(|(row, value)| magnitude[row] / value.abs());
        let least = sizes
            .filter(|size| *size > 0.0)
            .fold(f64::INFINITY, f64::min);
        unit[j] = if least.is_finite() { power(least) } else { 1.0 };
    }
    unit
}

fn reciprocal(of: f64) -> f64 {
    if of > 0.0 { power(of).recip() } else { 1.0 }
}

/// The greatest power of two that is at most `of`.
pub(super) fn power(of: f64) -> f64 {
    f64::from_bits(of.to_bits() & 0x7ff0_0000_0000_0000).max(f64::MIN_POSITIVE)
}
