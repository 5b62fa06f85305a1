//! Reveal's objective: of all ways to place what users need, one with which the loss of one point touches the fewest users,
//! and of these one of the least cost. Points are switches here, users are trainings and tenants.
//!
//! Our reading. Reveal places network functions on hosts and assigns users' requests to them; each user has at most k
//! functions and each function at most p users, so that what fails harms few; then the least cost is sought. Here p is what
//! is lessened first, unless it is given ([`Problem::most_users`]), and k is [`Problem::most_points`]. A [`Decision`] is what
//! is still open about one need: a plan of a training's gradients ([`plans`]). The program is solved where it is small
//! ([`solve()`]); where it is not, its relaxation is rounded, each decision to one of its options by the share that it has there, made feasible, and improved.

mod conflict;
mod exact;
pub mod plans;
mod problem;
mod round;
mod state;

pub use conflict::Conflict;
pub use problem::{
    Charge, ChargeId, Choice, Decision, DecisionId, Limit, LimitId, PointId, Problem, UserId,
};

use crate::solve::SolveError;
use state::State;

/// Variables of programs that are solved.
const MOST: usize = 4_000;

/// What stands where.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// By decision: its option.
    pub chosen: Vec<usize>,
    /// The users that the loss of the worst point touches.
    pub worst: usize,
    /// What all options cost.
    pub cost: f64,
    /// The loss of some point touches so many at least, whatever is chosen.
    pub bound: usize,
    /// Whether nothing touches fewer, nor as few at less cost.
    pub proven: bool,
}

/// Why nothing can be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A number points at nothing: of a `point`, a `user`, a `limit`, a `charge`, an `option`.
    Unknown(&'static str, usize),
    /// Nothing is left to choose from.
    NoOption(DecisionId),
    /// Constraints that cannot all hold.
    Conflict(Box<Conflict>),
    /// Nothing was found, and it was not shown that there is nothing.
    NotFound,
}

/// Chooses for all decisions. `start` is a choice that is known, to begin from. The same problem and seed have the same
/// answer.
///
/// # Errors
///
/// [`Refusal`], with the smallest set of constraints found that contradict each other.
pub fn solve(problem: &Problem, start: Option<&[usize]>, seed: u64) -> Result<Placed, Refusal> {
    problem.check()?;
    let found = round::place(problem, start, seed);
    if exact::variables(problem) > MOST {
        let bound = exact::bound(problem);
        return found
            .map(|chosen| placed(problem, chosen, bound, false))
            .ok_or(Refusal::NotFound);
    }
    match (exact::place(problem, found.as_deref()), found) {
        (Ok(exact), _) => Ok(placed(problem, exact.chosen, exact.bound, exact.proven)),
        (Err(SolveError::Infeasible), None) => Err(conflict::explain(problem)),
        (Err(_), Some(chosen)) => Ok(placed(problem, chosen, 0, false)),
        (Err(_), None) => Err(Refusal::NotFound),
    }
}

/// The rounding alone; `None` if it finds nothing, which there may be all the same.
///
/// # Errors
///
/// [`Refusal`] of a problem that makes no sense.
pub fn rounded(problem: &Problem, seed: u64) -> Result<Option<Placed>, Refusal> {
    problem.check()?;
    let found = round::place(problem, None, seed);
    Ok(found.map(|chosen| {
        let bound = exact::bound(problem);
        placed(problem, chosen, bound, false)
    }))
}

fn placed(problem: &Problem, chosen: Vec<usize>, bound: usize, proven: bool) -> Placed {
    let state = State::of(problem, &chosen);
    Placed {
        worst: state.worst(),
        cost: state.cost(),
        bound: bound.min(state.worst()),
        chosen,
        proven,
    }
}

impl Placed {
    /// Of each point the users that its loss touches.
    #[must_use]
    pub fn touched(&self, problem: &Problem) -> Vec<Vec<UserId>> {
        State::of(problem, &self.chosen).touched()
    }
}
