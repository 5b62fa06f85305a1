//! Linear and integer programs, solved and checked.
//!
//! A [`Model`] is what a planner writes: variables with bounds, rows, an objective, in the planner's own units (bit/s as they
//! are: scaling is done here). [`lp()`] and [`milp()`] solve it. No answer rests on the word of the solver that found it: the
//! values are tried against every row and bound, and [`Answer::bound`] is computed here from the solver's multipliers, with
//! rounding errors counted (weak duality over bounded variables; Neumaier and Shcherbina, *Safe bounds in linear and
//! mixed-integer linear programming*, 2004). That there is no answer is believed only of a checked Farkas certificate, of
//! interval arithmetic, or of a branch and bound that closed on these. [`conflict()`] says which rows are at odds.
//!
//! Programs of up to some thousand variables, and all relaxations of a branch and bound, go to a dual simplex method first
//! (`simplex`); larger ones, and what it does not solve, to clarabel (`interior`). Nothing is random and no clock is read:
//! the same model has the same answer to the bit.
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

/// By how much a row may be missed, as a share of its magnitude: the greatest of its right-hand side and its terms, each term
/// taken at the value or the farther bound of its variable.
pub const TOLERANCE: f64 = 1e-7;

/// The share of the objective that may lie between it and a bound that is said to prove it.
pub const GAP: f64 = 1e-6;

/// The share of a sum's magnitude by which rows may be missed before that refutes anything.
const SLACK: f64 = 1e-9;
