//! LU factorization of a basis matrix, with one more factor for each column exchanged since.
//!
//! Columns and rows with one remaining entry are peeled off first. The rest is eliminated column by column; the pivot is in the
//! row with the fewest entries among those that are large enough. Exchanges are kept in product form.

/// Minimum magnitude of a pivot, as a share of its column's greatest entry.
const THRESHOLD: f64 = 0.1;
/// Minimum magnitude of a pivot; below it the matrix counts as singular.
const SINGULAR: f64 = 1e-9;
/// Matrix entries below this magnitude are dropped.
const TINY: f64 = 1e-14;

/// Sparse matrix columns, stored consecutively.
#[derive(Debug, Clone)]
struct Columns {
    start: Vec<usize>,
    index: Vec<u32>,
    value: Vec<f64>,
}

impl Columns {
    fn new() -> Columns {
        Columns {
            start: vec![0],
            index: Vec::new(),
            value: Vec::new(),
        }
    }

    fn push(&mut self, index: usize, value: f64) {
        self.index.push(index as u32);
        self.value.push(value);
    }

    fn end(&mut self) {
        self.start.push(self.index.len());
    }

    fn len(&self) -> usize {
        self.start.len() - 1
    }

    fn column(&self, at: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.start[at]..self.start[at + 1];
        let values = &self.value[range.clone()];
        self.index[range]
            .iter()
            .zip(values)
            .map(|(index, value)| (*index as usize, *value))
    }
}

/// LU factorization of a basis matrix. A column is named by its place in the basis.
#[derive(Debug, Clone)]
pub(super) struct Factor {
    /// Pivots in order of elimination: row, place of the column in the basis, value.
    pivots: Vec<(usize, usize, f64)>,
    /// Factor L: for each pivot, the entries below it, divided by it; indexed by rows.
    lower: Columns,
    /// Elimination steps whose columns in `lower` have entries.
    lower_steps: Vec<usize>,
    /// Factor U: for each pivot, the entries above it; indexed by rows.
    upper: Columns,
    /// For each exchange, the new column expressed in the old basis: coefficients by place in the basis, without the pivot.
    exchanges: Columns,
    /// For each exchange, the place in the basis of the exchanged column, and the pivot's value.
    exchanged: Vec<(usize, f64)>,
    work: Vec<f64>,
}

impl Factor {
    /// Factorizes a basis matrix, given as one sparse column per place. The error has the places of
    /// linearly dependent columns, and as many rows that no column covers.
    pub fn new(columns: &[Vec<(usize, f64)>]) -> Result<Factor, (Vec<usize>, Vec<usize>)> {
        let m = columns.len();
        let order = Peeled::new(columns);
        let mut factor = Factor {
            pivots: Vec::with_capacity(m),
            lower: Columns::new(),
            lower_steps: Vec::new(),
            upper: Columns::new(),
            exchanges: Columns::new(),
            exchanged: Vec::new(),
            work: vec![0.0; m],
        };
        let mut step_of_row = vec![usize::MAX; m];
        let mut lost = Vec::new();
        for &(place, row) in &order.peeled {
            let mut pivot = 0.0;
            for (i, value) in &columns[place] {
                if *i == row {
                    pivot = *value;
                } else if step_of_row[*i] != usize::MAX {
                    factor.upper.push(*i, *value);
                }
            }
            if pivot.abs() < SINGULAR {
                lost.push(place);
                let begin = factor.upper.start[factor.upper.len()];
                factor.upper.index.truncate(begin);
                factor.upper.value.truncate(begin);
                continue;
            }
            for (i, value) in &columns[place] {
                if *i != row && step_of_row[*i] == usize::MAX {
                    factor.lower.push(*i, value / pivot);
                }
            }
            factor.close(row, place, pivot, &mut step_of_row);
        }
        let first = factor.pivots.len();
        for &place in &order.rest {
            if !factor.eliminate(
                &columns[place],
                place,
                first,
                &order.counts,
                &mut step_of_row,
            ) {
                lost.push(place);
            }
        }
        if lost.is_empty() {
            return Ok(factor);
        }
        let uncovered = (0..m).filter(|row| step_of_row[*row] == usize::MAX);
        Err((lost, uncovered.collect()))
    }

    fn close(&mut self, row: usize, place: usize, pivot: f64, step_of_row: &mut [usize]) {
        self.lower.end();
        self.upper.end();
        let step = self.pivots.len();
        if self.lower.start[step] != self.lower.start[step + 1] {
            self.lower_steps.push(step);
        }
        step_of_row[row] = step;
        self.pivots.push((row, place, pivot));
    }

    /// Eliminates a column that was not peeled; returns whether a large enough pivot was found in it.
    fn eliminate(
        &mut self,
        column: &[(usize, f64)],
        place: usize,
        first: usize,
        counts: &[u32],
        step_of_row: &mut [usize],
    ) -> bool {
        let mut work = std::mem::take(&mut self.work);
        // Rows in which `work` is not 0, each once.
        let mut rows: Vec<usize> = column.iter().map(|(i, _)| *i).collect();
        for (i, value) in column {
            work[*i] = *value;
        }
        // Steps of peeled rows are skipped: no remaining column has an entry in such a row.
        for step in first..self.pivots.len() {
            let factor = work[self.pivots[step].0];
            if factor != 0.0 {
                for (i, value) in self.lower.column(step) {
                    if work[i] == 0.0 {
                        rows.push(i);
                    }
                    work[i] -= factor * value;
                    if work[i] == 0.0 {
                        // The entry cancels, but its row stays listed.
                        work[i] = f64::MIN_POSITIVE;
                    }
                }
            }
        }
        let mut greatest = 0.0_f64;
        for &i in &rows {
            if step_of_row[i] == usize::MAX {
                greatest = greatest.max(work[i].abs());
            }
        }
        let is_pivot = greatest >= SINGULAR;
        let mut row = usize::MAX;
        if is_pivot {
            for &i in &rows {
                if step_of_row[i] == usize::MAX
                    && work[i].abs() >= THRESHOLD * greatest
                    && (row == usize::MAX || (counts[i], i) < (counts[row], row))
                {
                    row = i;
                }
            }
            let pivot = work[row];
            for &i in &rows {
                let value = work[i];
                if value.abs() <= TINY || i == row {
                    continue;
                }
                if step_of_row[i] == usize::MAX {
                    self.lower.push(i, value / pivot);
                } else {
                    self.upper.push(i, value);
                }
            }
            self.close(row, place, pivot, step_of_row);
        }
        for i in rows {
            work[i] = 0.0;
        }
        self.work = work;
        is_pivot
    }

    /// Number of columns exchanged since the factorization.
    pub fn exchanges(&self) -> usize {
        self.exchanged.len()
    }

    /// Solves B·z = x for the basis matrix B: `x` is indexed by rows on entry, and holds z by places on return.
    pub fn forward(&mut self, x: &mut Vec<f64>) {
        for &step in &self.lower_steps {
            let value = x[self.pivots[step].0];
            if value != 0.0 {
                for (i, entry) in self.lower.column(step) {
                    x[i] -= value * entry;
                }
            }
        }
        let work = &mut self.work;
        for step in (0..self.pivots.len()).rev() {
            let (row, place, pivot) = self.pivots[step];
            let value = x[row];
            if value == 0.0 {
                work[place] = 0.0;
                continue;
            }
            let value = value / pivot;
            work[place] = value;
            for (i, entry) in self.upper.column(step) {
                x[i] -= value * entry;
            }
        }
        std::mem::swap(x, work);
        for (at, &(place, pivot)) in self.exchanged.iter().enumerate() {
            let value = x[place];
            if value != 0.0 {
                let value = value / pivot;
                for (i, entry) in self.exchanges.column(at) {
                    x[i] -= value * entry;
                }
                x[place] = value;
            }
        }
    }

    /// Solves z·B = x for the basis matrix B: `x` is indexed by places on entry, and holds z by rows on return.
    pub fn backward(&mut self, x: &mut Vec<f64>) {
        for (at, &(place, pivot)) in self.exchanged.iter().enumerate().rev() {
            let mut value = x[place];
            for (i, entry) in self.exchanges.column(at) {
                value -= entry * x[i];
            }
            x[place] = value / pivot;
        }
        let work = &mut self.work;
        for (step, &(row, place, pivot)) in self.pivots.iter().enumerate() {
            let mut value = x[place];
            for (i, entry) in self.upper.column(step) {
                value -= entry * work[i];
            }
            work[row] = if value == 0.0 { 0.0 } else { value / pivot };
        }
        for &step in self.lower_steps.iter().rev() {
            let mut value = work[self.pivots[step].0];
            for (i, entry) in self.lower.column(step) {
                value -= entry * work[i];
            }
            work[self.pivots[step].0] = value;
        }
        std::mem::swap(x, work);
    }

    /// Replaces the basis column at a place by a new one, given as `column` in terms of the current basis.
    pub fn exchange(&mut self, place: usize, column: &[f64]) {
        for (i, value) in column.iter().enumerate() {
            if i != place && value.abs() > TINY {
                self.exchanges.push(i, *value);
            }
        }
        self.exchanges.end();
        self.exchanged.push((place, column[place]));
    }
}

/// Order in which the columns of a basis matrix are eliminated.
struct Peeled {
    /// Place and row of each pivot that needs no elimination: columns with one remaining entry, then rows with one.
    peeled: Vec<(usize, usize)>,
    /// Places of all other columns, the shortest column first.
    rest: Vec<usize>,
    /// For each row, its number of entries in the columns of `rest`.
    counts: Vec<u32>,
}

impl Peeled {
    fn new(columns: &[Vec<(usize, f64)>]) -> Peeled {
        let m = columns.len();
        let mut by_row: Vec<Vec<u32>> = vec![Vec::new(); m];
        let mut in_column = vec![0_u32; m];
        let mut in_row = vec![0_u32; m];
        for (place, column) in columns.iter().enumerate() {
            for (row, _) in column {
                by_row[*row].push(place as u32);
                in_row[*row] += 1;
            }
            in_column[place] = column.len() as u32;
        }
        let mut has_row = vec![false; m];
        let mut has_place = vec![false; m];
        let mut peeled = Vec::with_capacity(m);
        let mut due: Vec<usize> = (0..m)
            .rev()
            .filter(|place| in_column[*place] == 1)
            .collect();
        while let Some(place) = due.pop() {
            if has_place[place] || in_column[place] != 1 {
                continue;
            }
            let Some((row, _)) = columns[place].iter().find(|(row, _)| !has_row[*row]) else {
                continue;
            };
            has_place[place] = true;
            has_row[*row] = true;
            peeled.push((place, *row));
            for other in &by_row[*row] {
                let other = *other as usize;
                in_column[other] -= 1;
                if !has_place[other] && in_column[other] == 1 {
                    due.push(other);
                }
            }
        }
        for (place, column) in columns.iter().enumerate() {
            if has_place[place] {
                for (row, _) in column {
                    in_row[*row] -= 1;
                }
            }
        }
        let is_single = |row: &usize| in_row[*row] == 1;
        let mut due: Vec<usize> = (0..m)
            .rev()
            .filter(|row| !has_row[*row])
            .filter(is_single)
            .collect();
        while let Some(row) = due.pop() {
            if has_row[row] || in_row[row] != 1 {
                continue;
            }
            let place = by_row[row].iter().map(|place| *place as usize);
            let Some(place) = place.clone().find(|place| !has_place[*place]) else {
                continue;
            };
            has_place[place] = true;
            has_row[row] = true;
            peeled.push((place, row));
            for (other, _) in &columns[place] {
                in_row[*other] -= 1;
                if !has_row[*other] && in_row[*other] == 1 {
                    due.push(*other);
                }
            }
        }
        let mut rest: Vec<usize> = (0..m).filter(|place| !has_place[*place]).collect();
        rest.sort_by_key(|place| (in_column[*place], *place));
        Peeled {
            peeled,
            rest,
            counts: in_row,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sparse columns with a diagonal that makes them independent, and an order of rows.
    fn matrix() -> impl Strategy<Value = Vec<Vec<(usize, f64)>>> {
        (1_usize..12).prop_flat_map(|m| {
            let entry = prop_oneof![3 => Just(0.0), 2 => -2.0..2.0];
            let dense = prop::collection::vec(prop::collection::vec(entry, m), m);
            let rows = Just((0..m).collect::<Vec<_>>()).prop_shuffle();
            (dense, rows).prop_map(move |(dense, rows)| {
                let of = |place: usize| {
                    let column = dense[place].iter().enumerate();
                    let own = |i: usize| if i == rows[place] { 30.0 } else { 0.0 };
                    let all = column.map(|(i, value)| (i, value + own(i)));
                    all.filter(|(_, value)| *value != 0.0).collect()
                };
                (0..m).map(of).collect()
            })
        })
    }

    fn times(columns: &[Vec<(usize, f64)>], z: &[f64]) -> Vec<f64> {
        let mut x = vec![0.0; columns.len()];
        for (column, z) in columns.iter().zip(z) {
            for (row, value) in column {
                x[*row] += value * z;
            }
        }
        x
    }

    fn is_near(a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-8)
    }

    proptest! {
        #[test]
        fn both_ways_of_solving_undo_multiplication(
            columns in matrix(),
            z in prop::collection::vec(-5.0..5.0, 12),
            exchange in 0_usize..12,
        ) {
            let m = columns.len();
            let z = &z[..m];
            let mut columns = columns;
            let mut factor = Factor::new(&columns).unwrap();
            for _ in 0..2 {
                let mut x = times(&columns, z);
                factor.forward(&mut x);
                prop_assert!(is_near(&x, z));
                let mut y: Vec<f64> = columns
                    .iter()
                    .map(|column| column.iter().map(|(row, value)| value * z[*row]).sum())
                    .collect();
                factor.backward(&mut y);
                prop_assert!(is_near(&y, z));
                // Again with one column exchanged: twice itself plus a quarter of the next.
                let place = exchange % m;
                let mut terms = vec![0.0; m];
                terms[(place + 1) % m] = 0.25;
                terms[place] += 2.0;
                let column = times(&columns, &terms);
                columns[place] = column.into_iter().enumerate().filter(|(_, v)| *v != 0.0).collect();
                factor.exchange(place, &terms);
            }
        }
    }

    #[test]
    fn a_column_that_depends_on_others_is_named() {
        let columns = vec![
            vec![(0, 1.0), (1, 2.0)],
            vec![(0, 2.0), (1, 4.0)],
            vec![(2, 1.0)],
        ];
        let (lost, uncovered) = Factor::new(&columns).unwrap_err();
        assert_eq!((lost.len(), uncovered.len()), (1, 1));
        assert!(lost[0] < 2 && uncovered[0] < 2);
    }
}
