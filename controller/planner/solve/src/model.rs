//! The models that planners write (variables, rows, objective), and the answers that they get.

/// Direction of optimization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// A lower objective is better.
    Minimize,
    /// A higher objective is better.
    Maximize,
}

/// Relation between the sum of a row's terms and its right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cmp {
    /// The sum is at most the right-hand side.
    Le,
    /// The sum is at least the right-hand side.
    Ge,
    /// The sum equals the right-hand side.
    Eq,
}

/// Number of a variable in its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Var(u32);

/// Number of a row in its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(u32);

impl Var {
    /// Index into [`Answer::values`]: variables are numbered from 0 in the order in which they were added.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Row {
    /// Index of the row in its model: rows are numbered from 0 in the order in which they were added.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn at(index: usize) -> Row {
        Row(index as u32)
    }
}

/// Maximum number of variables in a model.
pub const MAX_VARIABLES: usize = 2_000_000;
/// Maximum number of rows in a model.
pub const MAX_ROWS: usize = 2_000_000;
/// Maximum number of terms in all rows of a model.
pub const MAX_TERMS: usize = 20_000_000;

/// A linear or mixed-integer program. A bound of 1e20 or more counts as infinite.
#[derive(Debug, Clone)]
pub struct Model {
    pub(super) sense: Sense,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) objective: Vec<f64>,
    pub(super) integer: Vec<bool>,
    /// For each row, the index of its first term; then the end of the last row.
    pub(super) start: Vec<usize>,
    pub(super) columns: Vec<u32>,
    pub(super) coefficients: Vec<f64>,
    pub(super) cmp: Vec<Cmp>,
    pub(super) rhs: Vec<f64>,
    names: Vec<(Row, String)>,
}

impl Model {
    /// A model without variables.
    #[must_use]
    pub fn new(sense: Sense) -> Model {
        Model {
            sense,
            lower: Vec::new(),
            upper: Vec::new(),
            objective: Vec::new(),
            integer: Vec::new(),
            start: vec![0],
            columns: Vec::new(),
            coefficients: Vec::new(),
            cmp: Vec::new(),
            rhs: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Adds a variable with values from `lower` to `upper` (infinite: no bound); each unit adds `objective` to the objective.
    pub fn variable(&mut self, lower: f64, upper: f64, objective: f64) -> Var {
        self.add(lower, upper, objective, false)
    }

    /// Adds a variable with whole values from `lower` to `upper` only.
    pub fn integer(&mut self, lower: f64, upper: f64, objective: f64) -> Var {
        self.add(lower, upper, objective, true)
    }

    /// Adds a variable with the values 0 and 1.
    pub fn binary(&mut self, objective: f64) -> Var {
        self.integer(0.0, 1.0, objective)
    }

    fn add(&mut self, lower: f64, upper: f64, objective: f64, integer: bool) -> Var {
        let var = Var(self.lower.len() as u32);
        self.lower.push(lower);
        self.upper.push(upper);
        self.objective.push(objective);
        self.integer.push(integer);
        var
    }

    /// Adds a row that compares the sum of its terms with `rhs`. Coefficients of terms with the same variable are added.
    pub fn constrain(
        &mut self,
        terms: impl IntoIterator<Item = (Var, f64)>,
        cmp: Cmp,
        rhs: f64,
    ) -> Row {
        let row = Row::at(self.cmp.len());
        for (var, coefficient) in terms {
            self.columns.push(var.0);
            self.coefficients.push(coefficient);
        }
        self.start.push(self.columns.len());
        self.cmp.push(cmp);
        self.rhs.push(rhs);
        row
    }

    /// Model of the given rows, in this order, with the variables in them and those whose bounds contradict each other.
    pub(super) fn only(&self, rows: &[usize]) -> Model {
        let mut part = Model::new(self.sense);
        let mut number: Vec<Option<Var>> = vec![None; self.lower.len()];
        let mut var = |part: &mut Model, column: usize| {
            *number[column].get_or_insert_with(|| {
                let (lower, upper) = (self.lower[column], self.upper[column]);
                part.add(lower, upper, self.objective[column], self.integer[column])
            })
        };
        for column in 0..self.lower.len() {
            let (lower, upper) = (self.lower[column], self.upper[column]);
            let is_empty = match self.integer[column] {
                true => libm::ceil(lower) > libm::floor(upper),
                false => lower > upper,
            };
            if is_empty {
                var(&mut part, column);
            }
        }
        for &row in rows {
            let terms = (self.start[row]..self.start[row + 1])
                .map(|term| {
                    let var = var(&mut part, self.columns[term] as usize);
                    (var, self.coefficients[term])
                })
                .collect::<Vec<_>>();
            part.constrain(terms, self.cmp[row], self.rhs[row]);
        }
        part
    }

    /// Names a row, for readers of a [`conflict`](super::conflict()).
    pub fn name(&mut self, row: Row, name: impl Into<String>) {
        let at = self.names.partition_point(|(named, _)| *named < row);
        match self.names.get_mut(at) {
            Some(entry) if entry.0 == row => entry.1 = name.into(),
            _ => self.names.insert(at, (row, name.into())),
        }
    }

    /// Name of a row; `None` if it has none.
    #[must_use]
    pub fn row_name(&self, row: Row) -> Option<&str> {
        let at = self.names.binary_search_by_key(&row, |(named, _)| *named);
        at.ok().map(|at| self.names[at].1.as_str())
    }

    /// Changes the bounds of a variable.
    pub fn bound(&mut self, var: Var, lower: f64, upper: f64) {
        self.lower[var.index()] = lower;
        self.upper[var.index()] = upper;
    }

    /// Changes the right-hand side of a row.
    pub fn set_rhs(&mut self, row: Row, rhs: f64) {
        self.rhs[row.index()] = rhs;
    }

    /// Changes how much each unit of a variable adds to the objective.
    pub fn set_objective(&mut self, var: Var, objective: f64) {
        self.objective[var.index()] = objective;
    }

    /// Number of variables.
    #[must_use]
    pub fn variables(&self) -> usize {
        self.lower.len()
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.cmp.len()
    }
}

/// Values of variables that meet every row and bound within [`TOLERANCE`](super::TOLERANCE), and how good they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Values of variables by [`Var::index`]. Exactly within bounds; integers are whole in answers of [`milp`](super::milp()).
    pub values: Vec<f64>,
    /// Objective of these values.
    pub objective: f64,
    /// Proved bound of the objective of any values: at most the optimum for [`Sense::Minimize`], at least the optimum for
    /// [`Sense::Maximize`]; infinite if nothing could be proved.
    pub bound: f64,
    /// Whether bound and objective are as close as the caller requested.
    pub proven: bool,
    /// Number of relaxations that the solver solved.
    pub nodes: usize,
}

impl Answer {
    /// Value of a variable in the answer.
    #[must_use]
    pub fn value(&self, var: Var) -> f64 {
        self.values[var.index()]
    }

    /// Distance between objective and bound as a share of the objective; infinite if no bound is proved.
    #[must_use]
    pub fn gap(&self) -> f64 {
        let distance = (self.bound - self.objective).abs();
        if distance == 0.0 {
            return 0.0;
        }
        distance / self.objective.abs()
    }
}

/// Why a model has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SolveError {
    /// It is proved that no values meet all rows and bounds.
    #[error("no values meet all constraints")]
    Infeasible,
    /// The objective can be improved without limit.
    #[error("the objective has no bound")]
    Unbounded,
    /// The solver found neither an answer nor a proof that there is none.
    #[error("not solved: {0}")]
    Unsolved(Unsolved),
    /// The model exceeds a maximum: its number of items, their kind, and the maximum.
    #[error("{0} {1}; at most {2} are supported")]
    TooLarge(usize, &'static str, usize),
    /// A number in the model is not finite, or not valid at its place.
    #[error("{what} {index} {trouble}")]
    Invalid {
        /// Kind of the item with the number: `variable` or `row`.
        what: &'static str,
        /// Index of that variable or row.
        index: usize,
        /// Description of the error.
        trouble: &'static str,
    },
}

/// Why the solver found neither an answer nor a proof that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsolved {
    /// The limit of nodes was reached before any solution was found.
    #[error("no values were found within the limit of nodes")]
    Nodes,
    /// The solver's result did not pass the checks.
    #[error(
        "the solver's answer did not pass the checks: the numbers are too far apart or too close"
    )]
    Numbers,
}
