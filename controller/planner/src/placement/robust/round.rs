//! Reveal's rounding, in our reading: each decision takes one of its options at random, by the options' shares in the
//! relaxation, among those that earlier choices allow. Then decisions are changed one by one as long as that helps.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::exact;
use super::problem::RobustProblem;
use super::state::{State, is_less};

/// Number of roundings of one relaxation; each is random.
const ROUNDINGS: usize = 8;
/// Maximum number of improving passes over all decisions.
const PASSES: usize = 20;

/// The best choice of options that was found; `None` if no valid choice was found.
pub(super) fn place<'p>(
    problem: &'p RobustProblem,
    start: Option<&[usize]>,
    seed: u64,
) -> Option<Vec<usize>> {
    let shares = exact::relaxed(problem);
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut best: Option<State<'p>> = None;
    let mut consider = |state: Option<State<'p>>| {
        let Some(mut state) = state.filter(State::is_valid) else {
            return;
        };
        improve(problem, &mut state);
        let known = best.as_ref().map(State::merit);
        if known.is_none_or(|known| is_less(state.merit(), known)) {
            best = Some(state);
        }
    };
    let has_all = |start: &&[usize]| {
        let options = problem
            .decisions
            .iter()
            .map(|decision| decision.options.len());
        start.len() == problem.decisions.len() && start.iter().zip(options).all(|(o, all)| *o < all)
    };
    consider(
        start
            .filter(has_all)
            .map(|start| State::with_chosen(problem, start)),
    );
    consider(drawn(problem, None, &mut rng));
    for _ in 0..ROUNDINGS {
        if let Some(shares) = &shares {
            consider(drawn(problem, Some(shares), &mut rng));
        }
    }
    best.and_then(|best| best.chosen())
}

/// Chooses for one decision after the other, fewest options first: at random by `shares`, or, without shares, the best option.
fn drawn<'p>(
    problem: &'p RobustProblem,
    shares: Option<&Vec<Vec<f64>>>,
    rng: &mut ChaCha12Rng,
) -> Option<State<'p>> {
    let mut order: Vec<usize> = (0..problem.decisions.len()).collect();
    order.sort_by_key(|decision| problem.decisions[*decision].options.len());
    let mut state = State::new(problem);
    for decision in order {
        let mut fitting = Vec::new();
        for option in 0..problem.decisions[decision].options.len() {
            state.put(decision, option);
            if state.is_valid() {
                fitting.push((option, state.merit()));
            }
            state.lift(decision);
        }
        let (first, _) = *fitting.first()?;
        let option = match shares {
            None => {
                let best = fitting.iter().copied().reduce(|best, other| {
                    if is_less(other.1, best.1) {
                        other
                    } else {
                        best
                    }
                });
                best.map_or(first, |(option, _)| option)
            }
            Some(shares) => {
                let of = |option: usize| shares[decision][option].max(0.0);
                let all: f64 = fitting.iter().map(|(option, _)| of(*option)).sum();
                let mut left = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * all;
                let drawn = fitting.iter().find(|(option, _)| {
                    left -= of(*option);
                    left < 0.0
                });
                drawn.map_or(first, |(option, _)| *option)
            }
        };
        state.put(decision, option);
    }
    Some(state)
}

/// Changes decisions one by one as long as that improves the choice.
fn improve(problem: &RobustProblem, state: &mut State<'_>) {
    for _ in 0..PASSES {
        let before = state.merit();
        for decision in 0..problem.decisions.len() {
            let Some(was) = state.lift(decision) else {
                continue;
            };
            state.put(decision, was);
            let mut best = (was, state.merit());
            for option in 0..problem.decisions[decision].options.len() {
                state.lift(decision);
                state.put(decision, option);
                let merit = state.merit();
                if is_less(merit, best.1) && state.is_valid() {
                    best = (option, merit);
                }
            }
            state.lift(decision);
            state.put(decision, best.0);
        }
        if !is_less(state.merit(), before) {
            return;
        }
    }
}
