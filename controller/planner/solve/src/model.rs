//! What a planner asks, and what it is answered.

/// Whether less or more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// Less.
    Minimize,
    /// More.
    Maximize,
}

/// How a row's sum stands to its right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cmp {
    /// At most.
    Le,
    /// At least.
    Ge,
    /// Equal.
    Eq,
}

/// A variable's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Var(u32);

/// A row's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(u32);

impl Var {
    /// As an index of [`Answer::values`]: variables are numbered in the order in which they were added.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Row {
    /// As an index: rows are numbered in the order in which they were added.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn at(index: usize) -> Row {
        Row(index as u32)
    }
}

/// Variables, of models that are solved.
pub const MAX_VARIABLES: usize = 2_000_000;
/// Rows, of models that are solved.
pub const MAX_ROWS: usize = 2_000_000;
/// Terms over all rows, of models that are solved.
pub const MAX_TERMS: usize = 20_000_000;

/// A linear or mixed-integer program. Bounds of 1e20 or more count as none.
#[derive(Debug, Clone)]
pub struct Model {
    pub(super) sense: Sense,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) objective: Vec<f64>,
    pub(super) integer: Vec<bool>,
    /// The first term of each row, and the end of the last.
    pub(super) start: Vec<usize>,
    pub(super) columns: Vec<u32>,
    pub(super) coefficients: Vec<f64>,
    pub(super) cmp: Vec<Cmp>,
    pub(super) rhs: Vec<f64>,
    names: Vec<(Row, String)>,
}

impl Model {
    /// One without variables.
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

    /// Adds a variable that takes any value from `lower` to `upper` (infinities where there is no bound), `objective` a unit.
    pub fn variable(&mut self, lower: f64, upper: f64, objective: f64) -> Var {
        self.add(lower, upper, objective, false)
    }

    /// Adds a variable that takes whole values from `lower` to `upper` only.
    pub fn integer(&mut self, lower: f64, upper: f64, objective: f64) -> Var {
        self.add(lower, upper, objective, true)
    }

    /// Adds a variable that is 0 or 1.
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

    /// Adds a row: the terms' sum against `rhs`. A variable may stand in several terms: their coefficients are added.
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

    /// Some rows, in this order, with the variables that stand in them, and those whose bounds leave them no value.
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

    /// Names a row, for who reads a [`conflict`](super::conflict()).
    pub fn name(&mut self, row: Row, name: impl Into<String>) {
        let at = self.names.partition_point(|(named, _)| *named < row);
        match self.names.get_mut(at) {
            Some(entry) if entry.0 == row => entry.1 = name.into(),
            _ => self.names.insert(at, (row, name.into())),
        }
    }

    /// A row's name, if it was given one.
    #[must_use]
    pub fn row_name(&self, row: Row) -> Option<&str> {
        let at = self.names.binary_search_by_key(&row, |(named, _)| *named);
        at.ok().map(|at| self.names[at].1.as_str())
    }

    /// Gives a variable other bounds.
    pub fn bound(&mut self, var: Var, lower: f64, upper: f64) {
        self.lower[var.index()] = lower;
        self.upper[var.index()] = upper;
    }

    /// Gives a row another right-hand side.
    pub fn set_rhs(&mut self, row: Row, rhs: f64) {
        self.rhs[row.index()] = rhs;
    }

    /// Gives a variable another objective.
    pub fn set_objective(&mut self, var: Var, objective: f64) {
        self.objective[var.index()] = objective;
    }

    /// How many variables there are.
    #[must_use]
    pub fn variables(&self) -> usize {
        self.lower.len()
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.cmp.len()
    }
}

/// Values that meet every row and bound within [`TOLERANCE`](super::TOLERANCE), and how good they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// By [`Var::index`]. Within bounds exactly; whole where they have to be, in answers of [`milp`](super::milp()).
    pub values: Vec<f64>,
    /// What these values come to.
    pub objective: f64,
    /// What no values surpass, proved: at most the optimum if less is better, at least the optimum if more is; infinite where
    /// nothing could be proved.
    pub bound: f64,
    /// Whether bound and objective are as close as was asked.
    pub proven: bool,
    /// Relaxations that were solved for it.
    pub nodes: usize,
}

impl Answer {
    /// A variable's value.
    #[must_use]
    pub fn value(&self, var: Var) -> f64 {
        self.values[var.index()]
    }

    /// The distance of objective and bound as a share of the objective: infinite if nothing is proved.
    #[must_use]
    pub fn gap(&self) -> f64 {
        let distance = (self.bound - self.objective).abs();
        if distance == 0.0 {
            return 0.0;
        }
        distance / self.objective.abs()
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SolveError {
    /// No values meet all rows and bounds: proved.
    #[error("no values meet all constraints")]
    Infeasible,
    /// The objective can be bettered without end.
    #[error("the objective has no bound")]
    Unbounded,
    /// Neither an answer nor a proof that there is none.
    #[error("not solved: {0}")]
    Unsolved(Unsolved),
    /// More than we handle.
    #[error("{0} {1}; at most {2} are solved for")]
    TooLarge(usize, &'static str, usize),
    /// A number of the model is none, or one without sense.
    #[error("{what} {index} {trouble}")]
    Invalid {
        /// `variable` or `row`.
        what: &'static str,
        /// Its index.
        index: usize,
        /// What is wrong about it.
        trouble: &'static str,
    },
}

/// Why a model was not solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsolved {
    /// The limit of nodes was reached before any values were found.
    #[error("no values were found within the limit of nodes")]
    Nodes,
    /// What the solver found did not pass the checks.
    #[error(
        "the solver's answer did not pass the checks: the numbers are too far apart or too close"
    )]
    Numbers,
}
