//! Dual simplex iterations: from a dual feasible basis to a basis whose variables are all within their bounds.

use super::simplex::{At, FRESH, PIVOT, Simplex, Stuck, dense};

/// Perturbation of costs against stalling, relative to 1 plus the magnitude of each cost.
const PERTURBATION: f64 = 1e-6;
/// Maximum number of pivots whose two computed values may differ before the iterations give up.
const DOUBTS: usize = 20;

impl Simplex {
    /// Perturbs each cost by an individual amount, in the direction that keeps its reduced cost away from 0.
    pub(super) fn perturb(&mut self) {
        for j in 0..self.n + self.m {
            if self.lower[j] == self.upper[j] {
                continue;
            }
            // Knuth's multiplicative hash: any fixed spread works.
            let spread = (j as u32).wrapping_mul(2_654_435_769) >> 8;
            let share = 0.5 + f64::from(spread) / f64::from(1_u32 << 25);
            let by = share * PERTURBATION * (1.0 + self.cost[j].abs());
            let by = match self.at[j] {
                At::Basis => continue,
                At::Lower => by,
                At::Upper => -by,
            };
            self.cost[j] += by;
            self.d[j] += by;
        }
    }

    /// Place in the basis of the variable that violates its bounds the most, relative to its row's length; `None` if none does.
    pub(super) fn worst(&self) -> Option<usize> {
        let mut worst = None;
        let mut most = 0.0;
        for (place, j) in self.head.iter().enumerate() {
            let beyond = self.beyond(*j);
            if beyond != 0.0 {
                let merit = beyond * beyond / self.weight[place];
                if merit > most {
                    (worst, most) = (Some(place), merit);
                }
            }
        }
        worst
    }

    /// Iterates until no basic variable violates its bounds (`None`), or returns multipliers that prove this impossible.
    pub(super) fn dual(&mut self) -> Result<Option<Vec<f64>>, Stuck> {
        let mut doubts = 0;
        loop {
            let factor = self.factor.as_ref().ok_or(Stuck)?;
            if factor.exchanges() >= FRESH {
                self.factorise()?;
                self.price();
                self.right_costs();
            }
            let Some(place) = self.worst() else {
                return Ok(None);
            };
            if self.left == 0 {
                return Err(Stuck);
            }
            self.left -= 1;
            let leaving = self.head[place];
            let beyond = self.beyond(leaving);
            let row = self.inverse_row(place);
            self.pivot_row(&row);
            let Some((entering, flips)) = self.ratio_test(beyond) else {
                let is_fresh = self.factor.as_ref().is_some_and(|f| f.exchanges() == 0);
                if is_fresh {
                    // row·(A·x − s) is 0 for all points that meet the rows, but has one sign within all bounds.
                    let sign = if beyond > 0.0 { 1.0 } else { -1.0 };
                    return Ok(Some(row.iter().map(|y| sign * y).collect()));
                }
                self.factorise()?;
                self.price();
                self.right_costs();
                continue;
            };
            let mut column = dense(&self.column(entering), self.m);
            self.factor.as_mut().ok_or(Stuck)?.forward(&mut column);
            let pivot = self.alpha[entering];
            if (column[place] - pivot).abs() > 1e-6 * (1.0 + pivot.abs()) {
                doubts += 1;
                let is_fresh = self.factor.as_ref().is_some_and(|f| f.exchanges() == 0);
                if doubts > DOUBTS || is_fresh {
                    return Err(Stuck);
                }
                self.factorise()?;
                self.price();
                self.right_costs();
                continue;
            }
            self.step(place, entering, beyond < 0.0, &flips, &row, &column);
        }
    }

    /// Nonbasic variable that enters the basis, and the variables that flip to their other bounds; `None` if none can enter.
    fn ratio_test(&self, beyond: f64) -> Option<(usize, Vec<usize>)> {
        let sign = if beyond < 0.0 { -1.0 } else { 1.0 };
        let mut candidates: Vec<(f64, usize, f64)> = Vec::new();
        for (j, alpha) in self.pivot_entries() {
            let alpha = sign * alpha;
            let is_candidate = self.lower[j] < self.upper[j]
                && match self.at[j] {
                    At::Lower => alpha > PIVOT,
                    At::Upper => alpha < -PIVOT,
                    At::Basis => false,
                };
            if is_candidate {
                candidates.push(((self.d[j] / alpha).max(0.0), j, alpha.abs()));
            }
        }
        candidates.sort_by(|a, b| {
            a.0.total_cmp(&b.0)
                .then(b.2.total_cmp(&a.2))
                .then(a.1.cmp(&b.1))
        });
        let mut slope = beyond.abs();
        let mut last = candidates.len().checked_sub(1)?;
        for (at, (_, j, alpha)) in candidates.iter().enumerate() {
            slope -= alpha * (self.upper[*j] - self.lower[*j]);
            if slope < 0.0 {
                last = at;
                break;
            }
        }
        // Among nearly equal ratios, prefer a large pivot.
        let ratio = candidates[last].0;
        let mut chosen = last;
        for at in (0..candidates.len()).filter(|at| (candidates[*at].0 - ratio).abs() <= 1e-9) {
            if candidates[at].2 > 4.0 * candidates[chosen].2 {
                chosen = at;
            }
        }
        if candidates[chosen].2 < 1e-5 {
            for at in 0..last {
                if candidates[at].2 > 100.0 * candidates[chosen].2 {
                    chosen = at;
                }
            }
        }
        let flips = candidates[..chosen].iter().map(|(_, j, _)| *j).collect();
        Some((candidates[chosen].1, flips))
    }

    /// Moves to the next basis: exchanges one basic variable, and moves some other variables to their opposite bounds.
    fn step(
        &mut self,
        place: usize,
        entering: usize,
        is_under: bool,
        flips: &[usize],
        row: &[f64],
        column: &[f64],
    ) {
        let leaving = self.head[place];
        let dual = self.d[entering] / self.alpha[entering];
        for at in 0..self.touched.len() {
            let j = self.touched[at];
            self.d[j] -= dual * self.alpha[j];
        }
        self.d[entering] = 0.0;
        self.d[leaving] = -dual;
        if !flips.is_empty() {
            let mut sum = vec![0.0; self.m];
            for &j in flips {
                let (from, to) = match self.at[j] {
                    At::Lower => (self.lower[j], self.upper[j]),
                    _ => (self.upper[j], self.lower[j]),
                };
                self.at[j] = match self.at[j] {
                    At::Lower => At::Upper,
                    _ => At::Lower,
                };
                self.x[j] = to;
                for (i, value) in self.column(j) {
                    sum[i] -= value * (to - from);
                }
            }
            if let Some(factor) = &mut self.factor {
                factor.forward(&mut sum);
            }
            for (j, by) in self.head.iter().zip(sum) {
                self.x[*j] += by;
            }
        }
        let end = if is_under {
            self.lower[leaving]
        } else {
            self.upper[leaving]
        };
        let primal = (self.x[leaving] - end) / column[place];
        for (j, value) in self.head.iter().zip(column) {
            self.x[*j] -= primal * value;
        }
        self.x[entering] += primal;
        self.x[leaving] = end;
        self.update_weights(place, row, column);
        let at = if is_under { At::Lower } else { At::Upper };
        self.exchange(place, entering, at, column);
        for at in 0..self.touched.len() {
            self.right_cost(self.touched[at]);
        }
        self.right_cost(leaving);
    }

    fn update_weights(&mut self, place: usize, row: &[f64], column: &[f64]) {
        let own: f64 = row.iter().map(|y| y * y).sum();
        let mut along = row.to_vec();
        if let Some(factor) = &mut self.factor {
            factor.forward(&mut along);
        }
        let pivot = column[place];
        for (i, value) in column.iter().enumerate() {
            if i != place && *value != 0.0 {
                let ratio = value / pivot;
                let weight = self.weight[i] - 2.0 * ratio * along[i] + ratio * ratio * own;
                self.weight[i] = weight.max(1e-4);
            }
        }
        self.weight[place] = (own / (pivot * pivot)).max(1e-4);
    }

    /// Sets the stored lengths of the basis inverse's rows to 1, since primal iterations do not keep them up to date.
    pub(super) fn forget_weights(&mut self) {
        self.weight.fill(1.0);
    }

    /// If rounding gave a variable's reduced cost the wrong sign, shifts its cost until the reduced cost is 0.
    fn right_cost(&mut self, j: usize) {
        let is_wrong = match self.at[j] {
            At::Basis => false,
            At::Lower => self.d[j] < 0.0,
            At::Upper => self.d[j] > 0.0,
        };
        if is_wrong && self.lower[j] < self.upper[j] {
            self.cost[j] -= self.d[j];
            self.d[j] = 0.0;
        }
    }

    fn right_costs(&mut self) {
        for j in 0..self.n + self.m {
            self.right_cost(j);
        }
    }
}
