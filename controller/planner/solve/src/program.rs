//! A model in standard form: minimization, rows with a lower and an upper limit of their sum, stored by rows and by columns.

use super::model::{Cmp, MAX_ROWS, MAX_TERMS, MAX_VARIABLES, Model, Sense, SolveError};

/// Bounds of variables and rows of at least this magnitude count as infinite.
const INFINITE: f64 = 1e20;

/// Sparse matrix, stored as a list of rows or of columns (lines).
#[derive(Debug, Clone, Default)]
pub(super) struct Matrix {
    start: Vec<usize>,
    index: Vec<u32>,
    value: Vec<f64>,
}

impl Matrix {
    /// Nonzero entries of a row (or column, by how the matrix is stored): index of the column (or row), and value.
    pub fn line(&self, line: usize) -> impl ExactSizeIterator<Item = (usize, f64)> + '_ {
        let range = self.start[line]..self.start[line + 1];
        let values = &self.value[range.clone()];
        self.index[range]
            .iter()
            .zip(values)
            .map(|(index, value)| (*index as usize, *value))
    }

    /// Number of rows, or of columns, by how the matrix is stored.
    pub fn lines(&self) -> usize {
        self.start.len() - 1
    }

    /// A copy of the matrix with each entry multiplied by `by(line, index)`.
    pub fn mapped(&self, by: impl Fn(usize, usize) -> f64) -> Matrix {
        let mut matrix = self.clone();
        for line in 0..self.lines() {
            for at in self.start[line]..self.start[line + 1] {
                matrix.value[at] *= by(line, self.index[at] as usize);
            }
        }
        matrix
    }

    fn transposed(&self, lines: usize) -> Matrix {
        let mut start = vec![0; lines + 1];
        for index in &self.index {
            start[*index as usize + 1] += 1;
        }
        for line in 0..lines {
            start[line + 1] += start[line];
        }
        let mut next = start.clone();
        let mut index = vec![0; self.index.len()];
        let mut value = vec![0.0; self.index.len()];
        for line in 0..self.lines() {
            for (other, entry) in self.line(line) {
                index[next[other]] = line as u32;
                value[next[other]] = entry;
                next[other] += 1;
            }
        }
        Matrix {
            start,
            index,
            value,
        }
    }
}

/// Lower and upper bounds of all variables.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bounds {
    pub lower: Vec<f64>,
    pub upper: Vec<f64>,
}

impl Bounds {
    pub fn is_fixed(&self, column: usize) -> bool {
        self.lower[column] == self.upper[column]
    }

    /// The value within a variable's bounds that is nearest to `value`.
    pub fn clamp(&self, column: usize, value: f64) -> f64 {
        value.max(self.lower[column]).min(self.upper[column])
    }
}

/// Program in standard form: minimize `cost`·x over `low` ≤ A·x ≤ `high` and `bounds`.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub cost: Vec<f64>,
    pub bounds: Bounds,
    pub integer: Vec<bool>,
    pub low: Vec<f64>,
    pub high: Vec<f64>,
    pub rows: Matrix,
    pub columns: Matrix,
    /// 1, or −1 if the model maximizes. The model's objective is the program's cost times this.
    pub sign: f64,
}

impl Program {
    pub fn from_model(model: &Model) -> Result<Program, SolveError> {
        within(model)?;
        let n = model.variables();
        let sign = match model.sense {
            Sense::Minimize => 1.0,
            Sense::Maximize => -1.0,
        };
        let invalid = |what, index, trouble| SolveError::Invalid {
            what,
            index,
            trouble,
        };
        let mut lower = Vec::with_capacity(n);
        let mut upper = Vec::with_capacity(n);
        for j in 0..n {
            let (l, u) = (model.lower[j], model.upper[j]);
            if l.is_nan() || u.is_nan() {
                return Err(invalid("variable", j, "has a bound that is no number"));
            }
            if l >= INFINITE || u <= -INFINITE {
                return Err(invalid("variable", j, "has bounds beyond 1e20"));
            }
            if !is_finite(model.objective[j]) {
                return Err(invalid("variable", j, "has no finite objective"));
            }
            lower.push(if l <= -INFINITE { f64::NEG_INFINITY } else { l });
            upper.push(if u >= INFINITE { f64::INFINITY } else { u });
        }
        let mut low = Vec::with_capacity(model.rows());
        let mut high = Vec::with_capacity(model.rows());
        for i in 0..model.rows() {
            let rhs = model.rhs[i];
            if !is_finite(rhs) {
                return Err(invalid("row", i, "has no finite right-hand side"));
            }
            let (l, h) = match model.cmp[i] {
                Cmp::Le => (f64::NEG_INFINITY, rhs),
                Cmp::Ge => (rhs, f64::INFINITY),
                Cmp::Eq => (rhs, rhs),
            };
            low.push(l);
            high.push(h);
        }
        let rows = merged(model).map_err(|(i, trouble)| invalid("row", i, trouble))?;
        let columns = rows.transposed(n);
        Ok(Program {
            cost: model.objective.iter().map(|c| sign * c).collect(),
            bounds: Bounds { lower, upper },
            integer: model.integer.clone(),
            low,
            high,
            rows,
            columns,
            sign,
        })
    }

    /// Number of variables.
    pub fn width(&self) -> usize {
        self.cost.len()
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.low.len()
    }

    /// Cost of the values `x` of all variables.
    pub fn value(&self, x: &[f64]) -> f64 {
        self.cost.iter().zip(x).map(|(c, x)| c * x).sum()
    }

    pub fn has_integers(&self) -> bool {
        self.integer.contains(&true)
    }
}

/// Whether a number is not NaN, and below [`INFINITE`] in magnitude.
fn is_finite(number: f64) -> bool {
    number.abs() < INFINITE
}

fn within(model: &Model) -> Result<(), SolveError> {
    let of = |has: usize, what, limit: usize| match has > limit {
        true => Err(SolveError::TooLarge(has, what, limit)),
        false => Ok(()),
    };
    of(model.variables(), "variables", MAX_VARIABLES)?;
    of(model.rows(), "rows", MAX_ROWS)?;
    of(model.columns.len(), "terms", MAX_TERMS)
}

/// Rows of a model, each variable at most once per row, without zero coefficients.
fn merged(model: &Model) -> Result<Matrix, (usize, &'static str)> {
    let n = model.variables();
    // Position of a variable's term in the current row, if it has one.
    let mut place = vec![usize::MAX; n];
    let mut matrix = Matrix {
        start: vec![0],
        index: Vec::with_capacity(model.columns.len()),
        value: Vec::with_capacity(model.columns.len()),
    };
    for i in 0..model.rows() {
        let begin = matrix.index.len();
        for k in model.start[i]..model.start[i + 1] {
            let (column, value) = (model.columns[k], model.coefficients[k]);
            if !is_finite(value) {
                return Err((i, "has no finite coefficient"));
            }
            let Some(at) = place.get_mut(column as usize) else {
                return Err((i, "has a variable of another model"));
            };
            if *at != usize::MAX {
                matrix.value[*at] += value;
            } else if value != 0.0 {
                *at = matrix.index.len();
                matrix.index.push(column);
                matrix.value.push(value);
            }
        }
        // Drop canceled terms. The next row may begin before positions of this one.
        let mut end = begin;
        for at in begin..matrix.index.len() {
            place[matrix.index[at] as usize] = usize::MAX;
            if matrix.value[at] != 0.0 {
                matrix.index[end] = matrix.index[at];
                matrix.value[end] = matrix.value[at];
                end += 1;
            }
        }
        matrix.index.truncate(end);
        matrix.value.truncate(end);
        matrix.start.push(end);
    }
    Ok(matrix)
}
