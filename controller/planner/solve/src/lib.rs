//! Linear and integer programs, solved and checked.
//!
//! A [`Model`] is a planner's input: variables with bounds, rows, an objective, in the planner's own units (bit/s, for example:
//! the solver scales them). [`lp()`] and [`milp()`] solve it. No answer relies on the solver that found it: values are
//! evaluated against every row and bound, and [`Answer::bound`] is computed here from the solver's multipliers, with rounding
//! errors counted (weak duality over bounded variables; Neumaier and Shcherbina, *Safe bounds in linear and mixed-integer
//! linear programming*, 2004). Infeasibility is reported only with a checked Farkas certificate, interval arithmetic, or a
//! branch and bound that closed on these. [`conflict()`] returns the rows that contradict each other.
//!
//! Programs of up to some thousand variables, and all relaxations of a branch and bound, go to a dual simplex method first
//! (`simplex`); larger ones, and those that it does not solve, go to clarabel (`interior`). Nothing is random and no clock is
//! read: equal models have equal answers, to the bit.
//!
//! ```
//! use solve::{Cmp, Model, Sense, lp};
//!
//! let mut model = Model::new(Sense::Maximize);
//! let x = model.variable(0.0, 3e9, 1.0);
//! let y = model.variable(0.0, 3e9, 1.0);
//! model.constrain([(x, 1.0), (y, 2.0)], Cmp::Le, 4e9);
//! let answer = lp(&model).unwrap();
//! assert!(answer.proven && (answer.objective - 3.5e9).abs() < 1e3);
//! ```

mod branch;
mod check;
mod conflict;
mod dual;
mod factor;
mod heuristic;
mod interior;
mod lp;
mod milp;
mod model;
mod primal;
mod program;
mod propagate;
mod relax;
mod scale;
mod simplex;

pub use conflict::conflict;
pub use lp::lp;
pub use milp::{Limits, milp};
pub use model::{Answer, Cmp, Model, Row, Sense, SolveError, Unsolved, Var};

/// Relative tolerance for violated rows. The magnitude of a row is the greatest of its right-hand
/// side and its terms; each term is taken at its variable's value or farther bound.
pub const TOLERANCE: f64 = 1e-7;

/// Relative gap between objective and bound up to which an answer counts as proven.
pub const GAP: f64 = 1e-6;

/// Share of a sum's magnitude by which a row must be violated at least to refute a model.
const SLACK: f64 = 1e-9;
