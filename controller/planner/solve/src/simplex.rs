//! Dual simplex method with bounded variables: fast for small programs, and if bounds have changed little since the last
//! solution. Its answers are checked elsewhere.
//!
//! Every row has a logical variable that equals its activity: A·x − s = 0. All variables get bounds (implied ones, or a number
//! beyond likely values), so that any basis becomes dual feasible by moving variables to their other bounds. Steepest-edge
//! pricing and the bound-flipping ratio test are as in Koberstein, *The dual simplex method, techniques for a fast and stable
//! implementation* (2005); costs are perturbed against stalling, by fixed amounts. Primal iterations then remove the
//! perturbation's effects.

use super::factor::Factor;
use super::program::{Bounds, Matrix, Program};
use super::scale::Scale;

/// Tolerance for violated bounds of variables, in scaled units.
pub(super) const FEASIBLE: f64 = 1e-9;
/// Tolerance for reduced costs of the wrong sign, in scaled units.
pub(super) const OPTIMAL: f64 = 1e-9;
/// Minimum magnitude of a pivot.
pub(super) const PIVOT: f64 = 1e-7;
/// Artificial bound of a variable that has none, in scaled units.
const FAR: f64 = 1e7;
/// Number of column exchanges after which the basis is factorized again.
pub(super) const FRESH: usize = 60;

/// Whether a variable is in the basis, or at which of its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// The variable is in the basis.
    Basis,
    /// The variable is at its lower bound.
    Lower,
    /// The variable is at its upper bound.
    Upper,
}

/// A basis from which a later simplex search can start.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Basis {
    head: Vec<u32>,
    at: Vec<At>,
}

/// Result of the simplex method, before it is checked.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// Values of variables and multipliers of rows, possibly optimal.
    Optimal { x: Vec<f64>, y: Vec<f64> },
    /// Multipliers of rows that possibly prove that the program is infeasible.
    Infeasible { y: Vec<f64> },
    /// The iterations ended without a result.
    Stuck,
}

/// A scaled program, and the state of its simplex search.
pub(super) struct Simplex {
    pub(super) n: usize,
    pub(super) m: usize,
    scale: Scale,
    columns: Matrix,
    rows: Matrix,
    own_cost: Vec<f64>,
    /// Current cost of each variable, perturbed or not.
    pub(super) cost: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) head: Vec<usize>,
    pub(super) at: Vec<At>,
    pub(super) x: Vec<f64>,
    /// Reduced cost of each variable.
    pub(super) d: Vec<f64>,
    /// For each place in the basis, the squared length of the basis inverse's row.
    pub(super) weight: Vec<f64>,
    pub(super) factor: Option<Factor>,
    /// Number of iterations left.
    pub(super) left: usize,
    pub(super) alpha: Vec<f64>,
    pub(super) touched: Vec<usize>,
    is_touched: Vec<bool>,
}

/// Error: the simplex iterations ended without an answer.
pub(super) struct Stuck;

impl Simplex {
    /// Prepares a program for the simplex method, scaled by the implied bounds of variables.
    pub fn new(program: &Program, implied: &Bounds) -> Simplex {
        let scale = Scale::new(program, implied);
        let (n, m) = (program.width(), program.height());
        let columns = program.columns.mapped(|j, i| scale.unit[j] * scale.row[i]);
        let rows = program.rows.mapped(|i, j| scale.unit[j] * scale.row[i]);
        let costs = program.cost.iter().zip(&scale.unit);
        let mut own_cost: Vec<f64> = costs.map(|(cost, unit)| cost * unit * scale.cost).collect();
        own_cost.resize(n + m, 0.0);
        Simplex {
            n,
            m,
            scale,
            columns,
            rows,
            cost: own_cost.clone(),
            own_cost,
            lower: vec![0.0; n + m],
            upper: vec![0.0; n + m],
            head: (n..n + m).collect(),
            at: [vec![At::Lower; n], vec![At::Basis; m]].concat(),
            x: vec![0.0; n + m],
            d: vec![0.0; n + m],
            weight: vec![1.0; m],
            factor: None,
            left: 0,
            alpha: vec![0.0; n + m],
            touched: Vec::new(),
            is_touched: vec![false; n + m],
        }
    }

    /// The current basis, from which a later search can start.
    pub fn basis(&self) -> Basis {
        Basis {
            head: self.head.iter().map(|j| *j as u32).collect(),
            at: self.at.clone(),
        }
    }

    /// Solves the program over `bounds`, or `implied` where these are infinite, from `basis`, in at most `iterations`.
    pub fn solve(
        &mut self,
        program: &Program,
        bounds: &Bounds,
        implied: &Bounds,
        basis: Option<&Basis>,
        iterations: usize,
    ) -> Found {
        self.left = iterations;
        self.bound(program, bounds, implied);
        match basis {
            Some(basis) => {
                let is_here = basis.at == self.at
                    && self.factor.is_some()
                    && self
                        .head
                        .iter()
                        .zip(&basis.head)
                        .all(|(a, b)| *a == *b as usize);
                if !is_here {
                    self.head = basis.head.iter().map(|j| *j as usize).collect();
                    self.at.clone_from(&basis.at);
                    self.weight.fill(1.0);
                    self.factor = None;
                }
            }
            None => {
                self.head = (self.n..self.n + self.m).collect();
                self.at = [vec![At::Lower; self.n], vec![At::Basis; self.m]].concat();
                self.weight.fill(1.0);
                self.factor = None;
            }
        }
        self.run().unwrap_or(Found::Stuck)
    }

    fn run(&mut self) -> Result<Found, Stuck> {
        self.cost.clone_from(&self.own_cost);
        if self.factor.is_none() {
            self.factorise()?;
        }
        self.price();
        self.place_at_right_ends();
        self.perturb();
        for _ in 0..4 {
            if let Some(row) = self.dual()? {
                return Ok(Found::Infeasible {
                    y: self.scale.multipliers(&row, 1.0),
                });
            }
            self.cost.clone_from(&self.own_cost);
            if self
                .factor
                .as_ref()
                .is_none_or(|factor| factor.exchanges() > FRESH / 2)
            {
                self.factorise()?;
            }
            self.price();
            self.primal()?;
            self.place_basics();
            if self.worst().is_none() {
                return Ok(self.read());
            }
        }
        Err(Stuck)
    }

    fn bound(&mut self, program: &Program, bounds: &Bounds, implied: &Bounds) {
        let or = |own: f64, other: f64| if own.is_finite() { own } else { other };
        for j in 0..self.n + self.m {
            let (lower, upper, unit) = match j < self.n {
                true => (
                    or(bounds.lower[j], implied.lower[j]),
                    or(bounds.upper[j], implied.upper[j]),
                    self.scale.unit[j],
                ),
                false => {
                    let i = j - self.n;
                    (program.low[i], program.high[i], self.scale.row[i].recip())
                }
            };
            let (lower, upper) = (lower / unit, upper / unit);
            // If both bounds are far, 0 is between them.
            self.lower[j] = match lower.is_finite() {
                true => lower,
                false => -FAR + upper.min(0.0),
            };
            self.upper[j] = match upper.is_finite() {
                true => upper,
                false => FAR + lower.max(0.0),
            };
        }
    }

    /// Matrix column of a variable, as rows and values.
    pub(super) fn column(&self, j: usize) -> Vec<(usize, f64)> {
        match j < self.n {
            true => self.columns.line(j).collect(),
            false => vec![(j - self.n, -1.0)],
        }
    }

    /// Factorizes the basis matrix, with logical variables in place of dependent columns, and computes the basic variables.
    pub(super) fn factorise(&mut self) -> Result<(), Stuck> {
        for _ in 0..3 {
            let columns: Vec<_> = self.head.iter().map(|j| self.column(*j)).collect();
            match Factor::new(&columns) {
                Ok(factor) => {
                    self.factor = Some(factor);
                    self.place_basics();
                    return Ok(());
                }
                Err((places, rows)) => {
                    for (place, row) in places.into_iter().zip(rows) {
                        let j = self.head[place];
                        self.at[j] = self.nearer(j);
                        self.head[place] = self.n + row;
                        self.at[self.n + row] = At::Basis;
                        self.weight.fill(1.0);
                    }
                }
            }
        }
        Err(Stuck)
    }

    fn nearer(&self, j: usize) -> At {
        match self.x[j] - self.lower[j] <= self.upper[j] - self.x[j] {
            true => At::Lower,
            false => At::Upper,
        }
    }

    /// Sets nonbasic variables to their bounds, and solves for the basic ones.
    pub(super) fn place_basics(&mut self) {
        let mut sum = vec![0.0; self.m];
        for j in 0..self.n + self.m {
            self.x[j] = match self.at[j] {
                At::Basis => continue,
                At::Lower => self.lower[j],
                At::Upper => self.upper[j],
            };
            if self.x[j] == 0.0 {
                continue;
            }
            if j < self.n {
                for (i, value) in self.columns.line(j) {
                    sum[i] -= value * self.x[j];
                }
            } else {
                sum[j - self.n] += self.x[j];
            }
        }
        if let Some(factor) = &mut self.factor {
            factor.forward(&mut sum);
        }
        for (place, value) in sum.into_iter().enumerate() {
            self.x[self.head[place]] = value;
        }
    }

    /// Multipliers of the rows for the current basis and costs.
    fn multipliers(&mut self) -> Vec<f64> {
        let mut y: Vec<f64> = self.head.iter().map(|j| self.cost[*j]).collect();
        if let Some(factor) = &mut self.factor {
            factor.backward(&mut y);
        }
        y
    }

    /// Computes the reduced costs of all variables.
    pub(super) fn price(&mut self) {
        let y = self.multipliers();
        for j in 0..self.n + self.m {
            self.d[j] = match (self.at[j], j < self.n) {
                (At::Basis, _) => 0.0,
                (_, true) => {
                    let column = self.columns.line(j);
                    self.cost[j] - column.map(|(i, value)| value * y[i]).sum::<f64>()
                }
                (_, false) => self.cost[j] + y[j - self.n],
            };
        }
    }

    /// Moves nonbasic variables whose reduced cost has the wrong sign to their other bounds.
    fn place_at_right_ends(&mut self) {
        for j in 0..self.n + self.m {
            match self.at[j] {
                At::Lower if self.d[j] < 0.0 => self.at[j] = At::Upper,
                At::Upper if self.d[j] > 0.0 => self.at[j] = At::Lower,
                _ => {}
            }
        }
        self.place_basics();
    }

    /// Amount by which a variable violates a bound: negative if it is below its lower bound, 0 if it is within both.
    pub(super) fn beyond(&self, j: usize) -> f64 {
        let x = self.x[j];
        if x < self.lower[j] - FEASIBLE * (1.0 + self.lower[j].abs()) {
            x - self.lower[j]
        } else if x > self.upper[j] + FEASIBLE * (1.0 + self.upper[j].abs()) {
            x - self.upper[j]
        } else {
            0.0
        }
    }

    /// The row of the basis inverse for a place in the basis.
    pub(super) fn inverse_row(&mut self, place: usize) -> Vec<f64> {
        let mut row = vec![0.0; self.m];
        row[place] = 1.0;
        if let Some(factor) = &mut self.factor {
            factor.backward(&mut row);
        }
        row
    }

    /// Computes the products of a row of the basis inverse with the columns of nonbasic variables.
    pub(super) fn pivot_row(&mut self, row: &[f64]) {
        for j in self.touched.drain(..) {
            self.alpha[j] = 0.0;
            self.is_touched[j] = false;
        }
        for (i, y) in row.iter().enumerate() {
            if y.abs() < 1e-14 {
                continue;
            }
            for (j, value) in self.rows.line(i) {
                if self.at[j] != At::Basis {
                    if !self.is_touched[j] {
                        self.is_touched[j] = true;
                        self.touched.push(j);
                    }
                    self.alpha[j] += y * value;
                }
            }
            let j = self.n + i;
            if self.at[j] != At::Basis {
                self.is_touched[j] = true;
                self.touched.push(j);
                self.alpha[j] = -y;
            }
        }
    }

    pub(super) fn pivot_entries(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.touched.iter().map(|j| (*j, self.alpha[*j]))
    }

    /// Exchanges the basic variable at a place for `entering`, and puts the variable that leaves at the bound `at`.
    pub(super) fn exchange(&mut self, place: usize, entering: usize, at: At, column: &[f64]) {
        let leaving = self.head[place];
        self.at[leaving] = at;
        self.at[entering] = At::Basis;
        self.head[place] = entering;
        if let Some(factor) = &mut self.factor {
            factor.exchange(place, column);
        }
    }

    fn read(&mut self) -> Found {
        for j in 0..self.n + self.m {
            // The variable is at an artificial bound.
            if self.x[j].abs() >= FAR * (1.0 - 1e-6) && self.at[j] != At::Basis {
                return Found::Stuck;
            }
        }
        let y = self.multipliers();
        Found::Optimal {
            x: self.scale.values(&self.x[..self.n]),
            y: self.scale.multipliers(&y, self.scale.cost),
        }
    }
}

/// Expands a sparse column to `m` rows.
pub(super) fn dense(column: &[(usize, f64)], m: usize) -> Vec<f64> {
    let mut all = vec![0.0; m];
    for (i, value) in column {
        all[*i] = *value;
    }
    all
}
