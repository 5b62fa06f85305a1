//! Reveal's objective: places the needs of users so that the loss of one point touches the fewest users, then at the least
//! cost. Points are switches here, users are trainings and tenants.
//!
//! Our reading: Reveal places network functions on hosts and assigns users' requests to them. Each user has at most k functions
//! and each function at most p users, so that a failure harms few users; then the cost is minimized. Here p is minimized first,
//! unless it is given ([`RobustProblem::most_users`]), and k is [`RobustProblem::most_points`]. A [`Decision`] is the choice
//! for one need, such as a plan of a training's gradients ([`plans`]). A small program is solved ([`solve()`]). For a large
//! one, the relaxation is rounded, each decision to one of its options by the option's share, made feasible, and improved.

mod conflict;
mod exact;
pub mod plans;
mod problem;
mod round;
mod state;

pub use conflict::RobustConflict;
pub use problem::{
    Decision, DecisionId, DecisionOption, LimitId, OptionCharge, OptionChargeId, PointId,
    ResourceLimit, RobustProblem, UserId,
};

use crate::solve::SolveError;
use state::State;

/// Maximum number of variables of an integer program that is solved exactly.
const MOST: usize = 4_000;

/// Result of robust placement: the option chosen for each decision.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenOptions {
    /// For each decision, the index of its chosen option.
    pub chosen: Vec<usize>,
    /// Number of users (trainings) that the loss of the worst point (switch) touches.
    pub worst: usize,
    /// Total cost of all chosen options.
    pub cost: f64,
    /// Lower bound of `worst` for any choice.
    pub bound: usize,
    /// Whether `worst`, and then the cost, are proved to be the least possible.
    pub proven: bool,
}

/// Why robust placement has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RobustRefusal {
    /// An index is out of range: what it is an index of (`point`, `user`, `limit`, `charge` or `option`), and its value.
    Unknown(&'static str, usize),
    /// This decision has no option.
    NoOption(DecisionId),
    /// No choice of options meets these constraints together.
    Conflict(Box<RobustConflict>),
    /// Neither a result was found nor a proof that there is none.
    NotFound,
}

/// Chooses an option for each decision. `start` is a known choice, by decision. Equal problems and seeds give equal results.
///
/// # Errors
///
/// [`RobustRefusal`], with the smallest set of constraints found that contradict each other.
pub fn solve(
    problem: &RobustProblem,
    start: Option<&[usize]>,
    seed: u64,
) -> Result<ChosenOptions, RobustRefusal> {
    problem.check()?;
    let found = round::place(problem, start, seed);
    if exact::variables(problem) > MOST {
        let bound = exact::bound(problem);
        return found
            .map(|chosen| placed(problem, chosen, bound, false))
            .ok_or(RobustRefusal::NotFound);
    }
    match (exact::place(problem, found.as_deref()), found) {
        (Ok(exact), _) => Ok(placed(problem, exact.chosen, exact.bound, exact.proven)),
        (Err(SolveError::Infeasible), None) => Err(conflict::explain(problem)),
        (Err(_), Some(chosen)) => Ok(placed(problem, chosen, 0, false)),
        (Err(_), None) => Err(RobustRefusal::NotFound),
    }
}

/// Solves a problem by rounding only; `None` if that finds no result, which is no proof that there is none.
///
/// # Errors
///
/// [`RobustRefusal`] if the problem is invalid.
pub fn rounded(problem: &RobustProblem, seed: u64) -> Result<Option<ChosenOptions>, RobustRefusal> {
    problem.check()?;
    let found = round::place(problem, None, seed);
    Ok(found.map(|chosen| {
        let bound = exact::bound(problem);
        placed(problem, chosen, bound, false)
    }))
}

fn placed(
    problem: &RobustProblem,
    chosen: Vec<usize>,
    bound: usize,
    proven: bool,
) -> ChosenOptions {
    let state = State::with_chosen(problem, &chosen);
    ChosenOptions {
        worst: state.worst(),
        cost: state.cost(),
        bound: bound.min(state.worst()),
        chosen,
        proven,
    }
}

impl ChosenOptions {
    /// For each point (switch), the users (trainings) that its loss touches.
    #[must_use]
    pub fn touched(&self, problem: &RobustProblem) -> Vec<Vec<UserId>> {
        State::with_chosen(problem, &self.chosen).touched()
    }
}
