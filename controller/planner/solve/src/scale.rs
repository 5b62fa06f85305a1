//! What variables, rows and costs are measured in, so that numbers are near 1 inside a solver.
//!
//! A variable is measured in shares of its range, a row in shares of its greatest term, so that programs in bit/s look like
//! programs in parts of one. Scales are powers of two: they round nothing.

use super::program::{Bounds, Program};

/// Units of a program.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    /// What a variable of 1 inside is worth outside.
    pub unit: Vec<f64>,
    /// What a row is multiplied by.
    pub row: Vec<f64>,
    /// What costs are multiplied by.
    pub cost: f64,
}

impl Scale {
    pub fn of(program: &Program, implied: &Bounds) -> Scale {
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

    /// Values as they are outside.
    pub fn values(&self, x: &[f64]) -> Vec<f64> {
        x.iter().zip(&self.unit).map(|(x, unit)| x * unit).collect()
    }

    /// Multipliers of rows as they are outside, where costs were multiplied by something.
    pub fn multipliers(&self, y: &[f64], cost: f64) -> Vec<f64> {
        y.iter()
            .zip(&self.row)
            .map(|(y, row)| y * row / cost)
            .collect()
    }
}

/// What each variable is measured in: its range where it has one.
pub(super) fn units(program: &Program, implied: &Bounds) -> Vec<f64> {
    let mut unit = vec![0.0; program.width()];
    for (j, unit) in unit.iter_mut().enumerate() {
        let width = implied.upper[j] - implied.lower[j];
        if !width.is_finite() {
            continue;
        }
        // What is as good as fixed here may have more room elsewhere.
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
    // As much as would make its term as large as the rest of a row, in the row where that is least.
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

/// The greatest power of two that is not greater.
pub(super) fn power(of: f64) -> f64 {
    f64::from_bits(of.to_bits() & 0x7ff0_0000_0000_0000).max(f64::MIN_POSITIVE)
}
