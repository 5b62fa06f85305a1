//! Primal simplex iterations from a feasible basis, which restore optimality after the perturbation of costs is removed.

use super::simplex::{At, FEASIBLE, FRESH, OPTIMAL, PIVOT, Simplex, Stuck, dense};

impl Simplex {
    /// Iterates until no reduced cost has the sign that would let the cost fall further.
    pub(super) fn primal(&mut self) -> Result<(), Stuck> {
        while let Some(entering) = self.steepest() {
            if self.left == 0 {
                return Err(Stuck);
            }
            self.left -= 1;
            let factor = self.factor.as_mut().ok_or(Stuck)?;
            if factor.exchanges() >= FRESH {
                self.factorise()?;
                self.price();
                continue;
            }
            let mut column = dense(&self.column(entering), self.m);
            self.factor.as_mut().ok_or(Stuck)?.forward(&mut column);
            let sign = if self.at[entering] == At::Lower {
                1.0
            } else {
                -1.0
            };
            self.move_along(entering, sign, &column)?;
        }
        Ok(())
    }

    fn steepest(&self) -> Option<usize> {
        let mut best = None;
        let mut most = OPTIMAL;
        for j in 0..self.n + self.m {
            let wrong = match self.at[j] {
                At::Basis => continue,
                At::Lower => -self.d[j],
                At::Upper => self.d[j],
            };
            if wrong > most && self.lower[j] < self.upper[j] {
                (best, most) = (Some(j), wrong);
            }
        }
        best
    }

    /// Moves a nonbasic variable away from its bound until it or a basic variable reaches a bound.
    fn move_along(&mut self, entering: usize, sign: f64, column: &[f64]) -> Result<(), Stuck> {
        let own = self.upper[entering] - self.lower[entering];
        // Two passes (Harris): the step if bounds are slightly relaxed; then the largest pivot among those reached by it.
        let room = |j: usize, rate: f64, slack: f64| {
            let ends = match rate < 0.0 {
                true => self.x[j] - self.lower[j],
                false => self.upper[j] - self.x[j],
            };
            (ends + slack).max(0.0) / rate.abs()
        };
        let mut most = f64::INFINITY;
        for (j, value) in self.head.iter().zip(column) {
            if value.abs() > PIVOT {
                most = most.min(room(*j, -sign * value, FEASIBLE));
            }
        }
        let mut chosen: Option<(usize, f64)> = None;
        if most < own {
            for (place, value) in column.iter().enumerate() {
                let is_larger = chosen.is_none_or(|(at, _)| value.abs() > column[at].abs());
                if value.abs() > PIVOT && is_larger {
                    let way = room(self.head[place], -sign * value, 0.0);
                    if way <= most {
                        chosen = Some((place, way));
                    }
                }
            }
        }
        let way = chosen.map_or(own, |(_, way)| way);
        for (j, value) in self.head.iter().zip(column) {
            self.x[*j] -= sign * way * value;
        }
        self.x[entering] += sign * way;
        let Some((place, _)) = chosen else {
            (self.at[entering], self.x[entering]) = match sign > 0.0 {
                true => (At::Upper, self.upper[entering]),
                false => (At::Lower, self.lower[entering]),
            };
            return Ok(());
        };
        let row = self.inverse_row(place);
        self.pivot_row(&row);
        let dual = self.d[entering] / column[place];
        let entries: Vec<_> = self.pivot_entries().collect();
        for (j, alpha) in entries {
            self.d[j] -= dual * alpha;
        }
        let leaving = self.head[place];
        self.d[entering] = 0.0;
        self.d[leaving] = -dual;
        let at = match -sign * column[place] < 0.0 {
            true => At::Lower,
            false => At::Upper,
        };
        self.x[leaving] = match at {
            At::Lower => self.lower[leaving],
            _ => self.upper[leaving],
        };
        self.exchange(place, entering, at, column);
        // The row lengths are the dual method's, and are not maintained here.
        self.forget_weights();
        Ok(())
    }
}
